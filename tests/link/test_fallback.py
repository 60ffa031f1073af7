"""A link too noisy for its own mode trains in the next one that both ends can do."""

from __future__ import annotations

import msgspec
import pytest

from accelhw.model.link import MODES, DownReason, LinkMode, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.sim.linkpair import LinkPair

DEGRADED = LinkState.DEGRADED


def noisy(*fallbacks: str, lanes: int = 4, fec: str = "none") -> Profile:
    profile = load_profile("oio")
    lane = msgspec.structs.replace(profile.lane, fec=fec, fallbacks=fallbacks)
    return msgspec.structs.replace(profile, lanes_per_oe=lanes, lane=lane)


def dim(pair: LinkPair, margin_db: float, names: str = "ab") -> None:
    """Leave so much margin on the best lane towards these ends."""
    for name in names:
        pair.enable()
        pair.run_until(lambda: pair.both_up(), 3)
        best = float(pair.ends[name].engine.margin_db.max())
        for lane in range(pair.ends[name].engine.lanes):
            pair.darken(name, lane, best - margin_db)


def dimmed(profile: Profile, margin_db: float, names: str = "ab") -> LinkPair:
    pair = LinkPair(profile=profile)
    dim(pair, margin_db, names)
    for name in "ab":
        pair.disable(name)
    pair.run(1)
    pair.enable()
    return pair


def test_modes_are_ordered_and_named() -> None:
    assert [str(mode) for mode in MODES] == ["none", "kr4", "kp4", "none/2", "kr4/2", "kp4/2"]
    assert [LinkMode.parse(str(mode)) for mode in MODES] == list(MODES)
    with pytest.raises(ValueError, match="try none, kr4"):
        LinkMode.parse("kr5")


def test_a_link_too_noisy_without_fec_trains_with_it() -> None:
    pair = dimmed(noisy("kr4", "kr4/2"), -1.6)
    assert pair.run_until(pair.both_agree, 20)
    for end in pair.ends.values():
        assert str(end.trainer.mode) == "kr4"
        assert end.trainer.state is DEGRADED
        assert end.trainer.width >= 1
    reasons = {end.trainer.reason.code for end in pair.ends.values()}
    assert DownReason.BER_TOO_HIGH in reasons
    assert pair.a.trainer.fallbacks + pair.b.trainer.fallbacks >= 1
    assert pair.a.trainer.failures == pair.b.trainer.failures == 0


def test_then_at_half_the_rate_with_half_the_bits() -> None:
    pair = dimmed(noisy("kr4", "kr4/2"), -3.2)
    assert pair.run_until(pair.both_agree, 30)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"kr4/2"}
    before = pair.a.engine.rx_bits.copy()
    pair.run(10)
    gained = (pair.a.engine.rx_bits - before).max()
    assert gained == pytest.approx(16e9 * 10, rel=0.1)


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_end_that_hears_well_falls_back_with_the_other(name: str) -> None:
    pair = dimmed(noisy("kr4"), -1.6, name)
    assert pair.run_until(pair.both_agree, 20)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"kr4"}
    assert sorted(end.trainer.fallbacks for end in pair.ends.values()) == [0, 1]
    assert pair.states == {DEGRADED}


def test_half_the_rate_gains_a_decibel_and_a_half() -> None:
    whole, half = LinkPair(profile=noisy()), LinkPair(profile=noisy("none/2"))
    for pair in (whole, half):
        pair.enable()
        assert pair.run_until(pair.both_agree, 5)
    half.a.engine.set_mode(LinkMode("none", 2), half.now_ns)
    gain = half.a.engine.margin_db - whole.a.engine.margin_db
    assert gain == pytest.approx([1.505] * 4, abs=1e-3)


def test_a_clean_link_uses_its_own_mode() -> None:
    pair = LinkPair(profile=noisy("kr4", "kr4/2"))
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"none"}
    assert pair.states == {LinkState.UP}


def test_when_no_mode_is_left_the_lane_is_named_and_all_are_tried_again() -> None:
    pair = dimmed(noisy("kr4"), -4.0)
    assert pair.run_until(lambda: pair.a.trainer.state is LinkState.FAILED, 20)
    assert pair.a.trainer.reason.code in (DownReason.BER_TOO_HIGH, DownReason.CDR_NO_LOCK)
    assert pair.a.trainer.reason.lane is not None
    for name in "ab":
        for lane in range(4):
            pair.darken(name, lane, 0.0)
    assert pair.run_until(lambda: pair.states == {LinkState.UP}, 40)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"none"}


def test_ends_of_different_modes_meet_in_one_that_both_can_do() -> None:
    pair = LinkPair(profile=noisy("kr4"), far_profile=noisy(fec="kr4"))
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"kr4"}
    assert pair.states == {LinkState.UP}


def test_ends_without_a_common_mode_say_so() -> None:
    pair = LinkPair(profile=noisy("kr4/2"), far_profile=noisy("kp4/2", fec="kp4"))
    pair.enable()
    codes = set()
    for _ in range(20):
        pair.run(0.2)
        codes |= {end.trainer.reason.code for end in pair.ends.values()}
    assert DownReason.NO_COMMON_MODE in codes
    assert pair.a.ups == 0
    found = [end for end in pair.ends.values() if end.trainer.reason.detail.count("fec") == 2]
    assert found
    assert "kr4/2" in found[0].trainer.reason.detail


def test_an_operator_brings_the_own_mode_back_after_a_repair() -> None:
    pair = dimmed(noisy("kr4"), -1.6)
    assert pair.run_until(pair.both_agree, 20)
    for name in "ab":
        for lane in range(4):
            pair.darken(name, lane, 0.0)
    pair.run(20)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"kr4"}
    pair.retrain("a")
    pair.retrain("b")
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {LinkState.UP}, 20)
    assert {str(end.trainer.mode) for end in pair.ends.values()} == {"none"}


@pytest.mark.parametrize("seed", range(30))
def test_falling_back_survives_any_weather(seed: int) -> None:
    pair = LinkPair(seed=seed, profile=noisy("kr4", "kr4/2"))
    dim(pair, -1.6)
    for name in "ab":
        pair.disable(name)
    pair.weather.loss_ratio, pair.weather.late_ratio = 0.2, 0.1
    pair.run(1)
    pair.enable()
    assert pair.run_until(pair.both_agree, 120), (pair.a.reports[-4:], pair.b.reports[-4:])
    assert str(pair.a.trainer.mode) in ("kr4", "kr4/2")
