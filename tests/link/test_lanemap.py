"""Lane sets: which lanes a link runs on, worked out alike by both ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.lanemap import (
    LaneMap,
    LaneSet,
    LaneView,
    agree,
    arrival,
    lanes_of,
    mask_of,
    widths,
)
from accelhw.model.link import DownReason


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [(1, (1,)), (2, (2, 1)), (4, (4, 2, 1)), (8, (8, 4, 2, 1)), (16, (16, 8, 4, 1))],
)
def test_a_port_runs_at_all_half_quarter_or_one(lanes: int, expected: tuple[int, ...]) -> None:
    assert widths(lanes) == expected


def seen_from_both(data_lanes: int, here: LaneView, there: LaneView) -> tuple[LaneSet, LaneSet]:
    return agree(data_lanes, here, there, True), agree(data_lanes, there, here, False)


@given(st.data())
def test_both_ends_use_the_same_pairs_of_lanes(data: st.DataObject) -> None:
    """A cable's pairs cross alike both ways; where one direction is bad, neither is used."""
    lanes = data.draw(st.sampled_from((1, 2, 4, 8, 16)))
    spare = data.draw(st.integers(0, lanes // 4))
    good = [data.draw(st.integers(0, (1 << lanes) - 1)) for _ in range(2)]
    crossing = data.draw(st.permutations(range(lanes)))
    back = [crossing.index(lane) for lane in range(lanes)]
    whole = [lane for lane in lanes_of(good[0]) if good[1] >> crossing[lane] & 1]
    near, far = seen_from_both(lanes - spare, LaneView(good[0], crossing), LaneView(good[1], back))
    assert near.width == far.width
    if whole:
        assert near.width == max(w for w in widths(lanes - spare) if w <= len(whole))
        assert near.rx == near.tx
        assert far.rx == far.tx == mask_of([crossing[lane] for lane in lanes_of(near.rx)])
        assert near.rx & ~good[0] == far.rx & ~good[1] == 0
        assert near.rx.bit_count() == near.width


@given(st.data())
def test_directions_that_are_crossed_differently_use_lanes_of_their_own(
    data: st.DataObject,
) -> None:
    lanes = data.draw(st.sampled_from((2, 4, 8, 16)))
    good = [data.draw(st.integers(1, (1 << lanes) - 1)) for _ in range(2)]
    there, back = (data.draw(st.permutations(range(lanes))) for _ in range(2))
    near, far = seen_from_both(lanes, LaneView(good[0], there), LaneView(good[1], back))
    assert near.width == far.width
    for one, other, its_map, its_good in ((near, far, there, good[0]), (far, near, back, good[1])):
        assert one.rx & ~its_good == 0
        assert one.rx.bit_count() == one.width
        assert mask_of([its_map[lane] for lane in lanes_of(one.rx)]) == other.tx


def test_a_map_with_a_lane_twice_or_out_of_range_is_a_fault() -> None:
    lane_map = LaneMap(4)
    for lane, far in enumerate((0, 3, 3, 9)):
        lane_map.record(lane, far, False)
    assert lane_map.fault(0b0011) is None
    twice = lane_map.fault(0b0111)
    assert twice is not None
    assert (twice.code, twice.lane) == (DownReason.LANE_DUPLICATE, 2)
    beyond = lane_map.fault(0b1000)
    assert beyond is not None
    assert (beyond.code, beyond.lane) == (DownReason.LANE_MISSING, 3)
    assert lane_map.record(0, 0, False)
    assert not lane_map.record(0, 0, True)  # the polarity changed
    assert lane_map.count[0] == 1
    assert not lane_map.record(0, 1, True)
    assert lane_map.clashes == {0: (0, 1)}
    assert lane_map.inverted == 1


def test_a_lane_that_turned_over_is_told_apart_from_one_that_moved() -> None:
    assert arrival(5, True) == "far lane 5 arrives there now, inverted"
    assert arrival(2, False) == "far lane 2 arrives there now, not inverted"
