"""Temperatures that follow their heat: one resistance and one capacity a part, solved exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

AIRFLOW_MIN_RATIO = 0.1  # what still moves by itself when every fan has stopped


def final_c(
    ambient_c: ArrayLike, power_w: ArrayLike, k_per_w: float, airflow_ratio: ArrayLike = 1.0
) -> Floats:
    """Where it ends up. Half the air doubles the resistance."""
    flow = np.maximum(np.asarray(airflow_ratio, np.float64), AIRFLOW_MIN_RATIO)
    return np.asarray(np.asarray(ambient_c) + np.asarray(power_w) * k_per_w / flow)


def relaxed_c(
    now_c: ArrayLike, final: ArrayLike, elapsed_s: float, tau_s: ArrayLike
) -> Floats:  # fmt: skip
    """On its way there after this time. A step of an hour is as right as many of a second."""
    share = -np.expm1(-elapsed_s / np.asarray(tau_s, np.float64))
    return np.asarray(np.asarray(now_c) + (np.asarray(final) - np.asarray(now_c)) * share)
