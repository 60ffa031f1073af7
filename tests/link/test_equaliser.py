"""Receivers get better taps out of the far transmitters, over messages that may get lost."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.config import TrainerConfig
from accelhw.link.equaliser import (
    MOVES,
    PRESETS,
    REQUESTS_MAX,
    RESIDUAL_MAX_MDB,
    TAP_MAX,
    TAP_MIN,
    Climb,
    Taps,
    Transmitter,
    best_taps,
    penalty_db,
)
from accelhw.link.events import Event, FrameHeard
from accelhw.link.moves import Phase
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.sim.linkpair import End, LinkPair
from accelhw.wire.shape import LaneShape, TapRequest, TapResult

TAP = st.floats(-0.25, 0.05)


def narrow(trace_loss_db: float = 4.0, lanes: int = 4) -> Profile:
    return msgspec.structs.replace(
        load_profile("oio"), lanes_per_oe=lanes, trace_loss_db=trace_loss_db
    )


def told(transmitter: Transmitter) -> LaneShape:
    """What its frames bring to the far end."""
    return LaneShape(
        done_serial=transmitter.done,
        result=transmitter.result,
        penalty_mdb=round(transmitter.penalty_db * 1000),
    )


def climbed(best: Taps, loss_db: float) -> tuple[Climb, Transmitter]:
    climb, transmitter = Climb(), Transmitter(best, loss_db)
    climb.begin()
    for _ in range(2 * REQUESTS_MAX):
        transmitter.carry_out(climb.serial, climb.ask)
        if not climb.observe(told(transmitter)):
            break
    return climb, transmitter


def test_the_loss_of_a_trace_shows_in_what_untrained_taps_cost() -> None:
    short, long = (
        penalty_db((0.0, 0.0), (-0.02 - 0.006 * loss, -0.01 - 0.004 * loss), loss)
        for loss in (4.0, 22.0)
    )
    assert short == pytest.approx(0.126, abs=0.001)
    assert long == pytest.approx(2.75, abs=0.01)


def test_a_long_trace_needs_many_more_requests_than_a_short_one() -> None:
    lanes = [f"card0/oe0/lane{lane}" for lane in range(64)]
    asked = {
        loss: [climbed(best_taps(loss, lane), loss)[0].requests for lane in lanes]
        for loss in (4.0, 22.0)
    }
    assert max(asked[4.0]) <= 12
    assert min(asked[22.0]) >= 15
    assert max(asked[22.0]) <= 40


@given(TAP, TAP, st.floats(0.0, 30.0))
def test_any_trace_within_reach_is_climbed_to_the_nearest_step(
    pre: float, post: float, loss_db: float
) -> None:
    climb, transmitter = climbed((pre, post), loss_db)
    assert climb.settled
    assert not climb.failed
    assert abs(transmitter.pre / 100 - pre) <= 0.0125
    assert abs(transmitter.post / 100 - post) <= 0.0125
    assert climb.penalty_mdb == round(transmitter.penalty_db * 1000)


def test_a_trace_out_of_reach_is_given_up_after_every_preset() -> None:
    climb, transmitter = climbed((-0.8, -0.1), 22.0)
    assert climb.failed
    assert not climb.settled
    assert transmitter.pre <= TAP_MIN + 1
    assert climb.penalty_mdb is not None
    assert climb.penalty_mdb > RESIDUAL_MAX_MDB


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TapRequest)), max_size=60))
def test_a_request_is_carried_out_once_and_taps_stay_in_range(
    asked: list[tuple[int, TapRequest]],
) -> None:
    transmitter = Transmitter((0.0, 0.0), 4.0)
    for serial, ask in asked:
        before, done = (transmitter.pre, transmitter.post), transmitter.done
        fresh = transmitter.carry_out(serial, ask)
        assert fresh == (serial not in (0, done))
        if not fresh:
            assert (transmitter.pre, transmitter.post) == before
        elif transmitter.result is TapResult.AT_LIMIT:
            assert ask in MOVES
            assert (transmitter.pre, transmitter.post) == before
        elif ask in PRESETS:
            assert (transmitter.pre, transmitter.post) == PRESETS[ask]
        assert TAP_MIN <= transmitter.pre <= TAP_MAX
        assert TAP_MIN <= transmitter.post <= TAP_MAX


# ---- over the wire ------------------------------------------------------------------------------


def trained(pair: LinkPair, seconds: float = 10) -> LinkPair:
    pair.enable()
    assert pair.run_until(pair.both_agree, seconds), pair.a.reports[-3:] + pair.b.reports[-3:]
    return pair


@pytest.mark.parametrize("loss_db", [4.0, 22.0])
def test_training_leaves_little_penalty_and_the_light_brings_it_to_the_margin(
    loss_db: float,
) -> None:
    pair = trained(LinkPair(profile=narrow(loss_db)))
    pair.run(1)
    untrained = LinkPair(profile=narrow(loss_db))
    untrained.enable()
    for name, far in (("a", "b"), ("b", "a")):
        end, peer = pair.ends[name], pair.ends[far]
        left = peer.trainer.lanes.equaliser.penalties_db
        assert max(left) < 0.03
        first = untrained.ends[far].trainer.lanes.equaliser.penalties_db
        gain = end.engine.margin_db - untrained_margin(untrained, name)
        assert gain == pytest.approx([a - b for a, b in zip(first, left, strict=True)], abs=0.011)


def untrained_margin(pair: LinkPair, name: str) -> list[float]:
    pair.run_until(lambda: pair.ends[name].trainer.phase is Phase.LOCK, 2)
    return pair.ends[name].engine.margin_db.tolist()


def test_a_long_trace_makes_training_visibly_longer() -> None:
    short, long = (trained(LinkPair(profile=narrow(loss))) for loss in (4.0, 22.0))
    requests = [pair.a.trainer.lanes.equaliser.requests for pair in (short, long)]
    assert requests[1] > 1.8 * requests[0]
    assert long.a.trainer.training_ns > short.a.trainer.training_ns + 20e6
    assert any("settled after" in report for report in long.a.reports)


@pytest.mark.parametrize("seed", range(30))
def test_loss_of_messages_changes_no_taps(seed: int) -> None:
    calm = trained(LinkPair(profile=narrow(22.0)))
    rough = LinkPair(
        seed=seed, profile=narrow(22.0), loss_ratio=0.3, duplicate_ratio=0.2, late_ratio=0.2
    )
    trained(rough, 60)
    for name in "ab":
        taps = [
            [(lane.pre, lane.post) for lane in pair.ends[name].trainer.lanes.equaliser.transmitters]
            for pair in (calm, rough)
        ]
        assert taps[0] == taps[1]


def bad_trace(end: End, *lanes: int) -> None:
    """The trace of these lanes is damaged: it needs more than the taps can give."""
    for lane in lanes:
        damaged = Transmitter((-0.40, -0.10), end.trainer.config.trace_loss_db)
        end.trainer.lanes.equaliser.transmitters[lane] = damaged


def test_a_lane_whose_taps_do_not_converge_is_named_and_left_out() -> None:
    pair = LinkPair(profile=narrow())
    bad_trace(pair.b, 2)
    trained(pair)
    assert pair.states == {LinkState.DEGRADED}
    reason = pair.a.trainer.reason
    assert (reason.code, reason.lane) == (DownReason.EQ_NOT_CONVERGED, 2)
    assert "dB are left after" in reason.detail
    assert "trace" in reason.next_action("card0/oe0")


def test_no_lane_that_converges_is_a_failure() -> None:
    pair = LinkPair(profile=narrow())
    bad_trace(pair.b, 0, 1, 2, 3)
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.state is LinkState.FAILED, 10)
    assert pair.a.trainer.reason.code is DownReason.EQ_NOT_CONVERGED
    assert pair.a.trainer.reason.where == "all 4 lanes"


class Deaf(LinkPair):
    """What `a` asks for never reaches the transmitters of `b`."""

    def feed(self, name: str, event: Event) -> None:
        if name == "b" and isinstance(event, FrameHeard):
            message = event.training.message
            mute = tuple(replace(s, ask_serial=0) for s in message.shapes)
            heard = replace(event.training, message=replace(message, shapes=mute))
            event = replace(event, training=heard)
        super().feed(name, event)


def test_a_partner_that_does_not_answer_is_told_apart() -> None:
    pair = Deaf(profile=narrow())
    pair.enable()
    codes = set()
    for _ in range(60):
        pair.run(0.5)
        codes |= {end.trainer.reason.code for end in pair.ends.values()}
    assert DownReason.EQ_PARTNER_NOT_READY in codes
    assert pair.a.ups == pair.b.ups == 0


class Slow(LinkPair):
    """The receivers of `b` never hear what became of their requests, and `b` never gives up."""

    def feed(self, name: str, event: Event) -> None:
        if name == "b" and isinstance(event, FrameHeard):
            message = event.training.message
            shapes = tuple(replace(s, done_serial=0) for s in message.shapes)
            heard = replace(event.training, message=replace(message, shapes=shapes))
            event = replace(event, training=heard)
        if self.b.trainer.phase is Phase.EQ_TRAIN:
            self.b.trainer._since = self.now_ns
        super().feed(name, event)


def test_a_partner_that_never_gets_ready_is_not_waited_for_for_ever() -> None:
    pair = Slow(profile=narrow())
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.state is LinkState.FAILED, 15)
    assert pair.a.trainer.reason.code is DownReason.EQ_PARTNER_NOT_READY


def test_another_training_starts_from_the_first_preset_again() -> None:
    pair = trained(LinkPair(profile=narrow(22.0)))
    first = pair.a.trainer.lanes.equaliser.requests
    pair.retrain("a")
    assert pair.run_until(pair.both_agree, 10)
    assert pair.a.trainer.lanes.equaliser.requests == 2 * first


def test_each_lane_of_each_port_has_a_trace_of_its_own() -> None:
    pair = LinkPair(profile=narrow())
    configs = [TrainerConfig.of(end.me, narrow(), 1) for end in pair.ends.values()]
    assert len({taps for config in configs for taps in config.best_taps}) == 8
