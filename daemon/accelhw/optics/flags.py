"""Flags over thresholds and conditions: active, latched, how often changed, and when.

A flag goes on beyond its level and off only when the value has come back by a little more, so that
noise at the level makes no flood. Every change that is fed is counted, however fast they come; the
latch keeps what was on until somebody clears it. Absent values (nan) raise nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accelhw.model.flag import LEVELS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = slice | NDArray[np.intp]

EVERYONE = slice(None)
# How far a value must come back: in its own unit, and for ratios as a share of the level.
HYSTERESIS: dict[str, float] = {
    "tx_power_dbm": 0.3,
    "rx_power_dbm": 0.3,
    "tx_bias_ma": 0.5,
    "laser_temp_c": 0.5,
    "heater_mw": 0.2,
    "case_temp_c": 1.0,
    "hbm_temp_c": 1.0,
    "supply_v": 0.005,
}
HYSTERESIS_RATIO = 0.2

FIELDS = ("active", "latched", "count", "first_set_ns", "last_set_ns", "last_clear_ns")


class FlagBank:
    """Flags of many owners: arrays [flag, *owner]. Times are handed in, of the wall clock."""

    def __init__(
        self,
        names: tuple[str, ...],
        owners: tuple[int, ...],
        quantities: Mapping[str, str],
        thresholds: Mapping[str, tuple[float, ...]],
    ) -> None:
        shape = (len(names), *owners)
        self.names = names
        self.active: Flags = np.zeros(shape, bool)
        self.latched: Flags = np.zeros(shape, bool)
        self.count: NDArray[np.uint64] = np.zeros(shape, np.uint64)  # changes, on and off alike
        self.first_set_ns: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self.last_set_ns: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self.last_clear_ns: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self.stored_stale: Flags = np.ones(owners[:1], bool)  # changed since it was stored
        self._levels = {
            quantity: _Levels(names, quantity, stem, thresholds[quantity], len(owners))
            for quantity, stem in quantities.items()
            if quantity in thresholds
        }

    def watch(self, quantity: str, values: Floats, wall_ns: int, owners: Index = EVERYONE) -> None:
        """The values of a quantity now; one without thresholds is not watched."""
        if (levels := self._levels.get(quantity)) is None:
            return
        was = self.active[levels.at][:, owners]
        limit = np.where(was, levels.eased, levels.level)
        on = np.where(levels.is_high, values > limit, values < limit)
        changed = was != on
        if changed.any():
            for place, flag in enumerate(levels.flags):
                if changed[place].any():
                    self._follow(flag, was[place], on[place], wall_ns, owners)

    def condition(self, name: str, on: Flags, wall_ns: int, owners: Index = EVERYONE) -> None:
        flag = self.names.index(name)
        self._follow(flag, self.active[flag][owners], on, wall_ns, owners)

    def _follow(self, flag: int, was: Flags, on: Flags, wall_ns: int, owners: Index) -> None:
        changed = was != on
        if not changed.any():
            return
        rises, falls = changed & on, changed & ~on
        now = np.uint64(wall_ns)
        first = self.first_set_ns[flag][owners]
        self.active[flag][owners] = on
        self.latched[flag][owners] |= on
        self.count[flag][owners] += changed
        self.first_set_ns[flag][owners] = np.where(rises & (first == 0), now, first)
        self.last_set_ns[flag][owners] = np.where(rises, now, self.last_set_ns[flag][owners])
        self.last_clear_ns[flag][owners] = np.where(falls, now, self.last_clear_ns[flag][owners])
        self.stored_stale[owners] |= changed.reshape(len(changed), -1).any(axis=1)

    def unlatch(self, owner: int) -> None:
        """Let the latches of an owner show only what is on now, as a read of a module does."""
        self.latched[:, owner] = self.active[:, owner]
        self.stored_stale[owner] = True

    # ---- tables ----

    def store(self, rows: NDArray[Any], owner: int) -> None:
        """Write an owner's flags into rows of the FLAG type, [..., flag], if any changed."""
        if self.stored_stale[owner]:
            self.stored_stale[owner] = False
            for name in FIELDS:
                rows[name] = np.moveaxis(getattr(self, name)[:, owner], 0, -1)

    def resume(self, rows: NDArray[Any], owner: int) -> None:
        """Go on from the rows that an earlier life left."""
        for name in FIELDS:
            getattr(self, name)[:, owner] = np.moveaxis(rows[name], -1, 0)


class _Levels:
    """The levels of a quantity that are there. Arrays are [level, 1, ...], to meet values."""

    def __init__(
        self, names: tuple[str, ...], quantity: str, stem: str, levels: Sequence[float], axes: int
    ) -> None:
        there = [(n, v) for n, v in zip(LEVELS, levels, strict=True) if math.isfinite(v)]
        bands = [HYSTERESIS.get(quantity, abs(v) * HYSTERESIS_RATIO) for _, v in there]
        shape = (len(there), *(1 for _ in range(axes)))
        self.flags = [names.index(f"{stem}_{name}") for name, _ in there]
        self.at: NDArray[np.intp] = np.array(self.flags, np.intp)
        self.is_high = np.array([n.startswith("high") for n, _ in there], bool).reshape(shape)
        self.level = np.array([v for _, v in there], float).reshape(shape)
        band = np.array(bands, float).reshape(shape)
        # Where a flag that is on goes off.
        self.eased = np.where(self.is_high, self.level - band, self.level + band)


def unless(absent: ArrayLike, values: ArrayLike) -> Floats:
    """Values, and nan where they mean nothing."""
    return np.where(absent, math.nan, values)
