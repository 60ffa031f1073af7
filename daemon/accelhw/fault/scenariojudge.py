"""Judges a run by what its scenario expects: fed with states, events and figures as they come.

Times are ns since the start of the run and never go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import Expectation, How, Scenario, Subject, Targets
from accelhw.fault.scenarioexpect import describe
from accelhw.fault.scenariotime import show_span
from accelhw.model.ids import LaneId, PortId

Bools = NDArray[np.bool_]
# The values of a metric for these subjects, in their order; nan where there is none.
Read = Callable[[str, tuple[Subject, ...]], NDArray[np.float64]]


TOO_EARLY = "the run ended before that"
_NEED_ALL = frozenset({How.SOMETIMES, How.AT_END})  # told only when the window is over


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an expectation. `detail` says what was found instead."""

    line: int
    text: str
    met: bool | None  # None: the run ended too early to tell
    detail: str = ""

    def plain(self) -> dict[str, str | int | bool | None]:
        return {"line": self.line, "text": self.text, "met": self.met, "detail": self.detail}


def meant_end_ns(scenario: Scenario, duration_ns: int) -> int:
    """Where expectations without an end have it: a run that is cut short does not reach it."""
    return max(duration_ns, scenario.duration_ns or 0)


class Judge:
    """`choose` says which of an expectation's subjects the seed picks."""

    def __init__(
        self,
        expectations: Sequence[Expectation],
        end_ns: int,
        choose: Callable[[Expectation, Targets], tuple[Subject, ...]],
    ) -> None:
        self._states: list[_Spells] = []
        self._metrics: list[_Spells] = []
        self._events: list[_Count] = []
        self._order: list[_Spells | _Count] = []
        for expectation in expectations:
            until_ns = end_ns if expectation.until_ns is None else expectation.until_ns
            targets = expectation.targets
            subjects = () if targets is None else choose(expectation, targets)
            if expectation.event is not None:
                count = _Count(expectation, until_ns, subjects)
                self._events.append(count)
                self._order.append(count)
                continue
            spells = _Spells(expectation, until_ns, subjects)
            (self._states if expectation.states else self._metrics).append(spells)
            self._order.append(spells)
        self._watching: dict[Subject, list[tuple[_Spells, int]]] = {}
        for spells in self._states:
            for place, subject in enumerate(spells.subjects):
                self._watching.setdefault(subject, []).append((spells, place))

    @property
    def wants_samples(self) -> bool:
        return bool(self._metrics)

    def edges_ns(self) -> set[int]:
        """Times at which a figure should be looked at, besides the usual samples."""
        return {
            time_ns
            for spells in self._metrics
            for time_ns in (spells.expectation.from_ns, spells.until_ns)
        }

    def state(self, time_ns: int, port: PortId, state: str) -> None:
        """A link's state, at first and at each change."""
        for spells, place in self._watching.get(port, ()):
            spells.tell_one(time_ns, place, state in spells.expectation.states, state)

    def event(
        self, time_ns: int, kind: str, subject: Subject | None, detail: Mapping[str, object]
    ) -> None:
        for count in self._events:
            count.tell(time_ns, kind, subject, detail)

    def sample(self, time_ns: int, read: Read) -> None:
        for spells in self._metrics:
            expectation = spells.expectation
            if not expectation.from_ns <= time_ns <= spells.until_ns:
                continue
            assert expectation.metric is not None
            values = read(expectation.metric, spells.subjects)
            good = ~np.isnan(values)
            if expectation.above is not None:
                good &= values > expectation.above
            if expectation.below is not None:
                good &= values < expectation.below
            spells.tell_all(time_ns, good, values)

    def finish(self, now_ns: int) -> list[Outcome]:
        """In the order of the file. `now_ns`: how far the run went."""
        return [each.outcome(now_ns) for each in self._order]


