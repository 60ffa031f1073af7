"""A link that does not come up says why, which lane, what the far end says, and what to do."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from accelhw.link.events import InterfaceDown, InterfaceUp, LightChanged, RetryExhausted
from accelhw.link.patience import HOLD_OFF_MAX_NS
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.optics.budget import oma_dbm
from accelhw.sim.linkpair import End, LinkPair, straight_fibre
from accelhw.transport.cable import CableMap
from accelhw.wire.frame import MalformedFrame
from accelhw.wire.training import LaneTraining, TrainingDecoder

UP, DEGRADED, SEEKING, DOWN, FAILED = (
    LinkState.UP,
    LinkState.DEGRADED,
    LinkState.SEEKING,
    LinkState.DOWN,
    LinkState.FAILED,
)


def narrow(lanes: int = 4, name: str = "oio") -> Profile:
    """Of so many lanes, with no mode to fall back to."""
    profile = load_profile(name)
    lane = msgspec.structs.replace(profile.lane, fallbacks=())
    return msgspec.structs.replace(profile, lanes_per_oe=lanes, lane=lane)


def trained_pair(**options: object) -> LinkPair:
    pair = LinkPair(**({"profile": narrow()} | options))  # type: ignore[arg-type]
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    return pair


def why(end: End) -> tuple[DownReason, int | None]:
    return end.trainer.reason.code, end.trainer.reason.lane


def spoil(pair: LinkPair, name: str, lane: int, margin_db: float) -> None:
    """Lose so much light on a lane towards this end that just this margin is left."""
    far = pair.b if name == "a" else pair.a
    engine = pair.ends[name].engine
    kind = engine.profile.lane
    light = float(far.engine.launch_dbm[lane]) - engine.path_loss_db
    left = float(oma_dbm(light, kind.extinction_ratio_db)) - kind.tdecq_db
    pair.darken(name, lane, left - kind.sensitivity_oma_dbm - margin_db)


def run_until_reason(pair: LinkPair, code: DownReason, seconds: float = 20) -> End:
    """Turn the clock until an end gives this reason, and return that end."""
    found = pair.run_until(
        lambda: any(end.trainer.reason.code is code for end in pair.ends.values()), seconds
    )
    assert found, {name: why(end) for name, end in pair.ends.items()}
    return next(end for end in pair.ends.values() if end.trainer.reason.code is code)


def test_a_port_that_was_never_switched_on_says_so() -> None:
    pair = LinkPair(profile=narrow())
    assert why(pair.a) == (DownReason.ADMIN_DOWN, None)
    assert pair.a.trainer.state is DOWN


def test_an_empty_fibre_is_no_signal() -> None:
    pair = LinkPair(profile=narrow())
    pair.enable("a")
    pair.cut["a"] = True
    pair.run(5)
    assert pair.a.trainer.state is SEEKING
    assert why(pair.a) == (DownReason.NO_SIGNAL, None)


def test_a_far_port_that_is_switched_off_is_named() -> None:
    pair = LinkPair(profile=narrow())
    pair.enable("a")
    pair.run(5)
    assert why(pair.a) == (DownReason.PEER_DOWN, None)
    assert pair.a.trainer.peer_reason.code is DownReason.ADMIN_DOWN
    assert "link up" in pair.a.trainer.reason.next_action("card0/oe0")


def test_light_without_frames_is_a_silent_peer() -> None:
    pair = LinkPair(profile=narrow())
    pair.enable("a")
    pair.b.engine.set_transmit(True, pair.now_ns)  # its lasers are on, its firmware is not
    pair.b.trainer.state = LinkState.SEEKING
    pair.run(5)
    assert why(pair.a)[0] is DownReason.PEER_SILENT


def test_a_fibre_that_works_one_way_is_told_at_both_ends() -> None:
    pair = LinkPair(profile=narrow())
    pair.cut["a"] = True
    pair.enable()
    pair.run(6)
    assert why(pair.a)[0] is DownReason.NO_SIGNAL
    assert why(pair.b)[0] is DownReason.PEER_SILENT
    assert "does not hear" in pair.b.trainer.reason.detail
    assert pair.b.trainer.peer_reason.code is DownReason.NO_SIGNAL


def test_a_loop_to_itself_is_noticed() -> None:
    pair = LinkPair(profile=narrow(), looped=True)
    pair.enable()
    run_until_reason(pair, DownReason.LOOPED_TO_SELF)
    pair.run(30)
    assert {why(end)[0] for end in pair.ends.values()} == {DownReason.LOOPED_TO_SELF}
    assert pair.a.ups == pair.b.ups == 0


@pytest.mark.parametrize(
    ("near", "far"),
    [("oio", "dr8"), ("single", "oio")],
)
def test_different_kinds_of_lanes_are_incompatible(near: str, far: str) -> None:
    pair = LinkPair(profile=load_profile(near), far_profile=load_profile(far))
    pair.enable()
    end = run_until_reason(pair, DownReason.INCOMPATIBLE_PEER)
    assert "fec" in end.trainer.reason.detail
    pair.run(60)
    assert pair.a.ups == pair.b.ups == 0
    assert {why(end)[0] for end in pair.ends.values()} <= {
        DownReason.INCOMPATIBLE_PEER,
        DownReason.PEER_SILENT,
        DownReason.CDR_NO_LOCK,
    }


def test_a_different_number_of_lanes_is_incompatible() -> None:
    pair = LinkPair(profile=narrow(4), far_profile=narrow(8))
    pair.enable()
    end = run_until_reason(pair, DownReason.INCOMPATIBLE_PEER)
    assert "4 x 32" in end.trainer.reason.detail
    assert "8 x 32" in end.trainer.reason.detail


def test_the_far_ends_reason_travels() -> None:
    pair = LinkPair(profile=narrow(1))
    spoil(pair, "a", 0, 0.5)  # too many errors at a, all well at b
    pair.enable()
    run_until_reason(pair, DownReason.BER_TOO_HIGH)
    found = pair.run_until(lambda: pair.b.trainer.peer_reason.code is DownReason.BER_TOO_HIGH, 5)
    assert found
    assert pair.b.trainer.peer_reason.lane == 0


def test_two_far_lanes_on_one_lane_are_named() -> None:
    pair = LinkPair(profile=narrow())
    pair.b.cable.map = CableMap((0, 1, 2, 2), frozenset())
    pair.enable()
    end = run_until_reason(pair, DownReason.LANE_DUPLICATE)
    assert end is pair.b
    assert why(end) == (DownReason.LANE_DUPLICATE, 2)
    assert "both arrive" in end.trainer.reason.detail


def test_a_far_lane_that_arrives_twice_is_named() -> None:
    pair = LinkPair(profile=narrow())
    decode = pair.b.decoder.decode

    class Splitter(TrainingDecoder):
        """The fibre of far lane 1 is split to lanes 1 and 2."""

        def decode(self, payload: bytes) -> LaneTraining:  # type: ignore[override]
            heard = decode(payload)
            return replace(heard, tx_lane=1) if heard.tx_lane == 2 else heard

    pair.b.decoder = Splitter()
    pair.enable()
    end = run_until_reason(pair, DownReason.LANE_DUPLICATE)
    assert end is pair.b
    assert why(end) == (DownReason.LANE_DUPLICATE, 2)
    assert "lanes 1 and 2" in end.trainer.reason.detail


def test_a_lane_whose_frames_arrive_nowhere_is_named() -> None:
    pair = LinkPair(profile=narrow())
    decode = pair.b.decoder.decode

    class Broken(TrainingDecoder):
        """Light on lane 3 carries noise."""

        def decode(self, payload: bytes) -> LaneTraining:  # type: ignore[override]
            heard = decode(payload)
            if heard.tx_lane == 3:
                raise MalformedFrame("noise")
            return heard

    pair.b.decoder = Broken()
    pair.enable()
    end = run_until_reason(pair, DownReason.LANE_MISSING)
    assert why(end) == (DownReason.LANE_MISSING, 3)


@pytest.mark.parametrize(
    ("margin_db", "code"),
    [
        (0.9, DownReason.BER_TOO_HIGH),
        (-5.5, DownReason.CDR_NO_LOCK),
        (-14.0, DownReason.PARTIAL_LIGHT),
    ],
)
def test_a_link_does_without_a_bad_lane_and_names_it(margin_db: float, code: DownReason) -> None:
    pair = LinkPair(profile=narrow(8))
    spoil(pair, "b", 1, margin_db)
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    assert pair.states == {DEGRADED}
    assert pair.a.up is not None
    assert pair.b.up is not None
    assert pair.a.up.width == pair.b.up.width == 4
    assert not pair.b.up.rx_lanes >> 1 & 1
    assert why(pair.b) == (code, 1)
    pair.run(1)
    assert pair.a.trainer.peer_reason.code is code
    assert pair.a.trainer.peer_reason.lane == 1


def test_a_cleaned_connector_brings_the_lanes_back() -> None:
    pair = LinkPair(profile=narrow(8))
    pair.darken("b", 5, 20.0)
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    pair.darken("b", 5, 0.0)
    assert pair.run_until(lambda: pair.states == {UP}, 20)


def test_a_lane_that_is_never_good_for_long_is_not_tried_again_and_again() -> None:
    pair = LinkPair(profile=narrow(8))
    pair.darken("b", 5, 20.0)
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    for _ in range(20):
        pair.darken("b", 5, 0.0)
        pair.run(2)
        pair.darken("b", 5, 20.0)
        pair.run(2)
    assert pair.a.ups == 1


def test_longer_fibre_means_less_light_more_errors_and_at_last_a_refusal() -> None:
    seen: list[tuple[float, float]] = []
    outcomes = []
    for kilometres in (0, 5, 10, 14, 20, 40, 60):
        pair = LinkPair(profile=narrow(), fibre=straight_fibre(kilometres * 1000.0))
        pair.enable()
        pair.run_until(pair.both_agree, 10)
        engine = pair.b.engine
        seen.append((float(engine.rx_dbm.mean()), float(engine.ber.mean())))
        outcomes.append("up" if pair.both_up() else pair.b.trainer.reason.code.name)
        if not pair.both_up() and outcomes[-1] == "BER_TOO_HIGH":
            assert pair.b.trainer.reason.whole
            assert "BER" in pair.b.trainer.reason.detail
    power, errors = zip(*seen, strict=True)
    assert list(power) == sorted(power, reverse=True)
    assert list(errors) == sorted(errors)
    assert outcomes[0] == "up"
    assert "BER_TOO_HIGH" in outcomes
    assert outcomes[-1] == "NO_SIGNAL"


def test_received_power_is_launched_power_minus_losses_at_both_ends() -> None:
    pair = trained_pair(fibre=straight_fibre(2000.0, connectors=4, extra_loss_db=0.3))
    loss = 2 * 0.35 + 4 * 0.25 + 0.3
    for near, far in ((pair.a, pair.b), (pair.b, pair.a)):
        assert near.engine.rx_dbm == pytest.approx(far.engine.launch_dbm - loss)


# ---- after it was up ----------------------------------------------------------------------------


def test_a_cut_fibre_is_a_lost_signal_of_all_lanes_at_both_ends() -> None:
    pair = trained_pair()
    pair.cut.update(a=True, b=True)
    for end in pair.ends.values():
        assert pair.run_until(lambda end=end: end.up is None, 5)
        reason = end.trainer.reason
        assert end.downs == [DownReason.SIGNAL_LOST]
        assert (reason.lane, reason.where) == (None, "all 4 lanes")
        assert "the fibre" in reason.next_action("card0/oe0")


def test_lanes_that_go_dark_are_all_named() -> None:
    pair = trained_pair(profile=narrow(8))
    for lane in (1, 4, 5, 6):
        pair.darken("a", lane, 40.0)
    assert pair.run_until(lambda: pair.states == {DEGRADED}, 10)
    reason = pair.a.trainer.reason
    assert str(reason) == "PARTIAL_LIGHT on lanes 1, 4-6"
    assert (reason.lane, reason.detail) == (1, "dark")


def test_a_lane_that_goes_dark_when_it_is_not_needed_is_named_too() -> None:
    pair = trained_pair(profile=narrow(8))
    pair.darken("a", 2, 40.0)
    assert pair.run_until(lambda: pair.states == {DEGRADED}, 10)
    pair.run(1)
    assert str(pair.a.trainer.reason) == "PARTIAL_LIGHT on lane 2"
    spare = next(lane for lane in range(7, -1, -1) if not pair.a.trainer.rx_lanes >> lane & 1)
    assert spare != 2
    pair.darken("a", spare, 40.0)
    pair.run(1)
    assert str(pair.a.trainer.reason) == f"PARTIAL_LIGHT on lanes 2, {spare}"
    assert pair.a.ups == 1


def test_the_last_lanes_that_go_dark_make_it_all() -> None:
    """Whatever went before: a port that is wholly dark has no lane to blame."""
    pair = trained_pair()
    pair.feed("a", LightChanged(0b0001, 0b0001))
    assert pair.a.trainer.reason.where == "lanes 1-3"
    assert "clean its connector" in pair.a.trainer.reason.next_action("card0/oe0")
    pair.feed("a", LightChanged(0, 0))
    assert pair.a.trainer.reason.where == "all 4 lanes"


def test_darkness_is_told_before_a_lost_lock() -> None:
    pair = trained_pair()
    pair.feed("a", LightChanged(0b0001, 0b0000))
    assert str(pair.a.trainer.reason) == "SIGNAL_LOST on lanes 1-3"
    pair = trained_pair()
    pair.feed("a", LightChanged(0b1111, 0b1010))
    assert str(pair.a.trainer.reason) == "CDR_NO_LOCK on lanes 0, 2"


def test_a_single_lane_that_goes_dark_is_a_lost_signal() -> None:
    pair = trained_pair(profile=narrow(1))
    pair.darken("a", 0, 25.0)
    assert pair.a.downs == [DownReason.SIGNAL_LOST]


def test_slow_loss_of_quality_ends_an_active_link() -> None:
    pair = trained_pair(profile=narrow(1))
    spoil(pair, "a", 0, -1.0)
    assert pair.a.up is not None  # one bad look is not enough
    assert pair.run_until(lambda: pair.a.up is None, 5)
    assert pair.a.downs == [DownReason.RECOVERY_TIMEOUT]
    assert pair.run_until(lambda: pair.a.trainer.reason.code is DownReason.BER_TOO_HIGH, 5)


def test_a_peer_switched_off_is_told_apart_from_a_cut() -> None:
    pair = trained_pair()
    pair.disable("b")
    pair.run(0.1)
    assert pair.a.downs == [DownReason.PEER_DOWN]
    assert pair.b.downs == [DownReason.ADMIN_DOWN]
    pair.enable("b")
    assert pair.run_until(pair.both_agree, 5)


@pytest.mark.parametrize("power_cycle", [False, True])
def test_a_peer_that_restarts_is_trained_again(power_cycle: bool) -> None:
    pair = trained_pair()
    pair.restart("b", power_cycle)
    assert pair.run_until(lambda: pair.a.up is None, 5)
    assert pair.run_until(pair.both_agree, 5)
    assert pair.a.downs[0] in (DownReason.PEER_RESTARTED, DownReason.SIGNAL_LOST)
    assert pair.a.trainer.peer == pair.b.me


def test_a_cable_swapped_under_an_up_link_is_noticed() -> None:
    pair = trained_pair()
    pair.plug(straight_fibre(lane_map=(0, 2, 1, 3)))
    pair.run(2)
    assert DownReason.ALIGN_LOST in pair.a.downs + pair.b.downs
    assert pair.run_until(pair.both_agree, 5)
    assert pair.b.up is not None
    assert pair.b.up.lane_map == (0, 2, 1, 3)


def test_exhausted_retry_is_recovered_from_once_and_trains_again_the_next_time() -> None:
    pair = trained_pair()
    pair.feed("a", RetryExhausted())
    pair.feed("a", RetryExhausted())  # said again while it holds: one trouble
    assert pair.run_until(pair.both_agree, 1)
    assert pair.a.downs == pair.b.downs == []
    assert pair.a.trainer.recoveries == pair.b.trainer.recoveries == 1
    pair.feed("a", RetryExhausted())
    assert pair.a.downs == [DownReason.REPLAY_EXHAUSTED]
    assert pair.run_until(pair.both_agree, 5)
    assert pair.b.downs == [DownReason.PEER_RESTARTED]


def test_exhausted_retry_without_light_goes_down_at_once() -> None:
    pair = trained_pair()
    pair.a.trainer.lanes.receiver.locked &= ~1
    pair.feed("a", RetryExhausted())
    assert pair.a.downs == [DownReason.REPLAY_EXHAUSTED]


def test_an_interface_that_goes_down_is_named_and_survived() -> None:
    pair = trained_pair()
    pair.cut.update(a=True, b=True)
    pair.feed("a", InterfaceDown())
    assert pair.a.downs == [DownReason.INTERFACE_DOWN]
    pair.run(5)
    assert why(pair.a)[0] is DownReason.INTERFACE_DOWN
    pair.cut.update(a=False, b=False)
    pair.feed("a", InterfaceUp())
    assert pair.run_until(pair.both_agree, 5)


def test_hold_off_doubles_up_to_a_cap() -> None:
    pair = LinkPair(profile=narrow(1))
    spoil(pair, "b", 0, 0.5)
    pair.enable()
    pair.run(200)
    waits = [r.rsplit("in ", 1)[1] for r in pair.b.reports if r.startswith("lane0 failed")]
    assert waits[:6] == ["1 s", "2 s", "4 s", "8 s", "16 s", "32 s"]
    assert set(waits[6:]) == {f"{HOLD_OFF_MAX_NS / 1e9:g} s"}
    assert pair.b.trainer.failures == len(waits)


def test_a_cleaned_connector_is_not_made_to_wait() -> None:
    pair = LinkPair(profile=narrow(1))
    spoil(pair, "b", 0, 0.5)
    pair.enable()
    assert pair.run_until(lambda: pair.b.trainer.failures == 5, 120)
    pair.darken("b", 0, 0.0)
    assert pair.run_until(pair.both_agree, 2)


def test_an_operator_may_train_again_in_the_middle_of_a_hold_off() -> None:
    pair = LinkPair(profile=narrow(1))
    spoil(pair, "b", 0, 0.5)
    pair.enable()
    assert pair.run_until(lambda: pair.b.trainer.state is FAILED, 20)
    pair.retrain("b")
    assert pair.b.trainer.state is SEEKING


def test_losing_light_halfway_starts_over() -> None:
    pair = LinkPair(profile=narrow())
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.phase.name == "ALIGN", 5)
    pair.feed("a", LightChanged(0, 0))
    assert pair.a.trainer.state is SEEKING
    assert str(pair.a.trainer.reason) == "SIGNAL_LOST on all 4 lanes"
    assert pair.run_until(pair.both_agree, 10)
