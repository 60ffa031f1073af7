"""Times between nanoseconds and the messages of protobuf."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def timestamp(time_ns: int) -> Timestamp | None:
    """None for 0, which in a row means: not so now."""
    if time_ns == 0:
        return None
    return Timestamp(seconds=time_ns // 10**9, nanos=time_ns % 10**9)


def seconds(duration: Duration) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
