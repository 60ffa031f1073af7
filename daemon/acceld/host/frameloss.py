"""How many frames a link will lose, predicted from the bit errors that it corrects now.

Errors are independent. A codeword of n ten-bit symbols is lost when more than t of them are wrong,
n = 514 + 2 t for the Reed-Solomon codes of Ethernet; symbols are dealt equally over the lanes, so
their wrong ones are a sum of binomials, one a lane. A frame is lost with any codeword it touches:
its 66-bit blocks over the 80 that a codeword carries, plus the interleave (IEEE 802.3 clauses 91
and 119). Without FEC, any wrong bit of the frame or its preamble loses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SYMBOL_BITS = 10
DATA_SYMBOLS = 514
BLOCKS_PER_CODEWORD = 80
PREAMBLE_BYTES = 8
TAIL = 48  # numbers of wrong symbols beyond t that are summed; the rest holds nothing
BER_MIN = 1e-300  # a logarithm wants more than nothing


def frame_loss(ber: Sequence[float], t: int, frame_bytes: int, interleave: int) -> float:
    """Ratio of frames lost, for the BER of each lane in use and a code that corrects t symbols; 0
    is no FEC."""
    if t == 0:
        bits = 8 * (frame_bytes + PREAMBLE_BYTES)
        return -math.expm1(bits * math.log1p(-min(sum(ber) / len(ber), 0.5)))
    lost = uncorrectable(tuple(ber), t)
    if lost >= 1.0:
        return 1.0
    touched = interleave + (1 + frame_bytes // 8) / BLOCKS_PER_CODEWORD
    return -math.expm1(touched * math.log1p(-lost))


# Light that stands still has the same errors at each look.
@lru_cache(4096)
def uncorrectable(ber: tuple[float, ...], t: int) -> float:
    """Chance that a codeword, dealt over lanes of these BERs, has more than t wrong symbols."""
    n = DATA_SYMBOLS + 2 * t
    shares = [n // len(ber) + (lane < n % len(ber)) for lane in range(len(ber))]
    wrong = -np.expm1(SYMBOL_BITS * np.log1p(-np.clip(np.array(ber), BER_MIN, 0.5)))
    width = t + 1 + TAIL
    odds = np.ones(1)
    for share, p in zip(shares, wrong.tolist(), strict=True):
        odds = np.convolve(odds, _binomial(share, p, width))[:width]
    few, many = float(odds[: t + 1].sum()), float(odds[t + 1 :].sum())
    # Beyond the cliff the tail does not fit into the width, but then its complement is exact.
    return min(max(1.0 - few if few < 0.5 else many, 0.0), 1.0)


def _binomial(n: int, p: float, width: int) -> Floats:
    """Chances of 0, 1, ... wrong ones among n, up to `width` of them."""
    j, log_choose = _log_choose(n, min(n + 1, width))
    return np.exp(log_choose + j * math.log(p) + (n - j) * math.log1p(-p))


@lru_cache(256)
def _log_choose(n: int, width: int) -> tuple[Floats, Floats]:
    logs = [math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in range(width)]
    return np.arange(width, dtype=np.float64), np.array(logs)
