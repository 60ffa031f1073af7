"""A link in trouble recovers without going down, does without a lane, or falls and says why."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from accelhw.link.events import Event, FrameHeard, LinkDown, LinkHeld, LinkResumed, LinkUp
from accelhw.link.lanemap import lanes_of
from accelhw.link.moves import Phase
from accelhw.link.patience import RECOVERY_NS, TROUBLE_AGAIN_NS
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.sim.linkpair import LinkPair

UP, DEGRADED = LinkState.UP, LinkState.DEGRADED
WEATHER = {"duplicate_ratio": 0.1, "late_ratio": 0.1, "corrupt_ratio": 0.05}


def narrow(lanes: int = 4, spare: int = 0) -> Profile:
    """A laser for each lane."""
    return msgspec.structs.replace(load_profile("dr8"), lanes_per_oe=lanes, spare_lanes=spare)


def trained_pair(lanes: int = 4, spare: int = 0, **options: object) -> LinkPair:
    pair = LinkPair(profile=narrow(lanes, spare), **options)  # type: ignore[arg-type]
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    return pair


def epochs(pair: LinkPair) -> tuple[int, int]:
    return pair.a.trainer.epoch, pair.b.trainer.epoch


def test_a_clock_that_slips_is_locked_again_and_the_link_stays_up() -> None:
    pair = trained_pair()
    before = epochs(pair)
    pair.unlock("a", 2)
    pair.run(0.001)
    assert [end.trainer.phase for end in pair.ends.values()] == [Phase.RECOVERY] * 2
    assert pair.states == {UP}
    assert pair.a.held
    assert pair.b.held
    assert (pair.a.trainer.reason.code, pair.a.trainer.reason.lane) == (DownReason.CDR_NO_LOCK, 2)
    pair.unlock("a", 2, unlocked=False)
    assert pair.run_until(pair.both_agree, 0.2)
    assert pair.states == {UP}
    assert epochs(pair) == before
    for end in pair.ends.values():
        assert end.downs == []
        assert end.ups == 1
        assert end.trainer.recoveries == 1
        assert end.trainer.recovery_failures == 0
        assert end.trainer.reason.code is DownReason.NONE
        assert end.resumed[0].held_ns < 100e6
    assert (pair.a.trainer.flaps, pair.b.trainer.flaps) == (1, 0)


def test_a_dark_lane_is_left_out_without_a_fall_and_taken_back_when_it_shines() -> None:
    pair = trained_pair(8)
    before = epochs(pair)
    pair.darken("a", 5, 30.0)
    pair.run(0.01)
    assert pair.a.trainer.phase is Phase.RECOVERY
    assert pair.run_until(pair.both_agree, 1)
    assert pair.states == {DEGRADED}
    assert (pair.a.trainer.reason.code, pair.a.trainer.reason.lane) == (DownReason.PARTIAL_LIGHT, 5)
    assert pair.a.trainer.width == pair.b.trainer.width == 4
    assert pair.a.trainer.rx_lanes == pair.b.trainer.rx_lanes  # the same lanes at both ends
    assert not pair.a.trainer.rx_lanes >> 5 & 1
    pair.darken("a", 5, 0.0)
    assert pair.run_until(lambda: pair.states == {UP} and pair.both_agree(), 20)
    assert epochs(pair) == before
    assert pair.a.downs == pair.b.downs == []
    assert pair.a.trainer.width == 8
    assert max(r.held_ns for r in pair.a.resumed) < 500e6


def test_errors_that_stay_cost_the_lane_and_not_the_link() -> None:
    pair = trained_pair()
    pair.darken("b", 1, 7.5)  # below what KP4 bears, well above what loses lock
    assert pair.b.engine.ber[1] > 2.4e-4
    assert pair.b.trainer.phase is Phase.ACTIVE  # one bad look is not enough
    assert pair.run_until(lambda: pair.states == {DEGRADED} and pair.both_agree(), 5)
    reason = pair.b.trainer.reason
    assert (reason.code, reason.lane) == (DownReason.BER_TOO_HIGH, 1)
    assert "BER" in reason.detail
    assert pair.a.downs == pair.b.downs == []


def test_a_lane_in_trouble_twice_within_a_minute_is_left_out_for_a_minute() -> None:
    pair = trained_pair()
    for _ in range(2):
        pair.unlock("a", 3)
        pair.run(0.05)
        pair.unlock("a", 3, unlocked=False)
        pair.run(5)
    assert pair.states == {DEGRADED}
    reason = pair.a.trainer.reason
    assert (reason.code, reason.lane) == (DownReason.CDR_NO_LOCK, 3)
    assert "again after 5 s" in reason.detail
    pair.run(TROUBLE_AGAIN_NS / 1e9 - 10)
    assert pair.states == {DEGRADED}
    assert pair.run_until(lambda: pair.states == {UP}, 20)
    assert pair.a.downs == []


def test_trouble_after_a_long_time_is_trouble_for_the_first_time() -> None:
    pair = trained_pair()
    for _ in range(2):
        pair.unlock("a", 3)
        pair.run(0.05)
        pair.unlock("a", 3, unlocked=False)
        pair.run(TROUBLE_AGAIN_NS / 1e9 + 1)
    assert pair.states == {UP}
    assert pair.a.trainer.recoveries == 2


def test_a_recovery_has_its_time_and_then_the_link_is_down_with_the_lane() -> None:
    pair = trained_pair(1)
    pair.unlock("a", 0)
    pair.run(RECOVERY_NS / 1e9 - 0.01)
    assert pair.states == {UP}
    pair.run(0.1)
    assert pair.a.downs == [DownReason.RECOVERY_TIMEOUT]
    assert pair.a.trainer.recovery_failures == 1
    assert pair.a.trainer.recoveries == 0
    assert pair.a.trainer.flaps == 1
    assert pair.run_until(lambda: pair.b.downs == [DownReason.PEER_RESTARTED], 5)
    pair.unlock("a", 0, unlocked=False)
    assert pair.run_until(pair.both_agree, 10)
    assert pair.states == {UP}


def test_a_far_end_that_falls_silent_in_a_recovery_is_not_waited_for_for_ever() -> None:
    pair = trained_pair()
    pair.cut["b"] = True  # `b` never hears of it
    pair.unlock("a", 1)
    pair.run(0.02)
    pair.unlock("a", 1, unlocked=False)
    assert pair.run_until(lambda: pair.a.downs == [DownReason.RECOVERY_TIMEOUT], 1.5)


def test_all_light_gone_is_a_fall_at_once() -> None:
    pair = trained_pair()
    for lane in range(3):
        pair.darken("a", lane, 30.0)
    assert pair.a.trainer.phase is Phase.RECOVERY
    pair.darken("a", 3, 30.0)
    assert pair.a.downs == [DownReason.SIGNAL_LOST]


def test_a_cable_that_changes_in_a_recovery_is_noticed() -> None:
    pair = trained_pair()
    pair.unlock("a", 0)
    pair.run(0.001)
    far = pair.a.cable.map
    pair.a.cable.map = type(far)((0, 2, 1, 3), frozenset())
    assert pair.run_until(lambda: pair.a.downs != [], 1)
    assert pair.a.downs[0] in (DownReason.ALIGN_FAILED, DownReason.ALIGN_LOST)


def test_spare_lanes_keep_the_width() -> None:
    pair = trained_pair(6, spare=2)
    assert pair.a.trainer.width == 4
    assert pair.states == {UP}
    for lane in (0, 2):
        pair.darken("b", lane, 30.0)
        assert pair.run_until(lambda: pair.b.trainer.phase is Phase.ACTIVE and pair.both_agree(), 2)
        assert pair.states == {UP}
        assert pair.b.trainer.width == 4
        assert not pair.b.trainer.rx_lanes >> lane & 1
    pair.darken("b", 3, 30.0)
    assert pair.run_until(lambda: pair.states == {DEGRADED} and pair.both_agree(), 2)
    assert pair.b.trainer.width == 2
    assert pair.a.downs == pair.b.downs == []


def test_lanes_lost_in_both_directions_leave_the_same_lanes_at_both_ends() -> None:
    pair = trained_pair(8)
    pair.darken("a", 1, 30.0)
    pair.darken("b", 6, 30.0)
    assert pair.run_until(lambda: pair.states == {DEGRADED} and pair.both_agree(), 3)
    pair.run(1)
    a, b = pair.a.trainer, pair.b.trainer
    assert a.rx_lanes == a.tx_lanes == b.rx_lanes == b.tx_lanes
    assert not a.rx_lanes & (1 << 1 | 1 << 6)
    assert a.width == 4


@pytest.mark.parametrize(
    ("bad", "width"), [(0, 16), (1, 8), (8, 8), (9, 4), (12, 4), (13, 1), (15, 1)]
)
def test_lanes_fail_one_at_a_time_down_to_the_last(bad: int, width: int) -> None:
    pair = trained_pair(16)
    for lane in range(bad):
        pair.darken("a", lane, 30.0)
        pair.run(0.5)
    assert pair.run_until(pair.both_agree, 5)
    assert pair.a.trainer.width == width
    assert pair.a.downs == []


def test_a_lane_lost_after_its_end_was_ready_is_no_longer_counted_on() -> None:
    pair = trained_pair(8)
    pair.unlock("a", 0)
    pair.unlock("b", 1)
    pair.run(0.01)
    pair.unlock("a", 0, unlocked=False)
    assert pair.run_until(lambda: pair.a.trainer._ready, 0.2)
    assert pair.a.trainer.phase is Phase.RECOVERY  # it waits for `b`
    number = pair.a.trainer._recovery
    pair.darken("a", 3, 30.0)
    assert pair.a.trainer._recovery == number + 1
    pair.unlock("b", 1, unlocked=False)
    assert pair.run_until(pair.both_agree, 1)
    assert pair.a.trainer.width == pair.b.trainer.width == 4
    assert not pair.a.trainer.rx_lanes >> 3 & 1
    assert pair.a.downs == pair.b.downs == []


def test_a_laser_that_dies_costs_its_lane_and_both_ends_name_it() -> None:
    pair = trained_pair()
    pair.break_laser("b", 2)
    assert pair.run_until(lambda: pair.states == {DEGRADED} and pair.both_agree(), 3)
    assert pair.a.trainer.reason.code is DownReason.PARTIAL_LIGHT
    assert pair.b.trainer.reason.code is DownReason.TX_FAULT
    assert pair.a.trainer.reason.lane == pair.b.trainer.reason.lane == 2
    pair.break_laser("b", 2, broken=False)
    assert pair.run_until(lambda: pair.states == {UP} and pair.both_agree(), 20)
    assert pair.a.downs == pair.b.downs == []


# ---- in any weather -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_troubles_in_any_order_and_weather_leave_both_ends_agreed(seed: int) -> None:
    chance = random.Random(seed)
    spare, loss_ratio = chance.choice((0, 0, 2)), chance.choice((0.0, 0.2, 0.3))
    pair = trained_pair(8, spare, seed=seed, loss_ratio=loss_ratio, **WEATHER)
    acts: list[Callable[[str, int], None]] = [
        lambda end, lane: pair.unlock(end, lane),
        lambda end, lane: pair.unlock(end, lane, unlocked=False),
        lambda end, lane: pair.darken(end, lane, 30.0),
        lambda end, lane: pair.darken(end, lane, 7.5),
        lambda end, lane: pair.darken(end, lane, 0.0),
        lambda end, lane: pair.darken(end, lane, 0.0),
    ]
    for _ in range(chance.randint(1, 12)):
        act, end, lane = chance.choice(acts), chance.choice("ab"), chance.randrange(8)
        pair.at(chance.random() * 10, lambda a=act, e=end, n=lane: a(e, n))  # type: ignore[misc]
    pair.run(12)
    pair.weather.loss_ratio = 0.0  # or light itself comes and goes: carriers are lost too
    for end in "ab":
        for lane in range(8):
            pair.unlock(end, lane, unlocked=False)
            pair.darken(end, lane, 0.0)
    whole = pair.a.trainer.config.data_lanes
    done = pair.run_until(
        lambda: pair.both_agree() and pair.states == {UP} and pair.a.trainer.width == whole, 200
    )
    assert done, (pair.a.reports[-6:], pair.b.reports[-6:])


@pytest.mark.parametrize("seed", range(40))
def test_loss_of_messages_alone_never_takes_a_recovering_link_down(seed: int) -> None:
    pair = trained_pair(4, seed=seed, loss_ratio=0.3, **WEATHER)
    before = epochs(pair)
    for end in ("a", "b"):
        pair.unlock(end, seed % 4)
        pair.run(0.03)
        pair.unlock(end, seed % 4, unlocked=False)
        assert pair.run_until(lambda: pair.both_agree() and pair.a.trainer.phase is Phase.ACTIVE, 2)
    assert epochs(pair) == before
    assert pair.a.downs == pair.b.downs == []


def test_what_was_said_in_an_earlier_recovery_ends_no_later_one() -> None:
    heard: list[FrameHeard] = []

    class Recorder(LinkPair):
        def feed(self, name: str, event: Event) -> None:
            if name == "a" and isinstance(event, FrameHeard):
                heard.append(event)
            super().feed(name, event)

    pair = Recorder(profile=narrow())
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    pair.unlock("a", 0)
    pair.run(0.05)
    pair.unlock("a", 0, unlocked=False)
    assert pair.run_until(pair.both_agree, 2)
    old = list(heard)
    pair.cut["a"] = True
    pair.unlock("a", 1)
    pair.unlock("a", 1, unlocked=False)
    trainer = pair.a.trainer
    assert trainer.phase is Phase.RECOVERY
    for event in old:
        for action in trainer.handle(event, pair.now_ns):
            assert not isinstance(action, LinkResumed | LinkUp | LinkDown | LinkHeld)
    assert trainer.phase is Phase.RECOVERY
    assert not trainer.lanes.map.aligned
    pair.cut["a"] = False
    assert pair.run_until(pair.both_agree, 2)
    assert len(list(lanes_of(trainer.rx_lanes))) == 4
