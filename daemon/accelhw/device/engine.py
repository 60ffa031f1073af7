"""An optical engine: its lasers, its receivers, and the errors that its light makes.

Everything shown follows from light: launch power minus path loss is received power, that gives
margin, Q and BER, and errors are drawn from the BER. A fault changes a cause (`launch_dbm`,
`path_extra_db`, ...) and then calls `light_moved`; nothing sets a figure behind the chain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accelhw.link.events import LaneQuality
from accelhw.link.newest import Newest
from accelhw.model.config import Fibre
from accelhw.model.link import LinkMode, LinkState, PeerId, Reason
from accelhw.model.profile import Profile
from accelhw.optics import ber, budget, fec
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.checksum import crc32c

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CARRIER_BEAT_NS = 500_000_000
CARRIER_TIMEOUT_NS = 1_600_000_000  # then the fibre is dark
DARK_DBM = -40.0  # the power register's floor, 0.1 uW
LOCK_BER = 1e-2  # clock recovery locks below it
UNLOCK_BER = 2e-2  # and loses lock above this; both are choices of this emulator
LASER_THRESHOLD_MA = 8.0  # at 25 degC
SETTLE_MIN_S, SETTLE_MAX_S = 0.1, 0.3  # laser and ring heater, from off to in their window
STRIPE_BITS = 64  # without FEC, blocks of this size are dealt over the lanes in turn
FLIPS_MAX = 16  # per frame; a frame with one is lost as surely


def generator(seed: int, port: PeerId, lane: int, purpose: str) -> np.random.Generator:
    """One stream of chance per lane and purpose: what befalls one lane moves no other's dice."""
    words = (seed, crc32c(port.card.encode()), port.oe, lane, crc32c(purpose.encode()))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


