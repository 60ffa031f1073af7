"""Patterns are bit for bit those of the field, and both checkers count what is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelhw.optics import prbs
from accelhw.optics.prbs import PATTERNS, Generator, SeededChecker, SelfSynchronousChecker

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "prbs.json").read_text())
CHECKERS = (SeededChecker, SelfSynchronousChecker)
STRETCH = 65_536


def line(name: str, count: int = STRETCH) -> prbs.Bits:
    """As usually sent."""
    bits = Generator(PATTERNS[name]).bits(count)
    return bits ^ 1 if PATTERNS[name].inverted else bits


@pytest.mark.parametrize("row", VECTORS["bits"], ids=lambda row: row["name"])
def test_a_pattern_is_that_of_the_field(row: dict[str, Any]):
    pattern = PATTERNS[row["name"]]
    bits = Generator(pattern).bits(STRETCH)
    digest = hashlib.sha256(np.packbits(bits).tobytes()).hexdigest()
    assert list(pattern.delays) == row["recurrence_delays"]
    assert pattern.period_bits == row["period_bits"]
    assert pattern.inverted == row["usual_output_inverted"]
    assert pattern.counts_per_error == row["self_sync_checker_errors_per_single_bit_error"]
    assert "".join(map(str, bits[:64])) == row["first_64_bits_not_inverted"]
    assert digest == row["sha256_first_65536_bits_not_inverted_msb_first_hex"]
    if "ones_per_period" in row:
        period = Generator(pattern).bits(-(-pattern.period_bits // 64) * 64)[: pattern.period_bits]
        assert np.count_nonzero(period) == row["ones_per_period"]


@pytest.mark.parametrize("row", VECTORS["pam4"], ids=lambda row: row["name"])
def test_pam4_symbols_are_those_of_the_field(row: dict[str, Any]):
    symbols = prbs.symbols_of(line(row["name"]))
    assert "".join(map(str, symbols[:32])) == row["first_32_symbols"]
    np.testing.assert_array_equal(prbs.bits_of(symbols), line(row["name"]))
    if "level_counts_per_period" in row:
        period = prbs.symbols_of(line(row["name"], 2 * 8192))[: row["period_symbols"]]
        assert np.bincount(period).tolist() == row["level_counts_per_period"]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_stream_is_the_same_however_it_is_taken(name: str):
    whole = Generator(PATTERNS[name]).bits(64 * 900)
    piecewise = Generator(PATTERNS[name])
    parts = [piecewise.bits(64 * n) for n in (1, 2, 40, 7, 850)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_generator_leaps_anywhere(name: str):
    pattern = PATTERNS[name]
    far = Generator(pattern)
    far.skip_to(12_345)
    np.testing.assert_array_equal(far.bits(640), Generator(pattern).bits(16_384)[12_345:12_985])
    round_trip = Generator(pattern)
    round_trip.skip_to(pattern.period_bits * 10**9)
    np.testing.assert_array_equal(round_trip.bits(640), Generator(pattern).bits(640))


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_a_checker_counts_each_wrong_bit_once_and_tells_polarity(name, swapped, checker):
    received = line(name, 2 * STRETCH)
    if swapped:
        received = prbs.invert(received, PATTERNS[name].pam4)
    received[[4_000, 70_000, 99_999]] ^= 1
    check = checker(PATTERNS[name]).check
    first, second = check(received[:STRETCH]), check(received[STRETCH:])
    assert (first.errors, second.errors) == (1, 2)
    assert first.locked
    assert first.inverted == second.inverted == swapped


@pytest.mark.parametrize("name", ["prbs7", "prbs13", "prbs31q"])
def test_a_self_synchronous_checker_sees_one_error_three_or_five_times(name: str):
    received = line(name)
    received[30_000] ^= 1
    checked = SelfSynchronousChecker(PATTERNS[name]).check(received)
    assert checked.counts == PATTERNS[name].counts_per_error
    assert checked.errors == 1


@pytest.mark.parametrize("ber", [1e-3, 1e-2, 5e-2])
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_noisy_line_is_measured_within_its_chance(checker, ber: float):
    dice = np.random.default_rng(5)
    received = line("prbs31", 16 * STRETCH)
    flips = dice.random(len(received)) < ber
    received ^= flips
    wrong = int(np.count_nonzero(flips))
    found = checker(PATTERNS["prbs31"]).check(received)
    assert found.locked
    if checker is SeededChecker:
        assert found.errors == wrong
    else:
        assert found.errors == pytest.approx(wrong, rel=0.03)


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize(
    "received",
    [
        np.random.default_rng(1).integers(0, 2, STRETCH, np.uint8),
        np.zeros(STRETCH, np.uint8),
        np.ones(STRETCH, np.uint8),
    ],
    ids=["noise", "zeros", "ones"],
)
def test_what_is_no_pattern_gives_no_lock(checker, received: prbs.Bits):
    found = checker(PATTERNS["prbs31"]).check(received)
    assert (found.locked, found.bits, found.errors) == (False, 0, 0)


def test_a_seeded_checker_lets_go_of_a_slipped_line_and_finds_it_again():
    received = line("prbs23", 4 * STRETCH)
    slipped = received[STRETCH + 3 : 3 * STRETCH + 3]
    checker = SeededChecker(PATTERNS["prbs23"])
    assert checker.check(received[:STRETCH]).locked
    assert not checker.check(slipped[:STRETCH]).locked
    assert checker.check(slipped[STRETCH:]).errors == 0
    assert checker.losses == 1


def test_a_history_of_zeros_is_refused():
    with pytest.raises(ValueError, match="zeros"):
        Generator(PATTERNS["prbs7"], 0)
