"""Times between nanoseconds and the messages of protobuf."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

NS_MAX = 2**63 - 1  # that the store can compare with; a time in the year 2262


def timestamp(time_ns: int) -> Timestamp | None:
    """None for 0, which in a row means: not so now."""
    if time_ns == 0:
        return None
    return Timestamp(seconds=time_ns // 10**9, nanos=time_ns % 10**9)


def nanoseconds(timestamp: Timestamp) -> int:
    """From 0 to NS_MAX: what lies beyond is before, or after, all that was ever stored."""
    return max(0, min(timestamp.seconds * 10**9 + timestamp.nanos, NS_MAX))


def seconds(duration: Duration) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