class OpticalEngine:
    """One port's optics. Arrays run over its lanes; times are of one monotonic clock."""

    def __init__(self, profile: Profile, fibre: Fibre | None, me: PeerId, seed: int) -> None:
        lane, count = profile.lane, profile.lanes_per_oe
        self.profile = profile
        self.me = me
        self.lanes = count
        # Causes: this transmitter
        spread = [generator(seed, me, i, "launch").normal() for i in range(count)]
        launch = lane.tx_power_dbm + lane.tx_power_sigma_db * np.array(spread)
        self.launch_dbm: Floats = np.round(launch, 2)  # the step of the carrier message
        self.extinction_db: Floats = np.full(count, lane.extinction_ratio_db)
        self.penalty_db: Floats = np.full(count, lane.tdecq_db)
        self.laser_on: Flags = np.zeros(count, bool)
        self.laser_fault: Flags = np.zeros(count, bool)
        settle_s = [generator(seed, me, i, "settle").random() for i in range(count)]
        self._settle_ns: Floats = 1e9 * (
            SETTLE_MIN_S + (SETTLE_MAX_S - SETTLE_MIN_S) * np.array(settle_s)
        )
        self._on_ns = 0
        self._shape_penalty_db: Floats = np.zeros(count)  # what the transmit taps leave
        # Causes: the path to this receiver
        self.path_loss_db = fibre.loss_db if fibre is not None else 0.0
        self.path_extra_db: Floats = np.zeros(count)
        # The far transmitter, as the fibre told
        self._far_on: Flags = np.zeros(count, bool)
        self._far_dbm: Floats = np.full(count, DARK_DBM)
        self._far_extinction_db = self.extinction_db.copy()
        self._far_penalty_db = self.penalty_db.copy()
        self._far_lights: tuple[LaneLight, ...] | None = None
        self._newest = Newest()
        self._heard_ns: int | None = None
        # What follows
        self.rx_dbm: Floats = np.full(count, DARK_DBM)
        self.margin_db: Floats = np.full(count, -math.inf)
        self.q: Floats = np.zeros(count)
        self.ber: Floats = np.full(count, ber.DARK_BER)
        self.lit: Flags = np.zeros(count, bool)
        self.locked: Flags = np.zeros(count, bool)
        # Counters
        self.rx_bits: Floats = np.zeros(count)
        self.errors: NDArray[np.uint64] = np.zeros(count, np.uint64)
        self.los_count: NDArray[np.uint64] = np.zeros(count, np.uint64)
        self.lol_count: NDArray[np.uint64] = np.zeros(count, np.uint64)
        self._counted_ns: int | None = None
        self._dice = [generator(seed, me, i, "errors") for i in range(count)]
        self._to_next_error: Floats = np.array([dice.exponential() for dice in self._dice])
        # What the link uses
        self._used: Flags = np.zeros(count, bool)
        self._peer_lane: NDArray[np.int16] = np.full(count, -1, np.int16)
        self._inverted: Flags = np.zeros(count, bool)
        # Frames
        self._code = fec.CODES[lane.fec]
        self._slowdown = 1  # of the symbol rate
        self._frame_dice = generator(seed, me, 0, "frames")
        self._strikes_per_bit = 0.0
        self._stripe = tuple(range(count))
        self._used_lanes: tuple[int, ...] = ()
        self._lane_shares: Floats = np.zeros(0)
        self._excess: Floats = np.zeros(0)  # P(t+1, t+2, ... symbol errors), given more than t
        self._bits_left = math.inf
        self._bits_left_counted = math.inf
        self._reference_q = ber.q_of_ber(lane.ber_at_sensitivity, lane.modulation)
        self._carrier_lights: tuple[LaneLight, ...] | None = None
        self._sent_ns = 0

    # ---- transmitter -----------------------------------------------------------------------------

    def set_transmit(self, on: bool, now_ns: int) -> None:
        if on and not self.laser_on.all():
            self._on_ns = now_ns
        self.laser_on[:] = on
        self._carrier_lights = None

    def transmitter(self, now_ns: int) -> tuple[int, int]:
        """Masks of own lanes: settled (power in its window, ring locked), and broken."""
        on = self.laser_on & ~self.laser_fault
        settled = on & (now_ns - self._on_ns >= self._settle_ns)
        return _mask(settled), _mask(self.laser_fault)

    def shape(self, penalty_db: Sequence[float]) -> None:
        """What the transmit taps leave uncompensated, per own lane; it travels with the light."""
        self._shape_penalty_db[:] = penalty_db
        self._carrier_lights = None

    @property
    def tx_dbm(self) -> Floats:
        """Launch power per lane; dark lanes read the floor."""
        return np.where(self.laser_on & ~self.laser_fault, self.launch_dbm, DARK_DBM)

    @property
    def bias_ma(self) -> Floats:
        """Laser bias: threshold, and above it in proportion to the light."""
        lane = self.profile.lane
        above = lane.tx_bias_ma - LASER_THRESHOLD_MA
        bias = LASER_THRESHOLD_MA + above * budget.milliwatts(self.launch_dbm - lane.tx_power_dbm)
        return np.where(self.laser_on & ~self.laser_fault, bias, 0.0)

    def carrier(
        self, now_ns: int, session: int, state: LinkState, reason: Reason
    ) -> CarrierMessage:
        """The light sent now. Send it at each beat, and at once when something changed."""
        lights = self._carrier_lights
        if lights is None:
            lights = self._carrier_lights = self._lights()
        self._sent_ns = max(now_ns, self._sent_ns + 1)  # no two alike, or the later is lost
        return CarrierMessage(
            self.me, session, self._sent_ns, state, reason.code, reason.lane, lights
        )

    def _lights(self) -> tuple[LaneLight, ...]:
        lane = self.profile.lane
        on = self.laser_on & ~self.laser_fault
        power = np.rint(self.tx_dbm * 100)
        extinction = np.rint(self.extinction_db * 100)
        penalty = np.rint((self.penalty_db + self._shape_penalty_db) * 100)
        return tuple(
            LaneLight(
                bool(on[i]), i, int(power[i]), int(extinction[i]), int(penalty[i]),
                round((lane.wavelength_nm + i * lane.wavelength_step_nm) * 1000),
            )
            for i in range(self.lanes)
        )  # fmt: skip

    def set_mode(self, mode: LinkMode, now_ns: int) -> None:
        """Another FEC or symbol rate; a slower receiver lets less noise in."""
        self._count(now_ns)
        self._code = fec.CODES[mode.fec]
        self._slowdown = mode.slowdown
        self._receive()

    # ---- receiver --------------------------------------------------------------------------------

    def hear_carrier(self, message: CarrierMessage, now_ns: int) -> bool:
        """Take in the far light, as the cable delivered it. True: light or quality changed."""
        if not self._newest.advance(message.sender, (message.sent_ns,)):
            return False  # Overtaken on the way.
        self._heard_ns = now_ns
        if message.lanes == self._far_lights:
            return False
        self._count(now_ns)
        self._far_lights = message.lanes
        lights = message.lanes[: self.lanes]
        self._far_on[:] = False
        for i, light in enumerate(lights):
            self._far_on[i] = light.on
            self._far_dbm[i] = light.power_cdbm / 100
            self._far_extinction_db[i] = max(light.extinction_cdb, 1) / 100
            self._far_penalty_db[i] = light.penalty_cdb / 100
        return self._receive()

    def heard(self, now_ns: int) -> None:
        """Any sound frame came through the fibre, so its light is still there."""
        if self._heard_ns is not None:
            self._heard_ns = now_ns

    def dark_deadline_ns(self) -> int | None:
        """When to ask for `light` at the latest, if nothing is heard before."""
        return None if self._heard_ns is None else self._heard_ns + CARRIER_TIMEOUT_NS

    def go_dark(self, now_ns: int) -> bool:
        """Nothing comes through the fibre: its interface is down, or silent for too long."""
        if self._heard_ns is None:
            return False
        self._count(now_ns)
        self._heard_ns = None
        self._far_lights = None
        self._far_on[:] = False
        return self._receive()

    def light_moved(self, now_ns: int) -> bool:
        """A cause on this side was changed. True: light or quality changed."""
        self._count(now_ns)
        self._carrier_lights = None
        return self._receive()

    def light(self, now_ns: int) -> tuple[int, int]:
        """Masks of lanes with light, and with a recovered clock."""
        deadline = self.dark_deadline_ns()
        if deadline is not None and now_ns >= deadline:
            self.go_dark(now_ns)
        return _mask(self.lit), _mask(self.locked)

    def quality(self) -> LaneQuality:
        return LaneQuality(tuple(self.margin_db.tolist()), tuple(self.ber.tolist()))

    def _receive(self) -> bool:
        """Follow the light from the far laser to the errors."""
        lane = self.profile.lane
        before = (self.lit, self.locked, self.ber)
        arriving = self._far_dbm - self.path_loss_db - self.path_extra_db
        self.rx_dbm = np.where(self._far_on, np.maximum(arriving, DARK_DBM), DARK_DBM)
        lit = (self.rx_dbm > lane.los_deassert_dbm) | (
            self.lit & (self.rx_dbm >= lane.los_assert_dbm)
        )
        # Noise power grows with bandwidth: 5 log10 of the rate, in optical dB.
        sensitivity_dbm = lane.sensitivity_oma_dbm - 5.0 * math.log10(self._slowdown)
        margin = budget.margin_db(
            self.rx_dbm, self._far_extinction_db, self._far_penalty_db, sensitivity_dbm
        ) - budget.overload_penalty_db(self.rx_dbm, lane.rx_overload_dbm)
        q = ber.q_of_margin(
            margin, self._reference_q, lane.shot_over_thermal, lane.rin_over_thermal
        )
        errors = ber.ber_of_q(q, lane.modulation) + lane.ber_floor
        self.margin_db = np.where(lit, margin, -math.inf)
        self.q = np.where(lit, q, 0.0)
        self.ber = np.where(lit, np.minimum(errors, ber.DARK_BER), ber.DARK_BER)
        locked = lit & ((self.ber < LOCK_BER) | (self.locked & (self.ber <= UNLOCK_BER)))
        self.los_count += self.lit & ~lit
        self.lol_count += self.locked & ~locked & lit
        self.lit, self.locked = lit, locked
        self._aim()
        now = (self.lit, self.locked, self.ber)
        return any(not np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    # ---- counters --------------------------------------------------------------------------------

    def advance(self, now_ns: int) -> None:
        """One tick: counters move at the emulated line rate, traffic or not."""
        self.light(now_ns)
        self._count(now_ns)

    def _count(self, now_ns: int) -> None:
        """Count bits and draw errors since the last time, under the light there was."""
        elapsed_ns = 0 if self._counted_ns is None else now_ns - self._counted_ns
        self._counted_ns = now_ns
        if elapsed_ns <= 0 or not self.locked.any():
            return
        rate = self.profile.lane.line_rate_gbit_per_s / self._slowdown
        bits = np.where(self.locked, rate * elapsed_ns, 0.0)
        self.rx_bits += bits
        if self._code is None and self._used_lanes and self._bits_left < math.inf:
            # Bits of real frames met their errors in `strike`; the rest is idle symbols.
            met = max(self._bits_left_counted - self._bits_left, 0.0)
            bits = np.maximum(bits - self._used * (met / len(self._used_lanes)), 0.0)
            self._bits_left_counted = self._bits_left
        expected = bits * self.ber
        self._to_next_error -= expected
        for i in np.flatnonzero(self._to_next_error <= 0.0):
            # An error came at a known exposure; behind it the process starts afresh.
            dice = self._dice[i]
            rest = min(float(-self._to_next_error[i]), 1e15)
            self.errors[i] += np.uint64(1 + dice.poisson(rest))
            self._to_next_error[i] = dice.exponential()

    # ---- errors in real frames -------------------------------------------------------------------

    def set_lanes(self, used: int, lane_map: Sequence[int | None], inverted: int) -> None:
        """Lanes that carry data (a mask; 0: none), and what training found on each."""
        for i in range(self.lanes):
            self._used[i] = used >> i & 1
            far = lane_map[i] if i < len(lane_map) else None
            self._peer_lane[i] = -1 if far is None else far
            self._inverted[i] = inverted >> i & 1
        self._used_lanes = tuple(lane for lane in self._stripe if used >> lane & 1)
        self._aim()

    def set_stripe(self, lanes: Sequence[int]) -> None:
        """The order in which a frame's bits are dealt over the lanes, from `set_lanes` on."""
        self._stripe = tuple(lanes)

    def _aim(self) -> None:
        """How often the errors of the lanes in use reach a frame; a fresh count-down to the next.

        A Poisson process has no memory, so starting the count-down again is no bias.
        """
        self._strikes_per_bit = 0.0
        if self._used_lanes:
            rates = self.ber[list(self._used_lanes)]
            if self._code is None:
                self._strikes_per_bit = float(rates.mean())
                self._lane_shares = rates / rates.sum()
            else:
                tail = fec.symbol_error_pmf(rates.tolist(), self._code)[self._code.t + 1 :]
                lost = min(float(tail.sum()), 1.0)
                self._strikes_per_bit = lost / self._code.payload_bits
                if lost > 0.0:
                    self._excess = tail / tail.sum()
                    wrong = fec.symbol_error_ratio(rates)
                    self._lane_shares = wrong / wrong.sum()
        self._bits_left = self._bits_to_next()
        self._bits_left_counted = self._bits_left

    def _bits_to_next(self) -> float:
        if self._strikes_per_bit < 1e-300:
            return math.inf
        return float(self._frame_dice.exponential()) / self._strikes_per_bit

    def strike(self, nbytes: int) -> Sequence[int]:
        """The bits that light flips in a received frame of so many bytes; nearly always none."""
        bits = nbytes << 3
        left = self._bits_left - bits
        if left > 0.0:
            self._bits_left = left
            return ()
        return self._struck(bits)

    def _struck(self, bits: int) -> list[int]:
        at = self._bits_left
        flipped: dict[int, int] = {}  # position, lane
        while at < bits and len(flipped) < FLIPS_MAX:
            if self._code is None:
                self._flip_bit(int(at), bits, flipped)
            else:
                self._flip_codeword(int(at), bits, self._code, flipped)
            at += self._bits_to_next()
        for lane in flipped.values():
            self.errors[lane] += np.uint64(1)
        met = self._bits_left_counted - self._bits_left + bits
        self._bits_left = at - bits if at >= bits else self._bits_to_next()
        self._bits_left_counted = self._bits_left + met
        return sorted(flipped)

    def _flip_bit(self, at: int, bits: int, flipped: dict[int, int]) -> None:
        """One error, on a lane as likely as its BER, at any of the bits which that lane carries."""
        dice, width = self._frame_dice, len(self._used_lanes)
        turn = int(dice.choice(width, p=self._lane_shares))
        blocks = -(-bits // STRIPE_BITS)
        rounds = (blocks - turn + width - 1) // width
        if rounds <= 0:  # a frame too short to reach that lane
            block = at // STRIPE_BITS
            turn = block % width
        else:
            block = turn + width * int(dice.integers(rounds))
        start = block * STRIPE_BITS
        position = start + int(dice.integers(min(STRIPE_BITS, bits - start)))
        flipped[position] = self._used_lanes[turn]

    def _flip_codeword(self, at: int, bits: int, code: fec.Code, flipped: dict[int, int]) -> None:
        """A lost codeword: more than t wrong symbols, those in the payload show."""
        dice, width = self._frame_dice, len(self._used_lanes)
        start = at - at % code.payload_bits
        symbols = min(code.k, -(-(bits - start) // fec.SYMBOL_BITS))
        wrong = code.t + 1 + int(dice.choice(len(self._excess), p=self._excess))
        before = len(flipped)
        for turn in dice.choice(width, size=wrong, p=self._lane_shares).tolist():
            symbol = turn + width * int(dice.integers(max((code.n - turn) // width, 1)))
            if symbol < symbols:
                self._flip_in_symbol(start, symbol, bits, turn, flipped)
        if len(flipped) == before:  # All fell on parity or beside the frame, which is lost as well.
            symbol = int(dice.integers(symbols))
            self._flip_in_symbol(start, symbol, bits, symbol % width, flipped)

    def _flip_in_symbol(
        self, start: int, symbol: int, bits: int, turn: int, flipped: dict[int, int]
    ) -> None:
        first = start + symbol * fec.SYMBOL_BITS
        position = first + int(self._frame_dice.integers(min(fec.SYMBOL_BITS, bits - first)))
        flipped[position] = self._used_lanes[turn]

    # ---- showing itself --------------------------------------------------------------------------

    def write_rows(self, rows: NDArray[np.void]) -> None:
        """Write this port's rows of the lane table, in place."""
        rows["tx_power_dbm"] = self.tx_dbm
        rows["rx_power_dbm"] = self.rx_dbm
        rows["tx_bias_ma"] = self.bias_ma
        rows["margin_db"] = np.where(self.lit, self.margin_db, 0.0)
        rows["q"] = self.q
        rows["pre_fec_ber"] = np.where(self.lit, self.ber, 0.0)
        rows["rx_bits"] = self.rx_bits
        rows["pre_fec_errors"] = self.errors
        rows["los_count"] = self.los_count
        rows["lol_count"] = self.lol_count
        rows["peer_lane"] = self._peer_lane
        rows["inverted"] = self._inverted
        rows["tx_on"] = self.laser_on & ~self.laser_fault
        rows["los"] = ~self.lit
        rows["lol"] = ~self.locked
        rows["used"] = self._used
        rows["fitted_margin"] = self.lit

    def resume(self, rows: NDArray[np.void]) -> None:
        """Go on from the counters that an earlier life left in the table."""
        self.rx_bits[:] = rows["rx_bits"]
        self.errors[:] = rows["pre_fec_errors"]
        self.los_count[:] = rows["los_count"]
        self.lol_count[:] = rows["lol_count"]


def _mask(flags: Flags) -> int:
    return sum(1 << i for i in np.flatnonzero(flags).tolist())
