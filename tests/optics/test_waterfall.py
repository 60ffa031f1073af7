"""A margin scan's fit finds the noise that made the errors, and what nobody waits to see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelhw.optics import ber
from accelhw.optics.waterfall import Point, Waterfall, fit


def scan(truth: Waterfall, modulation: str, seed: int) -> list[Point]:
    """Errors counted in 1.6e9 bits at each step."""
    dice = np.random.default_rng(seed)
    points = []
    for attenuation_db in np.arange(0.0, 12.0, 0.25).tolist():
        chance = float(ber.ber_of_q(truth.q(attenuation_db), modulation))
        if chance > 1e-2:
            break
        points.append(Point(attenuation_db, 1.6e9, int(dice.poisson(1.6e9 * chance))))
    return points


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("modulation", "q", "laser_share", "target"),
    [("nrz", 20.0, 0.0, 1e-12), ("nrz", 18.0, 0.2, 1e-12), ("pam4", 6.0, 0.7, 2.4e-4)],
)
def test_the_margin_is_found_from_frequent_errors(modulation, q, laser_share, target, seed):
    noise = 1.0 / (q * q)
    truth = Waterfall(noise * (1.0 - laser_share), noise * laser_share)
    found = fit(scan(truth, modulation, seed), modulation)
    assert found is not None
    wanted_q = ber.q_of_ber(target, modulation)
    assert found.attenuation_db(wanted_q) == pytest.approx(truth.attenuation_db(wanted_q), abs=0.1)


def test_attenuation_and_q_are_each_others_inverse():
    fall = Waterfall(0.004, 0.001)
    for attenuation_db in (-1.0, 0.0, 3.5):
        assert fall.attenuation_db(fall.q(attenuation_db)) == pytest.approx(attenuation_db)
    assert fall.attenuation_db(40.0) == -math.inf  # the laser's own noise forbids it


def test_without_errors_nothing_can_be_said():
    assert fit([Point(0.0, 1e9, 0), Point(1.0, 1e9, 2)], "nrz") is None
    assert fit([], "nrz") is None
    one = fit([Point(4.0, 1e9, 1000)], "nrz")
    assert one is not None
    assert one.laser == 0.0
