"""How many frames a link is to lose, predicted from the bit errors that it corrects now.

Errors are independent. A codeword of n ten-bit symbols is lost when more than t of them are wrong,
n = 514 + 2 t for the Reed-Solomon codes of Ethernet; a frame is lost with any codeword it touches:
its 66-bit blocks over the 80 that a codeword carries, plus the interleave (IEEE 802.3 clauses 91
and 119). Lanes of unequal BER deal their symbols into each codeword; their mean stands for them.
Without FEC, any wrong bit of the frame or its preamble loses it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SYMBOL_BITS = 10
DATA_SYMBOLS = 514
BLOCKS_PER_CODEWORD = 80
PREAMBLE_BYTES = 8
TAIL = 48  # numbers of wrong symbols beyond t that are summed; the rest holds nothing at low BER


def frame_loss(ber: NDArray[np.float64], t: int, frame_bytes: int, interleave: int) -> float:
    """Ratio of frames lost, for the BER of each lane in use and a code that corrects t symbols."""
    if t == 0:
        bits = 8 * (frame_bytes + PREAMBLE_BYTES)
        return -math.expm1(bits * math.log1p(-_mean(ber)))
    wrong = _mean(-np.expm1(SYMBOL_BITS * np.log1p(-np.minimum(ber, 0.5))))
    lost = _uncorrectable(wrong, t)
    if lost >= 1.0:
        return 1.0
    touched = interleave + (1 + frame_bytes // 8) / BLOCKS_PER_CODEWORD
    return -math.expm1(touched * math.log1p(-lost))


def _mean(values: NDArray[np.float64]) -> float:
    return min(float(values.mean()), 1.0 - 1e-16)


@lru_cache(4096)
def _uncorrectable(wrong: float, t: int) -> float:
    """Chance of more than t wrong symbols in a codeword."""
    n = DATA_SYMBOLS + 2 * t
    if wrong <= 0.0:
        return 0.0
    if n * wrong > t + TAIL / 2:
        return 1.0  # far beyond the cliff
    log_wrong, log_right = math.log(wrong), math.log1p(-wrong)
    logs = [
        choose + j * log_wrong + (n - j) * log_right
        for j, choose in enumerate(_log_choose(n, t + 1, t + 1 + TAIL), t + 1)
    ]
    return min(sum(map(math.exp, logs)), 1.0)


@lru_cache(16)
def _log_choose(n: int, start: int, stop: int) -> tuple[float, ...]:
    return tuple(
        math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in range(start, stop)
    )
