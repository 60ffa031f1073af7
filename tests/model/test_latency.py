"""Modelled time adds up from published parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.model.latency import modelled_ns, modelled_pcie_ns, one_way_ns
from accelhw.model.link import LinkMode
from accelhw.model.profile import load_profile, profile_names


def test_optical_io_over_ten_metres_takes_143_ns_before_the_first_byte():
    # 40 + 6 + 1 + 49 + 1 + 6 + 0 + 40: MAC, SerDes, E/O, fibre, O/E, SerDes, no FEC, MAC
    assert one_way_ns(load_profile("oio"), 10.0) == pytest.approx(142.954)


def test_fec_and_distance_cost_what_they_cost():
    dr8, oio = load_profile("dr8"), load_profile("oio")
    assert one_way_ns(dr8, 10.0) - one_way_ns(oio, 10.0) == pytest.approx(63.0)
    further = modelled_ns(oio, 0, 16, 1010.0) - modelled_ns(oio, 0, 16, 10.0)
    assert further == pytest.approx(4895, abs=1)


def test_a_gibibyte_goes_at_line_rate():
    oio = load_profile("oio")
    assert modelled_ns(oio, 1 << 30, 16, 10.0) == pytest.approx((1 << 30) / 64.0, rel=1e-3)
    assert modelled_pcie_ns(1 << 30) == pytest.approx((1 << 30) / 57.614, rel=1e-3)


def test_half_the_lanes_take_twice_the_time_for_long_copies():
    oio = load_profile("oio")
    full, half = (modelled_ns(oio, 1 << 30, lanes, 10.0) for lanes in (16, 8))
    assert half / full == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("name", profile_names())
def test_a_lanes_own_mode_is_what_the_profile_says(name: str):
    profile = load_profile(name)
    own = profile.lane.modes[0]
    assert profile.lane.gbit_per_s(own) == pytest.approx(profile.lane.mac_rate_gbit_per_s)
    lanes = profile.data_lanes
    assert modelled_ns(profile, 1 << 20, lanes, 10.0, own) == modelled_ns(
        profile, 1 << 20, lanes, 10.0
    )


def test_a_fallback_costs_what_its_code_and_its_rate_cost():
    oio = load_profile("oio")
    own, coded, slow = (
        modelled_ns(oio, 1 << 30, 16, 10.0, LinkMode.parse(text))
        for text in ("none", "kr4", "kr4/2")
    )
    assert coded / own == pytest.approx(1.03125, rel=1e-4)
    assert slow / own == pytest.approx(2 * 1.03125, rel=1e-4)
    first = [one_way_ns(oio, 10.0, 16, LinkMode.parse(text)) for text in ("none", "kr4", "kr4/2")]
    assert first[1] - first[0] == pytest.approx(5280 / 512 + 37)
    assert first[2] - first[0] == pytest.approx(5280 / 256 + 37)


@given(st.sampled_from(profile_names()), st.integers(1, 10**6), st.integers(0, 1 << 40))
def test_neither_bus_nor_hbm_is_outrun(name: str, lanes: int, nbytes: int):
    profile = load_profile(name)
    slowest = min(profile.bus_gbyte_per_s, profile.hbm_gbyte_per_s)
    assert modelled_ns(profile, nbytes, lanes, 1.0) >= nbytes / slowest


def test_a_copy_over_no_lane_is_refused():
    with pytest.raises(ValueError, match="lanes=0"):
        modelled_ns(load_profile("oio"), 1, 0, 1.0)
    with pytest.raises(ValueError, match="nbytes"):
        modelled_pcie_ns(-1)
