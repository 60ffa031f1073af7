"""All lanes of many ports as one structure of arrays: the light, its errors, its flags, their time.

A bank holds ports of one profile, those of a worker or of a whole simulated fleet; an engine is a
view on one row of it. Causes change in `causes` and are told with `mark`; `settle` follows what was
marked at once, `step` moves time for everybody: counters, temperatures, flags. Only what changed is
computed anew, so that an idle fleet costs little more than its counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accelhw.model.flag import CARD_FLAGS, CARD_QUANTITIES, LANE_FLAGS, LANE_QUANTITIES
from accelhw.model.profile import Profile
from accelhw.optics import chance
from accelhw.optics.causes import CAUSES, Causes
from accelhw.optics.counters import FECS, Counters
from accelhw.optics.flags import FlagBank, unless
from accelhw.optics.heat import Heat
from accelhw.optics.monitor import (
    SUPPLY_STEP_V,
    TEMPERATURE_STEP_C,
    Monitors,
    seen_dbm,
    stepped,
)
from accelhw.optics.readings import Readings
from accelhw.optics.receiver import Receivers
from accelhw.optics.transmitter import Transmitters

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ports = NDArray[np.intp]

AGEING_STEP_S = 6 * 3600.0  # lasers age so slowly that nothing shows in less
NOBODY: Ports = np.zeros(0, np.intp)


class BankFull(Exception):
    """More ports or cards than the bank was made for."""


class Watcher(Protocol):
    """Who moves real frames over a port."""

    def errors_changed(self) -> None:
        """How often errors reach a frame may be another now."""

    def frames_met(self) -> tuple[float, int, Mapping[int, int]]:
        """Exposure of frames since the last time (bits, or codewords with FEC), codewords that
        were lost in them, and bits that were flipped, by lane."""


class LaneBank:
    """Ports of one profile. The rows of all [port, lane] arrays are they, as they were added."""

    def __init__(self, profile: Profile, seed: int, *, ports: int = 1, cards: int = 1) -> None:
        lanes = profile.lanes_per_oe
        self.profile = profile
        self.seed = seed
        self.now_ns = 0
        self.late_ns = 0  # how late its time is let pass of late, on a machine that is too busy
        self.wall_offset_ns = 0  # wall clock minus the clock that is handed in
        self.causes = Causes.healthy(ports * lanes, cards)  # lane arrays run over ports * lanes
        shaped = self._by_port(ports, lanes)
        self.heat = Heat(profile, cards, self.causes)
        self.tx = Transmitters(profile, ports, shaped)
        self.rx = Receivers(profile, ports, shaped)
        self.counters = Counters(profile, ports, shaped, self.rx)
        self.tx_monitor = Monitors((ports, lanes))
        self.rx_monitor = Monitors((ports, lanes))
        self.moves: NDArray[np.int64] = np.zeros(ports, np.int64)  # of a port's light, ever
        thresholds = profile.thresholds
        self.flags = FlagBank(LANE_FLAGS, (ports, lanes), LANE_QUANTITIES, thresholds)
        self.card_flags = FlagBank(CARD_FLAGS, (cards,), CARD_QUANTITIES, thresholds)
        self.ports = 0  # in use
        self.cards: dict[str, int] = {}
        self._readings = Readings(profile.lane.modulation, (ports, lanes))
        self._shaped = shaped
        self._capacity = ports, cards
        self._card_of: Ports = np.zeros(ports, np.intp)
        self._tx_marked: Flags = np.zeros(ports, bool)
        self._rx_marked: Flags = np.zeros(ports, bool)
        self._watchers: dict[int, Watcher] = {}
        self._lost_lock: Flags = np.zeros(ports, bool)
        self._stepped_ns: int | None = None
        self._sensed_ns: int | None = None
        self._unaged_s = 0.0

    def _by_port(self, ports: int, lanes: int) -> Causes:
        """The same memory, lane causes as [port, lane]."""
        arrays: list[Any] = []
        for field in fields(Causes):
            array = self.causes.array(field.name)
            is_lane = CAUSES[field.name] == "lane"
            arrays.append(array.reshape(ports, lanes) if is_lane else array)
        return Causes(*arrays)

    # ---- who is in it ----

    def add_port(self, card: str, oe: int, path_loss_db: float = 0.0) -> int:
        """Another port; its row. Parts differ by seed, card, engine and lane. Raises BankFull."""
        if self.ports == self._capacity[0]:
            raise BankFull(f"a bank for {self.ports} ports")
        row, self.ports = self.ports, self.ports + 1
        self._card_of[row] = self.add_card(card)
        lanes = range(self.profile.lanes_per_oe)
        own = chance.keys((self.seed, card, oe, lane) for lane in lanes)
        lane_type = self.profile.lane
        spread = chance.normals(chance.derived(own, _LAUNCH), 0)[0]
        launch = lane_type.tx_power_dbm + lane_type.tx_power_sigma_db * spread
        self.tx.launch_dbm[row] = np.round(launch, 2)  # the step of the carrier message
        self.tx_monitor.keys[row] = chance.derived(own, _TX_MONITOR)
        self.rx_monitor.keys[row] = chance.derived(own, _RX_MONITOR)
        self.counters.seed(row, chance.key(self.seed, card, oe), chance.derived(own, _ERRORS))
        self.rx.path_loss_db[row] = path_loss_db
        self._tx_marked[row] = self._rx_marked[row] = True
        return row

    def add_card(self, name: str) -> int:
        """The row of a card, a new one at its first mention. Raises BankFull."""
        if name not in self.cards:
            if len(self.cards) == self._capacity[1]:
                raise BankFull(f"a bank for {len(self.cards)} cards")
            self.cards[name] = len(self.cards)
        return self.cards[name]

    def causes_of(self, port: int) -> Causes:
        """The causes of one port and of its card; writing to it writes here. Then `mark`."""
        lanes = self.profile.lanes_per_oe
        card = int(self._card_of[port])
        return self.causes.of(slice(port * lanes, (port + 1) * lanes), slice(card, card + 1))

    def card_of(self, port: int) -> int:
        return int(self._card_of[port])

    def ports_of(self, card: int) -> Ports:
        return np.flatnonzero(self._card_of[: self.ports] == card)

    def watch(self, port: int, watcher: Watcher) -> None:
        self._watchers[port] = watcher

    def unwatch(self) -> None:
        """Nobody moves real frames over these ports: nobody need be asked what they met."""
        self._watchers.clear()

    # ---- what changes from outside ----

    def mark(self, ports: int | Iterable[int]) -> None:
        """Causes of these ports, or of their cards, were written."""
        at = np.atleast_1d(np.asarray(ports, np.intp))
        self._tx_marked[at] = self._rx_marked[at] = True
        self.tx.disturb(at)

    def mark_card(self, card: int) -> None:
        self.mark(self.ports_of(card))

    def set_transmit(self, port: int, on: ArrayLike) -> None:
        """Lasers on or off. `settle` or `step` must follow."""
        before = int(self.tx.on[port].sum())
        self.tx.on[port] = on
        self._tx_marked[port] = True
        if int(self.tx.on[port].sum()) != before and self._shaped.crosstalk_penalty_db.any():
            self._rx_marked[self.ports_of(self.card_of(port))] = True

    def hear(
        self, port: int, on: ArrayLike, power_dbm: ArrayLike, extinction_db: ArrayLike,
        penalty_db: ArrayLike,
    ) -> None:  # fmt: skip
        """The far transmitters, by arrival lane, before this port's path. `settle` must follow."""
        rx = self.rx
        rx.far_on[port] = on
        rx.far_dbm[port] = power_dbm
        rx.far_extinction_db[port] = extinction_db
        rx.far_penalty_db[port] = penalty_db
        self._rx_marked[port] = True

    def loop(self, port: int, on: bool) -> None:
        """Its receivers hear inside the engine from now on, or the fibre. `hear` must follow."""
        self.rx.looped[port] = on
        self._rx_marked[port] = True

    def shape(self, port: int, penalty_db: ArrayLike) -> None:
        """What the transmit taps of these lanes leave. `settle` must follow."""
        self.tx.shape_db[port] = penalty_db
        self._tx_marked[port] = True

    def set_mode(self, port: int, fec_name: str, slowdown: float, now_ns: int) -> None:
        """Another FEC, or lanes at a fraction of their symbol rate."""
        self.count(port, now_ns)
        self.counters.fec[port] = FECS.index(fec_name)
        self.rx.slowdown[port] = slowdown
        self._rx_marked[port] = True
        self.settle(now_ns, port)
        self._aim(np.array([port]), now_ns)

    def use_lanes(self, port: int, used: ArrayLike, now_ns: int) -> None:
        """Which lanes carry data from now on; none takes the link down."""
        self.count(port, now_ns)
        self.counters.used[port] = used
        self._aim(np.array([port]), now_ns)

    def moved(self, card: int, total_bytes: float) -> None:
        """HBM bytes that a card has read and written, ever: its load."""
        self.heat.moved_bytes[card] = total_bytes

    # ---- time ----

    def settle(self, now_ns: int, port: int | None = None) -> Ports:
        """Follow what was marked, at once; ports whose light or quality changed."""
        marked = self._tx_marked | self._rx_marked
        if port is None:
            ports = np.flatnonzero(marked)
        else:
            ports = np.array([port]) if marked[port] else NOBODY
        if len(ports) == 0:
            return NOBODY
        self.now_ns = max(self.now_ns, now_ns)
        self._count(ports, now_ns)
        return self._follow(ports, now_ns)

    def step(self, elapsed_ns: int) -> Ports:
        """Let time pass for all ports. Those whose light or quality changed."""
        if self._stepped_ns is None:
            self.advance(self.now_ns)
        return self.advance(self.now_ns + elapsed_ns)

    def advance(self, now_ns: int) -> Ports:
        """As `step`, up to this time."""
        before, self._stepped_ns = self._stepped_ns, now_ns
        elapsed_s = 0.0 if before is None else max(now_ns - before, 0) / 1e9
        self.now_ns = max(self.now_ns, now_ns)
        self._count(np.arange(self.ports), now_ns)
        if elapsed_s > 0.0:
            self._warm_up(elapsed_s)
        return self._follow(np.flatnonzero(self._tx_marked | self._rx_marked), now_ns)

    def sense(self) -> None:
        """Let the monitors' noise go on to the present. For who shows readings."""
        before, self._sensed_ns = self._sensed_ns, self.now_ns
        elapsed_s = 1e6 if before is None else (self.now_ns - before) / 1e9
        if elapsed_s > 0.0:
            self.tx_monitor.move(elapsed_s)
            self.rx_monitor.move(elapsed_s)
            self._readings.expire(slice(None))

    def readings(self) -> Readings:
        """What registers read, as of the last step and `sense`."""
        self._readings.refresh(
            self.tx, self.rx, self.tx_monitor, self.rx_monitor, self._shaped.rx_monitor_error_db
        )
        return self._readings

    def count(self, port: int, now_ns: int) -> None:
        """Counters of one port up to now, and what changed there."""
        self.now_ns = max(self.now_ns, now_ns)
        self._count(np.array([port]), now_ns)
        self.settle(now_ns, port)

    def collect(self, port: int) -> None:
        """Take over what real frames of a port met."""
        if (watcher := self._watchers.get(port)) is not None:
            counters = self.counters
            exposure, words, flips = watcher.frames_met()
            counters.met[port] += exposure
            counters.struck[port] += words
            for lane, bits in flips.items():
                counters.errors[port, lane] += np.uint64(bits)

    def lost_lock(self, port: int, now_ns: int) -> bool:
        """Whether a port's FEC lost its lock since the last time one asked."""
        if self.counters.lock_due_ns[port] <= now_ns:
            self.count(port, now_ns)
        lost = bool(self._lost_lock[port])
        self._lost_lock[port] = False
        return lost

    def _count(self, ports: Ports, now_ns: int) -> None:
        if self._watchers:
            for port in ports.tolist():
                self.collect(port)
        self.counters.count(ports, now_ns)
        lost = ports[self.counters.lock_due_ns[ports] <= now_ns]
        if len(lost):
            self.counters.lose_locks(lost, now_ns)
            self._lost_lock[lost] = True

    def _aim(self, ports: Ports, now_ns: int) -> None:
        self.counters.aim(ports, now_ns)
        for port in ports.tolist() if self._watchers else ():
            if (watcher := self._watchers.get(port)) is not None:
                watcher.errors_changed()

    def _warm_up(self, elapsed_s: float) -> None:
        lit = self.tx.lit[: self.ports].sum(axis=1)
        self.heat.lit_lanes[:] = np.bincount(
            self._card_of[: self.ports], lit, self._capacity[1]
        ).astype(np.int64)
        warmer = self.heat.step(elapsed_s)
        warmer = warmer[warmer < len(self.cards)]
        if len(warmer):
            felt = np.flatnonzero(np.isin(self._card_of[: self.ports], warmer))
            self.tx.disturb(felt)
            self._tx_marked[felt] = True
        moving = self.tx.relax(elapsed_s, self.heat.noticed_c[self._card_of])
        self._tx_marked[moving] = True
        self._unaged_s += elapsed_s
        if self._unaged_s >= AGEING_STEP_S:
            self.tx.grow_older(self._unaged_s)
            self._unaged_s = 0.0
            self._tx_marked[: self.ports] = True
        self._watch_cards()

    def _follow(self, ports: Ports, now_ns: int) -> Ports:
        """From the causes to the errors, for ports that are counted up to now."""
        if len(ports) == 0:
            return NOBODY
        sending, hearing = ports[self._tx_marked[ports]], ports[self._rx_marked[ports]]
        self._tx_marked[ports] = self._rx_marked[ports] = False
        self.moves[ports] += 1
        self._readings.expire(ports)
        if len(sending):
            self.tx.update(sending, self.heat.noticed_c[self._card_of])
            self._watch_transmitters(sending)
        if len(hearing) == 0:
            return NOBODY
        changed = hearing[self.rx.update(hearing, self._aggressors(hearing))]
        up = changed[self.counters.used[changed].any(axis=1)]
        # Bursts come and go without a trace in the long-run BER of their good state.
        bursting = hearing[self._shaped.burst_good_to_bad[hearing].any(axis=1)]
        again = np.union1d(up, bursting[self.counters.used[bursting].any(axis=1)])
        if len(again):
            self._aim(again, now_ns)
        self._watch_receivers(hearing)
        return changed

    def _aggressors(self, ports: Ports) -> Floats:
        """Share of their card's lanes that transmit."""
        share = np.zeros(len(ports))
        struck = self._shaped.crosstalk_penalty_db[ports].any(axis=1)
        for at in np.flatnonzero(struck).tolist():
            share[at] = self.tx.on[self.ports_of(self.card_of(ports[at]))].mean()
        return share

    # ---- flags ----

    @property
    def wall_ns(self) -> int:
        return max(self.now_ns + self.wall_offset_ns, 0)

    def _watch_transmitters(self, ports: Ports) -> None:
        tx, wall_ns = self.tx, self.wall_ns
        off = ~tx.on[ports]  # what is switched off by command raises nothing
        for quantity, values in (
            ("tx_power_dbm", tx.power_dbm),
            ("tx_bias_ma", tx.bias_ma),
            ("laser_temp_c", tx.laser_c),
            ("heater_mw", tx.heater_mw),
        ):
            self.flags.watch(quantity, unless(off, values[ports]), wall_ns, ports)
        self.flags.condition("tx_fault", tx.fault[ports], wall_ns, ports)

    def _watch_receivers(self, ports: Ports) -> None:
        rx, flags, wall_ns = self.rx, self.flags, self.wall_ns
        dark = ~rx.lit[ports]
        flags.watch("rx_power_dbm", self.seen_rx_dbm(ports), wall_ns, ports)
        flags.watch("pre_fec_ber", unless(dark, rx.ber[ports]), wall_ns, ports)
        flags.condition("los", dark, wall_ns, ports)
        flags.condition("lol", ~rx.locked[ports], wall_ns, ports)

    def _watch_cards(self) -> None:
        at = np.arange(len(self.cards))
        heat, wall_ns = self.heat, self.wall_ns
        self.card_flags.watch("case_temp_c", heat.case_c[at], wall_ns, at)
        self.card_flags.watch("supply_v", heat.supply_v[at], wall_ns, at)
        self.card_flags.watch("hbm_temp_c", heat.hbm_c[at], wall_ns, at)

    # ---- tables ----

    def write_card(self, card: int, row: Any, flags: NDArray[Any]) -> None:
        """Write a card's temperatures, supply and power into its row, and its flags into theirs."""
        heat = self.heat
        row["case_temp_c"] = stepped(heat.case_c[card], TEMPERATURE_STEP_C)
        row["hbm_temp_c"] = stepped(heat.hbm_c[card], TEMPERATURE_STEP_C)
        row["supply_v"] = stepped(heat.supply_v[card], SUPPLY_STEP_V)
        row["power_w"] = heat.power_w[card]
        row["hbm_refresh_ratio"] = heat.refresh_ratio(card)
        row["hbm_throttled"] = heat.is_throttled(card)
        self.card_flags.store(flags, card)

    def resume_card(self, card: int, moved_bytes: float, flags: NDArray[Any]) -> None:
        """Go on from the flags that an earlier life left."""
        self.heat.start_load(card, moved_bytes)
        self.card_flags.resume(flags, card)

    def seen_rx_dbm(self, ports: Ports) -> Floats:
        """What the Rx monitors read, but for their noise: the light and their own error."""
        return seen_dbm(self.rx.power_dbm[ports], self._shaped.rx_monitor_error_db[ports])


_LAUNCH, _TX_MONITOR, _RX_MONITOR, _ERRORS = range(4)
