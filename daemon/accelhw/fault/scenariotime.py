"""Spans of time as scenarios write them: `90`, `"500ms"`, `"1h30m"`, `"30d"`. Inside: whole ns."""

from __future__ import annotations

import re

from accelhw.model.span import LONGEST, LONGEST_S

SECOND_NS = 1_000_000_000
LONGEST_NS = LONGEST_S * SECOND_NS

_UNITS_NS = {
    "d": 86_400 * SECOND_NS,
    "h": 3_600 * SECOND_NS,
    "m": 60 * SECOND_NS,
    "s": SECOND_NS,
    "ms": 1_000_000,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


class BadSpan(ValueError):
    """Of the form "what is wrong; what works"."""


def parse_span(value: object) -> int:
    """Nanoseconds of a number of seconds or a text. Raises BadSpan."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        ns = round(value * SECOND_NS) if value == value and abs(value) < 1e12 else -1
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        ns = sum(round(float(number) * _UNITS_NS[unit]) for number, unit in _PART.findall(value))
    else:
        raise BadSpan(f'{_shown(value)} is no span of time; use 90, "500ms", "1h30m" or "30d"')
    if not 0 <= ns <= LONGEST_NS:
        raise BadSpan(f"{_shown(value)} is out of range; use 0 to {LONGEST}")
    return ns


def show_span(ns: int) -> str:
    """The shortest text that `parse_span` reads back: `1h30m`, `0s`."""
    parts = []
    for unit, size in _UNITS_NS.items():
        if unit == "s":
            break
        count, ns = divmod(ns, size)
        if count:
            parts.append(f"{count}{unit}")
    if ns or not parts:
        parts.append(f"{ns / SECOND_NS:.9f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
