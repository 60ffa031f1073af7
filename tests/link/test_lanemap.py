"""Lane sets: which lanes a link runs on, worked out alike by both ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.lanemap import LaneMap, chosen_lanes, common_width, far_lanes, lanes_of, widths
from accelhw.model.link import DownReason


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [(1, (1,)), (2, (2, 1)), (4, (4, 2, 1)), (8, (8, 4, 2, 1)), (16, (16, 8, 4, 1))],
)
def test_a_port_runs_at_all_half_quarter_or_one(lanes: int, expected: tuple[int, ...]) -> None:
    assert widths(lanes) == expected


@given(st.data())
def test_both_ends_choose_the_same_width_and_lanes_that_are_good(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from((1, 2, 4, 8, 16)))
    here, there = (data.draw(st.integers(0, (1 << lanes) - 1)) for _ in range(2))
    order = data.draw(st.permutations(range(lanes)))
    width = common_width(lanes, here, there)
    assert width == common_width(lanes, there, here)
    chosen = chosen_lanes(here, order, width)
    assert chosen & ~here == 0
    assert chosen.bit_count() == width
    far = list(lanes_of(far_lanes(chosen, order)))
    left_out = [order[lane] for lane in lanes_of(here & ~chosen)]
    assert len(far) == width
    assert not far or not left_out or max(far) < min(left_out)


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
