"""The `[[do]]` tables of a scenario: what happens, where and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelhw.fault.kinds import FaultKind
from accelhw.fault.request import FaultRefused, FaultRequest
from accelhw.fault.scenario import (
    ACTION_LEVELS,
    Action,
    At,
    Every,
    FaultSettings,
    Level,
    Line,
    Random,
    Subject,
    Targets,
    When,
)
from accelhw.fault.scenarioplace import read_targets, span, span_of
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import SECOND_NS, show_span
from accelhw.model.ids import BadAddress, LaneId, PortId, check_name
from accelhw.model.profile import load_profile
from accelhw.model.tomltable import Table, shown, split

FIT_HOURS = 1e9  # a FIT is one failure of one thing in so many hours
PER_HOUR_MAX = 3600.0
TIMES_MAX = 100_000  # of one line
SCALE_MAX = 100.0

WHATS = ("fault", "action", "clear")
RATES = ("fit", "per_hour", "per_day")
WHENS = ("at", "every", *RATES)
SETTINGS = ("lanes", "shape", "ramp", "scale", "target_ber")
KEYS = (*WHATS, "on", "pick", *WHENS, "from", "until", "for", *SETTINGS, "name")

# Where a kind of fault may be put: what befalls a whole port may befall some of its lanes.
FITTING = {
    Level.LANE: (Level.LANE,),
    Level.PORT: (Level.PORT, Level.LANE),
    Level.CARD: (Level.CARD,),
}


def read_lines(
    top: Table,
    rack: Rack | None,
    faults: Mapping[str, FaultKind],
    shapes: Sequence[str],
    ends_ns: int | None,
) -> tuple[Line, ...]:
    """Those that are right. `ends_ns`: the end of the run, where it is known."""
    lines: list[Line] = []
    names: dict[str, int] = {}
    for number, table in enumerate(top.tables("do")):
        table.refuse_unknown(KEYS)
        line = _read_line(table, number, rack, faults, shapes, ends_ns)
        name = table.text("name", "dirt")
        if name is not None:
            try:
                check_name(name, "line")
            except BadAddress as error:
                table.complain("name", *split(error))
            if name in names:
                words = f"a second line named {name!r}, after line {names[name]}"
                table.complain("name", words, "name it otherwise")
            names.setdefault(name, table.line())
        if line is not None:
            lines.append(line)
    _check_clears(top, names)
    return tuple(lines)


def _read_line(
    table: Table,
    number: int,
    rack: Rack | None,
    faults: Mapping[str, FaultKind],
    shapes: Sequence[str],
    ends_ns: int | None,
) -> Line | None:
    before = len(table.mistakes)
    what = _one_of(table, WHATS, 'add fault = "dirty_connector_bad", or an action')
    fault = _read_fault(table, faults) if what == "fault" else None
    action = _read_action(table) if what == "action" else None
    clear = table.text("clear", "dirt") if what == "clear" else None
    targets = None
    if what == "clear":
        _refuse(table, ("on", "pick"), "it clears where that line was")
    elif what is not None:
        dark = fault is not None and not faults[fault].needs_fibre
        targets = read_targets(table, rack, dark=dark)
        if "pick" in table.values and "on" not in table.values:
            table.complain("pick", "of what?", 'add on = "all ports"')
    if targets is not None and action is not None:
        _check_level(table, action, ACTION_LEVELS[action], targets)
    when = _read_when(table, ends_ns)
    lasts_ns = _read_lasts(table)
    if what in ("clear", "action"):
        _refuse(table, ("for",), f"{what} takes no time")
    settings = FaultSettings()
    if what == "fault":
        settings = _read_settings(table, shapes)
        if targets is not None and fault is not None:
            level = Level(faults[fault].where.value)
            targets = _narrow(table, targets, rack, level)
            _check_level(table, fault, FITTING[level], targets)
            if len(table.mistakes) == before and rack is not None:
                _check_strength(table, faults[fault], targets, settings, rack)
    elif what is not None:
        _refuse(table, SETTINGS, "only a fault has it")
    if len(table.mistakes) > before or when is None:
        return None
    name = table.values.get("name")
    return Line(
        line=table.line(),
        name=name if isinstance(name, str) else f"do{number}",
        targets=targets,
        when=when,
        fault=fault,
        action=action,
        clear=clear,
        settings=settings,
        lasts_ns=lasts_ns,
    )


def _one_of(table: Table, keys: Sequence[str], remedy: str) -> str | None:
    """The one key that is there; otherwise a complaint."""
    given = [key for key in keys if key in table.values]
    if not given:
        table.complain(keys[0], f"missing, as are {' and '.join(keys[1:])}", remedy)
    elif len(given) > 1:
        table.complain(given[1], f"beside {given[0]}", "write a table for each")
    return given[0] if len(given) == 1 else None


def _refuse(table: Table, keys: Sequence[str], why: str) -> None:
    for key in keys:
        if key in table.values:
            table.complain(key, why, "leave it out")


# ---- what ----------------------------------------------------------------------------------------


def _read_fault(table: Table, faults: Mapping[str, FaultKind]) -> str | None:
    fault = table.text("fault", "dirty_connector_bad")
    if fault is not None and fault not in faults:
        table.reference("fault", faults, "fault")
        return None
    return fault


def _read_action(table: Table) -> Action | None:
    text = table.text("action", "replug")
    try:
        return None if text is None else Action(text)
    except ValueError:
        table.reference("action", {action.value: None for action in Action}, "action")
        return None


def _check_level(table: Table, what: str, fitting: Sequence[Level], targets: Targets) -> None:
    if targets.level in fitting:
        return
    first = targets.subjects[0]
    card = first if isinstance(first, str) else _port_of(first).card
    example = {
        Level.CARD: card,
        Level.PORT: f"{card}/*" if isinstance(first, str) else str(_port_of(first)),
        Level.LANE: f"{card}/*/*",
    }[fitting[0]]
    words = f"{what} happens to a {fitting[0]}, not to a {targets.level}"
    table.complain("on", words, f"use {example!r}")


def _port_of(subject: PortId | LaneId) -> PortId:
    return subject.port if isinstance(subject, LaneId) else subject


def _read_settings(table: Table, shapes: Sequence[str]) -> FaultSettings:
    shape = table.text("shape", "ramp")
    if shape is not None and shape not in shapes:
        table.reference("shape", dict.fromkeys(shapes), "shape")
        shape = None
    ramp_ns = span(table, "ramp", "72h", least_ns=1)
    if ramp_ns is not None and shape not in (None, "ramp", "exp"):
        table.complain("ramp", f"a {shape} has no ramp", 'use shape = "ramp"')
    scale = table.number("scale", 0.001, SCALE_MAX, 1)
    target = table.number("target_ber", 1e-18, 0.4, 1e-5)
    if scale is not None and target is not None:
        table.complain("target_ber", "beside scale", "one of them says how strong it is")
    return FaultSettings(shape, ramp_ns, scale, target)


def _check_strength(
    table: Table, kind: FaultKind, targets: Targets, settings: FaultSettings, rack: Rack
) -> None:
    """What cards of these profiles would refuse, said before anything starts."""
    first_of: dict[str, Subject] = {}
    for subject in targets.subjects:
        card = subject if isinstance(subject, str) else _port_of(subject).card
        first_of.setdefault(rack.cards[card].name, subject)
    for name, subject in first_of.items():
        request = FaultRequest(
            "check",
            kind.id,
            str(subject),
            shape=settings.shape or "",
            ramp_s=(settings.ramp_ns or 0) / SECOND_NS,
            scale=1.0 if settings.scale is None else settings.scale,
            target_ber=settings.target_ber or 0.0,
        )
        try:
            request.fault(load_profile(name), begun_ns=0)
        except FaultRefused as error:
            keys = [key for key in ("scale", "target_ber", "ramp", "shape") if key in table.values]
            problem, _, remedy = error.detail.partition("; ")
            words = remedy or "use another amount, or another place"
            table.complain(keys[0] if keys else "fault", problem, words)
            return


def _narrow(table: Table, targets: Targets, rack: Rack | None, level: Level) -> Targets:
    """`lanes` of each port named."""
    lanes = table.integers("lanes")
    if lanes is None or rack is None:
        return targets
    if level is Level.CARD or targets.level is not Level.PORT:
        why = "on names lanes already" if targets.level is Level.LANE else "it is no fault of lanes"
        table.complain("lanes", why, "leave it out")
        return targets
    chosen: list[Subject] = []
    for subject in targets.subjects:
        assert isinstance(subject, PortId)
        count = rack.cards[subject.card].lanes_per_oe
        for place, lane in enumerate(lanes):
            if not 0 <= lane < count:
                has = f"use 0 to {count - 1}" if count > 1 else "its only lane is 0"
                table.complain("lanes", f"{lane} is no lane of {subject}", has, place)
                return targets
            if lane in lanes[:place]:
                table.complain("lanes", f"lane {lane} stands here twice", "name it once", place)
                return targets
            chosen.append(LaneId(subject, lane))
    if not lanes:
        table.complain("lanes", "an empty list", "leave it out, or name some")
        return targets
    return Targets(Level.LANE, tuple(chosen), targets.pick)


# ---- when ----------------------------------------------------------------------------------------


def _read_when(table: Table, ends_ns: int | None) -> When | None:
    which = _one_of(table, WHENS, 'add at = "10s", or a rate as fit = 500')
    if which is None:
        return None
    if which == "at":
        _refuse(table, ("from", "until"), "at says when")
        return _read_at(table, ends_ns)
    from_ns = span(table, "from", "1h") or 0
    until_ns = span(table, "until", "20h")
    if until_ns is not None and until_ns <= from_ns:
        table.complain("until", "not after from", "let it end later than it begins")
    if ends_ns is not None and from_ns >= ends_ns:
        words = f"{show_span(from_ns)}, and the run ends at {show_span(ends_ns)}"
        table.complain("from", words, "begin earlier")
    if which == "every":
        period_ns = span(table, "every", "24h", least_ns=1_000_000)
        if period_ns is None:
            return None
        last_ns = until_ns if until_ns is not None else ends_ns
        times = 0 if last_ns is None else (last_ns - from_ns) // period_ns
        if times > TIMES_MAX:
            words = f"that would be {times} times"
            table.complain("every", words, f"at most {TIMES_MAX}; use a longer period")
        return Every(period_ns, from_ns, until_ns)
    return _read_rate(table, which, from_ns, until_ns)


def _read_at(table: Table, ends_ns: int | None) -> At | None:
    value = table.values["at"]
    listed = isinstance(value, list)
    times: list[int] = []
    for place, each in enumerate(value if listed else [value]):
        element = place if listed else None
        ns = span_of(table, "at", each, element=element)
        if ns is None:
            return None
        if times and ns <= times[-1]:
            table.complain("at", "not after the one before", "put them in order", element)
        if ends_ns is not None and ns >= ends_ns:
            words = f"{show_span(ns)}, and the run ends at {show_span(ends_ns)}"
            table.complain("at", words, "let it happen earlier", element)
        times.append(ns)
    if not times:
        table.complain("at", "an empty list", 'use at = "10s"')
        return None
    return At(tuple(times))


def _read_rate(table: Table, which: str, from_ns: int, until_ns: int | None) -> Random | None:
    hours = {"fit": FIT_HOURS, "per_hour": 1.0, "per_day": 24.0}[which]
    rate = table.number(which, 0, PER_HOUR_MAX * hours, {"fit": 500}.get(which, 0.1))
    return None if rate is None else Random(rate / hours, from_ns, until_ns)


def _read_lasts(table: Table) -> tuple[int, int] | None:
    value = table.values.get("for")
    if not isinstance(value, list):
        lasts = span(table, "for", "20m", least_ns=1_000_000)
        return None if lasts is None else (lasts, lasts)
    if len(value) != 2:
        table.complain("for", f"{shown(value)} is no range", 'use for = ["1h", "8h"]')
        return None
    low, high = (span_of(table, "for", each, 1_000_000, place) for place, each in enumerate(value))
    if low is None or high is None:
        return None
    if high < low:
        table.complain("for", "the longest is shorter than the shortest", "swap them", 1)
        return None
    return low, high


# ---- lines that speak of lines -------------------------------------------------------------------


def _check_clears(top: Table, names: Mapping[str, int]) -> None:
    what = {
        table.values.get("name"): next((key for key in WHATS if key in table.values), None)
        for table in (_silent(t) for t in top.tables("do"))
    }
    for table in top.tables("do"):
        name = table.values.get("clear")
        if not isinstance(name, str):
            continue
        if name not in names:
            table.reference("clear", names, "name of a line")
        elif what.get(name) not in ("fault", None):
            words = f"line {names[name]} is no fault, there is nothing to clear"
            table.complain("clear", words, "name a line with fault")


def _silent(table: Table) -> Table:
    return Table(table.values, table.path, table.noun, table.lines, [])
