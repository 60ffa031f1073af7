"""An optical engine: its lasers, its receivers, and the errors that its light makes.

Everything shown follows from light: launch power minus path loss is received power, that gives
margin, Q and BER, and errors are drawn from the BER. The arrays live in a bank, which many engines
share; an engine is one port's view on it, and speaks the carrier's language. A fault changes a
cause and then calls `light_moved`; nothing sets a figure behind the chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.link.events import LaneQuality
from accelhw.link.newest import Newest
from accelhw.model.config import Fibre
from accelhw.model.link import LinkMode, LinkState, PeerId, Reason
from accelhw.model.profile import Profile
from accelhw.optics import chance, fec
from accelhw.optics.bank import LaneBank
from accelhw.optics.causes import CARD_CAUSES, LANE_CAUSES, Causes
from accelhw.optics.counters import FECS
from accelhw.optics.monitor import DARK_DBM
from accelhw.optics.strikes import Aim, Strikes
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.checksum import crc32c

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CARRIER_BEAT_NS = 500_000_000
CARRIER_TIMEOUT_NS = 1_600_000_000  # then the fibre is dark
LATE_FACTOR = 3
SETTLE_MIN_S, SETTLE_MAX_S = 0.1, 0.3  # laser and ring heater, from off to in their window
WAVELENGTH_STEP_PM = 10  # finer shifts are not told
NEVER = -1


def generator(seed: int, port: PeerId, lane: int, purpose: str) -> np.random.Generator:
    """One stream of chance per lane and purpose: what befalls one lane moves no other's dice."""
    words = (seed, crc32c(port.card.encode()), port.oe, lane, crc32c(purpose.encode()))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def frame_dice(seed: int, card: str, oe: int, channel: int) -> np.random.Generator:
    """For errors in the frames of one virtual channel, whoever takes them."""
    purpose = f"frames {channel}" if channel else "frames"
    return generator(seed, PeerId("", card, oe), 0, purpose)


