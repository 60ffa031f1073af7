"""Where and when, as the tables of a scenario say it."""

from __future__ import annotations

from typing import Any

from accelhw.fault.scenario import Level, Subject, Targets
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import BadSpan, parse_span, show_span
from accelhw.model.ids import BadAddress
from accelhw.model.tomltable import Table, shown, split


def span(
    table: Table, key: str, example: str, least_ns: int = 0, required: bool = False
) -> int | None:
    """A span of time in ns; None if absent or wrong."""
    if key not in table.values:
        if required:
            table.complain(key, "missing", f'add {key} = "{example}"')
        return None
    return span_of(table, key, table.values[key], least_ns)


def span_of(
    table: Table, key: str, value: Any, least_ns: int = 0, element: int | None = None
) -> int | None:
    try:
        ns = parse_span(value)
    except BadSpan as error:
        table.complain(key, *split(error), element=element)
        return None
    if ns < least_ns:
        words = f"{shown(value)} is too short"
        table.complain(key, words, f"use {show_span(least_ns)} or more", element=element)
        return None
    return ns


def read_targets(
    table: Table, rack: Rack | None, required: bool = True, dark: bool = False
) -> Targets | None:
    """The subjects of `on`, thinned by `pick`; None if absent, wrong, or without a rack to look.

    `dark`: a port that is named may be one without a fibre.
    """
    value = table.values.get("on")
    if value is None:
        if required:
            table.complain("on", "missing", 'add on = "card0/oe0", or on = "all ports"')
        return None
    texts = value if isinstance(value, list) else [value]
    if not texts:
        table.complain("on", "an empty list", 'use on = "card0/oe0"')
    levels: dict[Level, None] = {}
    subjects: dict[Subject, None] = {}
    good = bool(texts)
    for place, text in enumerate(texts):
        element = place if isinstance(value, list) else None
        if not isinstance(text, str):
            table.complain("on", f"{shown(text)} is no text", 'use on = "card0/oe0"', element)
            good = False
        elif rack is not None:
            try:
                level, found = rack.find(text, dark)
            except BadAddress as error:
                table.complain("on", *split(error), element=element)
                good = False
            else:
                levels[level] = None
                subjects.update(dict.fromkeys(found))
    if len(levels) > 1:
        words = " and ".join(f"{level}s" for level in levels)
        table.complain("on", f"{words} in one list", "write a table for each")
        return None
    if not good or not levels:
        return None
    pick = table.integer("pick", 1, len(subjects), 1) if "pick" in table.values else None
    return Targets(next(iter(levels)), tuple(subjects), pick)
