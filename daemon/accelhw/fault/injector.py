"""The faults of one card, and the causes that they change at a time. Pure: the clock is handed in.

Causes are added up anew from what is active, never taken back one from another: when the last fault
is cleared, what remains is exactly nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from accelhw.fault.kinds import Crossing, Effect, FaultKind
from accelhw.fault.shapes import Shape

NS = 1_000_000_000
STEP_NS_MIN = 1_000_000  # the shortest time between two changes that are followed

# Conditions: on or off, however many faults ask for them. All other causes add up.
CONDITIONS = frozenset({"laser_dead", "cdr_unlocked"})
# What makes an error burst does not add up: of two bursts the worse is there. A scale makes bursts
# more frequent.
WORST = frozenset({"burst_ber_good", "burst_ber_bad", "burst_good_to_bad", "burst_bad_to_good"})


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault that was injected: a kind, at a place, from a time on."""

    id: str
    kind: FaultKind
    effects: tuple[Effect, ...]  # of the kind, on this card
    oe: int | None  # None: the card
    lanes: tuple[int, ...]
    shape: Shape
    begun_ns: int  # of the monotonic clock
    duration_s: float | None = None  # None: until it is cleared
    scale: float = 1.0
    lane_scales: tuple[float, ...] = ()  # for each of `lanes`, where they differ
    seed: int = 0

    @property
    def end_ns(self) -> int | None:
        """When it is over by itself."""
        if self.duration_s is None:
            return None
        return self.begun_ns + round(self.duration_s * NS)

    def elapsed_s(self, now_ns: int) -> float:
        return (now_ns - self.begun_ns) / NS

    def next_change_ns(self, now_ns: int) -> int | None:
        """When its causes change next; None: never by itself."""
        next_s = self.shape.next_change_s(self.elapsed_s(now_ns), self.seed)
        times = [] if self.end_ns is None else [self.end_ns]
        if math.isfinite(next_s):
            change_ns = self.begun_ns + math.ceil(next_s * NS)
            times.append(max(change_ns, now_ns + STEP_NS_MIN))
        return min(times, default=None)

    def amounts(self, now_ns: int) -> dict[str, float]:
        """What it adds to each cause at full scale; nothing while it is away."""
        elapsed_s = self.elapsed_s(now_ns)
        strength = self.shape.strength(elapsed_s, self.seed)
        is_past = self.shape.is_past(elapsed_s)
        found = {}
        for effect in self.effects:
            if effect.cause in CONDITIONS:
                amount = float(strength > 0.5)
            elif effect.cause in WORST:
                amount = effect.amount if strength > 0.0 else 0.0
            else:
                amount = effect.after if is_past else effect.amount * strength
            if amount:
                found[effect.cause] = amount
        return found

    def lane_scale(self, turn: int) -> float:
        return self.lane_scales[turn] if self.lane_scales else self.scale


@dataclass(slots=True)
class Injector:
    """The active faults of one card."""

    faults: dict[str, ActiveFault] = field(default_factory=dict)

    def start(self, fault: ActiveFault) -> None:
        self.faults[fault.id] = fault

    def clear(self, fault_id: str) -> ActiveFault | None:
        return self.faults.pop(fault_id, None)

    def expire(self, now_ns: int) -> list[ActiveFault]:
        """Take out those whose time is over, and give them."""
        ended = [f for f in self.faults.values() if f.end_ns is not None and f.end_ns <= now_ns]
        for fault in ended:
            del self.faults[fault.id]
        return ended

    def next_change_ns(self, now_ns: int) -> int | None:
        times = (fault.next_change_ns(now_ns) for fault in self.faults.values())
        return min((time for time in times if time is not None), default=None)

    def lane_causes(self, oe: int, lanes: int, now_ns: int) -> dict[str, list[float]]:
        """For each cause that is not as it should be: by how much, on each lane of the engine."""
        causes: dict[str, list[float]] = {}
        for fault in self.faults.values():
            if fault.oe != oe:
                continue
            for cause, amount in fault.amounts(now_ns).items():
                values = causes.setdefault(cause, [0.0] * lanes)
                for turn, lane in enumerate(fault.lanes):
                    values[lane] = added(cause, values[lane], amount, fault.lane_scale(turn))
        return causes

    def card_causes(self, now_ns: int) -> dict[str, float]:
        causes: dict[str, float] = {}
        for fault in self.faults.values():
            if fault.oe is None:
                for cause, amount in fault.amounts(now_ns).items():
                    causes[cause] = added(cause, causes.get(cause, 0.0), amount, fault.scale)
        return causes

    def arrival(self, oe: int, lanes: int, now_ns: int) -> tuple[tuple[int, ...], frozenset[int]]:
        """How the cable crosses this port's lanes: where each arrives, and which are inverted."""
        places, inverted = list(range(lanes)), set[int]()
        for fault in self.faults.values():
            if fault.oe != oe or fault.kind.crossing is None:
                continue
            if fault.shape.strength(fault.elapsed_s(now_ns), fault.seed) <= 0.5:
                continue
            if fault.kind.crossing is Crossing.INVERTED:
                inverted ^= set(fault.lanes)
            else:
                places = crossed(places, fault.lanes)
        return tuple(places), frozenset(inverted)


def added(cause: str, before: float, amount: float, scale: float) -> float:
    """A cause that had some already, with this much more."""
    if cause in CONDITIONS:
        return max(before, amount)
    if cause in WORST:
        return max(before, amount * scale if cause == "burst_good_to_bad" else amount)
    return before + amount * scale


def crossed(places: Sequence[int], lanes: Sequence[int]) -> list[int]:
    """The lanes among themselves in reverse order; others stay."""
    found = list(places)
    for lane, place in zip(lanes, reversed(lanes), strict=True):
        found[lane] = places[place]
    return found
