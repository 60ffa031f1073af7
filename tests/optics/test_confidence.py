"""Bounds on a bit error ratio are the exact ones of Poisson statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, poisson

from accelhw.model.diag import Verdict
from accelhw.optics import confidence

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "ber_confidence.json").read_text())


@pytest.mark.parametrize("row", VECTORS["rows"])
def test_the_bits_to_prove_a_ber_are_the_known_ones(row: dict[str, Any]):
    bits = confidence.bits_needed(
        row["ber_target_ratio"], row["confidence_ratio"], row["errors_allowed"]
    )
    assert bits == pytest.approx(row["bits_needed"], rel=1e-9)
    assert bits / row["line_rate_bit_per_s"] == pytest.approx(row["seconds_needed"], rel=1e-9)


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 0.999999])
@pytest.mark.parametrize("shape", [1, 2, 11, 100, 1234, 99_999, 100_001, 1_000_000])
def test_gamma_quantiles_agree_with_those_of_another_library(shape: int, p: float):
    expected = chi2.ppf(p, 2 * shape) / 2.0
    assert confidence.gamma_quantile(p, float(shape)) == pytest.approx(expected, rel=3e-9)


@pytest.mark.parametrize("errors", [0, 1, 7, 300])
def test_the_bounds_hold_as_often_as_they_say(errors: int):
    bits = 1e9
    high = confidence.upper_bound(errors, bits, 0.95) * bits
    assert poisson.cdf(errors, high) == pytest.approx(0.05, rel=1e-9)
    if errors:
        low = confidence.lower_bound(errors, bits, 0.95) * bits
        assert poisson.sf(errors - 1, low) == pytest.approx(0.05, rel=1e-9)
    else:
        assert confidence.lower_bound(errors, bits, 0.95) == 0.0


def test_a_wanted_ber_is_proven_refuted_or_left_open():
    assert confidence.judge(0, 3.1e12, 1e-12, 0.95) is Verdict.PASSED
    assert confidence.judge(0, 2.9e12, 1e-12, 0.95) is Verdict.OPEN
    assert confidence.judge(20, 1e12, 1e-12, 0.95) is Verdict.FAILED
    assert confidence.judge(4, 1e12, 1e-12, 0.95) is Verdict.FAILED
    assert confidence.judge(3, 1e12, 1e-12, 0.95) is Verdict.OPEN
    assert confidence.judge(0, 0.0, 1e-12, 0.95) is Verdict.OPEN


def test_a_good_lane_is_seldom_refuted():
    """Right at the limit, in P(16 or more of 10 expected) = 4.9 % of the tests."""
    dice = np.random.default_rng(3)
    counts = dice.poisson(10.0, 4000)
    refuted = sum(confidence.judge(int(n), 1e13, 1e-12, 0.95) is Verdict.FAILED for n in counts)
    assert refuted / len(counts) == pytest.approx(0.0487, abs=0.01)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-9])
def test_no_ratio_is_refused(bad: float):
    with pytest.raises(ValueError, match="error ratio"):
        confidence.bits_needed(bad, 0.95)