class OpticalEngine:
    """One port's optics. Arrays run over its lanes; times are of one monotonic clock."""

    def __init__(
        self,
        profile: Profile,
        fibre: Fibre | None,
        me: PeerId,
        seed: int,
        bank: LaneBank | None = None,
    ) -> None:
        """Without a bank it makes one of its own. Who shares a bank lets its time pass."""
        self.profile = profile
        self.me = me
        self.lanes = profile.lanes_per_oe
        self._own_bank = bank is None
        self.bank = bank if bank is not None else LaneBank(profile, seed)
        self.port = self.bank.add_port(me.card, me.oe, 0.0 if fibre is None else fibre.loss_db)
        self.card = self.bank.card_of(self.port)
        self.causes: Causes = self.bank.causes_of(self.port)
        self._view(self.bank, self.port)
        names = ((seed, me.card, me.oe, lane, "settle") for lane in range(self.lanes))
        spread = chance.uniform(chance.keys(names), 0)
        self._settle_ns: Floats = 1e9 * (SETTLE_MIN_S + (SETTLE_MAX_S - SETTLE_MIN_S) * spread)
        self._settled_ns = 0  # when the slowest lane has had its time to settle
        self._on_ns = 0
        # What was made of the light when it had moved so often, as it seldom moves
        self._masks: tuple[int, tuple[int, int]] = (NEVER, (0, 0))
        self._lasers: tuple[int, tuple[int, int]] = (NEVER, (0, 0))
        self._quality: tuple[int, LaneQuality] = (NEVER, LaneQuality((), ()))
        # The far transmitter, as the fibre told
        self._far_lights: tuple[LaneLight, ...] | None = None
        self._newest = Newest()
        self._heard_ns: int | None = None
        # What the link uses
        self._peer_lane: NDArray[np.int16] = np.full(self.lanes, -1, np.int16)
        self._inverted: Flags = np.zeros(self.lanes, bool)
        self._stripe = tuple(range(self.lanes))
        self._used_lanes: tuple[int, ...] = ()
        self.frames = Strikes(frame_dice(seed, me.card, me.oe, 0))
        # Of real frames that others take on this port's behalf: how often errors reach one, told
        # when it changes; and back, what they met.
        self.aim: Aim | None = None
        self.on_aim: list[Callable[[Aim], None]] = []
        self.met = self.frames.met
        self._lights_moves = NEVER
        self._carrier_lights: tuple[LaneLight, ...] = ()
        self._carrier_key: tuple[bytes, ...] | None = None
        self._sent_ns = 0
        self.bank.watch(self.port, self)

    def _view(self, bank: LaneBank, port: int) -> None:
        """This port's rows of the bank's arrays, which are written in place."""
        tx, rx = bank.tx, bank.rx
        # Parts, fixed for their life
        self.launch_dbm: Floats = tx.launch_dbm[port]
        self.extinction_db: Floats = tx.extinction_db[port]
        self.penalty_db: Floats = tx.tdecq_db[port]
        # To be written by a test; then `light_moved`
        self.laser_fault: Flags = self.causes.laser_dead
        self.path_extra_db: Floats = rx.extra_loss_db[port]  # an attenuator before the receiver
        # What follows; dark lanes read the floor of the power register
        self.laser_on: Flags = tx.on[port]
        self.tx_dbm: Floats = tx.power_dbm[port]
        self.bias_ma: Floats = tx.bias_ma[port]
        self.rx_dbm: Floats = rx.power_dbm[port]
        self.margin_db: Floats = rx.margin_db[port]
        self.q: Floats = rx.q[port]
        self.ber: Floats = rx.ber[port]  # in the long run, bursts included
        self.lit: Flags = rx.lit[port]
        self.locked: Flags = rx.locked[port]
        self.los_count: NDArray[np.uint64] = rx.los_count[port]
        self.lol_count: NDArray[np.uint64] = rx.lol_count[port]
        self.rx_bits: Floats = bank.counters.rx_bits[port]
        self._errors: NDArray[np.uint64] = bank.counters.errors[port]

    @property
    def path_loss_db(self) -> float:
        return float(self.bank.rx.path_loss_db[self.port])

    @path_loss_db.setter
    def path_loss_db(self, loss_db: float) -> None:
        """Another fibre; then `light_moved`."""
        self.bank.rx.path_loss_db[self.port] = loss_db

    @property
    def errors(self) -> NDArray[np.uint64]:
        """Bit errors per lane, those in real frames included."""
        self.bank.collect(self.port)
        return self._errors

    # ---- transmitter -------------------------------------------------------------------------

    def set_transmit(self, on: bool, now_ns: int) -> None:
        if on and not self.laser_on.all():
            self._on_ns = now_ns
            self._settled_ns = now_ns + math.ceil(self._settle_ns.max())
        self.bank.set_transmit(self.port, on)
        self.bank.settle(now_ns, self.port)

    def transmitter(self, now_ns: int) -> tuple[int, int]:
        """Masks of own lanes: settled (power in its window, ring locked), and broken."""
        moves = self._moves
        if self._lasers[0] != moves:
            broken = self.bank.tx.fault[self.port] | self.laser_fault
            settled = self.laser_on & ~broken & (now_ns - self._on_ns >= self._settle_ns)
            settles = now_ns < self._settled_ns
            self._lasers = NEVER if settles else moves, (_mask(settled), _mask(broken))
        return self._lasers[1]

    def shape(self, penalty_db: Sequence[float]) -> None:
        """What the transmit taps leave uncompensated, per own lane; it travels with the light."""
        self.bank.shape(self.port, penalty_db)

    def carrier(
        self, now_ns: int, session: int, state: LinkState, reason: Reason, offers: int = 0
    ) -> CarrierMessage:
        """The light sent now. Send it at each beat, and at once when something changed."""
        self.bank.settle(now_ns, self.port)
        self._sent_ns = max(now_ns, self._sent_ns + 1)  # no two alike, or the later is lost
        return CarrierMessage(
            self.me, session, self._sent_ns, state, reason.code, reason.lane, self._lights(),
            offers,
        )  # fmt: skip

    def _lights(self) -> tuple[LaneLight, ...]:
        if self._lights_moves == (moves := self._moves):
            return self._carrier_lights
        self._lights_moves = moves
        tx, port = self.bank.tx, self.port
        figures, lane = self.profile.laser, self.profile.lane
        shift_nm = figures.wavelength_nm_per_k * (tx.laser_c[port] - tx.nominal_c)
        shift_pm = np.rint(shift_nm * 1000 / WAVELENGTH_STEP_PM) * WAVELENGTH_STEP_PM
        sent = (
            tx.lit[port], tx.sent_dbm[port], tx.sent_extinction_db[port],
            tx.sent_penalty_db[port], shift_pm,
        )  # fmt: skip
        key = tuple(array.tobytes() for array in sent)
        if key != self._carrier_key:
            self._carrier_key = key
            on, power, extinction, penalty, shift = (array.tolist() for array in sent)
            self._carrier_lights = tuple(
                LaneLight(
                    on[i], i, round(power[i] * 100), round(extinction[i] * 100),
                    min(round(penalty[i] * 100), 0xFFFF),
                    round((lane.wavelength_nm + i * lane.wavelength_step_nm) * 1000 + shift[i]),
                )
                for i in range(self.lanes)
            )  # fmt: skip
        return self._carrier_lights

    def set_mode(self, mode: LinkMode, now_ns: int) -> None:
        """Another FEC or symbol rate; a slower receiver lets less noise in."""
        self.bank.set_mode(self.port, mode.fec, mode.slowdown, now_ns)

    def loop(self, on: bool, now_ns: int) -> None:
        """Receivers hear this engine's own transmitters, before any connector, or the fibre again.

        They are dark until the light is told.
        """
        self.bank.loop(self.port, on)
        self._heard_ns = now_ns
        self.go_dark(now_ns)

    # ---- receiver ----------------------------------------------------------------------------

    def hear_carrier(self, message: CarrierMessage, now_ns: int) -> bool:
        """Take in the far light, as the cable delivered it. True: light or quality changed."""
        if not self._newest.advance(message.sender, (message.sent_ns,)):
            return False  # Overtaken on the way.
        self._heard_ns = now_ns
        if message.lanes == self._far_lights:
            return False
        self._far_lights = message.lanes
        missing = self.lanes - len(message.lanes)
        lights = message.lanes[: self.lanes] + (_DARKNESS,) * max(missing, 0)
        self.bank.hear(
            self.port,
            [light.on for light in lights],
            [light.power_cdbm / 100 for light in lights],
            [max(light.extinction_cdb, 1) / 100 for light in lights],
            [light.penalty_cdb / 100 for light in lights],
        )
        return bool(len(self.bank.settle(now_ns, self.port)))

    def heard(self, now_ns: int) -> None:
        """Any sound frame came through the fibre, so its light is still there."""
        if self._heard_ns is not None:
            self._heard_ns = now_ns

    def dark_deadline_ns(self) -> int | None:
        """When to ask for `light` at the latest, if nothing is heard before.

        Where this end gets too little of the machine, the far end may, too.
        """
        if self._heard_ns is None:
            return None
        return self._heard_ns + CARRIER_TIMEOUT_NS + LATE_FACTOR * self.bank.late_ns

    def go_dark(self, now_ns: int) -> bool:
        """Nothing comes through the fibre: its interface is down, or silent for too long."""
        if self._heard_ns is None:
            return False
        self._heard_ns = None
        self._far_lights = None
        rx = self.bank.rx
        self.bank.hear(
            self.port, False, rx.far_dbm[self.port], rx.far_extinction_db[self.port],
            rx.far_penalty_db[self.port],
        )  # fmt: skip
        return bool(len(self.bank.settle(now_ns, self.port)))

    def light(self, now_ns: int) -> tuple[int, int]:
        """Masks of lanes with light, and with a recovered clock."""
        deadline = self.dark_deadline_ns()
        if deadline is not None and now_ns >= deadline:
            self.go_dark(now_ns)
        if self._masks[0] != (moves := self._moves):
            self._masks = moves, (_mask(self.lit), _mask(self.locked))
        return self._masks[1]

    def worst_lane(self) -> int:
        """Of those in use, the one with the most errors."""
        return max(self._used_lanes, key=lambda lane: float(self.ber[lane]), default=0)

    def quality(self) -> LaneQuality:
        """The same value again, while the light does not move."""
        if self._quality[0] != (moves := self._moves):
            margin_db, ber = self.margin_db.tolist(), self.ber.tolist()
            self._quality = moves, LaneQuality(tuple(margin_db), tuple(ber))
        return self._quality[1]

    @property
    def _moves(self) -> int:
        moves: int = self.bank.moves.item(self.port)
        return moves

    # ---- causes ------------------------------------------------------------------------------

    def light_moved(self, now_ns: int) -> bool:
        """A cause on this side was changed. True: light or quality changed."""
        self.bank.mark(self.port)
        return bool(len(self.bank.settle(now_ns, self.port)))

    def afflict(
        self,
        on_lanes: Mapping[str, Sequence[float]],
        on_card: Mapping[str, float],
        now_ns: int,
    ) -> bool:
        """All causes at once, by name; one that is not named is healthy.

        True: what leaves, what arrives or its quality changed.
        """
        before = self._carrier_key
        for name in LANE_CAUSES:
            self.causes.array(name)[:] = on_lanes.get(name, 0)
        for name in CARD_CAUSES:
            self.causes.array(name)[:] = on_card.get(name, 0.0)
        moved = self.light_moved(now_ns)
        self._lights()
        return moved or self._carrier_key != before

    # ---- counters ----------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """Time goes on for this port, unless the bank's owner sees to that."""
        self.light(now_ns)
        if self._own_bank:
            self.bank.advance(now_ns)
            self.bank.sense()

    def advance(self, now_ns: int) -> None:
        """Counters up to now, at the emulated line rate, traffic or not."""
        self.tick(now_ns)
        if not self._own_bank:
            self.bank.count(self.port, now_ns)

    def lock_deadline_ns(self) -> int | None:
        """When FEC meets three uncorrectable codewords in a row, if light stays as it is."""
        due: float = self.bank.counters.lock_due_ns.item(self.port)
        return None if due == math.inf else int(due)

    def lost_lock(self, now_ns: int) -> bool:
        """Whether FEC lost its lock since the last time; then the link must come up anew."""
        return self.bank.lost_lock(self.port, now_ns)

    # ---- errors in real frames ---------------------------------------------------------------

    def set_lanes(
        self, used: int, lane_map: Sequence[int | None], inverted: int, now_ns: int | None = None
    ) -> None:
        """Lanes that carry data (a mask; 0: none), and what training found on each."""
        for i in range(self.lanes):
            far = lane_map[i] if i < len(lane_map) else None
            self._peer_lane[i] = -1 if far is None else far
            self._inverted[i] = inverted >> i & 1
        self._used_lanes = tuple(lane for lane in self._stripe if used >> lane & 1)
        mask = [bool(used >> i & 1) for i in range(self.lanes)]
        self.bank.use_lanes(self.port, mask, self.bank.now_ns if now_ns is None else now_ns)

    def set_stripe(self, lanes: Sequence[int]) -> None:
        """The order in which a frame's bits are dealt over the lanes, from `set_lanes` on."""
        self._stripe = tuple(lanes)

    def errors_changed(self) -> None:
        """Of the bank: how often errors reach a frame is another now."""
        lanes = list(self._used_lanes)
        counters = self.bank.counters
        self.aim = Aim(
            tuple(lanes),
            tuple(self.bank.rx.even_ber[self.port][lanes].tolist()),
            tuple(counters.bad_ber(self.port)[lanes].tolist()),
            counters.burst_chain(self.port),
            FECS[int(counters.fec[self.port])],
            self.profile.lane.fec_interleave,
        )
        self.frames.aim(self.aim)
        for tell in self.on_aim:
            tell(self.aim)

    def frames_met(self) -> tuple[float, int, Mapping[int, int]]:
        """Of the bank: exposure of real frames, lost codewords and flipped bits by lane."""
        return self.frames.take()

    @property
    def peer_lanes(self) -> tuple[int, ...]:
        """The far lane that arrives on each lane; -1: unknown."""
        return tuple(self._peer_lane.tolist())

    # ---- showing itself ----------------------------------------------------------------------

    def write_rows(self, rows: NDArray[np.void]) -> None:
        """Write this port's rows of the lane table, in place. Powers are what monitors read."""
        bank, port = self.bank, self.port
        tx, read = bank.tx, bank.readings()
        rows["tx_power_dbm"] = read.tx_power_dbm[port]
        rows["rx_power_dbm"] = read.rx_power_dbm[port]
        rows["tx_bias_ma"] = read.tx_bias_ma[port]
        rows["margin_db"] = read.margin_db[port]
        rows["q"] = self.q
        rows["snr_db"] = read.snr_db[port]
        rows["pre_fec_ber"] = read.pre_fec_ber[port]
        rows["rx_bits"] = self.rx_bits
        rows["pre_fec_errors"] = self.errors
        rows["fec_corrected_symbols"] = bank.counters.lane_symbols[port]
        rows["los_count"] = self.los_count
        rows["lol_count"] = self.lol_count
        rows["peer_lane"] = self._peer_lane
        rows["inverted"] = self._inverted
        rows["tx_on"] = tx.lit[port]
        rows["los"] = ~self.lit
        rows["lol"] = ~self.locked
        rows["used"] = bank.counters.used[port]
        rows["fitted_margin"] = self.lit
        rows["laser_temp_c"] = read.laser_temp_c[port]
        rows["laser_wear_ratio"] = tx.wear_ratio[port]
        rows["tec_current_ratio"] = tx.cooler_ratio[port]
        rows["heater_mw"] = tx.heater_mw[port]

    def write_port(self, row: np.void) -> None:
        """Write the FEC columns of this port's row."""
        counters, port = self.bank.counters, self.port
        code = fec.CODES[FECS[int(counters.fec[port])]]
        row["fec_t"] = 0 if code is None else code.t
        for column, array in self._fec_columns().items():
            row[column] = array[port]

    def write_flags(self, rows: NDArray[np.void]) -> None:
        """Write this port's rows of the flags of lanes."""
        self.bank.flags.store(rows, self.port)

    def resume(
        self,
        rows: NDArray[np.void],
        port_row: np.void | None = None,
        flags: NDArray[np.void] | None = None,
    ) -> None:
        """Go on from the counters and flags that an earlier life left in the tables."""
        counters, port = self.bank.counters, self.port
        counters.rx_bits[port] = rows["rx_bits"]
        counters.errors[port] = rows["pre_fec_errors"]
        counters.lane_symbols[port] = rows["fec_corrected_symbols"]
        self.bank.rx.los_count[port] = rows["los_count"]
        self.bank.rx.lol_count[port] = rows["lol_count"]
        if port_row is not None:
            for column, array in self._fec_columns().items():
                array[port] = port_row[column]
        if flags is not None:
            self.bank.flags.resume(flags, port)

    def _fec_columns(self) -> dict[str, NDArray[Any]]:
        counters = self.bank.counters
        return {
            "fec_codewords": counters.codewords,
            "fec_corrected_bits": counters.corrected_bits,
            "fec_corrected_symbols": counters.corrected_symbols,
            "fec_uncorrectable": counters.uncorrectable,
            "fec_bins": counters.bins,
            "fec_lock_losses": counters.lock_losses,
        }


_DARKNESS = LaneLight(False, 0, round(DARK_DBM * 100), 1, 0, 0)


def _mask(flags: Flags) -> int:
    return sum(1 << i for i in np.flatnonzero(flags).tolist())
