"""From margin to eye quality Q to bit error ratio, and back.

Gaussian noise with mid thresholds. NRZ: BER = Qf(Q). PAM4 with Gray coding, q being half a level
gap over sigma: BER = 3/4 Qf(q) + 1/2 Qf(3q) - 1/4 Qf(5q), exactly. The receiver's noise has a
thermal part, a shot part that grows with the light, and a laser (RIN) part that grows with its
square; s and r are their variances over the thermal one at the sensitivity.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MODULATIONS = ("nrz", "pam4")
DARK_BER = 0.5
_SQRT2 = math.sqrt(2.0)
_Q_MAX = 38.0  # beyond it the tail underflows a double

_erfc = np.frompyfunc(math.erfc, 1, 1)


def gaussian_tail(x: ArrayLike) -> Floats:
    """Qf(x) = P(N(0,1) > x), to full double precision down to 1e-300."""
    return np.asarray(0.5 * np.asarray(_erfc(np.asarray(x, float) / _SQRT2), float))


def ber_nrz(q: ArrayLike) -> Floats:
    return gaussian_tail(q)


def ber_pam4(q: ArrayLike) -> Floats:
    """Exact for Gray-coded, equally spaced levels."""
    q = np.asarray(q, float)
    tails = 0.75 * gaussian_tail(q) + 0.5 * gaussian_tail(3.0 * q) - 0.25 * gaussian_tail(5.0 * q)
    return np.asarray(tails)


def ser_pam4(q: ArrayLike) -> Floats:
    """Symbol error ratio."""
    return np.asarray(1.5 * gaussian_tail(q))


def ber_of_q(q: ArrayLike, modulation: str) -> Floats:
    """Raises ValueError on an unknown modulation."""
    if modulation == "nrz":
        return ber_nrz(q)
    if modulation == "pam4":
        return ber_pam4(q)
    raise ValueError(f"{modulation=} is none of {MODULATIONS}")


@cache
def q_of_ber(ber: float, modulation: str) -> float:
    """The Q that gives this BER. Raises ValueError unless 1e-300 < ber < 0.5."""
    if not 1e-300 < ber < DARK_BER:
        raise ValueError(f"{ber=} has no Q")
    low, high = 0.0, _Q_MAX
    while (middle := 0.5 * (low + high)) not in (low, high):
        if float(ber_of_q(middle, modulation)) > ber:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def q_of_margin(
    margin_db: ArrayLike, q_reference: float, shot_over_thermal: float, rin_over_thermal: float
) -> Floats:
    """Q at a margin over the sensitivity where Q is `q_reference`."""
    s, r = shot_over_thermal, rin_over_thermal
    with np.errstate(over="ignore", invalid="ignore"):
        x = 10.0 ** (np.asarray(margin_db, float) / 10.0)
        return np.asarray(q_reference * x * np.sqrt((1.0 + s + r) / (1.0 + s * x + r * x * x)))


def margin_of_q(
    q: float, q_reference: float, shot_over_thermal: float, rin_over_thermal: float
) -> float:
    """Margin in dB that gives this Q; infinite when laser noise never lets it be reached."""
    s, r = shot_over_thermal, rin_over_thermal
    ratio = (q / q_reference) ** 2 / (1.0 + s + r)
    # x^2 = ratio (1 + s x + r x^2)
    a, b, c = 1.0 - ratio * r, -ratio * s, -ratio
    if a <= 0.0:
        return math.inf
    x = (-b + math.sqrt(b * b - 4.0 * a * c)) / (2.0 * a)
    return 10.0 * math.log10(x)


def snr_db(q: ArrayLike, modulation: str) -> Floats:
    """Average signal power over noise: Q squared for NRZ, 5 q squared for PAM4."""
    factor = 5.0 if modulation == "pam4" else 1.0
    return np.asarray(10.0 * np.log10(factor * np.asarray(q, float) ** 2))
