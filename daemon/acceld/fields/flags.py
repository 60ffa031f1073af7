"""Flags of lanes and cards: on now, latched, and how often they changed.

A lane has 27 flags, of which hardly one is ever on. By default a scrape names only those that are,
so that absent is off, and how many are latched on an engine: every lane was dark once, before its
link came up, so latches are many until somebody clears them. The group `lane_flags` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from acceld.fields.field import Field, Kind, Labelled, Noun, Sample, each_label, joined
from acceld.host.snapshot import CardSnapshot, PortSnapshot
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS

CARD_LABELS = each_label("flag", CARD_FLAGS)
LANE_LABELS = each_label("flag", LANE_FLAGS)


def _of_card(column: str) -> Callable[[CardSnapshot], Iterator[Sample]]:
    def samples(card: CardSnapshot) -> Iterator[Sample]:
        return zip(CARD_LABELS, card.flags[column].tolist(), strict=True)

    return samples


@cache
def _lane_label(lane: int) -> str:
    return f'lane="lane{lane}"'


@cache
def _lane_labels(lanes: int) -> tuple[str, ...]:
    """Of every flag of every lane, in the order of the table."""
    return tuple(joined(_lane_label(lane), flag) for lane in range(lanes) for flag in LANE_LABELS)


def _raised(column: str) -> Callable[[PortSnapshot], Iterator[Sample]]:
    def samples(port: PortSnapshot) -> Iterator[Sample]:
        raised: NDArray[np.uint8] = port.flags[column]
        if raised.any():
            for lane, flag in zip(*(at.tolist() for at in raised.nonzero()), strict=True):
                yield joined(_lane_label(lane), LANE_LABELS[flag]), 1

    return samples


def _every(column: str) -> Callable[[PortSnapshot], Iterator[Sample]]:
    def samples(port: PortSnapshot) -> Iterator[Sample]:
        values = port.flags[column]
        return zip(_lane_labels(len(values)), values.ravel().tolist(), strict=True)

    return samples


def _card(metric: str, text: str, column: str, kind: Kind = "gauge") -> Field:
    return Field(
        Noun.CARD, "flags", metric, text, Labelled(_of_card(column), ("flag",), len(CARD_FLAGS)),
        kind=kind, message="Card", key="flags",
    )  # fmt: skip


def _lane(group: str, metric: str, text: str, column: str) -> Field:
    return Field(
        Noun.ENGINE, group, metric, text, Labelled(_raised(column), ("lane", "flag"), 0),
        message="Lane", key="flags",
    )  # fmt: skip


FLAG_FIELDS = (
    _card(
        "accel_card_flag_active", "1 while a watched figure of the card is beyond that level.",
        "active",
    ),
    _card(
        "accel_card_flag_latched",
        "1 when the flag was on since it was last cleared by command.",
        "latched",
    ),
    _card(
        "accel_card_flag_changes_total", "Changes of the flag, on and off alike.", "count",
        "counter",
    ),
    _lane(
        "flags", "accel_lane_flag_active", "1 while the flag is on; absent while it is off.",
        "active",
    ),
)  # fmt: skip

LANE_FLAG_FIELDS = (
    _lane(
        "lane_flags", "accel_lane_flag_latched",
        "1 when the flag was on since it was last cleared by command; absent when it was not.",
        "latched",
    ),
    Field(
        Noun.ENGINE, "lane_flags", "accel_lane_flag_changes_total",
        "Changes of each flag of each lane, on and off alike.",
        Labelled(_every("count"), ("lane", "flag"), len(LANE_FLAGS)), kind="counter",
        message="Lane", key="flags", counted=(Noun.LANE,),
    ),
)  # fmt: skip
