"""The rows of the status tables that the chassis writes: workers, and cards nobody carries."""

from __future__ import annotations

from accelhw.chassis.plan import CardPlace
from accelhw.interface.tables import CARD_FELL_OFF_BUS, Tables
from accelhw.model.link import DownReason, LinkState, TrainingPhase


class StatusRows:
    def __init__(self, fd: int, rows: tuple[int, int, int, int]) -> None:
        self._tables: Tables | None = Tables.attach(fd, rows, writable=True)

    @property
    def tables(self) -> Tables:
        assert self._tables is not None
        return self._tables

    def place(self, place: CardPlace) -> None:
        """A card at power-on: no state yet, every link down though switched on."""
        tables = self.tables
        with tables.writing(place.card_row):
            tables.card["worker"][place.card_row] = place.worker
            ports = tables.port[place.port_rows]
            ports["state"] = LinkState.DOWN
            ports["admin_up"] = 1
            ports["reason_lane"] = ports["peer_reason_lane"] = ports["peer_oe"] = -1
            tables.lane["peer_lane"][place.lane_rows] = -1

    def worker_started(self, worker: int, pid: int, life: int) -> None:
        row = self.tables.worker[worker]
        row["pid"], row["alive"], row["restarts"] = pid, 1, life

    def worker_died(self, worker: int) -> None:
        row = self.tables.worker[worker]
        row["pid"], row["alive"] = 0, 0

    def card_lost(self, place: CardPlace) -> None:
        """What a card shows whose worker is gone: dark and down. Counters stay as they were."""
        tables = self.tables
        with tables.writing(place.card_row):
            card = tables.card[place.card_row]
            card["state"], card["ready_since_ns"] = CARD_FELL_OFF_BUS, 0
            ports = tables.port[place.port_rows]
            up = (ports["state"] == LinkState.UP) | (ports["state"] == LinkState.DEGRADED)
            ports["downs"] += up
            ports["state"] = LinkState.DOWN
            ports["phase"] = TrainingPhase.OFF
            ports["reason"] = DownReason.CARD_RESET
            ports["reason_lane"], ports["reason_lanes"] = -1, 0
            for name in ("width", "up_since_ns", "in_flight_frames", "credit_frames"):
                ports[name] = 0
            lanes = tables.lane[place.lane_rows]
            lanes["tx_on"] = lanes["used"] = 0

    def close(self) -> None:
        """Let go of the mapping; the memory lives with its descriptors."""
        self._tables = None
