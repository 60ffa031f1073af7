"""Dice by counter: as even as dice, each owner's own, and as many as one likes."""

from __future__ import annotations

import numpy as np
import pytest

from accelhw.optics import chance

stats = pytest.importorskip("scipy.stats")
KEYS = chance.keys((7, "card0", 0, lane) for lane in range(40_000))


def chi_square_p(counts: np.ndarray, law: object) -> float:
    """How likely counts as odd as these are, under their law."""
    edges = np.unique(np.quantile(counts, np.linspace(0, 1, 21)))
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    seen = np.histogram(counts, np.concatenate([[-1], edges + 0.5, [1e18]]))[0]
    expected = np.diff(law.cdf(bounds)) * len(counts)  # type: ignore[attr-defined]
    usual = expected > 5
    badness = ((seen - expected)[usual] ** 2 / expected[usual]).sum()
    return float(stats.chi2.sf(badness, usual.sum() - 1))


@pytest.mark.parametrize("mean", [1e-3, 0.4, 7, 19.9, 20.1, 300, 1e7])
def test_poisson_counts_are_poisson(mean: float) -> None:
    counts = chance.poisson(np.full(len(KEYS), mean), KEYS, 3)
    assert chi_square_p(counts, stats.poisson(mean)) > 1e-3


@pytest.mark.parametrize(
    ("n", "p"), [(9, 0.3), (50, 0.97), (1000, 0.5), (10**8, 3e-8), (10**8, 0.2), (10**9, 0.9999)]
)
def test_binomial_counts_are_binomial(n: int, p: float) -> None:
    counts = chance.binomial(np.full(len(KEYS), n), p, KEYS, 4)
    assert counts.min() >= 0
    assert counts.max() <= n
    assert chi_square_p(counts, stats.binom(n, p)) > 1e-3


def test_uniform_and_normal_numbers_are_what_they_say() -> None:
    for draw in range(3):
        assert stats.kstest(chance.uniform(KEYS, draw), "uniform").pvalue > 1e-3
        pair = chance.normals(KEYS, draw)
        for numbers in pair:
            assert stats.kstest(numbers, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.02
    row = np.array([chance.uniform(KEYS[:1], draw)[0] for draw in range(3000)])
    assert stats.kstest(row, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 0.06


def test_one_owners_dice_know_nothing_of_the_others() -> None:
    means = np.full(len(KEYS), 0.5)
    before = chance.poisson(means, KEYS, 9)
    means[5] = 1e6
    after = chance.poisson(means, KEYS, 9)
    assert after[5] > 900_000
    assert np.array_equal(np.delete(before, 5), np.delete(after, 5))
    assert np.array_equal(
        chance.poisson(means[:9], KEYS[:9], 9), after[:9]
    )  # whoever else is there


def test_nothing_is_expected_and_nothing_comes() -> None:
    assert not chance.poisson(np.zeros(1000), KEYS[:1000], 1).any()
    assert not chance.binomial(np.full(1000, 1e9), 0.0, KEYS[:1000], 1).any()
    assert (chance.binomial(np.full(1000, 1e9), 1.0, KEYS[:1000], 1) == 1e9).all()
