"""Errors in frames that really cross a link: which bits of this frame does the light flip?

Without FEC single bits flip at the BER of their lane. With FEC only lost codewords show, with more
wrong symbols than the code corrects; a frame is exposed to every codeword it touches, interleave
included. Errors come as a Poisson process over that exposure, so nearly always the answer costs
one subtraction. Bursts are a second state with its own rates: it is entered and left by chance, and
a burst that began in one frame goes on in the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelhw.optics import fec

Floats = NDArray[np.float64]

STRIPE_BITS = 64  # without FEC, blocks of this size are dealt over the lanes in turn
WORD_BITS = fec.KP4.codeword_bits  # what a step of the burst chain is without FEC
FLIPS_MAX = 64  # per frame; a frame with one is lost as surely
RATE_MIN = 1e-300
CERTAIN = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Aim:
    """What makes errors in frames: lanes in use, in the order of their bits, with their BER in both
    states of the channel."""

    lanes: tuple[int, ...]
    even_ber: tuple[float, ...]
    bad_ber: tuple[float, ...]
    burst: tuple[float, float]  # entered and left, per bit (with FEC: per codeword)
    code: str  # a key of fec.CODES
    interleave: int


@dataclass(frozen=True, slots=True)
class _Odds:
    """One state of the channel."""

    rate: float  # errors (or lost codewords) per bit (or codeword) of exposure
    shares: Floats  # of the errors, by lane in use
    excess: Floats  # P(t+1, t+2, ... wrong symbols), given a lost codeword


_QUIET = _Odds(0.0, np.zeros(0), np.zeros(0))


class Strikes:
    """One port's. Times do not matter here: only bits of frames pass by.

    `left` is the exposure to the next error or change of state; a frame takes `fixed`, and for
    each byte `per_byte`, of it.
    """

    def __init__(self, dice: np.random.Generator) -> None:
        self._dice = dice
        self._lanes: tuple[int, ...] = ()
        self._code: fec.Code | None = None
        self._even = self._bad = _QUIET
        self._enter = self._leave = 0.0  # of the burst state, per exposure
        self._in_burst = self._turns = False  # `_turns`: the next event is a change of state
        self.left = self._mark = math.inf  # exposure to the next error or change of state
        self.fixed, self.per_byte = 0.0, 8.0
        self._exposure = 0.0
        self.lost_words = 0  # since they were taken
        self.flips: dict[int, int] = {}  # by lane, likewise; only without FEC

    def aim(self, at: Aim) -> None:
        """A fresh count-down to the next error is no bias: the process has no memory."""
        self._exposure = self.exposure
        self._lanes = at.lanes
        self._code = code = fec.CODES[at.code]
        words = 1.0 if code is not None else 1.0 / WORD_BITS
        self.fixed = 0.0 if code is None else at.interleave + 1.0 / fec.BLOCKS_PER_CODEWORD
        self.per_byte = 8.0 if code is None else 1.0 / (8.0 * fec.BLOCKS_PER_CODEWORD)
        self._even = self._odds(at.even_ber)
        self._enter = self._leave = 0.0
        if at.lanes and at.burst[0] > 0.0:
            self._enter, self._leave = at.burst[0] * words, at.burst[1] * words
            self._bad = self._odds(at.bad_ber)
        else:
            self._in_burst = False
        self.left = self._mark = self._next()

    @property
    def exposure(self) -> float:
        """Bits (or codewords) of frames since it was taken last."""
        return self._exposure + (0.0 if math.isinf(self._mark) else self._mark - self.left)

    def take(self) -> tuple[float, int, dict[int, int]]:
        """Exposure, lost codewords and flipped bits by lane, since the last time."""
        taken = self.exposure, self.lost_words, self.flips
        self._exposure, self._mark = 0.0, self.left
        self.lost_words, self.flips = 0, {}
        return taken

    def met(self, exposure: float, lost_words: int, flips: Mapping[int, int]) -> None:
        """Others took frames that met the same light: count theirs with ours."""
        self._exposure += exposure
        self.lost_words += lost_words
        for lane, flipped in flips.items():
            self.flips[lane] = self.flips.get(lane, 0) + flipped

    def strike(self, nbytes: int) -> Sequence[int]:
        """The bits that light flips in a received frame of so many bytes; nearly always none."""
        left = self.left - self.fixed - nbytes * self.per_byte
        if left > 0.0:
            self.left = left
            return ()
        return self._struck(nbytes << 3, self.fixed + nbytes * self.per_byte)

    # ---- rates ----

    def _odds(self, errors: Sequence[float]) -> _Odds:
        if not self._lanes:
            return _QUIET
        rates = np.asarray(errors, np.float64)
        if self._code is None:
            return _Odds(float(rates.mean()), rates / rates.sum(), np.zeros(0))
        tail = fec.symbol_error_pmf(rates.tolist(), self._code)[self._code.t + 1 :]
        lost = min(float(tail.sum()), CERTAIN)
        if lost < RATE_MIN:
            return _QUIET
        wrong = fec.symbol_error_ratio(rates)
        return _Odds(-math.log1p(-lost), wrong / wrong.sum(), tail / tail.sum())

    def _next(self, with_errors: bool = True) -> float:
        """Exposure to the next error or change of state, whichever comes first."""
        errors, turns = (
            (self._bad.rate, self._leave) if self._in_burst else (self._even.rate, self._enter)
        )
        if not with_errors:
            errors = 0.0
        if errors + turns < RATE_MIN:
            return math.inf
        self._turns = turns > 0.0 and self._dice.random() * (errors + turns) < turns
        return float(self._dice.exponential()) / (errors + turns)

    # ---- errors ----

    def _struck(self, bits: int, exposure: float) -> list[int]:
        self._exposure += (0.0 if math.isinf(self._mark) else self._mark - self.left) + exposure
        at = self.left
        flipped: dict[int, int] = {}  # position, lane
        while at < exposure:
            if self._turns:
                self._in_burst = not self._in_burst
            elif len(flipped) < FLIPS_MAX:
                odds = self._bad if self._in_burst else self._even
                self._hit(at / exposure, bits, odds, flipped)
            # Once it is lost beyond doubt, only the state matters to the frames behind it.
            at += self._next(with_errors=len(flipped) < FLIPS_MAX)
        if len(flipped) >= FLIPS_MAX:
            at = exposure + self._next()
        self.left = self._mark = at - exposure
        if self._code is None:
            for lane in flipped.values():
                self.flips[lane] = self.flips.get(lane, 0) + 1
        return sorted(flipped)

    def _hit(self, where: float, bits: int, odds: _Odds, flipped: dict[int, int]) -> None:
        """An error at this share of the frame."""
        if self._code is None:
            self._flip_bit(int(where * bits), bits, odds, flipped)
        else:
            self.lost_words += 1
            self._flip_codeword(int(where * bits), bits, self._code, odds, flipped)

    def _flip_bit(self, at: int, bits: int, odds: _Odds, flipped: dict[int, int]) -> None:
        """One error, on a lane as likely as its BER, at any of the bits which that lane carries."""
        dice, width = self._dice, len(self._lanes)
        turn = int(dice.choice(width, p=odds.shares))
        blocks = -(-bits // STRIPE_BITS)
        rounds = (blocks - turn + width - 1) // width
        if rounds <= 0:  # a frame too short to reach that lane
            block = at // STRIPE_BITS
            turn = block % width
        else:
            block = turn + width * int(dice.integers(rounds))
        start = block * STRIPE_BITS
        position = start + int(dice.integers(min(STRIPE_BITS, bits - start)))
        flipped[position] = self._lanes[turn]

    def _flip_codeword(
        self, at: int, bits: int, code: fec.Code, odds: _Odds, flipped: dict[int, int]
    ) -> None:
        """A lost codeword: more than t wrong symbols, those in the payload show."""
        dice, width = self._dice, len(self._lanes)
        start = at - at % code.payload_bits
        symbols = min(code.k, -(-(bits - start) // fec.SYMBOL_BITS))
        wrong = code.t + 1 + int(dice.choice(len(odds.excess), p=odds.excess))
        before = len(flipped)
        for turn in dice.choice(width, size=wrong, p=odds.shares).tolist():
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
        position = first + int(self._dice.integers(min(fec.SYMBOL_BITS, bits - first)))
        flipped[position] = self._lanes[turn]
