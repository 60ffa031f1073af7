"""Bursts of errors: a Gilbert-Elliott chain, stepped once a codeword, beside the even errors.

Attenuation never makes bursts: between no loss and a link that drops lie tenths of a dB. So they
are a process of their own, with a good and a bad state and a chance to change at each codeword.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def share_bad(good_to_bad: ArrayLike, bad_to_good: ArrayLike) -> Floats:
    """Of all codewords, in the long run; 0 without bursts."""
    enter, leave = np.asarray(good_to_bad, np.float64), np.asarray(bad_to_good, np.float64)
    total = np.where(enter > 0.0, enter + leave, 1.0)
    return np.asarray(np.where(enter > 0.0, enter / total, 0.0))


def mixed(good: ArrayLike, bad: ArrayLike, share: ArrayLike) -> Floats:
    """A long-run mean over both states."""
    part = np.asarray(share, np.float64)
    return np.asarray(np.asarray(good) * (1.0 - part) + np.asarray(bad) * part)


def lock_loss_in_burst(p_uncorrectable: float, bad_to_good: float) -> float:
    """Chance that a burst holds three uncorrectable codewords in a row.

    With h(r) the chance from r in a row on: h(3) = 1, and a further codeword comes while the burst
    stays.
    """
    p, stay = p_uncorrectable, 1.0 - bad_to_good
    # h0 = p s h1 + (1-p) s h0; h1 = p s h2 + (1-p) s h0; h2 = p + (1-p) s h0
    restart = (1.0 - p) * stay
    onward = p * stay
    constant = onward * onward * p
    back = restart * (1.0 + onward + onward * onward)
    return constant / (1.0 - back) if back < 1.0 else 1.0
