"""Lines of a scenario that contradict each other.

Only what is certain is judged: lines at fixed times on fixed subjects. Where chance has a say, a
run that meets a fault already there leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.scenario import DIRT, REPLUG, Action, At, Every, Line, Random, Subject
from accelhw.fault.scenariotime import SECOND_NS, show_span
from accelhw.model.ids import LaneId, PortId
from accelhw.model.tomltable import Table

OCCURRENCES_MAX = 200_000  # to be judged; a longer story is believed
REPLUG_NS = round(CATALOGUE[REPLUG].shape.on_s * SECOND_NS)
_Key = tuple[str, Subject]


@dataclass(slots=True)
class _Active:
    line: Line
    since_ns: int
    until_ns: int | None


@dataclass(slots=True)
class _Story:
    """What is there at the time that has been read up to."""

    faults: dict[_Key, _Active] = field(default_factory=dict)
    acts: dict[Subject, tuple[int, Line]] = field(default_factory=dict)  # the last, and when


def find_contradictions(top: Table, lines: tuple[Line, ...], ends_ns: int | None) -> None:
    tables = {table.line(): table for table in top.tables("do")}
    by_name = {line.name: line for line in lines}
    for line in lines:
        if line.clear is not None:
            _check_order(tables[line.line], line, by_name[line.clear])
    certain = [line for line in lines if _is_certain(line, by_name)]
    moments = sorted(_moments(certain, ends_ns), key=lambda moment: moment[0])
    if len(moments) > OCCURRENCES_MAX:
        return
    story, told = _Story(), set[int]()
    for time_ns, line in moments:
        found = _meet(story, time_ns, line, by_name)
        if found is not None and line.line not in told:
            told.add(line.line)
            tables[line.line].complain(*found)


def _is_certain(line: Line, by_name: dict[str, Line]) -> bool:
    source = by_name[line.clear] if line.clear is not None else line
    fixed = not isinstance(line.when, Random) and not isinstance(source.when, Random)
    return fixed and source.targets is not None and source.targets.pick is None


def _moments(lines: list[Line], ends_ns: int | None) -> Iterator[tuple[int, Line]]:
    for line in lines:
        match line.when:
            case At(times_ns):
                yield from ((time_ns, line) for time_ns in times_ns)
            case Every(period_ns, from_ns, until_ns):
                last_ns = until_ns if until_ns is not None else ends_ns
                # Without an end, two occurrences show whether it steps on its own feet.
                stop = from_ns + 2 * period_ns if last_ns is None else last_ns
                yield from ((time_ns, line) for time_ns in range(from_ns, stop, period_ns))


def _begins_ns(line: Line) -> int:
    return line.when.times_ns[0] if isinstance(line.when, At) else line.when.from_ns


def _check_order(table: Table, line: Line, source: Line) -> None:
    last = line.when.times_ns[-1] if isinstance(line.when, At) else line.when.until_ns
    begins_ns = _begins_ns(source)
    if last is not None and last < begins_ns:
        key = "at" if "at" in table.values else "until"
        begins = f"line {source.line} begins at {show_span(begins_ns)}"
        table.complain(key, f"clears at {show_span(last)}, but {begins}", "clear it later")


def _meet(
    story: _Story, time_ns: int, line: Line, by_name: dict[str, Line]
) -> tuple[str, str, str] | None:
    """Take one occurrence into the story; key, problem and remedy where it does not fit."""
    if line.clear is not None:
        return _meet_clear(story, time_ns, by_name[line.clear])
    assert line.targets is not None
    for subject in line.targets.subjects:
        if line.fault is not None:
            found = _meet_fault(story, time_ns, line, line.fault, subject)
        else:
            found = _meet_action(story, time_ns, line, subject)
            if line.action in (Action.CLEAN, Action.REPAIR):
                _take_away(story, subject, DIRT if line.action is Action.CLEAN else None)
        if found is not None:
            return found
    return None


def _meet_clear(story: _Story, time_ns: int, source: Line) -> tuple[str, str, str] | None:
    there = [key for key, active in story.faults.items() if active.line is source]
    ends = [story.faults[key].until_ns for key in there]
    for key in there:
        del story.faults[key]
    if there and all(end is not None and end <= time_ns for end in ends):
        words = f"the fault of line {source.line} has ended at {show_span(max(filter(None, ends)))}"
        return "clear", words, "clear it earlier, or leave one of both out"
    return None


def _meet_fault(
    story: _Story, time_ns: int, line: Line, fault: str, subject: Subject
) -> tuple[str, str, str] | None:
    for other in _around(story, fault, subject):
        active = story.faults[fault, other]
        if active.until_ns is None or active.until_ns > time_ns:
            since = f"since {show_span(active.since_ns)} (line {active.line.line})"
            return (
                "fault",
                f"{other} has {fault} at {show_span(time_ns)} already, {since}",
                "clear that before, or give it an end with for",
            )
    until_ns = None if line.lasts_ns is None else time_ns + line.lasts_ns[1]
    story.faults[fault, subject] = _Active(line, time_ns, until_ns)
    return None


def _around(story: _Story, fault: str, subject: Subject) -> Iterator[Subject]:
    """Where the same fault would lie on top of this one: here, on its port, on its lanes."""
    if (fault, subject) in story.faults:
        yield subject
    if isinstance(subject, LaneId) and (fault, subject.port) in story.faults:
        yield subject.port
    if isinstance(subject, PortId):
        inside = [s for f, s in story.faults if f == fault and isinstance(s, LaneId)]
        yield from (lane for lane in inside if lane.port == subject)


def _meet_action(
    story: _Story, time_ns: int, line: Line, subject: Subject
) -> tuple[str, str, str] | None:
    found = None
    if subject in story.acts:
        then_ns, other = story.acts[subject]
        lasts_ns = REPLUG_NS if other.action is Action.REPLUG else 0
        same = other is line and then_ns == time_ns
        if not same and (then_ns == time_ns or then_ns + lasts_ns > time_ns):
            begun = f"{other.action} of line {other.line}, begun at {show_span(then_ns)}"
            found = "at", f"{subject} is still at {begun}", "let it happen later"
    if line.action not in (Action.CLEAN, Action.REPAIR):  # both go together with anything
        story.acts[subject] = (time_ns, line)
    return found


def _take_away(story: _Story, subject: Subject, kinds: frozenset[str] | None) -> None:
    for key in list(story.faults):
        fault, where = key
        if (kinds is None or fault in kinds) and covers(subject, where):
            del story.faults[key]


def covers(outer: Subject, inner: Subject) -> bool:
    """Whether `inner` is the same thing, or inside it."""
    if outer == inner:
        return True
    if isinstance(inner, LaneId):
        return covers(outer, inner.port)
    return isinstance(inner, PortId) and outer == inner.card
