"""A link that came up with less than it could have gets the rest back, and then it rests."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from accelhw.link import patience
from accelhw.link.events import LaneQuality, Traffic
from accelhw.link.wayback import WayBack, bears, better_modes, expected_ber
from accelhw.model.link import DownReason, LinkMode, LinkState
from accelhw.model.profile import Profile, load_profile
from accelhw.optics import ber
from accelhw.sim.linkpair import LinkPair

UP, DEGRADED = LinkState.UP, LinkState.DEGRADED
NONE, KR4, HALF = (LinkMode.parse(name) for name in ("none", "kr4", "kr4/2"))
WAIT_S = patience.BETTER_NS / 1e9
RETRAINED = DownReason.RETRAIN_COMMANDED


def bare(lanes: int = 4) -> Profile:
    """No FEC of its own, two modes to fall back to."""
    profile = load_profile("oio")
    lane = msgspec.structs.replace(profile.lane, fec="none", fallbacks=("kr4", "kr4/2"))
    return msgspec.structs.replace(profile, lanes_per_oe=lanes, lane=lane)


def dim(pair: LinkPair, margin_db: float | None, names: str = "ab") -> None:
    """Leave so much margin on each lane towards these ends, at the full rate; None: all of it."""
    for name in names:
        engine = pair.ends[name].engine
        wider_db = 5 * math.log10(pair.ends[name].trainer.mode.slowdown)
        for lane in range(engine.lanes):
            clean = float(engine.margin_db[lane] + engine.path_extra_db[lane]) - wider_db
            pair.darken(name, lane, 0.0 if margin_db is None else clean - margin_db)


def fallen(margin_db: float = -1.6, names: str = "ab", **weather: float) -> LinkPair:
    """A pair that came up in a lesser mode."""
    pair = LinkPair(profile=bare())
    pair.enable()
    assert pair.run_until(pair.both_agree, 5)
    dim(pair, margin_db, names)
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {DEGRADED}, 60)
    for name, ratio in weather.items():
        setattr(pair.weather, name, ratio)
    return pair


def modes(pair: LinkPair) -> set[str]:
    return {str(end.trainer.mode) for end in pair.ends.values()}


# ---- what a receiver would bear ------------------------------------------------------------------


@pytest.mark.parametrize("q", [2.0, 4.0, 6.0, 7.0])
def test_more_noise_lowers_q_by_its_root(q: float) -> None:
    now, then = (float(ber.ber_of_q(each, "nrz")) for each in (q, q / math.sqrt(2)))
    assert expected_ber(now, 2.0) == pytest.approx(then, rel=1e-6)
    assert expected_ber(now, 1.0) == pytest.approx(now, rel=1e-6)


@pytest.mark.parametrize(("dark", "then"), [(0.5, 0.5), (0.6, 0.5)])
def test_what_is_all_wrong_stays_so(dark: float, then: float) -> None:
    assert expected_ber(dark, 2.0) == then


@pytest.mark.parametrize(
    ("margin_db", "errors", "now", "then", "borne"),
    [
        (1.1, 1e-15, KR4, NONE, True),
        (0.9, 1e-15, KR4, NONE, False),  # too little margin to be without FEC
        (2.6, 1e-15, HALF, NONE, True),  # half the rate gives 1.5 dB of it
        (2.4, 1e-15, HALF, NONE, False),
        (-1.0, 1e-13, HALF, KR4, True),
        (-1.0, 1e-10, HALF, KR4, False),  # 3e-6 at the full rate
        (5.0, 1e-7, KR4, NONE, False),
    ],
)
def test_a_mode_is_borne_by_margin_and_errors(
    margin_db: float, errors: float, now: LinkMode, then: LinkMode, borne: bool
) -> None:
    quality = LaneQuality((-20.0, margin_db), (0.5, errors))
    assert bears(quality, 0b10, now, then) is borne
    assert not bears(quality, 0b11, now, then)  # one bad lane in use is enough


def test_only_common_modes_before_this_one_are_better() -> None:
    assert better_modes(1 << NONE.number | 1 << HALF.number, HALF) == [NONE]
    assert better_modes((1 << 6) - 1, NONE) == []


def test_each_vain_try_doubles_the_wait_and_long_good_times_forgive() -> None:
    way, now, waits = WayBack(), 0, []
    for good_ns in [0, 0, 0, 0, 10**9, *[0] * 9, 2 * patience.BETTER_FORGET_NS, 0]:
        if good_ns:
            way.came_up(True, now)
            now += good_ns
        way.tries()
        way.came_up(False, now)
        waits.append(way.wait_ns // patience.BETTER_NS)
        way.came_up(False, now)  # after some other trouble, that is no try
    top = patience.BETTER_MAX_NS // patience.BETTER_NS
    assert waits == [1, 2, 4, 8, 16, 32, 64, *[top] * 7, 1, 2]


def test_a_mode_is_offered_after_it_was_borne_without_a_break() -> None:
    way = WayBack()
    way.came_up(False, 0)
    wait = patience.BETTER_NS
    way.look([KR4], 0)
    way.look([NONE, KR4], wait // 2)
    assert way.next_offer_ns(wait // 2) == wait
    assert way.offers(wait) == 1 << KR4.number
    way.look([KR4], wait + 1)
    way.look([NONE, KR4], wait + 2)
    assert way.offers(2 * wait) == 1 << KR4.number
    assert way.next_offer_ns(2 * wait) == 2 * wait + 2


# ---- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin_db", [-1.6, -3.2])
def test_a_repaired_link_goes_back_to_its_own_mode_at_both_ends_alike(margin_db: float) -> None:
    pair = fallen(margin_db)
    lesser = modes(pair)
    assert lesser in ({"kr4"}, {"kr4/2"})
    dim(pair, None)
    for end in pair.ends.values():
        end.downs.clear()
    pair.run(WAIT_S - 1)
    assert modes(pair) == lesser
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 20)
    assert modes(pair) == {"none"}
    for end in pair.ends.values():
        assert end.downs == [RETRAINED]  # nobody blames the peer
        assert end.trainer.reason.code is DownReason.NONE
    pair.run(120)
    assert [len(end.downs) for end in pair.ends.values()] == [1, 1]


def test_it_takes_the_best_mode_that_the_light_bears_not_the_best_there_is() -> None:
    pair = fallen(-3.2)
    assert modes(pair) == {"kr4/2"}
    dim(pair, -1.3)
    assert pair.run_until(lambda: pair.both_agree() and modes(pair) == {"kr4"}, 3 * WAIT_S)
    ups = [end.ups for end in pair.ends.values()]
    pair.run(240)
    assert ([end.ups for end in pair.ends.values()], modes(pair)) == (ups, {"kr4"})
    dim(pair, None)
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 8 * WAIT_S)


@pytest.mark.parametrize("name", ["a", "b"])
def test_while_one_end_hears_badly_neither_tries(name: str) -> None:
    pair = fallen(-1.6, name)
    ups = [end.ups for end in pair.ends.values()]
    pair.run(240)
    assert [end.ups for end in pair.ends.values()] == ups
    assert pair.states == {DEGRADED}
    dim(pair, None)
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 4 * WAIT_S)


def test_what_looks_well_and_never_holds_is_tried_less_and_less() -> None:
    pair = fallen()
    dim(pair, None)

    def spoil(text: str) -> None:
        """As soon as it signals without FEC, the light is too weak for that."""
        if "signals with no FEC" in text:
            pair.at(0.0, lambda: dim(pair, -1.6))
        elif "signals with FEC kr4" in text:
            pair.at(5.0, lambda: dim(pair, None))

    pair._watch = spoil
    ups = pair.a.ups
    pair.run(240)
    assert 2 <= pair.a.ups - ups <= 4  # after 30 s, 1, 2 minutes
    assert pair.run_until(pair.both_agree, 30)
    pair._watch = lambda text: None
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 600)


def test_it_waits_for_data_to_pause_but_not_for_ever() -> None:
    pair = fallen()
    for name in "ab":
        pair.feed(name, Traffic(True))
    dim(pair, None)
    ups = pair.a.ups
    pair.run(WAIT_S + 10)
    assert pair.a.ups == ups
    for name in "ab":
        pair.feed(name, Traffic(False))
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 5)

    pair = fallen()
    for name in "ab":
        pair.feed(name, Traffic(True))
    dim(pair, None)
    pair.run(WAIT_S + patience.QUIET_NS / 1e9 - 1)
    assert pair.states == {DEGRADED}
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 10)


def test_an_operators_word_starts_the_waits_afresh() -> None:
    pair = fallen()
    pair.a.trainer._way_back.wait_ns = patience.BETTER_MAX_NS
    pair.retrain("a")
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {DEGRADED}, 30)
    assert pair.a.trainer._way_back.wait_ns == patience.BETTER_NS


@pytest.mark.parametrize("seed", range(12))
def test_both_ends_find_back_in_any_weather_and_rest_there(seed: int) -> None:
    chance = random.Random(seed)
    pair = fallen(
        chance.choice((-1.6, -3.2)), chance.choice(("a", "b", "ab")),
        loss_ratio=0.02, late_ratio=0.1, duplicate_ratio=0.1, corrupt_ratio=0.02,
    )  # fmt: skip
    for _ in range(3):
        pair.run(chance.random() * 40)
        dim(pair, chance.choice((None, -1.6, 0.0)), chance.choice(("a", "b", "ab")))
    dim(pair, None)
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 1200)
    ups = [end.ups for end in pair.ends.values()]
    pair.run(60)
    assert pair.both_agree()
    assert [end.ups for end in pair.ends.values()] == ups


# ---- width ---------------------------------------------------------------------------------------


def test_some_of_the_lost_lanes_are_taken_back_where_they_make_it_wider() -> None:
    profile = msgspec.structs.replace(load_profile("dr8"), lanes_per_oe=8)
    pair = LinkPair(profile=profile)
    pair.enable()
    assert pair.run_until(pair.both_agree, 10)
    for lane in range(5):
        pair.darken("a", lane, 30.0)
    assert pair.run_until(lambda: pair.both_agree() and pair.a.trainer.width == 2, 5)
    pair.darken("a", 4, 0.0)
    assert pair.run_until(lambda: pair.both_agree() and pair.a.trainer.width == 4, 400)
    recoveries = len(pair.a.resumed)
    pair.darken("a", 3, 0.0)  # five lanes are as wide as four
    pair.run(400)
    assert (pair.a.trainer.width, len(pair.a.resumed)) == (4, recoveries)
    for lane in range(3):
        pair.darken("a", lane, 0.0)
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 400)
    assert pair.a.downs == pair.b.downs == []


def test_lanes_that_never_trained_wait_for_data_to_pause() -> None:
    pair = LinkPair(profile=msgspec.structs.replace(load_profile("dr8"), lanes_per_oe=4))
    pair.darken("b", 1, 30.0)
    pair.enable()
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {DEGRADED}, 10)
    pair.feed("b", Traffic(True))
    pair.darken("b", 1, 0.0)
    pair.run(30)
    assert pair.b.trainer.width == 2
    pair.feed("b", Traffic(False))
    assert pair.run_until(lambda: pair.both_agree() and pair.states == {UP}, 5)
    assert pair.b.downs == [RETRAINED]
