"""A microring modulator: its resonance moves with temperature, a heater holds it on the laser."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def detuned_penalty_db(error_k: ArrayLike, ghz_per_k: float, fwhm_ghz: float) -> Floats:
    """Modulation amplitude lost to a resonance that is off by so many kelvins; optical dB."""
    detuning_ghz = np.asarray(error_k, np.float64) * ghz_per_k
    return np.asarray(10.0 * np.log10(1.0 + (2.0 * detuning_ghz / fwhm_ghz) ** 2))


def out_of_reach_k(rise_c: ArrayLike, reach_k: float) -> Floats:
    """What is left of a temperature change when the heater has given all it can."""
    rise = np.asarray(rise_c, np.float64)
    return np.asarray(rise - np.clip(rise, -reach_k, reach_k))


def heater_mw(
    rise_c: ArrayLike, error_k: ArrayLike, middle_mw: float, mw_per_k: float, max_mw: float
) -> Floats:
    """Heater power: less as the surroundings warm up, at its rail when it cannot follow."""
    held = middle_mw - mw_per_k * np.asarray(rise_c, np.float64)
    push = np.clip(np.asarray(error_k, np.float64), -1.0, 1.0)  # a kelvin is far out of lock
    return np.asarray(np.clip(held + push * max_mw, 0.0, max_mw))
