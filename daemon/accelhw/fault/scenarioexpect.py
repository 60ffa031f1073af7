"""The `[[expect]]` tables of a scenario: what must come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelhw.fault.scenario import Expectation, How, Level, Targets
from accelhw.fault.scenarioplace import read_targets, span
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import show_span
from accelhw.model.ids import nearest
from accelhw.model.link import LinkState
from accelhw.model.tomltable import Table, shown

STATES = tuple(state.name.lower() for state in LinkState)
WHATS = ("state", "event", "metric")
WINDOW = ("from", "until", "at")
KEYS = (
    *(*WHATS, "on", "pick", *WINDOW, "how", "hold"),
    *("count", "at_least", "at_most", "reason", "fault", "above", "below", "about"),
)
COUNT_MAX = 10**9
EXAMPLES = {Level.CARD: "card0", Level.PORT: "card0/*", Level.LANE: "card0/*/*"}
DETAILS = {"reason": "reason", "fault": "fault_kind"}  # what an event must say besides
ONLY = {  # keys that belong to one kind of expectation
    "state": ("how", "hold"),
    "event": ("count", "at_least", "at_most", "reason", "fault"),
    "metric": ("how", "hold", "above", "below"),
}


def read_expectations(
    top: Table,
    rack: Rack | None,
    events: Sequence[str],
    metrics: Mapping[str, Level],
    ends_ns: int | None,
) -> tuple[Expectation, ...]:
    """Those that are right."""
    found = [_read(table, rack, events, metrics, ends_ns) for table in top.tables("expect")]
    return tuple(each for each in found if each is not None)


def _read(
    table: Table,
    rack: Rack | None,
    events: Sequence[str],
    metrics: Mapping[str, Level],
    ends_ns: int | None,
) -> Expectation | None:
    before = len(table.mistakes)
    table.refuse_unknown(KEYS)
    given = [key for key in WHATS if key in table.values]
    if len(given) != 1:
        if given:
            table.complain(given[1], f"beside {given[0]}", "write a table for each")
        else:
            table.complain(
                "state", "missing, as are event and metric", 'add state = "up", or an event'
            )
        return None
    what = given[0]
    for key in (key for keys in ONLY.values() for key in keys):
        if key in table.values and key not in ONLY[what]:
            table.complain(key, f"not with {what}", f"with {what} go {', '.join(ONLY[what])}")
    from_ns, until_ns = _read_window(table, ends_ns)
    how = _read_how(table)
    hold_ns = span(table, "hold", "5m", least_ns=1) or 0
    if hold_ns and how is not How.SOMETIMES:
        table.complain("hold", "only with sometimes", 'use how = "sometimes"')
    made = Expectation(
        line=table.line(),
        text=table.text("about", "What is expected.") or "",
        targets=read_targets(table, rack, required=what != "event"),
        from_ns=from_ns,
        until_ns=until_ns,
        how=how,
        hold_ns=hold_ns,
        **_read_what(table, what, events, metrics),  # type: ignore[arg-type]
    )
    level = Level.PORT if what == "state" else metrics.get(made.metric or "")
    if level is not None and made.targets is not None and made.targets.level is not level:
        thing = "link state" if what == "state" else made.metric
        words = f"a {made.targets.level} has no {thing}"
        table.complain("on", words, f"name a {level}, as {EXAMPLES[level]!r}")
    if len(table.mistakes) > before:
        return None
    return made


def _read_what(
    table: Table, what: str, events: Sequence[str], metrics: Mapping[str, Level]
) -> dict[str, object]:
    match what:
        case "state":
            return _read_state(table)
        case "event":
            return _read_event(table, events)
    return _read_metric(table, metrics)


def _read_window(table: Table, ends_ns: int | None) -> tuple[int, int | None]:
    if "at" in table.values:
        for key in ("from", "until"):
            if key in table.values:
                table.complain(key, "beside at", "leave it out")
        at_ns = span(table, "at", "10s") or 0
        _check_within(table, "at", at_ns, ends_ns)
        return at_ns, at_ns
    from_ns = span(table, "from", "10s") or 0
    until_ns = span(table, "until", "60s")
    if until_ns is not None and until_ns < from_ns:
        table.complain("until", "before from", "let it end later than it begins")
    _check_within(table, "from", from_ns, ends_ns)
    if until_ns is not None:
        _check_within(table, "until", until_ns, ends_ns)
    return from_ns, until_ns


def _check_within(table: Table, key: str, ns: int, ends_ns: int | None) -> None:
    if ends_ns is not None and ns > ends_ns and key in table.values:
        words = f"{show_span(ns)}, and the run ends at {show_span(ends_ns)}"
        table.complain(key, words, "expect it earlier, or run longer")


def _read_how(table: Table) -> How:
    text = table.text("how", "always")
    if text is None:
        return How.ALWAYS
    try:
        return How(text)
    except ValueError:
        table.reference("how", {how.value: None for how in How}, "way")
        return How.ALWAYS


def _read_state(table: Table) -> dict[str, object]:
    value = table.values["state"]
    states: list[str] = []
    for place, state in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(state, str) or state.lower() not in STATES:
            guess = nearest(state.lower(), STATES) if isinstance(state, str) else None
            remedy = f"did you mean {guess!r}?" if guess else f"known are {', '.join(STATES)}"
            element = place if isinstance(value, list) else None
            table.complain("state", f"{shown(state)} is no state of a link", remedy, element)
        else:
            states.append(state.upper())
    return {"states": frozenset(states)}


def _read_event(table: Table, events: Sequence[str]) -> dict[str, object]:
    event = table.text("event", "LINK_DOWN")
    if event is not None and event not in events:
        table.reference("event", dict.fromkeys(events), "event")
    if "count" in table.values:
        for key in ("at_least", "at_most"):
            if key in table.values:
                table.complain(key, "beside count", "count says both")
        count = table.integer("count", 0, COUNT_MAX, 0) or 0
        low, high = count, count
    else:
        given = table.integer("at_most", 0, COUNT_MAX, 3)
        least = table.integer("at_least", 0, COUNT_MAX, 1)
        high = given if given is not None else -1
        low = least if least is not None else (1 if given is None else 0)
        if given is not None and low > given:
            table.complain("at_most", "less than at_least", "swap them")
    says = tuple(
        (detail, text)
        for key, detail in DETAILS.items()
        if (text := table.text(key, "X")) is not None
    )
    return {
        "event": event,
        "at_least": low,
        "at_most": None if high < 0 else high,
        "detail": says,
    }


def _read_metric(table: Table, metrics: Mapping[str, Level]) -> dict[str, object]:
    metric = table.text("metric", "rx_power_dbm")
    if metric is not None and metric not in metrics:
        table.reference("metric", dict.fromkeys(metrics), "metric")
    above = table.number("above", -1e300, 1e300, 0)
    below = table.number("below", -1e300, 1e300, 0)
    if "above" not in table.values and "below" not in table.values:
        table.complain("above", "missing, as is below", "say which values are good")
    elif above is not None and below is not None and above >= below:
        table.complain("below", "no value lies between", "let it be more than above")
    return {"metric": metric, "above": above, "below": below}


def describe(expectation: Expectation) -> str:
    """The expectation in one line of words, unless its author found better ones."""
    if expectation.text:
        return expectation.text
    words = [*_what(expectation)]
    if expectation.targets is not None:
        words.append(f"on {_where(expectation.targets)}")
    if expectation.from_ns == expectation.until_ns:
        words.append(f"at {show_span(expectation.from_ns)}")
    else:
        if expectation.from_ns:
            words.append(f"from {show_span(expectation.from_ns)}")
        if expectation.until_ns is not None:
            words.append(f"until {show_span(expectation.until_ns)}")
    if expectation.hold_ns:
        words.append(f"for {show_span(expectation.hold_ns)} at a stretch")
    return " ".join(words)


def _what(expectation: Expectation) -> list[str]:
    how = expectation.how.value.replace("_", " ")
    if expectation.event is not None:
        low, high = expectation.at_least, expectation.at_most
        count = f"{low} or more" if high is None else str(low) if low == high else f"{low}-{high}"
        says = "".join(f" {key} {value}" for key, value in expectation.detail)
        return [f"{expectation.event}{says}", f"{count} times"]
    if expectation.metric is not None:
        limits = [
            f"{word} {limit:g}"
            for word, limit in (("above", expectation.above), ("below", expectation.below))
            if limit is not None
        ]
        return [expectation.metric, how, " and ".join(limits)]
    return [f"state {how}", " or ".join(sorted(expectation.states))]


def _where(targets: Targets) -> str:
    first = ", ".join(str(subject) for subject in targets.subjects[:3])
    more = len(targets.subjects) - 3
    named = first if more <= 0 else f"{first} and {more} more"
    return named if targets.pick is None else f"{targets.pick} of {named}"
