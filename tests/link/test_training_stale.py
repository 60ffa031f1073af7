"""Frames of an earlier life, and frames of nobody's making, move nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.link.config import TrainerConfig
from accelhw.link.events import (
    DataHeard,
    Disabled,
    Enabled,
    Event,
    FrameHeard,
    InterfaceDown,
    InterfaceUp,
    LaneQuality,
    LightChanged,
    LinkDown,
    LinkUp,
    PeerCarrier,
    RetrainAsked,
    RetryExhausted,
    TransmitterChanged,
    WakeAt,
    Woke,
)
from accelhw.link.moves import TRAINING, Phase
from accelhw.link.training import LinkTrainer
from accelhw.model.link import MODES, DownReason, LinkState, PeerId, TrainingPhase
from accelhw.model.profile import load_profile
from accelhw.sim.linkpair import LinkPair
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.shape import LaneShape, TapRequest, TapResult
from accelhw.wire.training import LaneTraining, TrainingMessage

PROFILE = msgspec.structs.replace(load_profile("oio"), lanes_per_oe=4)


class Recorder(LinkPair):
    """Keeps all that arrived at each end."""

    def __init__(self, seed: int) -> None:
        self.heard: dict[str, list[Event]] = {"a": [], "b": []}
        super().__init__(seed=seed, profile=PROFILE)

    def feed(self, name: str, event: Event) -> None:
        if isinstance(event, FrameHeard | PeerCarrier):
            self.heard[name].append(event)
        super().feed(name, event)


def picture(trainer: LinkTrainer) -> tuple[object, ...]:
    return (
        trainer.phase, trainer.state, trainer.session, trainer.epoch, trainer.width, trainer.peer,
        trainer.lane_map, trainer.inverted, trainer.reason, trainer.peer_reason,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_what_was_said_in_an_earlier_life_moves_nothing(seed: int) -> None:
    chance = random.Random(seed)
    pair = Recorder(seed)
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    old = {name: list(events) for name, events in pair.heard.items()}
    how = chance.choice(("restart", "power cycle", "retrain"))
    who = chance.choice("ab")
    if how == "retrain":
        pair.retrain(who)
    else:
        pair.restart(who, power_cycle=how == "power cycle")
    # whatever phase the new training is in, the old frames come once more, in any order
    phase = chance.choice((Phase.SEEK, *TRAINING, Phase.ACTIVE))
    stays = "b" if who == "a" else "a"
    assert pair.run_until(lambda: pair.ends[stays].trainer.epoch == 0, 5)
    assert pair.run_until(lambda: pair.ends[stays].trainer.phase is phase, 5)
    trainer = pair.ends[stays].trainer
    before = picture(trainer)
    for event in chance.sample(old[stays], len(old[stays])):
        trainer.handle(event, pair.now_ns)
        assert picture(trainer) == before, event
    assert pair.run_until(pair.both_agree, 10)


@pytest.mark.parametrize("phase", [Phase.LOCK, Phase.MAP, Phase.BER_CHECK])
def test_what_was_heard_before_starting_over_proves_no_lane(phase: Phase) -> None:
    """The far end keeps its session when we start over in the middle; its old frames are old."""
    pair = Recorder(1)
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.phase is Phase.ALIGN, 5)
    old = [event for event in pair.heard["a"] if isinstance(event, FrameHeard)]
    session = pair.b.trainer.session
    pair.retrain("a")
    assert pair.run_until(lambda: pair.a.trainer.phase is phase, 5)
    assert pair.b.trainer.session == session
    trainer = pair.a.trainer
    before = picture(trainer)
    for event in old:
        crossed = replace(event.training, tx_lane=event.training.tx_lane ^ 1)
        trainer.handle(replace(event, training=crossed), pair.now_ns)
        assert picture(trainer) == before
    assert pair.run_until(pair.both_agree, 10)


def test_frames_of_a_second_port_on_the_fibre_do_not_disturb_an_up_link() -> None:
    pair = Recorder(1)
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    event = next(e for e in pair.heard["a"] if isinstance(e, FrameHeard))
    stranger = PeerId("f" * 16, "card9", 0)
    for echo in (0, pair.a.trainer.session):
        message = replace(
            event.training.message, sender=stranger, session=1 << 63, echo_session=echo,
        )  # fmt: skip
        pair.feed("a", FrameHeard(0, LaneTraining(message, 0, False)))
    assert pair.both_agree()
    assert pair.a.downs == []


ME, PEER, OTHER = (PeerId(c * 16, f"card{c}", 0) for c in "012")
MASK = st.integers(0, 15)
LANE = st.none() | st.integers(0, 63)
SMALL = st.integers(0, 5)  # so that sessions and echoes meet

U8, TAP = st.integers(0, 255), st.integers(-100, 100)
SHAPES = st.builds(
    LaneShape, U8, st.sampled_from(TapRequest), U8, st.sampled_from(TapResult), TAP, TAP,
    st.integers(0, 500),
)  # fmt: skip


@st.composite
def messages(draw: st.DrawFn) -> TrainingMessage:
    lanes = draw(st.sampled_from((4, 4, 4, 4, 1, 64)))
    return TrainingMessage(
        draw(st.sampled_from((PEER, PEER, PEER, OTHER, ME))), draw(SMALL), draw(SMALL),
        draw(st.integers(0, 30)), draw(st.sampled_from(TrainingPhase)),
        draw(st.sampled_from(DownReason)), draw(LANE), lanes, 0, 32000, "nrz",
        draw(st.sampled_from((1, 1, 3))), draw(st.sampled_from((0, 0, 1))), MODES[0], 7,
        draw(SMALL), draw(SMALL), draw(SMALL), draw(MASK) % (1 << lanes),
        draw(MASK) % (1 << lanes), draw(MASK) % (1 << lanes), draw(MASK) % (1 << lanes),
        tuple(draw(st.lists(LANE, min_size=lanes, max_size=lanes))), draw(SMALL),
        draw(st.booleans()),
        tuple(draw(st.just([]) | st.lists(SHAPES, min_size=lanes, max_size=lanes))),
    )  # fmt: skip


LIGHT = st.builds(LaneLight, st.booleans(), st.integers(0, 255), SMALL, SMALL, SMALL, SMALL)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Enabled),
    st.builds(Disabled),
    st.builds(RetrainAsked),
    st.builds(Woke),
    st.builds(Woke),
    st.builds(
        FrameHeard, st.integers(0, 70),
        st.builds(LaneTraining, messages(), st.integers(0, 63), st.booleans()),
    ),
    st.builds(
        PeerCarrier,
        st.builds(
            CarrierMessage, st.sampled_from((PEER, OTHER, ME)), SMALL, st.integers(0, 100),
            st.sampled_from(LinkState), st.sampled_from(DownReason), LANE,
            st.lists(LIGHT, max_size=6).map(tuple),
        ),
    ),
    st.builds(TransmitterChanged, st.just(15), st.just(0)),
    st.builds(TransmitterChanged, MASK, MASK),
    st.builds(LightChanged, st.just(15), st.just(15)),
    st.builds(LightChanged, MASK, MASK),
    st.builds(
        LaneQuality, st.just((2.0,) * 4), st.tuples(*[st.sampled_from((1e-18, 1e-5))] * 4)
    ),
    st.builds(DataHeard, st.integers(0, 3)),
    st.builds(RetryExhausted),
    st.builds(InterfaceDown),
    st.builds(InterfaceUp),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.integers(0, 2_000_000_000)), max_size=60))
def test_no_history_breaks_the_machine(history: list[tuple[Event, int]]) -> None:
    trainer = LinkTrainer(TrainerConfig.of(ME, PROFILE, 8))
    now, up = 0, False
    for event, later in history:
        now += later
        for action in trainer.handle(event, now):
            match action:
                case LinkUp():
                    assert not up
                    assert action.width == action.rx_lanes.bit_count() >= 1
                    up = True
                case LinkDown():
                    assert up
                    up = False
                case WakeAt(deadline_ns):
                    assert deadline_ns >= now
        assert up == trainer.active == trainer.state.carries_data
        assert (trainer.phase is Phase.OFF) == (trainer.state is LinkState.DOWN)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([phase for phase in Phase if phase is not Phase.OFF]),
    st.lists(st.tuples(EVENTS, st.integers(0, 500_000_000)), max_size=40),
    st.data(),
)
def test_no_history_breaks_a_machine_that_has_a_peer(
    phase: Phase, history: list[tuple[Event, int]], data: st.DataObject
) -> None:
    stuck = phase is Phase.HOLD_OFF
    lane = msgspec.structs.replace(PROFILE.lane, fallbacks=())
    pair = LinkPair(profile=msgspec.structs.replace(PROFILE, lane=lane) if stuck else PROFILE)
    if stuck:
        for index in range(4):
            pair.darken("a", index, 7.0)
    pair.enable()
    trainer, peer = pair.a.trainer, pair.b.trainer
    if phase is Phase.RECOVERY:
        assert pair.run_until(pair.both_agree, 5)
        pair.darken("a", 1, 25.0)
    assert pair.run_until(lambda: trainer.phase is phase, 20)
    now = pair.now_ns
    for event, later in history:
        now += later
        if isinstance(event, FrameHeard):  # as if from this very peer, about this very session
            message = replace(
                event.training.message,
                sender=peer.config.me,
                session=max(peer.session + data.draw(st.integers(-1, 1)), 0),
                echo_session=max(trainer.session - data.draw(st.integers(0, 1)), 0),
                sequence=data.draw(st.integers(0, 1000)),
            )
            event = replace(event, training=replace(event.training, message=message))
        elif isinstance(event, PeerCarrier):
            carrier = replace(event.message, sender=peer.config.me, sent_ns=now)
            event = PeerCarrier(carrier)
        up = trainer.active
        for action in trainer.handle(event, now):
            match action:
                case LinkUp():
                    assert not up
                    assert action.width == action.rx_lanes.bit_count() >= 1
                    up = True
                case LinkDown():
                    assert up
                    up = False
        assert up == trainer.active == trainer.state.carries_data
