"""A link that falls again and again is held down until it is quiet, and both numbers are told."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.damping import Damping, HoldOff
from accelhw.link.patience import FLAP_CEILING, FLAP_HALF_LIFE_NS, FLAP_REUSE, FLAP_SUPPRESS
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import load_profile
from accelhw.sim.linkpair import LinkPair

SECOND = 1_000_000_000


def test_hold_off_doubles_from_one_second_to_a_minute() -> None:
    waits = HoldOff()
    assert [waits.next_ns() // SECOND for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    waits.forgive()
    assert waits.next_ns() == SECOND


def test_few_falls_or_slow_ones_are_not_held_against_a_link() -> None:
    damping = Damping()
    assert [damping.fall(0) for _ in range(3)] == [None] * 3
    assert damping.fall(1) is not None
    slow = Damping()
    assert {slow.fall(i * 2 * FLAP_HALF_LIFE_NS) for i in range(50)} == {None}


@given(st.lists(st.integers(0, 30 * SECOND), max_size=50))
def test_the_penalty_is_bounded_and_the_wait_brings_it_down(steps: list[int]) -> None:
    damping, now = Damping(), 0
    for step in steps:
        now += step
        wait = damping.fall(now)
        assert damping.penalty(now) <= FLAP_CEILING
        if wait is not None:
            assert damping.penalty(now) > FLAP_SUPPRESS
            assert damping.penalty(now + wait) <= FLAP_REUSE
            assert wait <= 26 * SECOND


def flap(pair: LinkPair, times: int) -> None:
    for _ in range(times):
        pair.cut["a"] = True
        pair.run(2)
        pair.cut["a"] = False
        pair.run(1)


def one_lane(seed: int = 1) -> LinkPair:
    profile = msgspec.structs.replace(load_profile("oio"), lanes_per_oe=1)
    pair = LinkPair(seed=seed, profile=profile)
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    return pair


def test_a_flapping_fibre_is_held_down_and_comes_back_when_it_is_quiet() -> None:
    pair = one_lane()
    flap(pair, 12)
    trainer = pair.a.trainer
    assert trainer.state is LinkState.FAILED
    assert trainer.reason.code is DownReason.FLAPPING
    assert "SIGNAL_LOST" in trainer.reason.detail
    assert pair.b.trainer.peer_reason.code is DownReason.FLAPPING
    assert trainer.flaps_damped == 1
    assert trainer.flaps > len(pair.a.downs)  # seen before damping, and after
    assert trainer.failures == 0
    assert pair.run_until(pair.both_agree, 30)
    assert trainer.state is LinkState.UP


def test_good_light_does_not_shorten_the_wait_but_a_command_does() -> None:
    pair = one_lane()
    flap(pair, 8)
    assert pair.a.trainer.state is LinkState.FAILED
    pair.run(2)
    assert pair.a.trainer.state is LinkState.FAILED
    pair.retrain("a")
    assert pair.run_until(pair.both_agree, 5)


@pytest.mark.parametrize("how", ["retrain", "restart", "disable"])
def test_what_was_commanded_is_no_flap(how: str) -> None:
    pair = one_lane()
    for _ in range(8):
        if how == "retrain":
            pair.retrain("a")
        elif how == "restart":
            pair.restart("b")
        else:
            pair.disable("b")
            pair.run(0.1)
            pair.enable("b")
        assert pair.run_until(pair.both_agree, 10)
    assert pair.a.trainer.flaps_damped == pair.b.trainer.flaps_damped == 0
    assert pair.a.trainer.flaps == 0
