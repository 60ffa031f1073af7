"""What a panel has to show: answers to its queries, arranged as its transformations say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boards import grafana
from boards.grafana import Chosen, Span
from pictures.prometheus import Prometheus, Series

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Answered:
    """A board with the answers to all its panels."""

    board: Mapping[str, Any]
    chosen: Chosen
    span: Span
    panels: dict[int, list[tuple[str, Series]]]  # by the panel's id: names and series
    marks: dict[str, list[Series]]


class NothingThere(Exception):
    """A variable of the board has no value to choose."""


@dataclass(slots=True)
class Table:
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)


def choose(
    board: Mapping[str, Any], prometheus: Prometheus, span: Span, wanted: Chosen
) -> dict[str, Any]:
    """A value for each variable: the one that is wanted, all where that can be, or the first.
    Raises NothingThere."""
    chosen: dict[str, Any] = {}
    for variable in grafana.variables(board):
        name = variable["name"]
        selector, label = grafana.label_values(variable["query"])
        if name in wanted:
            chosen[name] = wanted[name]
        elif variable.get("includeAll") and "allValue" in variable:
            chosen[name] = grafana.ALL
        else:
            asked = grafana.put_in(selector, board, chosen, span)
            values = prometheus.label_values(asked, label, span)
            if not values:
                raise NothingThere(f"{asked} has no series in this time: is acceld scraped?")
            chosen[name] = values if variable.get("includeAll") else values[0]
    return chosen


def answer(
    board: Mapping[str, Any], prometheus: Prometheus, span: Span, wanted: Chosen
) -> Answered:
    """Every query of the board, at the end of the time shown or over it."""
    chosen = choose(board, prometheus, span, wanted)
    panels: dict[int, list[tuple[str, Series]]] = {}
    for panel in grafana.panels(board):
        found = panels[panel["id"]] = []
        for question in grafana.questions(panel):
            expr = grafana.put_in(question.expr, board, chosen, span)
            if question.instant:
                series = prometheus.at(expr, span.end_s)
                found += [(question.ref, one) for one in series]
            else:
                series = prometheus.over(expr, span)
                found += [(_legend(question.legend, one), one) for one in series]
    marks = {
        mark.panel: prometheus.over(grafana.put_in(mark.expr, board, chosen, span), span)
        for mark in grafana.marks(board)
    }
    return Answered(board, chosen, span, panels, marks)


def _legend(pattern: str, series: Series) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: series.labels.get(found[1], ""), pattern)


def table(panel: Mapping[str, Any], found: list[tuple[str, Series]]) -> Table:
    """The transformations `merge` and `organize`, and the sorting of the panel."""
    several = len(panel["targets"]) > 1
    merged: dict[tuple[tuple[str, str], ...], dict[str, Cell]] = {}
    for ref, series in found:
        labels = {k: v for k, v in series.labels.items() if k != "__name__"}
        row = merged.setdefault(tuple(sorted(labels.items())), dict(labels))
        row[f"Value #{ref}" if several else "Value"] = series.last
    organize = panel["transformations"][1]["options"]
    order = sorted(organize["indexByName"], key=organize["indexByName"].get)
    fields = [name for name in order if name not in organize["excludeByName"]]
    columns = [organize["renameByName"].get(name, name) for name in fields]
    rows = [[row.get(name) for name in fields] for row in merged.values()]
    (by,) = panel["options"]["sortBy"]
    place = columns.index(by["displayName"])
    rows.sort(key=lambda row: [str(cell) for cell in row])
    rows.sort(key=lambda row: _number(row[place]), reverse=bool(by.get("desc")))
    return Table(columns, rows)


def _number(cell: Cell) -> float:
    """Grafana takes what is empty for the lowest."""
    return cell if isinstance(cell, float) else float("-inf")
