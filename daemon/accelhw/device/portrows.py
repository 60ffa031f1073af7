"""The rows of the status tables that a port shows itself in, and begins again from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accelhw.device.portcounters import SUM_FIELDS
from accelhw.model.link import LinkState

if TYPE_CHECKING:
    from accelhw.device.port import Port

# What the port counts itself, beside its data path.
OWN_FIELDS = (
    "trainings", "training_failures", "downs", "recoveries", "recovery_failures", "flaps",
    "flaps_damped", "fallbacks", "equaliser_requests",
)  # fmt: skip


class PortRows:
    """Of one port."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._earlier = dict.fromkeys(OWN_FIELDS, 0)  # counts of an earlier life
        self._counted_frames = 0

    def write(
        self, row: np.void, lanes: NDArray[np.void], flags: NDArray[np.void] | None = None
    ) -> None:
        """Write this port's row, its lanes' rows and their flags', in place."""
        port, trainer = self._port, self._port.trainer
        reason, peer_reason, peer = trainer.reason, trainer.peer_reason, trainer.peer
        row["state"] = trainer.state
        row["phase"] = trainer.phase
        row["admin_up"] = port.admin_up
        row["reason"] = reason.code
        row["reason_lane"] = -1 if reason.lane is None else reason.lane
        row["reason_lanes"] = reason.blamed
        row["peer_reason"] = peer_reason.code
        row["peer_reason_lane"] = -1 if peer_reason.lane is None else peer_reason.lane
        row["width"] = trainer.width
        row["mode"] = trainer.mode.number + 1
        row["epoch"] = trainer.epoch
        row["peer_oe"] = -1 if peer is None else peer.oe
        row["peer_card"] = b"" if peer is None else peer.card.encode()
        row["peer_chassis"] = b"" if peer is None else peer.chassis.encode()
        row["up_since_ns"] = port.up_since_ns
        row["training_ns"] = trainer.training_ns
        row["rtt_ns"] = port.data.rtt_ns or trainer.rtt_ns
        row["trainings"] = self._earlier["trainings"] + trainer.trainings
        row["training_failures"] = self._earlier["training_failures"] + trainer.failures
        row["downs"] = self._earlier["downs"] + port.downs
        row["equaliser_requests"] = (
            self._earlier["equaliser_requests"] + trainer.lanes.equaliser.requests
        )
        for name in ("recoveries", "recovery_failures", "flaps", "flaps_damped", "fallbacks"):
            row[name] = self._earlier[name] + getattr(trainer, name)
        self._write_counts(row)
        port.optics.write_rows(lanes)
        port.optics.write_port(row)
        if flags is not None:
            port.optics.write_flags(flags)

    def write_counts(self, row: np.void) -> None:
        """Of frames, its own and those of its virtual channels; nothing if there were none."""
        counters = self._port.counters
        if counters.tx_frames + counters.rx_frames != self._counted_frames:
            self._write_counts(row)

    def _write_counts(self, row: np.void) -> None:
        port, counters = self._port, self._port.counters
        self._counted_frames = counters.tx_frames + counters.rx_frames
        for name in SUM_FIELDS:
            row[name] = getattr(counters, name)
        row["in_flight_frames"] = port.in_flight_frames
        row["credit_frames"] = counters.credit_frames + port.channels.gauge("credit_frames")

    def resume(
        self, row: np.void, lanes: NDArray[np.void], flags: NDArray[np.void] | None = None
    ) -> None:
        """Go on from the counts and flags that an earlier life left in the tables."""
        port = self._port
        for name in SUM_FIELDS:
            setattr(port.counters, name, int(row[name]))
        for name in OWN_FIELDS:
            self._earlier[name] = int(row[name])
        if LinkState.UP <= row["state"] <= LinkState.DEGRADED:
            self._earlier["downs"] += 1  # that life's end took the link down
        port.optics.resume(lanes, row, flags)
