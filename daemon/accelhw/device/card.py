"""A card: HBM, the transfer engine on its internal bus, and the ports of its network module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time_ns

import numpy as np

from accelhw.device.dma import TransferEngine
from accelhw.device.ecc import Ecc
from accelhw.device.faults import CardFaults, Silence, Teller
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.interface.messages import ChannelMapEntry
from accelhw.interface.tables import CARD_READY, CARD_RESETTING, Tables
from accelhw.model.event import Severity
from accelhw.model.latency import modelled_ns, modelled_pcie_ns
from accelhw.model.profile import Profile
from accelhw.model.transfer import TransferKind

RESET_NS = 300_000_000  # from reset to lasers on: leaving low power, as modules of the field need

ENGINE_FIELDS = ("bus_read_bytes", "bus_written_bytes")


class Card:
    """One card. `build_port` is handed in, because a port needs its card's transfer engine."""

    def __init__(
        self,
        name: str,
        profile: Profile,
        hbm: Hbm,
        *,
        card_row: int,
        port_rows: Sequence[tuple[int, slice]],
        build_port: Callable[[int, TransferEngine], Port],
        channel_map: Sequence[ChannelMapEntry],
        tables: Tables,
        seed: int = 1,
        around: Teller | None = None,
    ) -> None:
        self.name = name
        self.profile = profile
        self.memory = TransferEngine(name, hbm, model=self._model, wall_ns=time_ns)
        self.ports = [build_port(oe, self.memory) for oe in range(profile.oes)]
        self._around: Teller = around or Silence()
        self.ecc = Ecc(name, hbm.size_bytes, profile.hbm_stacks, seed)
        self.memory.readable.bad_address = self.ecc.bad_address
        self.faults = CardFaults(
            name, profile, self.ports, self.ecc, self.memory.windows.all, self._around
        )
        self.channel_map = tuple(channel_map)
        self.row = card_row
        self.state = CARD_RESETTING
        self.resets = 0
        self.ready_since_ns = 0
        self._port_rows = port_rows
        self._tables = tables
        self._resume()
        self._set_stripes(range(profile.oes))

    # ---- life ----

    def power_on(self, now_ns: int) -> None:
        """Ready: lasers on where ports are switched on."""
        self.state = CARD_READY
        self.ready_since_ns = time_ns()
        for port in self.ports:
            port.enable(now_ns)

    def reset(self, now_ns: int) -> None:
        """Links down and transfers ended; HBM and windows stay. `power_on` must follow."""
        windows = self.memory.windows.all()
        self.memory.reset(now_ns)
        self._remap_rows()
        for window in windows:
            self.memory.windows.register(window)
        for port in self.ports:
            port.halt(now_ns)
        self.resets += 1
        self.state = CARD_RESETTING
        self.ready_since_ns = 0

    def _remap_rows(self) -> None:
        """Spare rows of HBM stand in for those that went bad; they hold nothing yet."""
        lost = self.ecc.reset()
        for start, length in lost:
            self.memory.hbm.lose(start, length)
        if lost:
            self._around.report(
                "HBM_ROWS_REMAPPED",
                Severity.WARNING,
                self.name,
                f"spare rows of HBM stand in for {len(lost)} bad ones, whose content is lost",
                rows=len(lost),
                first=f"0x{lost[0][0]:x}",
            )

    # ---- time ----

    def beat(self, now_ns: int) -> None:
        """Every half second: counters move on, light is looked at, carriers are sent."""
        self.faults.advance(now_ns)
        self.tend_memory(now_ns)
        for port in self.ports:
            port.beat(now_ns)

    def tend_memory(self, now_ns: int) -> None:
        """The errors of HBM since the last time."""
        causes = self.faults.card_causes
        extra_sbe, extra_dbe = (causes.get(f"hbm_{kind}_per_s", 0.0) for kind in ("sbe", "dbe"))
        double_errors = self.ecc.advance(now_ns, extra_sbe, extra_dbe)
        for row in self.ecc.draw_rows(double_errors, self.memory.windows.all()):
            self.faults.strike_row(row)

    def set_channel_map(self, entries: Sequence[ChannelMapEntry], now_ns: int) -> None:
        """Apply a whole map. Ports whose lanes got other channels train again; data waits."""
        before = {(e.oe, e.lane): e.channel for e in self.channel_map}
        moved = {e.oe for e in entries if before.get((e.oe, e.lane)) != e.channel}
        self.channel_map = tuple(entries)
        self._set_stripes(moved)
        for oe in sorted(moved):
            self.ports[oe].retrain(now_ns)

    def _set_stripes(self, oes: Sequence[int] | set[int] | range) -> None:
        """Each port deals its bits over its lanes in the order of their channels."""
        for oe in oes:
            lanes = [
                e.lane for e in sorted(self.channel_map, key=lambda e: e.channel) if e.oe == oe
            ]
            self.ports[oe].optics.set_stripe(lanes)

    # ---- the model of time ----

    def _model(self, kind: int, nbytes: int, names: tuple[str, ...]) -> tuple[int, int]:
        """Nanoseconds that the card would need, and PCIe 5.0 x16 for the same bytes."""
        if kind == TransferKind.LOCAL:
            gbyte_per_s = min(self.profile.bus_gbyte_per_s, self.profile.hbm_gbyte_per_s / 2)
            fixed_ns = 2 * self.profile.latency.hbm_ns
            return round(fixed_ns + nbytes / gbyte_per_s), modelled_pcie_ns(nbytes)
        used = [port for port in self.ports if str(port.id) in names]
        lanes = sum(port.trainer.width or port.optics.lanes for port in used)
        if not lanes:
            return 0, modelled_pcie_ns(nbytes)
        length_m = max(port.fibre.length_m for port in used if port.fibre is not None)
        slowest = max((port.trainer.mode for port in used), key=lambda mode: mode.number)
        light_ns = modelled_ns(self.profile, nbytes, lanes, length_m, slowest)
        return light_ns, modelled_pcie_ns(nbytes)

    # ---- showing itself ----

    def write_rows(self) -> None:
        """Write the card's, its ports' and its lanes' rows of the status tables."""
        tables = self._tables
        with tables.writing(self.row):
            row = tables.card[self.row]
            row["state"] = self.state
            row["resets"] = self.resets
            row["ready_since_ns"] = self.ready_since_ns
            self._write_engine_counts(row)
            self.ecc.write_row(row)
            for port, (port_row, lanes) in zip(self.ports, self._port_rows, strict=True):
                port.rows.write(tables.port[port_row], tables.lane[lanes], tables.lane_flag[lanes])
            optics = self.ports[0].optics
            optics.bank.moved(optics.card, self.memory.counters.moved_bytes)
            optics.bank.write_card(optics.card, row, tables.card_flag[self.row])

    def write_counts(self) -> None:
        """Of `write_rows` only what moves with each byte: cheap enough to be done often."""
        tables = self._tables
        with tables.writing(self.row):
            self._write_engine_counts(tables.card[self.row])
            for port, (port_row, _) in zip(self.ports, self._port_rows, strict=True):
                port.rows.write_counts(tables.port[port_row])

    def _write_engine_counts(self, row: np.void) -> None:
        counters = self.memory.counters
        for name in ENGINE_FIELDS:
            row[name] = getattr(counters, name)

    def _resume(self) -> None:
        """Counters go on from what an earlier life of the worker left."""
        tables = self._tables
        row = tables.card[self.row]
        self.resets = int(row["resets"])
        counters = self.memory.counters
        for name in ENGINE_FIELDS:
            setattr(counters, name, int(row[name]))
        self.ecc.resume(row)
        for port, (port_row, lanes) in zip(self.ports, self._port_rows, strict=True):
            port.rows.resume(tables.port[port_row], tables.lane[lanes], tables.lane_flag[lanes])
        optics = self.ports[0].optics
        optics.bank.resume_card(optics.card, counters.moved_bytes, tables.card_flag[self.row])
