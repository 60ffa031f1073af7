"""Reading one table of a TOML document: typed values, and a note of each mistake met.

What is wrong is read as absent, so that reading goes on and one run tells all mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from accelhw.model.ids import nearest
from accelhw.model.tomllines import Path

N = TypeVar("N", int, float)

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Mistake:
    line: int
    key: str  # fibre.b
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: {self.problem}; {self.remedy}"


@dataclass(slots=True)
class Table:
    """A table being read; `mistakes` is shared by all tables of a document."""

    values: Mapping[str, Any]
    path: Path
    noun: str
    lines: Mapping[Path, int]
    mistakes: list[Mistake]

    def line(self, *key: str | int) -> int:
        path = (*self.path, *key)
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def complain(self, key: str, problem: str, remedy: str, element: int | None = None) -> None:
        line = self.line(key) if element is None else self.line(key, element)
        written = key if _BARE.fullmatch(key) else repr(key)
        name = f"{self.noun}.{written}" if self.noun else written
        self.mistakes.append(Mistake(line, name, problem, remedy))

    def refuse_unknown(self, known: Sequence[str], what: str = "key") -> None:
        for key in self.values:
            if key not in known:
                guess = nearest(key, known)
                remedy = f"did you mean {guess!r}?" if guess else f"known are {', '.join(known)}"
                self.complain(key, f"no such {what}", remedy)

    def tables(self, key: str) -> list[Table]:
        """The tables of `[[key]]`."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            self.complain(key, "not a list of tables", f"use [[{key}]], in two brackets, for each")
            value = [value] if isinstance(value, dict) else []
            return [Table(v, (key,), key, self.lines, self.mistakes) for v in value]
        return [
            Table(v, (key, number), key, self.lines, self.mistakes)
            for number, v in enumerate(value)
        ]

    def table(self, key: str) -> Table:
        """The table `[key]`; an empty one if absent."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.complain(key, "not a table", f"use [{key}], in one bracket, once")
            value = {}
        return Table(value, (key,), key, self.lines, self.mistakes)

    def text(self, key: str, example: str, required: bool = False) -> str | None:
        if key not in self.values:
            if required:
                self.complain(key, "missing", f'add {key} = "{example}"')
            return None
        value = self.values[key]
        if not isinstance(value, str):
            self.complain(key, f"{shown(value)} is no text", f'use {key} = "{example}"')
            return None
        return value

    def integer(self, key: str, low: int, high: int, example: int) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self.complain(key, f"{shown(value)} is no whole number", f"use {key} = {example}")
            return None
        return self._in_range(key, value, low, high)

    def number(self, key: str, low: float, high: float, example: float) -> float | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.complain(key, f"{shown(value)} is no number", f"use {key} = {example:g}")
            return None
        return self._in_range(key, float(value), low, high)

    def _in_range(self, key: str, value: N, low: N, high: N) -> N | None:
        if low <= value <= high:  # False for nan, too.
            return value
        size = "too small" if value < low else "too large" if value > high else "no number"
        self.complain(key, f"{shown(value)} is {size}", f"use {low:.12g} to {high:.12g}")
        return None

    def integers(self, key: str) -> list[int] | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            self.complain(key, f"{shown(value)} is no list", f"use {key} = [0, 1]")
            return None
        for place, element in enumerate(value):
            if not isinstance(element, int) or isinstance(element, bool):
                self.complain(
                    key, f"{shown(element)} is no lane", "use whole numbers from 0", place
                )
                return None
        return value

    def reference(self, key: str, known: Mapping[str, Any], what: str) -> None:
        """Say that `self.values[key]` names nothing of `known`."""
        value = self.values[key]
        guess = nearest(value, known)
        remedy = f"did you mean {guess!r}?" if guess else f"known are {', '.join(known) or 'none'}"
        self.complain(key, f"{value!r} is no {what}", remedy)


def shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def split(error: ValueError) -> tuple[str, str]:
    """A message of the form "what is wrong; what works", as problem and remedy."""
    problem, _, remedy = str(error).partition("; ")
    return problem, remedy
