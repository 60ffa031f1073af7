"""Power monitors: what a module reads is not quite what there is.

A reading is off by a slow walk (Ornstein and Uhlenbeck: 0.1 dB, 60 s) and a jitter (0.03 dB rms),
and comes in steps of the register. It is the monitor that wanders, not the light: errors follow
from the light, and flags judge the reading before the noise, as a module that averages does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accelhw.optics import budget, chance

Floats = NDArray[np.float64]

WALK_DB = 0.1
WALK_S = 60.0
JITTER_DB = 0.03
DARK_DBM = -40.0
POWER_STEP_MW = 1e-4  # of the registers: 0.1 uW
BIAS_STEP_MA = 0.002
TEMPERATURE_STEP_C = 1 / 256
SUPPLY_STEP_V = 1e-4


class Monitors:
    """The error of one monitor a lane."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.error_db: Floats = np.zeros(shape)
        self.keys: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self._walk_db: Floats = np.zeros(shape)
        self._draw = 0

    def move(self, elapsed_s: float) -> None:
        keep = math.exp(-elapsed_s / WALK_S)
        step, jitter = chance.normals(self.keys, self._draw)
        self._draw += 1
        self._walk_db *= keep
        self._walk_db += WALK_DB * math.sqrt(1.0 - keep * keep) * step
        self.error_db[...] = self._walk_db + JITTER_DB * jitter


def power_reading_dbm(power_dbm: ArrayLike, error_db: ArrayLike) -> Floats:
    """What the register says; darkness reads the floor."""
    power = np.asarray(power_dbm, np.float64)
    lit = power > DARK_DBM
    seen_mw = budget.milliwatts(np.where(lit, power + np.asarray(error_db, np.float64), DARK_DBM))
    return budget.dbm(np.maximum(stepped(seen_mw, POWER_STEP_MW), POWER_STEP_MW))


def seen_dbm(power_dbm: Floats, error_db: Floats) -> Floats:
    """What an Rx monitor reads, but for its noise: the light and the monitor's own error."""
    return np.where(power_dbm > DARK_DBM, np.maximum(power_dbm + error_db, DARK_DBM), DARK_DBM)


def stepped(value: ArrayLike, step: float) -> Any:
    return np.round(np.asarray(value, np.float64) / step) * step
