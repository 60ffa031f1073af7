"""What must hold of errors for any light."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.optics import ber, budget, fec


@given(st.floats(-15, 15), st.floats(0.01, 5), st.floats(0, 1), st.floats(0, 1))
def test_more_light_never_makes_more_errors(margin: float, more: float, s: float, r: float):
    q = ber.q_of_margin([margin, margin + more], 7.0, s, r)
    assert q[1] >= q[0]
    for modulation in ber.MODULATIONS:
        low, high = ber.ber_of_q(q, modulation)
        assert high <= low <= 0.5


def test_darkness_is_a_coin():
    q = ber.q_of_margin([-math.inf], 7.0, 0.05, 0.4)
    assert ber.ber_nrz(q)[0] == 0.5
    assert ber.ber_pam4(q)[0] == 0.5


def test_the_tail_is_right_far_out():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-5, 37, 500)
    expected = special.erfc(x / math.sqrt(2)) / 2
    np.testing.assert_allclose(ber.gaussian_tail(x), expected, rtol=1e-9)


def test_an_unknown_modulation_is_refused():
    with pytest.raises(ValueError, match="nrz"):
        ber.ber_of_q([1.0], "pam8")
    with pytest.raises(ValueError, match="no Q"):
        ber.q_of_ber(0.5, "nrz")


@given(st.lists(st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.5]), min_size=1, max_size=16))
def test_a_codewords_symbol_errors_are_a_distribution(lanes: list[float]):
    for code in (fec.KP4, fec.KR4):
        pmf = fec.symbol_error_pmf(lanes, code)
        assert len(pmf) == code.n + 1
        assert pmf.sum() == pytest.approx(1.0, abs=1e-9)
        assert 0.0 <= fec.uncorrectable(lanes, code) <= 1.0


def test_equal_lanes_are_one_lane():
    alone = math.exp(float(fec.log_uncorrectable(5e-4, fec.KP4)))
    assert fec.uncorrectable([5e-4] * 8, fec.KP4) == pytest.approx(alone, rel=1e-9)


def test_too_much_light_costs_margin():
    assert budget.overload_penalty_db([1.0, 4.0, 6.0], 4.0).tolist() == [0.0, 0.0, 4.0]
