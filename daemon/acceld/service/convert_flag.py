"""Thresholds and flags to messages of accel.v1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from accel.v1 import flag_pb2
from acceld.service.times import timestamp
from accelhw.model.flag import LEVELS
from accelhw.model.profile import Profile


def thresholds(profile: Profile, quantities: Iterable[str]) -> list[flag_pb2.Threshold]:
    return [
        flag_pb2.Threshold(
            quantity=quantity,
            **{
                level: value
                for level, value in zip(LEVELS, profile.thresholds[quantity], strict=True)
                if math.isfinite(value)
            },
        )
        for quantity in quantities
        if quantity in profile.thresholds
    ]


def flags(
    flag_names: Sequence[str], rows: NDArray[np.void], *, all_of_them: bool = False
) -> list[flag_pb2.Flag]:
    """Of one lane or card; only those that ever changed, unless all are wanted."""
    changed = np.flatnonzero(rows["count"] | rows["latched"])
    told: Sequence[int] = range(len(rows)) if all_of_them else changed.tolist()
    return [
        flag_pb2.Flag(
            name=flag_names[index],
            active=bool(rows["active"][index]),
            latched=bool(rows["latched"][index]),
            changes_total=int(rows["count"][index]),
            first_set_time=timestamp(int(rows["first_set_ns"][index])),
            last_set_time=timestamp(int(rows["last_set_ns"][index])),
            last_clear_time=timestamp(int(rows["last_clear_ns"][index])),
        )
        for index in told
    ]
