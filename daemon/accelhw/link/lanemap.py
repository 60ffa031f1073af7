"""What was heard on each lane, and the lane map and width that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from accelhw.model.link import DownReason, Reason

MASKS_REMEMBERED = 1 << 12  # few are met, and each again and again


def lanes_of(mask: int) -> Iterator[int]:
    """The lanes of a mask, lowest first."""
    return iter(_lanes(mask))


@lru_cache(MASKS_REMEMBERED)
def _lanes(mask: int) -> tuple[int, ...]:
    return tuple(lane for lane in range(mask.bit_length()) if mask >> lane & 1)


def mask_of(lanes: Sequence[int]) -> int:
    return sum(1 << lane for lane in set(lanes))


def widths(lanes: int) -> tuple[int, ...]:
    """Widths that a port of so many lanes may run at: all, a half, a quarter, one."""
    return tuple(sorted({lanes, max(lanes // 2, 1), max(lanes // 4, 1), 1}, reverse=True))


def widest(lanes: int, good: int) -> int:
    """The largest allowed width that so many good lanes can fill; 0 when there is none."""
    return max((width for width in widths(lanes) if width <= good), default=0)


def chosen_lanes(good: int, lane_map: Sequence[int | None], width: int) -> int:
    """The arrival lanes to use: those whose far lane is lowest. Both ends can work it out."""
    mapped = [(far, lane) for lane in lanes_of(good) if (far := lane_map[lane]) is not None]
    return mask_of([lane for _, lane in sorted(mapped)[:width]])


def far_lanes(arrival: int, lane_map: Sequence[int | None]) -> int:
    """The far Tx lanes behind these arrival lanes."""
    return mask_of([far for lane in lanes_of(arrival) if (far := lane_map[lane]) is not None])


def arrival(far: int, inverted: bool) -> str:
    """What comes out of a fibre that was changed: the lane may be the same, its polarity not."""
    return f"far lane {far} arrives there now, {'inverted' if inverted else 'not inverted'}"


@dataclass(frozen=True, slots=True)
class LaneView:
    """One end's lanes: those it hears well, and for each, the far lane that it hears."""

    good: int
    far: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class LaneSet:
    """Lanes in use: a mask of arrival lanes, and one of transmit lanes."""

    width: int
    rx: int
    tx: int


NO_LANES = LaneSet(0, 0, 0)


def agree(data_lanes: int, near: LaneView, far: LaneView, near_first: bool) -> LaneSet:
    """What to use; each end works it out alike from what both said.

    Lanes of a cable come in pairs, one fibre there and one back, and a pair is used in both
    directions or in none. Only where the two directions are crossed differently, or no pair is
    whole, each direction takes what it has. `near_first` is told to one of the ends.
    """
    whole = [
        (lane, there)
        for lane in lanes_of(near.good)
        if (there := near.far[lane]) is not None
        and far.good >> there & 1
        and far.far[there] == lane
    ]
    if whole and _paired(near.far, far.far) and _paired(far.far, near.far):
        width = widest(data_lanes, len(whole))
        used = sorted(whole, key=lambda pair: pair[not near_first])[:width]
        mask = mask_of([lane for lane, _ in used])
        return LaneSet(width, mask, mask)
    width = widest(data_lanes, min(near.good.bit_count(), far.good.bit_count()))
    arrival = chosen_lanes(near.good, near.far, width)
    theirs = far_lanes(chosen_lanes(far.good, far.far, width), far.far)
    return LaneSet(width, arrival, theirs & (1 << len(near.far)) - 1)


def _paired(near: Sequence[int | None], far: Sequence[int | None]) -> bool:
    """Whether light that comes from a far lane also goes there, as far as both know."""
    return all(
        there is None or there >= len(far) or far[there] in (None, lane)
        for lane, there in enumerate(near)
    )


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
