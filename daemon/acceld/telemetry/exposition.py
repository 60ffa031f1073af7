"""The Prometheus text format, written by ourselves.

prometheus_client needs 5.3 us a sample, most of it for labels that it sorts and escapes each time.
Here the labels of a thing are written once and shared by all its families: about 1 us. Names and
addresses hold no character that would need an escape; free text goes through `label`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = str  # as they stand between the braces: `card="card0",oe="oe1"`


def label(name: str, value: object) -> Labels:
    text = str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{text}"'


def joined(*labels: Labels) -> Labels:
    return ",".join(part for part in labels if part)


class Family:
    """One family and its samples."""

    def __init__(self, name: str, kind: Literal["gauge", "counter"], text: str) -> None:
        if (kind == "counter") != name.endswith("_total"):
            raise ValueError(f"{name}: a counter, and nothing else, ends with _total")
        self.name = name
        self._head = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        self._lines: list[str] = []

    def add(self, labels: Labels, value: float) -> None:
        self._lines.append(f"{self.name}{{{labels}}} {value!r}\n" if labels else self._bare(value))

    def add_all(self, labels: Iterable[Labels], values: Iterable[float]) -> None:
        name = self.name
        self._lines += [
            f"{name}{{{at}}} {value!r}\n" for at, value in zip(labels, values, strict=True)
        ]

    def add_present(
        self, labels: Iterable[Labels], values: Iterable[float], present: Iterable[int]
    ) -> None:
        """As add_all, but only where `present`: absent is absent, never a made-up number."""
        name = self.name
        self._lines += [
            f"{name}{{{at}}} {value!r}\n"
            for at, value, is_there in zip(labels, values, present, strict=True)
            if is_there and math.isfinite(value)
        ]

    def render(self) -> str:
        """Nothing when there is no sample."""
        return self._head + "".join(self._lines) if self._lines else ""

    def _bare(self, value: float) -> str:
        return f"{self.name} {value!r}\n"


def gauge(name: str, text: str) -> Family:
    return Family(name, "gauge", text)


def counter(name: str, text: str) -> Family:
    return Family(name, "counter", text)


def render(families: Iterable[Family]) -> str:
    return "".join(family.render() for family in families)
