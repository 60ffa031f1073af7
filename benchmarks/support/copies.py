"""Transfers of a running rack, measured: speed of one, speed and fairness of several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accel.transfer import check
from support.rack import Rack

Way = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Together:
    """Transfers that ran at the same time."""

    total_gbyte_per_s: float  # all bytes, from the first start to the last end
    fairness: float  # the slowest one's speed over the fastest one's
    replayed_frames: int


def prepare(
    rack: Rack, ways: Sequence[tuple[str, str]], size_bytes: int, name: str = "bench"
) -> list[Way]:
    """Regions for each (source card, target card), filled, and each way gone twice: the first copy
    maps pages, the second one finds that they are used again and makes them huge."""
    regions = []
    for index, (source, target) in enumerate(ways):
        out = rack.region(source, f"{name}-out{index}", size_bytes, seed=index)
        into = rack.region(target, f"{name}-in{index}", size_bytes)
        for _ in range(2):
            rack.client.transfers.copy(out, into)
        regions.append((out, into))
    return regions


def gbyte_per_s(rack: Rack, way: Way) -> float:
    return float(rack.client.transfers.copy(*way).wall_gbyte_per_s)


def together(rack: Rack, ways: Sequence[Way]) -> Together:
    transfers = rack.client.transfers
    started = [transfers.create(*way) for way in ways]
    ended = [check(list(transfers.follow(one.name))[-1]) for one in started]
    first = min(one.start_time.ToNanoseconds() for one in ended)
    last = max(one.end_time.ToNanoseconds() for one in ended)
    speeds = [one.wall_gbyte_per_s for one in ended]
    return Together(
        sum(one.total_bytes for one in ended) / (last - first),
        min(speeds) / max(speeds),
        sum(one.replayed_frames_total for one in ended),
    )
