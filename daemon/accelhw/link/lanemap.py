"""What was heard on each lane, and the lane map and width that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from accelhw.model.link import DownReason, Reason


def lanes_of(mask: int) -> Iterator[int]:
    """The lanes of a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(lanes: Sequence[int]) -> int:
    return sum(1 << lane for lane in set(lanes))


def widths(lanes: int) -> tuple[int, ...]:
    """Widths that a port of so many lanes may run at: all, a half, a quarter, one."""
    return tuple(sorted({lanes, max(lanes // 2, 1), max(lanes // 4, 1), 1}, reverse=True))


def common_width(lanes: int, good_here: int, good_there: int) -> int:
    """The largest width that the good lanes of both ends allow; 0 when there is none."""
    most = min(good_here.bit_count(), good_there.bit_count())
    return max((width for width in widths(lanes) if width <= most), default=0)


def chosen_lanes(good: int, lane_map: Sequence[int | None], width: int) -> int:
    """The arrival lanes to use: those whose far lane is lowest. Both ends can work it out."""
    mapped = [(far, lane) for lane in lanes_of(good) if (far := lane_map[lane]) is not None]
    return mask_of([lane for _, lane in sorted(mapped)[:width]])


def far_lanes(arrival: int, lane_map: Sequence[int | None]) -> int:
    """The far Tx lanes behind these arrival lanes."""
    return mask_of([far for lane in lanes_of(arrival) if (far := lane_map[lane]) is not None])


@dataclass(slots=True)
class LaneMap:
    """Evidence per arrival lane: which far lane was heard on it, how, and how often."""

    lanes: int
    far: list[int | None] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    clashes: dict[int, tuple[int, int]] = field(default_factory=dict)  # two far lanes on one
    inverted: int = 0
    aligned: int = 0  # lanes heard again, unchanged, after both ends fixed their maps

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.far = [None] * self.lanes
        self.count = [0] * self.lanes
        self.clashes = {}
        self.inverted = self.aligned = 0

    def record(self, lane: int, far: int, inverted: bool) -> bool:
        """Note one frame. False: it contradicts what was heard on that lane before."""
        bit = 1 << lane
        known = self.far[lane]
        if known == far and bool(self.inverted & bit) == inverted:
            self.count[lane] += 1
            return True
        if known is not None and known != far:
            self.clashes[lane] = (known, far)
        self.far[lane] = far
        self.count[lane] = 1
        self.inverted = self.inverted | bit if inverted else self.inverted & ~bit
        self.aligned &= ~bit
        return known is None

    def heard(self, at_least: int) -> int:
        """Lanes with that many consistent frames."""
        return mask_of([lane for lane, count in enumerate(self.count) if count >= at_least])

    def fault(self, lanes: int) -> Reason | None:
        """What is wrong with the map of these lanes: a far lane heard twice, or no such lane."""
        seen: dict[int, int] = {}
        for lane in lanes_of(lanes):
            far = self.far[lane]
            if far is None or far >= self.lanes:
                return Reason(
                    DownReason.LANE_MISSING, lane, f"far lane {far} is none of {self.lanes}"
                )
            if far in seen:
                detail = f"far lane {far} arrives on lanes {seen[far]} and {lane}"
                return Reason(DownReason.LANE_DUPLICATE, lane, detail)
            seen[far] = lane
        return None
