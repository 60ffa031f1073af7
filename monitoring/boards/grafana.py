"""A board as Grafana reads it: which questions it asks, with the variables put in as Grafana does.

For those who ask without a Grafana: tests, and the pictures in docs/.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ALL = None  # what "All" of a variable is here
Chosen = Mapping[str, str | Sequence[str] | None]
LABEL_VALUES = re.compile(r"label_values\((?P<selector>.*), (?P<label>\w+)\)")
VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")
SPECIAL = re.compile(r"[$^*{}\[\]'+?.()|]")


@dataclass(frozen=True, slots=True)
class Question:
    """A query of a panel, or of an annotation."""

    panel: str
    ref: str
    expr: str  # with Grafana's variables
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """The time shown, and how fine."""

    start_s: float  # Unix time
    end_s: float
    step_s: float
    scrape_s: float  # as the data source says in its provisioning

    @property
    def built_in(self) -> dict[str, str]:
        """Grafana's own variables."""
        rate_s = max(self.step_s + self.scrape_s, 4 * self.scrape_s)
        return {
            "__range": f"{round(self.end_s - self.start_s)}s",
            "__interval": f"{math.ceil(self.step_s)}s",  # PromQL knows no fractions
            "__rate_interval": f"{math.ceil(rate_s)}s",
        }


def panels(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The panels with queries, in order; names of shelves are none."""
    for panel in board["panels"]:
        if panel["type"] != "row":
            yield panel


def questions(panel: Mapping[str, Any]) -> list[Question]:
    return [
        Question(
            panel["title"],
            target["refId"],
            target["expr"],
            target.get("legendFormat", ""),
            bool(target.get("instant")),
        )
        for target in panel["targets"]
    ]


def marks(board: Mapping[str, Any]) -> list[Question]:
    """The annotations; Grafana asks for each once a minute of the time shown."""
    return [Question(m["name"], "Anno", m["expr"]) for m in board["annotations"]["list"]]


def variables(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that a query fills, in order."""
    return [v for v in board["templating"]["list"] if v["type"] == "query"]


def label_values(query: str) -> tuple[str, str]:
    """Selector and label of a variable's query."""
    found = LABEL_VALUES.fullmatch(query)
    if found is None:
        raise ValueError(f"{query!r} is no label_values(SELECTOR, LABEL)")
    return found["selector"], found["label"]


def put_in(text: str, board: Mapping[str, Any], chosen: Chosen, span: Span) -> str:
    """The text with every variable replaced, as Grafana's source of Prometheus data does it."""
    known = {variable["name"]: variable for variable in variables(board)}
    built_in = span.built_in

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in built_in:
            return built_in[name]
        if name not in known:
            return found[0]  # $1 of a label_replace
        return _value(known[name], chosen[name])

    return VARIABLE.sub(value, text)


def _value(variable: Mapping[str, Any], chosen: str | Sequence[str] | None) -> str:
    if not variable.get("multi") and not variable.get("includeAll"):
        return str(chosen).replace("\\", "\\\\").replace('"', '\\"')
    if chosen is ALL:
        if "allValue" in variable:
            return str(variable["allValue"])
        raise ValueError(f"{variable['name']}: All stands for its values: choose them")
    if isinstance(chosen, str):
        return _escaped(chosen)
    each = [_escaped(one) for one in chosen]
    return each[0] if len(each) == 1 else f"({'|'.join(each)})"


def _escaped(value: str) -> str:
    """For a regular expression within quotes of PromQL."""
    return SPECIAL.sub(r"\\\\\g<0>", value.replace("\\", "\\\\\\\\"))
