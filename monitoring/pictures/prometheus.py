"""A Prometheus, asked as a board asks it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from boards.grafana import Span

TIMEOUT_S = 30


class Refused(Exception):
    """Prometheus does not take the question."""


@dataclass(frozen=True, slots=True)
class Series:
    """Labels, and values at Unix times in seconds."""

    labels: dict[str, str]
    points: list[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def at(self, expr: str, time_s: float) -> list[Series]:
        """At one moment."""
        found = self._get("query", query=expr, time=time_s)["result"]
        return [Series(one["metric"], _points([one["value"]])) for one in found]

    def over(self, expr: str, span: Span) -> list[Series]:
        """Over the time shown."""
        found = self._get(
            "query_range", query=expr, start=span.start_s, end=span.end_s, step=span.step_s
        )["result"]
        return [Series(one["metric"], _points(one["values"])) for one in found]

    def label_values(self, selector: str, label: str, span: Span) -> list[str]:
        where = {"match[]": selector, "start": span.start_s, "end": span.end_s}
        values: list[str] = self._get(f"label/{label}/values", **where)
        return values

    def _get(self, what: str, **asked: Any) -> Any:
        """Raises urllib.error.URLError when nobody answers, and Refused with what is wrong."""
        address = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(asked)}"
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Refused(f"{asked}: {json.load(error)['error']}") from error


def _points(values: list[list[Any]]) -> list[tuple[float, float]]:
    return [(float(time_s), float(value)) for time_s, value in values]