@dataclass(slots=True)
class _Spells:
    """For each subject: was it as expected, how long at a stretch, and where it was not first."""

    expectation: Expectation
    until_ns: int
    subjects: tuple[Subject, ...]
    good: Bools = field(init=False)  # now
    known: Bools = field(init=False)  # told at all, within the window or before
    ever_good: Bools = field(init=False)
    ever_bad: Bools = field(init=False)
    since_ns: NDArray[np.int64] = field(init=False)  # of the present spell, within the window
    longest_ns: NDArray[np.int64] = field(init=False)  # good spell
    found: dict[int, str] = field(default_factory=dict)  # what each is now, in words
    blame: dict[int, str] = field(default_factory=dict)  # when each was first not as expected

    def __post_init__(self) -> None:
        count = len(self.subjects)
        self.good, self.known, self.ever_good, self.ever_bad = (
            np.zeros(count, np.bool_) for _ in range(4)
        )
        self.since_ns = np.full(count, self.expectation.from_ns, np.int64)
        self.longest_ns = np.full(count, -1, np.int64)

    def tell_one(self, time_ns: int, place: int, good: bool, found: str) -> None:
        """From now on this subject is `good` or not."""
        if time_ns > self.until_ns or self.expectation.from_ns < self.until_ns == time_ns:
            return  # The window ends before its last moment, unless it is nothing but that.
        # A spell that ends as the window opens was never inside it.
        if time_ns > self.expectation.from_ns:
            self._close(time_ns, place)
            self.since_ns[place] = time_ns
        self.good[place], self.known[place] = good, True
        self.found[place] = found

    def _close(self, time_ns: int, place: int) -> None:
        """Count the spell that ends now."""
        if not self.known[place]:
            return
        if self.good[place]:
            self.ever_good[place] = True
            lasted_ns = time_ns - int(self.since_ns[place])
            self.longest_ns[place] = max(int(self.longest_ns[place]), lasted_ns)
        else:
            self.ever_bad[place] = True
            self._blame(int(self.since_ns[place]), place, self.found[place])

    def tell_all(self, time_ns: int, good: Bools, values: NDArray[np.float64]) -> None:
        """Samples: what lies between two equal ones is taken to be as they are."""
        turned = self.known & (good != self.good)
        self.since_ns[turned | ~self.known] = time_ns
        lasted_ns = np.where(good, time_ns - self.since_ns, -1)
        self.longest_ns = np.maximum(self.longest_ns, lasted_ns)
        self.good, self.known[:] = good, True
        self.ever_good |= good
        self.ever_bad |= ~good
        for place in np.flatnonzero(~good).tolist():
            if place not in self.blame:
                value = float(values[place])
                self._blame(time_ns, place, "no value" if np.isnan(value) else f"{value:.6g}")

    def _blame(self, time_ns: int, place: int, found: str) -> None:
        words = f"{self.subjects[place]} was {found} at {show_span(time_ns)}"
        self.blame.setdefault(place, words)

    def outcome(self, now_ns: int) -> Outcome:
        expectation = self.expectation
        end_ns = min(now_ns, self.until_ns)
        if expectation.states:
            for place in range(len(self.subjects)):
                self._close(end_ns, place)
        good, words = self._verdict()
        text = describe(expectation)
        if now_ns < expectation.from_ns or (
            now_ns < self.until_ns and expectation.how in _NEED_ALL and not good.all()
        ):
            return Outcome(expectation.line, text, None, TOO_EARLY)
        if not self.known.all():
            place = int(np.flatnonzero(~self.known)[0])
            return Outcome(
                expectation.line, text, False, f"nothing was heard of {self.subjects[place]}"
            )
        if good.all():
            return Outcome(expectation.line, text, True)
        place = int(np.flatnonzero(~good)[0])
        count = int((~good).sum())
        more = f", as {count - 1} more" if count > 1 else ""
        return Outcome(expectation.line, text, False, words(place) + more)

    def _verdict(self) -> tuple[Bools, Callable[[int], str]]:
        name = self.subjects
        match self.expectation.how:
            case How.ALWAYS:
                return ~self.ever_bad, lambda place: self.blame[place]
            case How.NEVER:
                return ~self.ever_good, lambda place: f"{name[place]} was so"
            case How.AT_END:
                return self.good, lambda place: f"{name[place]} was not so at the end"
        hold_ns = self.expectation.hold_ns
        if not hold_ns:
            return self.ever_good, lambda place: f"{name[place]} never was so"
        return (
            self.longest_ns >= hold_ns,
            lambda place: (
                f"{name[place]} was so for {show_span(max(int(self.longest_ns[place]), 0))}"
            ),
        )


@dataclass(slots=True)
class _Count:
    """Events of a kind."""

    expectation: Expectation
    until_ns: int
    subjects: tuple[Subject, ...]
    _cards: frozenset[str] = field(init=False)
    _exact: frozenset[Subject] = field(init=False)
    found: int = 0
    first: str = ""

    def __post_init__(self) -> None:
        self._exact = frozenset(self.subjects)
        self._cards = frozenset(each for each in self.subjects if isinstance(each, str))

    def tell(
        self, time_ns: int, kind: str, subject: Subject | None, detail: Mapping[str, object]
    ) -> None:
        expectation = self.expectation
        if kind != expectation.event or not expectation.from_ns <= time_ns <= self.until_ns:
            return
        if any(str(detail.get(key, "")) != text for key, text in expectation.detail):
            return
        if expectation.targets is not None and not self._is_ours(subject):
            return
        self.found += 1
        self.first = self.first or f", first {subject or ''} at {show_span(time_ns)}"

    def _is_ours(self, subject: Subject | None) -> bool:
        if subject is None:
            return False
        if subject in self._exact:
            return True
        card = subject if isinstance(subject, str) else _card_of(subject)
        if card in self._cards:
            return True
        return isinstance(subject, LaneId) and subject.port in self._exact

    def outcome(self, now_ns: int) -> Outcome:
        expectation = self.expectation
        most = expectation.at_most
        enough = self.found >= expectation.at_least
        met = enough and (most is None or self.found <= most)
        if now_ns < self.until_ns and not enough:
            return Outcome(expectation.line, describe(expectation), None, TOO_EARLY)
        detail = "" if met else f"there were {self.found}{self.first}"
        return Outcome(expectation.line, describe(expectation), met, detail)


def _card_of(subject: PortId | LaneId) -> str:
    return subject.port.card if isinstance(subject, LaneId) else subject.card
