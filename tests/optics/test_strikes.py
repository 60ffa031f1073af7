"""Real flipped bits in real frames: as many, as clustered and as deadly as the formulas say."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from accelhw.optics import burst, fec
from accelhw.optics.strikes import WORD_BITS, Aim, Strikes

stats = pytest.importorskip("scipy.stats")
CALM = (0.0, 0.0)


def strikes(
    ber: list[float],
    code: fec.Code | None = None,
    bad: list[float] | None = None,
    chain: tuple[float, float] = CALM,
    interleave: int = 2,
    seed: int = 1,
) -> Strikes:
    made = Strikes(np.random.Generator(np.random.PCG64(seed)))
    name = next(name for name, known in fec.CODES.items() if known is code)
    made.aim(Aim(tuple(range(len(ber))), tuple(ber), tuple(bad or ber), chain, name, interleave))
    return made


def hits(of: Strikes, nbytes: int, frames: int) -> list[bool]:
    return [bool(of.strike(nbytes)) for _ in range(frames)]


@pytest.mark.parametrize("nbytes", [64, 1024, 9216])
@pytest.mark.parametrize(
    ("ber", "code"), [([1e-3] * 8, fec.KP4), ([1.4e-3, 4e-4], fec.KP4), ([2e-4], fec.KR4)]
)
def test_frames_with_fec_are_lost_as_computed(
    nbytes: int, ber: list[float], code: fec.Code
) -> None:
    frames = 40_000
    log_pu = math.log(fec.uncorrectable(ber, code))
    expected = frames * float(fec.frame_loss(log_pu, nbytes, 2))
    lost = sum(hits(strikes(ber, code), nbytes, frames))
    assert abs(lost - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("nbytes", [64, 1024, 9216])
@pytest.mark.parametrize("ber", [1e-4, 3e-6])
def test_frames_without_fec_are_lost_as_computed(nbytes: int, ber: float) -> None:
    frames = 4_000
    expected = frames * -math.expm1(8 * nbytes * math.log1p(-ber))
    lost = sum(hits(strikes([ber] * 4), nbytes, frames))
    assert abs(lost - expected) < 4.5 * math.sqrt(expected * (1 - expected / frames)) + 2


def test_flips_fall_on_all_bits_alike() -> None:
    made = strikes([1e-4] * 4)
    places = np.array([bit for _ in range(4000) for bit in made.strike(4096)])
    seen = np.histogram(places, 64, (0, 4096 * 8))[0]
    assert stats.chisquare(seen).pvalue > 1e-3


def test_bursts_strike_in_clusters_and_as_often_as_the_chain_says() -> None:
    enter, leave, bad = 1e-3, 0.05, 1e-2
    words, frames = 4, 100_000
    made = strikes([1e-8] * 8, fec.KP4, [bad] * 8, (enter, leave))
    nbytes = words * 640 - 8 - 2 * 640  # two of the codewords it touches are interleave
    lost = hits(made, nbytes, frames)
    exposure = fec.codewords_touched(nbytes, 2)
    share = float(burst.share_bad(enter, leave))
    # Nearly every codeword of a burst is lost: so is any frame that a burst touches.
    bursts = enter * (1 - share) * exposure
    expected = frames * (1 - math.exp(-bursts) * (1 - share))
    assert sum(lost) == pytest.approx(expected, rel=0.2)
    again = sum(a and b for a, b in pairwise(lost)) / sum(lost)
    assert again > 20 * sum(lost) / frames  # neighbours fall together


def test_bursts_without_fec_flip_their_share_of_bits() -> None:
    enter, leave, bad = 1e-3, 0.1, 1e-3
    made = strikes([1e-12] * 4, None, [bad] * 4, (enter, leave))
    flips = sum(len(made.strike(8192)) for _ in range(30_000))
    bits = 30_000 * 8192 * 8
    share = float(burst.share_bad(enter, leave))
    assert flips == pytest.approx(bits * share * bad, rel=0.15)
    assert bits * enter / WORD_BITS > 100


def test_what_frames_met_adds_up() -> None:
    made = strikes([1e-3] * 8, fec.KP4)
    lost = sum(hits(made, 1024, 5000))
    exposure, words, flips = made.take()
    assert exposure == pytest.approx(5000 * fec.codewords_touched(1024, 2), rel=1e-9)
    assert words >= lost > 0
    assert flips == {}
    assert made.take() == (0.0, 0, {})
    bare = strikes([1e-4] * 4)
    flipped = sum(len(bare.strike(1024)) for _ in range(500))
    exposure, words, by_lane = bare.take()
    assert exposure == pytest.approx(500 * 1024 * 8)
    assert words == 0
    assert sum(by_lane.values()) == flipped > 0
    assert set(by_lane) == {0, 1, 2, 3}


def test_a_fresh_aim_forgets_no_exposure() -> None:
    made = strikes([1e-9] * 4)
    for _ in range(10):
        made.strike(1000)
        made.aim(Aim((0, 1, 2, 3), (1e-9,) * 4, (1e-9,) * 4, CALM, "none", 1))
    assert made.take()[0] == pytest.approx(80_000)
    made.aim(Aim((), (), (), CALM, "none", 1))
    assert made.strike(10**6) == ()
