"""A field: one figure of one noun, under all the names that it is shown by.

Where it comes from, and how it is told: the metric family with its unit, the field of the API with
its own (units stand in both names), and what it means. Absent is None, never a sentinel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["gauge", "counter", "info"]
Value = int | float | bool | None
Labels = str  # as they stand between the braces: `card="card0",oe="oe1"`
Sample = tuple[Labels, float]  # the labels beyond those of the noun

DIGITS = 12  # of a figure in another unit than its column's: no dust of the division


class Noun(Enum):
    """Whose figure it is."""

    HOST = "host"
    WORKER = "worker"
    CARD = "card"
    ENGINE = "engine"
    LASER = "laser"  # an external one
    LINK = "link"  # an engine with a fibre
    LANE = "lane"

    @property
    def labels(self) -> tuple[str, ...]:
        """That say which one."""
        return LABELS[self]


LABELS: dict[Noun, tuple[str, ...]] = {
    Noun.HOST: (),
    Noun.WORKER: ("worker",),
    Noun.CARD: ("card",),
    Noun.ENGINE: ("card", "oe"),
    Noun.LASER: ("card", "oe", "laser"),
    Noun.LINK: ("card", "oe"),
    Noun.LANE: ("card", "oe", "lane"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the noun's table row. Absent where it is nan, or where `when` is 0."""

    name: str
    when: str = ""  # another column

    def of(self, row: Any) -> Value:
        if self.when and not row[self.when]:
            return None
        value: int | float = row[self.name].item()
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def all_of(self, rows: NDArray[np.void]) -> list[Value]:
        """Of many rows; as `of`, at once."""
        values: list[Value] = rows[self.name].tolist()
        if self.when:
            there = rows[self.when].tolist()
            values = [v if is_there else None for v, is_there in zip(values, there, strict=True)]
        if rows.dtype[self.name].kind == "f" and not np.isfinite(rows[self.name]).all():
            values = [None if v is None or not math.isfinite(v) else v for v in values]
        return values


@dataclass(frozen=True, slots=True)
class Derived:
    """Follows from the noun's snapshot."""

    of: Callable[[Any], Value]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Several samples of one noun, told apart by further labels."""

    of: Callable[[Any], Iterable[Sample]]
    names: tuple[str, ...]
    count: int  # samples of a noun that is well; 0: there is one only when something is the matter


@dataclass(frozen=True, slots=True)
class Field:
    noun: Noun
    group: str  # what a scrape can be asked for
    metric: str
    text: str  # what it means, in plain words; HELP of the family
    source: Column | Derived | Labelled
    unit: str = ""  # of the metric; empty: a number, a state, a flag
    divisor: float = 1.0  # so many of the source's unit make one of the metric's
    kind: Kind = "gauge"
    message: str = ""  # of accel.v1, that has it too; empty: none
    key: str = ""  # its field there, with its way: "counters.tx_frames_total"; also the JSON key
    key_divisor: float = 1.0  # so many of the source's unit make one of the key's
    fitted: str = ""  # the part that must be fitted for it to be there; empty: every card has it
    counted: tuple[Noun, ...] = ()  # whom it has samples of, if not just of its noun

    def __post_init__(self) -> None:
        if (self.kind == "counter") != self.metric.endswith("_total"):
            raise ValueError(f"{self.metric}: a counter, and nothing else, ends with _total")
        if (self.kind == "info") != self.metric.endswith("_info"):
            raise ValueError(f"{self.metric}: an identity, and nothing else, ends with _info")
        if bool(self.message) != bool(self.key):
            raise ValueError(f"{self.metric}: a key stands in a message")

    @property
    def labels(self) -> tuple[str, ...]:
        more = self.source.names if isinstance(self.source, Labelled) else ()
        return self.noun.labels + more

    @property
    def samples_each(self) -> int:
        """Of a noun that is well."""
        return self.source.count if isinstance(self.source, Labelled) else 1


def scaled(value: Value, divisor: float) -> Value:
    if value is None or divisor == 1.0:
        return value
    return round(value / divisor, DIGITS)


def label(name: str, value: object) -> Labels:
    text = str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{text}"'


def joined(*labels: Labels) -> Labels:
    return ",".join(part for part in labels if part)


@cache
def each_label(name: str, values: Sequence[str]) -> tuple[Labels, ...]:
    """One label for each of some fixed words: made once."""
    return tuple(label(name, value) for value in values)
