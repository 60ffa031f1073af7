"""How a fault comes and goes: its strength over time, from 0 (healthy) to 1 (all of it).

A shape is pure: the same seconds and seed give the same strength, in whatever order they are asked
for, so a fault goes on exactly where it was when the process that carries it is started again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

NS = 1_000_000_000
STEPS = 1000  # in which a slow change is followed
STEP_S_MIN = 0.1
SETTLED = 16.0  # time constants after which an exponential has arrived
_BATCH = 64


class ShapeKind(StrEnum):
    STEP = "step"  # at once, and it stays
    RAMP = "ramp"  # grows evenly
    EXP = "exp"  # grows fast, then ever slower: what warms up does so
    PULSE = "pulse"  # once, for a while
    ON_OFF = "on_off"  # comes and goes at random, seconds to minutes
    BURST = "burst"  # comes and goes like a clock
    POISSON = "poisson"  # short strikes at random


class BadShape(ValueError):
    """Times that make no shape; the message says what works."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`rise_s` is the length of a ramp, or the time constant of an exponential. `on_s` and `off_s`
    are how long it is there and away: exactly (pulse, burst), or on average."""

    kind: ShapeKind = ShapeKind.STEP
    rise_s: float = 0.0
    on_s: float = 0.0
    off_s: float = 0.0

    def __post_init__(self) -> None:
        for name in _TIMES[self.kind]:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise BadShape(f"{name} of a {self.kind} is {value}; use a time above 0")

    def strength(self, elapsed_s: float, seed: int = 0) -> float:
        """How much of the fault is there, this long after it began."""
        if elapsed_s < 0.0:
            return 0.0
        match self.kind:
            case ShapeKind.STEP:
                return 1.0
            case ShapeKind.RAMP:
                return min(elapsed_s / self.rise_s, 1.0)
            case ShapeKind.EXP:
                return -math.expm1(-elapsed_s / self.rise_s)
            case ShapeKind.PULSE:
                return 1.0 if elapsed_s < self.on_s else 0.0
            case ShapeKind.BURST:
                into_ns, on_ns, _ = self._beat(elapsed_s)
                return 1.0 if into_ns < on_ns else 0.0
            case _:
                return float(_turns(self, seed).is_on(elapsed_s))

    def is_past(self, elapsed_s: float) -> bool:
        """It was there once and does not come again."""
        return self.kind is ShapeKind.PULSE and elapsed_s >= self.on_s

    def next_change_s(self, elapsed_s: float, seed: int = 0) -> float:
        """When the strength is next worth asking for, after `elapsed_s`; infinite if never."""
        if elapsed_s < 0.0:
            return 0.0
        match self.kind:
            case ShapeKind.STEP:
                return math.inf
            case ShapeKind.RAMP:
                return self._next_step(elapsed_s, self.rise_s)
            case ShapeKind.EXP:
                return self._next_step(elapsed_s, self.rise_s * SETTLED)
            case ShapeKind.PULSE:
                return self.on_s if elapsed_s < self.on_s else math.inf
            case ShapeKind.BURST:
                into_ns, on_ns, period_ns = self._beat(elapsed_s)
                left_ns = (on_ns if into_ns < on_ns else period_ns) - into_ns
                return (round(elapsed_s * NS) + left_ns) / NS
            case _:
                return _turns(self, seed).after(elapsed_s)

    def _beat(self, elapsed_s: float) -> tuple[int, int, int]:
        """Of a burst, in whole nanoseconds: no edge is missed for a rounding error. How far into
        its period it is, how long it is there, and the period."""
        on_ns, off_ns = round(self.on_s * NS), round(self.off_s * NS)
        return round(elapsed_s * NS) % (on_ns + off_ns), on_ns, on_ns + off_ns

    @staticmethod
    def _next_step(elapsed_s: float, end_s: float) -> float:
        if elapsed_s >= end_s:
            return math.inf
        step_s = max(end_s / STEPS, STEP_S_MIN)
        return min((math.floor(elapsed_s / step_s) + 1) * step_s, end_s)


_TIMES = {
    ShapeKind.STEP: (),
    ShapeKind.RAMP: ("rise_s",),
    ShapeKind.EXP: ("rise_s",),
    ShapeKind.PULSE: ("on_s",),
    ShapeKind.ON_OFF: ("on_s", "off_s"),
    ShapeKind.BURST: ("on_s", "off_s"),
    ShapeKind.POISSON: ("on_s", "off_s"),
}

# What a shape is when somebody asks for it by its name alone.
STANDARD = {
    ShapeKind.STEP: Shape(),
    ShapeKind.RAMP: Shape(ShapeKind.RAMP, rise_s=10.0),
    ShapeKind.EXP: Shape(ShapeKind.EXP, rise_s=10.0),
    ShapeKind.PULSE: Shape(ShapeKind.PULSE, on_s=5.0),
    ShapeKind.ON_OFF: Shape(ShapeKind.ON_OFF, on_s=2.0, off_s=10.0),
    ShapeKind.BURST: Shape(ShapeKind.BURST, on_s=0.1, off_s=0.9),
    ShapeKind.POISSON: Shape(ShapeKind.POISSON, on_s=0.03, off_s=10.0),
}


def shaped(default: Shape, name: str = "", ramp_s: float = 0.0) -> Shape:
    """A fault's own shape, changed as asked: another kind, another length. Raises BadShape."""
    shape = default
    if name:
        try:
            kind = ShapeKind(name)
        except ValueError:
            known = ", ".join(ShapeKind)
            raise BadShape(f"{name!r} is no shape; use one of {known}") from None
        shape = default if kind is default.kind else STANDARD[kind]
    if ramp_s == 0.0:
        return shape
    if not (math.isfinite(ramp_s) and ramp_s > 0.0):
        raise BadShape(f"a ramp of {ramp_s:g} s; use a time above 0")
    if "rise_s" in _TIMES[shape.kind]:
        return replace(shape, rise_s=ramp_s)
    if not name and shape.kind is ShapeKind.STEP:
        return Shape(ShapeKind.RAMP, rise_s=ramp_s)
    raise BadShape(f"a fault that comes as {shape.kind} has no ramp; leave it out, or use ramp")


class _Turns:
    """The random times at which a fault comes (even) and goes (odd), made as far as asked for.

    It is there at 0: whoever injects it sees it.
    """

    def __init__(self, shape: Shape, seed: int) -> None:
        self._shape = shape
        self._dice = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self._times: list[float] = [0.0]

    def is_on(self, elapsed_s: float) -> bool:
        self._reach(elapsed_s)
        return bool(bisect_right(self._times, elapsed_s) & 1)

    def after(self, elapsed_s: float) -> float:
        self._reach(elapsed_s)
        return self._times[bisect_right(self._times, elapsed_s)]

    def _reach(self, elapsed_s: float) -> None:
        times, shape = self._times, self._shape
        while times[-1] <= elapsed_s:
            gaps = self._dice.exponential(shape.off_s, _BATCH).tolist()
            if shape.kind is ShapeKind.POISSON:
                stays = [shape.on_s] * _BATCH
            else:
                stays = self._dice.exponential(shape.on_s, _BATCH).tolist()
            for stay_s, gap_s in zip(stays, gaps, strict=True):
                gone_s = times[-1] + stay_s
                times += (gone_s, gone_s + gap_s)


@lru_cache(maxsize=4096)
def _turns(shape: Shape, seed: int) -> _Turns:
    return _Turns(shape, seed)
