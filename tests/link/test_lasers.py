"""A port seeks its peer once its lasers are in their window, and says which ones are not."""

from __future__ import annotations

import msgspec
import pytest

from accelhw.link.moves import Phase
from accelhw.link.patience import LASER_NS
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.sim.linkpair import LinkPair


def narrow(lanes: int = 8) -> Profile:
    """A laser for each lane."""
    return msgspec.structs.replace(load_profile("dr8"), lanes_per_oe=lanes)


@pytest.mark.parametrize("profile", ["oio", "dr8", "single"])
def test_settling_takes_a_while_and_the_whole_start_less_than_a_second(profile: str) -> None:
    pair = LinkPair(profile=load_profile(profile))
    started = pair.now_ns
    pair.enable()
    assert pair.a.trainer.phase is Phase.LASER_ON
    assert pair.run_until(lambda: pair.a.trainer.phase is not Phase.LASER_ON, 5)
    assert 100e6 <= pair.now_ns - started <= 400e6
    assert pair.run_until(pair.both_agree, 5)
    assert 350e6 <= pair.now_ns - started <= 1000e6


def test_nothing_is_said_before_the_lasers_have_settled() -> None:
    pair = LinkPair(profile=narrow())
    pair.enable()
    pair.run_until(lambda: pair.a.trainer.phase is not Phase.LASER_ON, 5)
    assert pair.a.training_frames <= 8


def test_a_port_whose_lasers_are_all_broken_fails_with_the_lanes() -> None:
    pair = LinkPair(profile=narrow(2))
    pair.break_laser("a", 0, 1)
    pair.enable()
    pair.run(1)
    assert pair.a.trainer.state is LinkState.FAILED
    reason = pair.a.trainer.reason
    assert str(reason) == "TX_FAULT on all 2 lanes"
    assert reason.detail == "lasers broken"
    assert "replace" in reason.next_action("card0/oe0")
    assert pair.b.trainer.state is LinkState.SEEKING


def test_a_replaced_laser_ends_the_wait() -> None:
    pair = LinkPair(profile=narrow(2))
    pair.break_laser("a", 0, 1)
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.failures == 4, 60)
    pair.break_laser("a", 0, 1, broken=False)
    assert pair.run_until(pair.both_agree, 2)


def test_a_broken_laser_costs_its_lane_and_is_named_at_both_ends() -> None:
    pair = LinkPair(profile=narrow())
    pair.break_laser("a", 5)
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    assert pair.states == {LinkState.DEGRADED}
    assert pair.a.trainer.reason.code is DownReason.TX_FAULT
    assert pair.b.trainer.reason.code is DownReason.PARTIAL_LIGHT
    assert pair.a.trainer.reason.lane == pair.b.trainer.reason.lane == 5


def test_a_laser_that_never_settles_is_waited_for_so_long_and_no_longer() -> None:
    pair = LinkPair(profile=narrow())
    pair.a.engine._settle_ns[3] = 1e12
    started = pair.now_ns
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.phase is Phase.SEEK, 5)
    assert LASER_NS <= pair.now_ns - started <= LASER_NS + 50e6
    assert any("lane3 TX_FAULT: laser not settled" in report for report in pair.a.reports)
    assert pair.run_until(pair.both_agree, 5)  # its light is there, if not in the window


def test_lasers_stay_on_over_a_failed_training() -> None:
    pair = LinkPair(profile=narrow(1))
    pair.darken("b", 0, 8.0)
    pair.enable()
    assert pair.run_until(lambda: pair.b.trainer.failures == 2, 30)
    assert pair.run_until(lambda: pair.b.trainer.phase is Phase.SEEK, 10)
    assert [r for r in pair.b.reports if "lasers settle" in r]
    assert pair.b.engine.laser_on.all()
