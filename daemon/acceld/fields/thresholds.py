"""Thresholds as metrics: four levels of a quantity, once for each of those that share them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from acceld.fields.field import Field, Labelled, Noun, Sample, each_label
from acceld.host.snapshot import CardSnapshot, PortSnapshot
from accelhw.model.flag import LEVELS


def threshold(
    noun: Noun,
    quantity: str,
    metric: str,
    unit: str,
    text: str,
    *,
    group: str,
    divisor: float = 1.0,
    count: int = len(LEVELS),
    fitted: str = "",
) -> Field:
    """The levels of a watched quantity; a level that a profile leaves open is absent."""

    def samples(subject: CardSnapshot | PortSnapshot) -> Iterator[Sample]:
        for at, value in _samples(subject.profile.thresholds.get(quantity, ())):
            yield at, value / divisor

    return Field(
        noun, group, metric, f"{text}; a flag goes on beyond them.",
        Labelled(samples, ("level",), count), unit, divisor,
        message="Card" if noun is Noun.CARD else "Engine", key="thresholds", fitted=fitted,
    )  # fmt: skip


@cache
def _samples(levels: tuple[float, ...]) -> tuple[Sample, ...]:
    named = zip(each_label("level", LEVELS), levels, strict=False)
    return tuple((at, value) for at, value in named if math.isfinite(value))
