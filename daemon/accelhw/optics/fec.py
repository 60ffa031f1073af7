"""Reed-Solomon codes over GF(2^10): what bit errors before the decoder leave behind it.

Independent bit errors. p = 1-(1-BER)^10 per symbol; a codeword of n symbols is lost when more
than t are wrong; a frame is lost with any codeword it touches, because the decoder marks the whole
codeword bad. Mixed lanes: symbols are dealt equally, so the symbol errors of a codeword are a sum
of binomials, one a lane, not a binomial at the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SYMBOL_BITS = 10
BLOCKS_PER_CODEWORD = 80  # 64b/66b blocks that one codeword carries, KP4 and KR4 alike
PREAMBLE_BYTES = 8
DECODER_NS = 37.0  # 3 + 3 + 31 cycles, the estimate in IEEE 802.3dj work


@dataclass(frozen=True, slots=True)
class Code:
    """RS(n, k): corrects up to t symbols of ten bits."""

    name: str
    n: int
    k: int

    @property
    def t(self) -> int:
        return (self.n - self.k) // 2

    @property
    def codeword_bits(self) -> int:
        return self.n * SYMBOL_BITS

    @property
    def payload_bits(self) -> int:
        return self.k * SYMBOL_BITS


KR4 = Code("kr4", 528, 514)
KP4 = Code("kp4", 544, 514)
CODES: dict[str, Code | None] = {"none": None, "kr4": KR4, "kp4": KP4}


def symbol_error_ratio(ber: ArrayLike) -> Floats:
    ber = np.asarray(ber, float)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(SYMBOL_BITS * np.log1p(-ber)))


def _log_pmf(n: int, p: Floats) -> Floats:
    """ln P(Bin(n, p) = j) for j = 0..n on a new last axis."""
    j = np.arange(n + 1)
    choose = np.array(
        [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)]
    )
    p = p[..., np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        wrong = np.where(j == 0, 0.0, j * np.log(p))
        right = np.where(j == n, 0.0, (n - j) * np.log1p(-p))
    return np.asarray(choose + wrong + right)


def _log_sum_exp(terms: Floats) -> Floats:
    highest = np.max(terms, axis=-1, keepdims=True)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.sum(np.exp(terms - safe), axis=-1)) + safe[..., 0])


def log_uncorrectable(ber: ArrayLike, code: Code) -> Floats:
    """ln of the probability that a codeword is lost; -inf without errors. Vectorised over BER."""
    p = symbol_error_ratio(ber)
    return np.minimum(_log_sum_exp(_log_pmf(code.n, p)[..., code.t + 1 :]), 0.0)


def log_post_fec_ber(ber: ArrayLike, code: Code) -> Floats:
    """ln of the BER behind the decoder, which leaves a lost codeword as it came."""
    ber = np.asarray(ber, float)
    p = symbol_error_ratio(ber)
    j = np.arange(code.t + 1, code.n + 1)
    terms = _log_pmf(code.n, p)[..., code.t + 1 :] + np.log(j)
    with np.errstate(divide="ignore"):
        bits_per_symbol_error = np.log(ber) - np.log(p)
        return np.asarray(_log_sum_exp(terms) - math.log(code.n) + bits_per_symbol_error)


def symbols_per_lane(code: Code, lanes: int) -> list[int]:
    """How the symbols of a codeword are dealt."""
    share, rest = divmod(code.n, lanes)
    return [share + (lane < rest) for lane in range(lanes)]


def symbol_error_pmf(lane_ber: Sequence[float], code: Code) -> Floats:
    """P(j wrong symbols in a codeword) for j = 0..n, over lanes of unequal BER."""
    total = np.ones(1)
    p = symbol_error_ratio(np.asarray(lane_ber, float))
    for symbols, lane_p in zip(symbols_per_lane(code, len(lane_ber)), p, strict=True):
        total = np.convolve(total, np.exp(_log_pmf(symbols, np.asarray(lane_p))))
    return total


def uncorrectable(lane_ber: Sequence[float], code: Code) -> float:
    """Probability that a codeword dealt over these lanes is lost."""
    return min(float(symbol_error_pmf(lane_ber, code)[code.t + 1 :].sum()), 1.0)


def codewords_touched(frame_bytes: int, interleave: int) -> float:
    """Mean number of codewords under a frame: its 66-bit blocks over 80, plus the interleave."""
    blocks = 2 + frame_bytes // 8
    return interleave + (blocks - 1) / BLOCKS_PER_CODEWORD


def frame_loss(log_pu: ArrayLike, frame_bytes: int, interleave: int) -> Floats:
    """Probability that a frame meets a lost codeword."""
    pu = np.exp(np.asarray(log_pu, float))
    touched = codewords_touched(frame_bytes, interleave)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(touched * np.log1p(-pu)))


def frame_loss_without_fec(ber: ArrayLike, frame_bytes: int) -> Floats:
    """Probability that any bit of a frame or its preamble is wrong."""
    bits = 8 * (frame_bytes + PREAMBLE_BYTES)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(bits * np.log1p(-np.asarray(ber, float))))


# ---- many ports at once --------------------------------------------------------------------------

LOCK_LOSS_RUN = 3  # uncorrectable codewords in a row lose the lock of the physical coding sublayer
_TAIL = 48  # bins behind t that are summed; further ones hold less than 1e-15 of the tail
_CALM = 0.1  # wrong symbols a codeword; below it a few bins hold the tail
_CALM_TAIL = 6


@dataclass(frozen=True, slots=True)
class WordOdds:
    """What becomes of a codeword, for many ports: arrays over ports."""

    bins: Floats  # [port, 0..t]: so many symbols corrected
    uncorrectable: Floats
    excess_symbols: Floats  # mean number of wrong symbols in an uncorrectable one


def word_odds(lane_ber: ArrayLike, code: Code) -> WordOdds:
    """From the BER of each lane in use, [port, lane]. Exact as `symbol_error_pmf`, and fast."""
    errors = np.atleast_2d(np.asarray(lane_ber, float))
    ports, lanes = errors.shape
    p = symbol_error_ratio(errors)
    shares = symbols_per_lane(code, lanes)
    odds = WordOdds(np.zeros((ports, code.t + 1)), np.zeros(ports), np.zeros(ports))
    calm = p @ np.array(shares, float) < _CALM
    for part, tail in ((calm, _CALM_TAIL), (~calm, _TAIL)):
        if part.any():
            width = code.t + 1 + tail
            _fill(odds, part, _convolved(p[part].T, shares, width), code)
    return odds


def _fill(odds: WordOdds, part: NDArray[np.bool_], pmf: Floats, code: Code) -> None:
    head, tail = pmf[: code.t + 1], pmf[code.t + 1 :]
    good, lost = head.sum(axis=0), tail.sum(axis=0)
    odds.bins[part] = head.T
    # Far past the cliff the tail does not fit into its bins, but then its complement is exact.
    odds.uncorrectable[part] = np.where(good < 0.5, 1.0 - good, np.minimum(lost, 1.0))
    counts = np.arange(code.t + 1, code.t + 1 + len(tail))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (counts @ tail) / lost
    odds.excess_symbols[part] = np.where(lost > 0.0, mean, code.t + 1.0)


def _convolved(p: Floats, shares: Sequence[int], width: int) -> Floats:
    """P(j wrong symbols) as [j, port] for j below `width`, over lanes of so many symbols each."""
    total = np.zeros((width, p.shape[1]))
    total[0] = 1.0
    for lane, symbols in enumerate(shares):
        own = _pmf_head(symbols, p[lane], min(symbols + 1, width))
        summed = own[0] * total
        for j in range(1, len(own)):
            summed[j:] += own[j] * total[: width - j]
        total = summed
    return total


def _pmf_head(n: int, p: Floats, width: int) -> Floats:
    """P(Bin(n, p) = j) as [j, port], each from the one before where nothing underflows."""
    head = np.zeros((width, len(p)))
    log_right = np.log1p(-np.minimum(p, 1.0 - 1e-16))
    head[0] = np.exp(n * log_right)
    odds = np.exp(np.log(np.maximum(p, 1e-300)) - log_right)
    for j in range(1, width):
        head[j] = head[j - 1] * odds * ((n - j + 1) / j)
    return head


def lock_loss_ratio(p_uncorrectable: ArrayLike) -> Floats:
    """Chance a codeword, in the long run, that it is the third uncorrectable one in a row."""
    p = np.asarray(p_uncorrectable, float)
    return np.asarray(p**3 / (1.0 + p + p * p))


def receive_delay_ns(code: Code, interleave: int, line_rate_gbit_per_s: float) -> float:
    """Time to gather the interleaved codewords, and to decode them: 37 cycles at 1 GHz."""
    return interleave * code.codeword_bits / line_rate_gbit_per_s + DECODER_NS
