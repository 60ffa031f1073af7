"""The eye spreads the chain's Q over time and amplitude, and adds nothing to it."""

from __future__ import annotations

import numpy as np
import pytest

from accelhw.optics import ber, eye

CASES = [
    *((q, "nrz") for q in (3.0, 7.034484, 18.0)),
    *((q, "pam4") for q in (2.0, 3.414, 6.0)),
]


@pytest.mark.parametrize(("q", "modulation"), CASES)
def test_the_middle_errs_as_the_chain_says(q: float, modulation: str):
    seen = eye.statistical_eye(q, modulation)
    middle = np.mean([opening.ber for opening in seen.openings])
    assert middle == pytest.approx(float(ber.gaussian_tail(q)), rel=1e-5)


@pytest.mark.parametrize("modulation", ["nrz", "pam4"])
def test_more_light_opens_the_eye(modulation: str):
    eyes = [eye.statistical_eye(q, modulation) for q in (5.0, 7.5, 10.0, 15.0)]
    for level in (0, 1):
        heights = [min(o.heights[level] for o in seen.openings) for seen in eyes]
        widths = [min(o.widths_ui[level] for o in seen.openings) for seen in eyes]
        assert heights == sorted(heights)
        assert widths == sorted(widths)
        assert 0.0 < heights[-1] < 1.0
        assert 0.0 < widths[-1] < 1.0


def test_an_eye_is_closed_where_its_middle_is_worse_than_the_level():
    seen = eye.statistical_eye(6.0, "nrz")  # BER 1e-9 in the middle
    assert seen.openings[0].heights[0] > 0.0
    assert seen.openings[0].widths_ui[0] > 0.0
    assert seen.openings[0].heights[1] == 0.0
    assert seen.openings[0].widths_ui[1] == 0.0


@pytest.mark.parametrize(("q", "modulation"), CASES)
def test_bathtubs_fall_towards_the_middle(q: float, modulation: str):
    seen = eye.statistical_eye(q, modulation)
    tub = np.array(seen.bathtub_log10)
    middle = len(tub) // 2
    assert tub[middle] == pytest.approx(tub.min(), abs=0.05)
    assert (np.diff(tub[: middle - 8]) <= 1e-6).all()
    np.testing.assert_allclose(tub, tub[::-1], atol=1e-4)
    worst = max(max(opening.ber for opening in seen.openings), 1e-30)  # the curve's floor
    assert 10 ** tub[middle] == pytest.approx(worst, rel=1e-3)


@pytest.mark.parametrize("modulation", ["nrz", "pam4"])
def test_the_density_is_a_whole_picture(modulation: str):
    seen = eye.statistical_eye(8.0, modulation)
    assert seen.density.shape == (eye.ROWS, round(eye.COLUMNS_PER_UI * eye.SHOWN_UI))
    assert seen.density.max() == 255
    half = seen.density.shape[1] // 2
    np.testing.assert_array_equal(seen.density[:, :half], seen.density[:, half:])
    np.testing.assert_allclose(  # Up and down are alike.
        seen.density.astype(int), seen.density[::-1].astype(int), atol=2
    )
    # The levels are the brightest rows in the middle of the symbol.
    column = seen.density[:, half].astype(int)
    for level in seen.levels:
        row = round((eye.HIGH - level) / (eye.HIGH - eye.LOW) * eye.ROWS)
        assert column[max(row - 3, 0) : row + 3].max() > 240


def test_a_dark_lane_has_no_eye():
    with pytest.raises(ValueError, match="no eye"):
        eye.statistical_eye(0.0, "nrz")
