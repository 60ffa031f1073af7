"""A scenario unrolled by a seed: each moment at which something is done, in order.

One stream of chance per line and subject: what one line draws moves no other's dice, and a longer
run begins with the same moments as a shorter one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from accelhw.fault.scenario import Action, At, Every, Line, Random, Scenario, Subject, Targets
from accelhw.model.ids import LaneId, PortId

HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing done to one subject: a fault of `line` comes, or an action, or a clearing."""

    time_ns: int
    line: Line
    subject: str | PortId | None  # None: wherever the cleared line is
    lanes: tuple[int, ...] = ()  # of the port; empty: as the fault has it
    lasts_ns: int | None = None
    seed: int = 0

    @property
    def place(self) -> str:
        """Where, for people."""
        if self.subject is None:
            return ""
        lanes = ",".join(str(lane) for lane in self.lanes)
        return f"{self.subject}/lane{lanes}" if lanes else str(self.subject)


def unroll(scenario: Scenario, seed: int, duration_ns: int) -> list[Moment]:
    """All moments before the end. Those of one time are in the order of the file."""
    found: list[tuple[int, int, Moment]] = []
    for number, line in enumerate(scenario.lines):
        found += ((moment.time_ns, number, moment) for moment in _of_line(line, seed, duration_ns))
    found.sort(key=lambda each: each[:2])  # stable: subjects stay in their order
    return [moment for _, _, moment in found]


def _of_line(line: Line, seed: int, duration_ns: int) -> Iterator[Moment]:
    match line.when:
        case At(times_ns):
            times = [time_ns for time_ns in times_ns if time_ns < duration_ns]
        case Every(period_ns, from_ns, until_ns):
            times = list(range(from_ns, _end(until_ns, duration_ns), period_ns))
        case Random(per_hour, from_ns, until_ns):
            yield from _at_random(line, per_hour, from_ns, _end(until_ns, duration_ns), seed)
            return
    for turn, time_ns in enumerate(times):
        if line.targets is None:
            yield Moment(time_ns, line, None)
            continue
        chosen = choose(line.targets, seed, f"{line.name} pick {turn}")
        for subject, lanes in _by_port(chosen):
            chance = dice(seed, f"{line.name} {subject} {turn}")
            yield _moment(time_ns, line, subject, lanes, chance)


def _end(until_ns: int | None, duration_ns: int) -> int:
    return duration_ns if until_ns is None else min(until_ns, duration_ns)


def dice(seed: int, purpose: str) -> np.random.Generator:
    words = (seed, crc32(purpose.encode()))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def choose(targets: Targets, seed: int, purpose: str) -> tuple[Subject, ...]:
    """All subjects, or those that are picked; in their order."""
    if targets.pick is None:
        return targets.subjects
    chance = dice(seed, purpose)
    places = chance.choice(len(targets.subjects), size=targets.pick, replace=False)
    return tuple(targets.subjects[place] for place in sorted(places.tolist()))


def _by_port(subjects: tuple[Subject, ...]) -> Iterator[tuple[str | PortId, tuple[int, ...]]]:
    """Lanes of one port together."""
    lanes: dict[str | PortId, list[int]] = {}
    for subject in subjects:
        if isinstance(subject, LaneId):
            lanes.setdefault(subject.port, []).append(subject.index)
        else:
            lanes.setdefault(subject, [])
    return ((subject, tuple(found)) for subject, found in lanes.items())


def _moment(
    time_ns: int,
    line: Line,
    subject: str | PortId,
    lanes: tuple[int, ...],
    chance: np.random.Generator,
) -> Moment:
    lasts_ns = None
    if line.lasts_ns is not None:
        low, high = line.lasts_ns
        lasts_ns = low + round((high - low) * float(chance.random()))
    return Moment(time_ns, line, subject, lanes, lasts_ns, int(chance.integers(1 << 63)))


def _at_random(
    line: Line, per_hour: float, from_ns: int, end_ns: int, seed: int
) -> Iterator[Moment]:
    if line.targets is None or per_hour <= 0.0:
        if line.targets is None:
            yield from _clear_at_random(line, per_hour, from_ns, end_ns, seed)
        return
    chosen = choose(line.targets, seed, f"{line.name} pick")
    for subject in chosen:
        chance = dice(seed, f"{line.name} {subject}")
        port: str | PortId = subject.port if isinstance(subject, LaneId) else subject
        lanes = (subject.index,) if isinstance(subject, LaneId) else ()
        for time_ns in _arrivals(chance, per_hour, from_ns, end_ns):
            yield _moment(time_ns, line, port, lanes, chance)


def _clear_at_random(
    line: Line, per_hour: float, from_ns: int, end_ns: int, seed: int
) -> Iterator[Moment]:
    for time_ns in _arrivals(dice(seed, f"{line.name} clear"), per_hour, from_ns, end_ns):
        yield Moment(time_ns, line, None)


def _arrivals(
    chance: np.random.Generator, per_hour: float, from_ns: int, end_ns: int
) -> Iterator[int]:
    """The times of a Poisson process."""
    time_ns = float(from_ns)
    while per_hour > 0.0:
        time_ns += float(chance.exponential()) / per_hour * HOUR_NS
        if not time_ns < end_ns or math.isinf(time_ns):
            return
        yield round(time_ns)


def does_what(moment: Moment) -> str:
    """`laser_fail`, `replug`, `clear dirt`."""
    line = moment.line
    if line.clear is not None:
        return f"clear {line.clear}"
    return line.fault or (line.action or Action.REPAIR).value
