"""Two ends find each other, whatever the fibre does to their frames."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.link.events import Event, FrameHeard
from accelhw.link.lanemap import lanes_of
from accelhw.link.moves import MOVES, Phase, Step
from accelhw.model.link import LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.sim.linkpair import LinkPair, straight_fibre

UP, DEGRADED, SEEKING, DOWN, FAILED = (
    LinkState.UP,
    LinkState.DEGRADED,
    LinkState.SEEKING,
    LinkState.DOWN,
    LinkState.FAILED,
)
BAD_WEATHER = {"duplicate_ratio": 0.1, "late_ratio": 0.1, "corrupt_ratio": 0.05}


def narrow(lanes: int = 4) -> Profile:
    return msgspec.structs.replace(load_profile("oio"), lanes_per_oe=lanes)


def trained_pair(**options: object) -> LinkPair:
    pair = LinkPair(**options)  # type: ignore[arg-type]
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    return pair


def assert_agreed(pair: LinkPair) -> None:
    """Both ends tell the same story about one link."""
    a, b = pair.a.up, pair.b.up
    assert a is not None
    assert b is not None
    assert (a.epoch, a.width) == (b.epoch, b.width)
    assert (a.peer, b.peer) == (pair.b.me, pair.a.me)
    assert (a.credit_frames, b.credit_frames) == (100 + ord("b"), 100 + ord("a"))
    for near, far in ((a, b), (b, a)):
        assert near.rx_lanes.bit_count() == near.width
        assert {near.lane_map[lane] for lane in lanes_of(near.rx_lanes)} == set(
            lanes_of(far.tx_lanes)
        )


@pytest.mark.parametrize("profile", ["oio", "dr8", "single"])
def test_two_cards_train(profile: str) -> None:
    pair = trained_pair(profile=load_profile(profile))
    assert pair.states == {UP}
    assert_agreed(pair)
    for end in pair.ends.values():
        assert 100e6 <= end.trainer.training_ns <= 400e6  # long enough to watch
        assert end.trainer.rtt_ns == 40_000  # there and back, without the time it was held
        assert end.trainer.reason.code == 0


def test_training_is_told_lane_by_lane() -> None:
    fibre = straight_fibre(lane_map=(1, 0, 2, 3), inverted_lanes=frozenset({3}))
    pair = trained_pair(profile=narrow(), fibre=fibre)
    reports = pair.b.reports
    for lane, far in enumerate((1, 0, 2, 3)):
        assert f"lane{lane} locked" in reports
        inverted = ", inverted" if lane == 3 else ""
        assert f"lane{lane} hears far lane {far}{inverted}" in reports
        assert any(r.startswith(f"lane{lane} BER") for r in reports)


def test_an_up_link_is_quiet() -> None:
    pair = trained_pair(profile=narrow())
    pair.run(1)
    sent = [end.training_frames for end in pair.ends.values()]
    pair.run(600)
    assert [end.training_frames for end in pair.ends.values()] == sent
    assert pair.states == {UP}


class LastWordLost(LinkPair):
    """What `a` says once it starts its retry layer does not reach `b`."""

    lost = True

    def feed(self, name: str, event: Event) -> None:
        late = (Phase.RETRY_START, Phase.ACTIVE)
        heard = isinstance(event, FrameHeard) and name == "b" and self.lost
        if not (heard and event.training.message.phase in late):  # type: ignore[union-attr]
            super().feed(name, event)


def test_an_up_end_helps_the_other_one_up() -> None:
    pair = LastWordLost(profile=narrow())
    pair.enable()
    assert pair.run_until(lambda: pair.a.up is not None, 5)
    pair.run(0.01)
    assert pair.b.trainer.phase is Phase.RETRY_START
    pair.lost = False
    assert pair.run_until(pair.both_agree, 1)
    assert pair.a.ups == pair.b.ups == 1


def test_a_port_without_a_peer_hardly_sends() -> None:
    pair = LinkPair(profile=narrow(16))
    pair.enable("a")
    pair.run(60)
    assert pair.a.training_frames <= 62 * 16


@pytest.mark.parametrize("seed", range(200))
def test_a_lossy_fibre_only_delays_training(seed: int) -> None:
    chance = random.Random(seed)
    pair = LinkPair(seed=seed, profile=narrow(), loss_ratio=chance.choice((0.2, 0.3)),
                    **BAD_WEATHER)  # fmt: skip
    first, second = chance.sample("ab", 2)
    pair.enable(first)
    pair.at(chance.random() * 4, lambda: pair.enable(second))
    assert pair.run_until(pair.both_agree, 60), pair.a.reports[-5:]
    assert_agreed(pair)
    assert pair.states == {UP}


@pytest.mark.parametrize("seed", range(100))
def test_ends_may_restart_at_any_time(seed: int) -> None:
    chance = random.Random(1000 + seed)
    pair = LinkPair(seed=seed, profile=narrow(), loss_ratio=0.2, **BAD_WEATHER)
    pair.enable()
    whiles = sorted(chance.random() * 5 for _ in range(chance.randint(1, 6)))
    for when in whiles:
        act = chance.choice(
            (
                lambda end: pair.restart(end),
                lambda end: pair.restart(end, power_cycle=True),
                lambda end: pair.retrain(end),
                lambda end: (pair.disable(end), pair.enable(end)),
            )
        )
        end = chance.choice("ab")
        pair.at(when, lambda act=act, end=end: act(end))  # type: ignore[misc]
    pair.run(whiles[-1])
    assert pair.run_until(pair.both_agree, 60), pair.a.reports[-5:]
    assert_agreed(pair)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_crossing_and_polarity_is_found(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from((1, 2, 4, 8, 16)))
    crossing = tuple(data.draw(st.permutations(range(lanes))))
    swapped = data.draw(st.frozensets(st.sampled_from(range(lanes))))
    fibre = straight_fibre(lane_map=crossing, inverted_lanes=swapped)
    pair = trained_pair(profile=narrow(lanes), fibre=fibre)
    assert_agreed(pair)
    assert pair.a.up is not None
    assert pair.b.up is not None
    for tx_lane, arrival in enumerate(crossing):
        assert pair.b.up.lane_map[arrival] == tx_lane
        assert pair.a.up.lane_map[tx_lane] == arrival
        assert bool(pair.b.up.inverted >> arrival & 1) == (tx_lane in swapped)
        assert bool(pair.a.up.inverted >> tx_lane & 1) == (tx_lane in swapped)


def test_a_spliced_fibre_comes_back_unaided() -> None:
    pair = trained_pair(profile=narrow())
    pair.cut.update(a=True, b=True)
    pair.run(4)
    assert pair.states == {SEEKING}
    pair.cut.update(a=False, b=False)
    assert pair.run_until(pair.both_agree, 5)
    assert_agreed(pair)


def test_each_training_gets_an_epoch_of_its_own() -> None:
    pair = trained_pair(profile=narrow())
    epochs = set()
    for end in "ab" * 5:
        epochs.add(pair.a.trainer.epoch)
        pair.retrain(end)
        assert pair.run_until(pair.both_agree, 5)
    assert len(epochs) == 10


def test_the_same_seed_tells_the_same_story() -> None:
    stories = []
    for _ in range(2):
        story: list[str] = []
        pair = LinkPair(seed=7, profile=narrow(), loss_ratio=0.3, watch=story.append, **BAD_WEATHER)
        pair.enable()
        pair.run(20)
        stories.append(story)
    assert stories[0] == stories[1]


def test_no_phase_is_a_dead_end() -> None:
    for phase in Phase:
        assert (phase, Step.DISABLED) in MOVES
        leaving = {step for (at, step), to in MOVES.items() if at is phase and to is not phase}
        assert leaving - {Step.DISABLED}, phase
    reachable, fresh = set(), {Phase.OFF}
    while fresh:
        reachable |= fresh
        fresh = {to for (at, _), to in MOVES.items() if at in fresh} - reachable
    assert reachable == set(Phase)
