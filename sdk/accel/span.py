"""Spans of time on their way into a request: what the API takes, and no more."""

from __future__ import annotations

from typing import Any

from accel.errors import InvalidRequest

LONGEST_S = 100 * 365 * 86_400  # a century; the daemon refuses what is longer
LONGEST = "36500d"  # as people write it


def put(duration: Any, seconds: float) -> None:
    """Sets a Duration. Raises InvalidRequest."""
    if not abs(seconds) <= LONGEST_S:
        raise InvalidRequest(f"{seconds:g} s is too long; use at most {LONGEST}")
    duration.FromNanoseconds(round(seconds * 1e9))
