"""Active faults become causes: they add up, and nothing of them stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.injector import ActiveFault, Injector
from accelhw.fault.kinds import FaultKind
from accelhw.fault.request import FaultRefused, FaultRequest, check_address
from accelhw.model.profile import Profile, load_profile, profile_names

PROFILE = load_profile("dr8")
LANES = PROFILE.lanes_per_oe
SECOND = 1_000_000_000


def fault(kind: str, subject: str = "card0/oe0", begun_ns: int = 0, **how: object) -> ActiveFault:
    name = str(how.pop("id", "f1"))
    return FaultRequest(name, kind, subject, **how).fault(PROFILE, begun_ns)  # type: ignore[arg-type]


def fits(kind: FaultKind, profile: Profile) -> bool:
    return kind.needs is None or kind.needs.is_in(profile)


def injected(*faults: ActiveFault) -> Injector:
    injector = Injector()
    for one in faults:
        injector.start(one)
    return injector


def test_a_fault_acts_on_its_lanes_alone() -> None:
    causes = injected(fault("laser_fail", lanes=(3,))).lane_causes(0, LANES, 0)
    assert causes == {"laser_dead": [0, 0, 0, 1, 0, 0, 0, 0]}


def test_a_lane_may_be_named_by_its_address() -> None:
    assert fault("esd_rx", "card0/oe0/lane5").lanes == (5,)


def test_a_shared_part_takes_its_whole_group() -> None:
    shared = FaultRequest("f1", "els_fail_shared", "card0/oe0", lanes=(6,))
    assert shared.fault(load_profile("oio"), 0).lanes == (4, 5, 6, 7)


def test_a_scale_makes_bursts_more_frequent_not_worse() -> None:
    causes = injected(fault("burst_errors", scale=10.0)).lane_causes(0, LANES, 0)
    assert causes["burst_good_to_bad"][0] == pytest.approx(1e-5)
    assert causes["burst_ber_bad"][0] == 1.3e-3


def test_a_fault_of_a_port_takes_all_lanes_unless_some_are_named() -> None:
    assert fault("bent_fibre").lanes == tuple(range(LANES))
    assert fault("bent_fibre", lanes=(2, 1)).lanes == (1, 2)


def test_faults_on_one_lane_add_up() -> None:
    two = injected(
        fault("dirty_connector_mild"), fault("bent_fibre", id="f2", scale=0.5, lanes=(1,))
    )
    assert two.lane_causes(0, LANES, 0)["rx_path_loss_db"][:2] == [1.8, 4.8]


def test_a_lane_is_dead_once_however_many_want_it_dead() -> None:
    two = injected(fault("laser_fail"), fault("laser_fail", id="f2", scale=3.0))
    assert two.lane_causes(0, LANES, 0)["laser_dead"][0] == 1.0


def test_of_two_bursts_the_worse_is_there() -> None:
    two = injected(fault("burst_errors"), fault("burst_errors", id="f2"))
    assert two.lane_causes(0, LANES, 0)["burst_bad_to_good"][0] == 0.05


def test_another_port_has_nothing_of_it() -> None:
    assert injected(fault("bent_fibre")).lane_causes(1, LANES, 0) == {}


def test_a_ramp_is_followed() -> None:
    ramp = fault("dirty_connector_mild", begun_ns=SECOND, ramp_s=10.0)
    causes = injected(ramp).lane_causes(0, LANES, 6 * SECOND)
    assert causes["rx_path_loss_db"][0] == 0.9


def test_what_was_replugged_is_not_quite_as_before() -> None:
    injector = injected(fault("unplug_replug"))
    losses = [
        injector.lane_causes(0, LANES, at * SECOND)["rx_path_loss_db"][0] for at in (0, 7, 8, 99)
    ]
    assert losses == [60.0, 60.0, 0.3, 0.3]


def test_it_ends_when_its_time_is_over() -> None:
    injector = injected(fault("bent_fibre", duration_s=30.0))
    assert injector.next_change_ns(0) == 30 * SECOND
    assert injector.expire(30 * SECOND - 1) == []
    assert [ended.id for ended in injector.expire(30 * SECOND)] == ["f1"]
    assert injector.lane_causes(0, LANES, 31 * SECOND) == {}


def test_a_card_has_causes_of_its_own() -> None:
    injector = injected(fault("supply_droop", "card0"), fault("supply_droop", "card0", id="f2"))
    assert injector.card_causes(0) == {"supply_error_v": pytest.approx(-0.22 * 3.3)}
    assert injector.lane_causes(0, LANES, 0) == {}


def test_a_cable_crosses_while_it_is_plugged_wrong() -> None:
    injector = injected(fault("lane_swap_reversal"), fault("polarity_swap", id="f2", lanes=(1,)))
    assert injector.arrival(0, LANES, 0) == (tuple(reversed(range(LANES))), frozenset({1}))
    injector.clear("f1")
    injector.clear("f2")
    assert injector.arrival(0, LANES, 0) == (tuple(range(LANES)), frozenset())


kinds_on_lanes = st.sampled_from(
    sorted(k.id for k in CATALOGUE.values() if not k.is_on_card and fits(k, PROFILE))
)


@settings(max_examples=100, deadline=None)
@given(
    kinds=st.lists(kinds_on_lanes, min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
    now_s=st.integers(0, 10_000),
)
def test_clearing_in_any_order_leaves_exactly_nothing(
    kinds: list[str], order: object, now_s: int
) -> None:
    faults = [fault(kind, id=f"f{i}") for i, kind in enumerate(kinds)]
    injector = injected(*faults)
    first = injected(faults[0]).lane_causes(0, LANES, now_s * SECOND)
    order.shuffle(faults)  # type: ignore[attr-defined]
    for one in faults:
        if one.id != "f0":
            injector.clear(one.id)
    assert injector.lane_causes(0, LANES, now_s * SECOND) == first
    injector.clear("f0")
    assert injector.lane_causes(0, LANES, now_s * SECOND) == {}
    assert injector.next_change_ns(now_s * SECOND) is None


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "subject", "how", "code", "says"),
    [
        ("bent_fiber", "card0/oe0", {}, "UNKNOWN_FAULT", "did you mean bent_fibre?"),
        ("xyzzy", "card0/oe0", {}, "UNKNOWN_FAULT", "accelctl fault catalogue"),
        ("bent_fibre", "card0/oe9", {}, "UNKNOWN_PORT", "it has oe0 to oe1"),
        ("bent_fibre", "card0", {}, "BAD_FAULT", "name one, as card0/oe0"),
        ("bent_fibre", "card0/eo1", {}, "UNKNOWN_PORT", "try card0/oe1"),
        ("supply_droop", "card0/oe0", {}, "BAD_FAULT", "leave the port out"),
        ("ring_drift", "card0/oe0", {}, "BAD_FAULT", "ring modulators, which cards of profile dr8"),
        ("bent_fibre", "card0/oe0", {"lanes": (8,)}, "UNKNOWN_LANE", "lane0 to lane7"),
        ("bent_fibre", "card0/oe0", {"scale": -1.0}, "BAD_FAULT", "cannot be negative"),
        ("bent_fibre", "card0/oe0", {"scale": 0.0}, "BAD_FAULT", "above 0"),
        ("bent_fibre", "card0/oe0", {"scale": float("nan")}, "BAD_FAULT", "above 0"),
        ("bent_fibre", "card0/oe0", {"scale": 50.0}, "BAD_FAULT", "it goes from 0 to 100"),
        ("laser_ageing", "card0/oe0", {"scale": 9.0}, "BAD_FAULT", "laser_wear_ratio"),
        ("bent_fibre", "card0/oe0", {"duration_s": -1.0}, "BAD_FAULT", "a time above 0"),
        ("bent_fibre", "card0/oe0", {"duration_s": 1e12}, "BAD_FAULT", "at most 36500d"),
        ("bent_fibre", "card0/oe0", {"duration_s": float("nan")}, "BAD_FAULT", "at most 36500d"),
        ("bent_fibre", "card0/oe0", {"ramp_s": 1e300}, "BAD_FAULT", "a ramp of 1e+300 s; use"),
        ("bent_fibre", "card0/oe0", {"ramp_s": float("inf")}, "BAD_FAULT", "at most 36500d"),
        ("bent_fibre", "card0/oe0", {"shape": "wave"}, "BAD_FAULT", "use one of step"),
        ("bent_fibre", "card0/oe0", {"target_ber": 0.7}, "BAD_FAULT", "between 0 and 0.5"),
        ("laser_fail", "card0/oe0", {"target_ber": 1e-5}, "BAD_FAULT", "these do: bent_fibre"),
        (
            "bent_fibre", "card0/oe0", {"target_ber": 1e-5, "scale": 2.0}, "BAD_FAULT",
            "give one of them",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    kind: str, subject: str, how: dict[str, object], code: str, says: str
) -> None:
    with pytest.raises(FaultRefused) as refused:
        fault(kind, subject, **how)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert says in refused.value.detail


def test_only_what_befalls_rows_of_hbm_has_an_address() -> None:
    check_address(CATALOGUE["bent_fibre"], None)
    check_address(CATALOGUE["hbm_dbe"], 0x1000)
    with pytest.raises(FaultRefused) as refused:
        check_address(CATALOGUE["bent_fibre"], 0x1000)
    assert refused.value.code == "BAD_FAULT"
    assert "bent_fibre strikes no row of HBM, so it has no address" in refused.value.detail
    assert "hbm_dbe" in refused.value.detail


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=lambda k: k.id)
def test_every_kind_can_be_injected_into_some_card_as_it_stands(kind: FaultKind) -> None:
    profiles = [load_profile(name) for name in profile_names()]
    profile = next(profile for profile in profiles if fits(kind, profile))
    request = FaultRequest("f1", kind.id, "card0" if kind.is_on_card else "card0/oe0")
    assert bool(request.fault(profile, 0).lanes) is not kind.is_on_card
