"""A laser's light from its bias, and the bias that a wanted light takes. Scalars and arrays alike.

P = eta(T) (I - Ith(T)), with Ith = 8 mA exp((T - 25) / 60) and eta falling as exp(-(T - 25) / 180).
Wear takes slope efficiency and raises the threshold; automatic power control answers with bias
until the driver's limit, and only then the light falls.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

THRESHOLD_MA = 8.0  # at 25 degC
THRESHOLD_K = 60.0  # its characteristic temperature T0
SLOPE_MW_PER_MA = 0.3  # at 25 degC
SLOPE_K = 180.0  # its characteristic temperature T1
REFERENCE_C = 25.0
ZERO_C_K = 273.15
BOLTZMANN_EV_PER_K = 8.617333262e-5
AGEING_EV = 0.7  # activation energy of wear, upper end of the usual 0.35 to 0.7
END_OF_LIFE_H = 100_000.0  # at the laser's nominal temperature
END_OF_LIFE_GROWTH = 0.2  # of bias at constant power, by then


def threshold_ma(temp_c: ArrayLike) -> Floats:
    return np.asarray(THRESHOLD_MA * np.exp((np.asarray(temp_c) - REFERENCE_C) / THRESHOLD_K))


def slope_mw_per_ma(temp_c: ArrayLike) -> Floats:
    return np.asarray(SLOPE_MW_PER_MA * np.exp(-(np.asarray(temp_c) - REFERENCE_C) / SLOPE_K))


def power_mw(bias_ma: ArrayLike, temp_c: ArrayLike, wear: ArrayLike = 0.0) -> Floats:
    """Light at the facet; none below threshold."""
    threshold, slope = worn(temp_c, wear)
    return np.asarray(slope * np.maximum(np.asarray(bias_ma) - threshold, 0.0))


def bias_ma(wanted_mw: ArrayLike, temp_c: ArrayLike, wear: ArrayLike = 0.0) -> Floats:
    """The bias that gives this light; infinite for a laser without slope."""
    threshold, slope = worn(temp_c, wear)
    with np.errstate(divide="ignore"):
        return np.asarray(threshold + np.asarray(wanted_mw) / slope)


def worn(temp_c: ArrayLike, wear: ArrayLike) -> tuple[Floats, Floats]:
    """Threshold and slope of a laser that lost this share of its slope."""
    lost = np.clip(np.asarray(wear, np.float64), 0.0, 1.0)
    return threshold_ma(temp_c) * (1.0 + lost), slope_mw_per_ma(temp_c) * (1.0 - lost)


def acceleration(use_c: ArrayLike, stress_c: ArrayLike, activation_ev: float = AGEING_EV) -> Floats:
    """How much faster it ages at `stress_c` than at `use_c` (Arrhenius)."""
    cold = 1.0 / (np.asarray(use_c, np.float64) + ZERO_C_K)
    hot = 1.0 / (np.asarray(stress_c, np.float64) + ZERO_C_K)
    return np.asarray(np.exp(activation_ev / BOLTZMANN_EV_PER_K * (cold - hot)))


def aged_growth(
    age_h: ArrayLike,
    growth_at_end: float = END_OF_LIFE_GROWTH,
    end_h: float = END_OF_LIFE_H,
    exponent: float = 1.0,
) -> Floats:
    """Factor on the bias at constant power after so many hours at nominal temperature."""
    return np.asarray(1.0 + growth_at_end * (np.asarray(age_h, np.float64) / end_h) ** exponent)


def rin_q(rin_db_per_hz: float, extinction_db: float, bandwidth_hz: float, levels: int) -> float:
    """The Q that laser noise alone leaves to the uppermost eye, of 2 or 4 levels."""
    ratio = 10.0 ** (extinction_db / 10.0)
    top = 2.0 * ratio / (ratio + 1.0)  # the highest level over the mean
    half_gap = (top - 2.0 / (ratio + 1.0)) / (2.0 * (levels - 1))
    noise = math.sqrt(10.0 ** (rin_db_per_hz / 10.0) * bandwidth_hz)
    return float(half_gap / (noise * top))
