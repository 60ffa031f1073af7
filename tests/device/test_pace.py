"""How much a port sends ahead, and how often it acknowledges."""

from __future__ import annotations

import pytest

from accelhw.device.answers import WINDOW_FRAMES_MAX
from accelhw.device.bursts import BURST_FRAMES_MAX
from accelhw.device.pace import OPENING, PLAIN, Pace
from accelhw.link.retry import ACK_EVERY_FRAMES
from accelhw.wire.frame import MAX_MTU, MIN_MTU

MIB = 1 << 20
NEAR = Pace(32 * MIB, MIB)
MANY = 10_000  # credits


@pytest.mark.parametrize(
    ("mtu", "turn", "ahead", "every"),
    [
        (MAX_MTU, 512, 16, 8),
        (9000, BURST_FRAMES_MAX, 117, 58),
        (MIN_MTU, BURST_FRAMES_MAX, WINDOW_FRAMES_MAX, WINDOW_FRAMES_MAX // 2),
    ],
)
def test_what_is_under_way_is_a_mib_and_answered_by_halves(mtu, turn, ahead, every) -> None:
    assert NEAR.turn_frames(mtu) == turn
    assert NEAR.ahead_frames(mtu) == ahead
    assert NEAR.opening_frames(mtu) == OPENING * ahead
    assert NEAR.ack_every_frames(mtu, MANY) == every


def test_where_only_the_grant_limits_answers_go_as_on_any_link() -> None:
    assert PLAIN.ahead_frames(9000) == WINDOW_FRAMES_MAX
    assert PLAIN.ack_every_frames(9000, MANY) == ACK_EVERY_FRAMES


@pytest.mark.parametrize(("credit_frames", "every"), [(1, 1), (2, 1), (5, 2), (200, 58)])
def test_answers_go_by_halves_of_what_was_granted_if_that_is_less(credit_frames, every) -> None:
    assert NEAR.ack_every_frames(9000, credit_frames) == every


def test_a_frame_larger_than_all_that_may_be_ahead_still_leaves_with_another() -> None:
    pace = Pace(turn_bytes=1, ahead_bytes=1)
    assert (pace.turn_frames(9000), pace.ahead_frames(9000)) == (1, 2)
    assert pace.ack_every_frames(9000, MANY) == 1
