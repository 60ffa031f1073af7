"""A reason names the lanes that are to blame, in few words, and what to do about them."""

from __future__ import annotations

import pytest

from accelhw.model.link import DownReason, LinkMode, Reason, ranges

EVERY = 0xFF


@pytest.mark.parametrize(
    ("lanes", "text"),
    [(0, ""), (0b1, "0"), (0b11, "0, 1"), (0b111, "0-2"), (0b1011_0111, "0-2, 4, 5, 7")],
)
def test_runs_of_lanes_are_drawn_together(lanes: int, text: str) -> None:
    assert ranges(lanes) == text


@pytest.mark.parametrize(
    ("lanes", "of", "lane", "text"),
    [
        (0, EVERY, None, "SIGNAL_LOST"),
        (0b1000, EVERY, 3, "SIGNAL_LOST on lane 3"),
        (0b111_1000, EVERY, 3, "SIGNAL_LOST on lanes 3-6"),
        (EVERY, EVERY, None, "SIGNAL_LOST on all 8 lanes"),
        (1, 1, 0, "SIGNAL_LOST on lane 0"),
    ],
)
def test_one_lane_some_and_all_are_told_apart(
    lanes: int, of: int, lane: int | None, text: str
) -> None:
    reason = Reason.on(DownReason.SIGNAL_LOST, lanes, of)
    assert (reason.lane, reason.blamed, str(reason)) == (lane, lanes, text)


def test_the_worst_lane_may_come_first() -> None:
    reason = Reason.on(DownReason.BER_TOO_HIGH, 0b1010, EVERY, first=3)
    assert (reason.lane, reason.where) == (3, "lanes 1, 3")


def test_what_to_do_is_to_look_at_the_fibre_or_at_lanes() -> None:
    dark = DownReason.SIGNAL_LOST
    assert "fibre" in Reason.on(dark, EVERY, EVERY).next_action("card0/oe0")
    assert "fibre" in Reason.on(dark, 1, 1).next_action("card0/oe0")  # has no other lane
    one = Reason.on(dark, 0b1000, EVERY).next_action("card0/oe0")
    assert one.startswith("check lane 3: ")
    assert one.endswith("accelctl lane list card0/oe0")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("none", "no FEC"),
        ("kp4", "FEC kp4"),
        ("kr4/2", "FEC kr4 at half the rate"),
        ("none/2", "no FEC at half the rate"),
    ],
)
def test_a_mode_has_words_for_people(mode: str, words: str) -> None:
    assert LinkMode.parse(mode).words == words
