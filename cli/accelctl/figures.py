"""Figures of a message as people read them: the key tells the unit, and how many digits it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accelctl import render
from accelctl.render import Cell, Column

UNITS: dict[str, tuple[str, int]] = {  # how a key ends: the unit, and the digits shown
    "_dbm": ("dBm", 2),
    "_db": ("dB", 2),
    "_ma": ("mA", 1),
    "_mw": ("mW", 1),
    "_c": ("degC", 1),
    "_v": ("V", 3),
    "_w": ("W", 1),
}
LEVELS = ("high_alarm", "high_warning", "low_warning", "low_alarm")


def figure(message: Any, key: str, label: str) -> render.Field:
    """`label: value unit`; an empty one when it is absent."""
    field = message.DESCRIPTOR.fields_by_name[key]
    if field.has_presence and not message.HasField(key):
        return label, ""
    return label, value(key, getattr(message, key))


def value(key: str, number: float) -> str:
    """A figure of that key, with its unit."""
    if isinstance(number, bool):
        return "yes" if number else "no"
    if key.endswith("_total"):
        return render.count(number)
    if key.endswith("_ratio"):
        return f"{number * 100:.1f} %"
    if key.endswith("_ber"):
        return render.ber(number)
    for end, (unit, digits) in UNITS.items():
        if key.endswith(end):
            return f"{number:.{digits}f} {unit}"
    return render.number(number)


def counter_label(key: str) -> str:
    return key.removesuffix("_total").replace("_", " ")


# ---- thresholds ----------------------------------------------------------------------------------


def _level(name: str) -> Column:
    def get(threshold: Any) -> str:
        if not threshold.HasField(name):
            return ""
        return value(threshold.quantity, getattr(threshold, name))

    return Column(name.replace("_", " ").upper(), get, right=True, spare=True)


THRESHOLD_COLUMNS = (
    Column("THRESHOLDS", lambda t: t.quantity),
    *(_level(name) for name in LEVELS),
)


# ---- flags ---------------------------------------------------------------------------------------


def _mark(on: bool, style: str) -> Cell:
    return Cell("yes" if on else "", style)


def time(flag: Any, key: str) -> str:
    """Of a flag; empty for never."""
    return render.local_time(getattr(flag, key)) if flag.HasField(key) else ""


FLAG_COLUMNS = (
    Column("FLAG", lambda f: f.name),
    Column("ON", lambda f: _mark(f.active, "bad")),
    Column("LATCHED", lambda f: _mark(f.latched, "warn")),
    Column("CHANGES", lambda f: render.count(f.changes_total), right=True),
    Column("LAST SET", lambda f: time(f, "last_set_time"), spare=True),
    Column("LAST CLEAR", lambda f: time(f, "last_clear_time"), spare=True, droppable=True),
    Column("FIRST SET", lambda f: time(f, "first_set_time"), wide=True, spare=True),
)


def changed(flags: Iterable[Any]) -> list[Any]:
    """Those that are worth a line: on, latched, or changed ever."""
    return [flag for flag in flags if flag.active or flag.latched or flag.changes_total]


def ranges(numbers: Iterable[int]) -> str:
    """`0-3 5 8-9`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
