"""Counters follow from the light at the emulated line rate, and agree with one another."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelhw.optics import burst, fec
from accelhw.optics.counters import BINS

from .conftest import World, narrow

stats = pytest.importorskip("scipy.stats")


def test_idle_links_count_at_line_rate_and_dark_ones_stop(dr8: World) -> None:
    counters = dr8.bank.counters
    dr8.run(2)
    assert counters.rx_bits == pytest.approx(np.full((2, 8), 106.25e9 * 2))
    assert not counters.codewords.any()  # no link, no codewords
    dr8.up()
    dr8.run(2)
    assert counters.codewords.tolist() == pytest.approx([8 * 106.25e9 * 2 / 5440] * 2, abs=1)
    dr8.cause("rx_path_loss_db", 60.0, lane=slice(None))
    stopped = counters.rx_bits.copy()
    dr8.run(2)
    assert np.array_equal(counters.rx_bits[0], stopped[0])
    assert (counters.rx_bits[1] > stopped[1]).all()


def test_codewords_do_not_depend_on_how_time_is_cut() -> None:
    counts = []
    for step_s in (0.01, 0.0377, 0.5):
        world = World(narrow("dr8"))
        world.up()
        while world.now_ns < 2_000_000_000:
            world.run(min(step_s, 2 - world.now_ns / 1e9), min(step_s, 2 - world.now_ns / 1e9))
        counts.append(int(world.bank.counters.codewords[0]))
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("name", ["dr8", "single"])
@pytest.mark.parametrize("floor", [1e-10, 1e-6, 2e-5, 2.4e-4, 1e-3])
def test_bins_are_as_expected_and_all_counters_tell_one_story(name: str, floor: float) -> None:
    world = World(narrow(name, ber_floor=floor), ports=40)
    world.up()
    world.run(3)
    counters, rx = world.bank.counters, world.bank.rx
    bins, lost = counters.bins.astype(np.int64), counters.uncorrectable.astype(np.int64)
    words = counters.codewords.astype(np.int64)
    assert np.array_equal(bins.sum(axis=1) + lost, words)
    assert np.array_equal(bins @ np.arange(BINS), counters.corrected_symbols.astype(np.int64))
    assert (counters.corrected_bits >= counters.corrected_symbols).all()
    assert (counters.errors.sum(axis=1) >= counters.corrected_bits).all()
    assert np.array_equal(counters.lane_symbols.sum(axis=1), counters.corrected_symbols)
    assert (counters.errors >= counters.lane_symbols).all()  # each with a wrong bit at least
    code = fec.CODES[world.bank.profile.lane.fec]
    assert code is not None
    odds = fec.word_odds(rx.ber, code)
    p = np.column_stack([odds.bins, odds.uncorrectable])
    seen = np.column_stack([bins[:, : code.t + 1], lost])
    expected = p * words[:, np.newaxis]
    usual = expected > 5
    usual[:, 0] = False  # what the others leave
    usual[:, -1] &= counters.lock_losses == 0  # which count the three that did it
    badness = (((seen - expected) ** 2) / np.maximum(expected, 1e-9))[usual].sum()
    if usual.any():
        assert stats.chi2.sf(badness, usual.sum()) > 1e-4
    # and the lanes' errors are those of their BER
    expected = rx.ber * counters.rx_bits
    drawn = counters.errors.astype(float)
    assert drawn.sum() == pytest.approx(expected.sum(), rel=6 / math.sqrt(expected.sum()) + 1e-5)


def test_unequal_lanes_get_their_own_errors(dr8: World) -> None:
    dr8.up()
    dr8.cause("rx_path_loss_db", 6.0, lane=2)
    counters = dr8.bank.counters
    before = counters.errors.copy()
    bits = counters.rx_bits.copy()
    dr8.run(3)
    drawn = (counters.errors - before).astype(float)[0]
    expected = (dr8.bank.rx.ber * (counters.rx_bits - bits))[0]
    assert drawn[2] > 100 * drawn[1]
    assert drawn == pytest.approx(expected, rel=0.2)


def test_unequal_lanes_get_their_own_symbols(dr8: World) -> None:
    dr8.up()
    for lane, loss_db in enumerate((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0)):
        dr8.cause("rx_path_loss_db", loss_db, lane=lane)
    counters = dr8.bank.counters
    before = counters.lane_symbols.copy(), counters.corrected_symbols.copy()
    dr8.run(3)
    drawn = (counters.lane_symbols - before[0])[0].astype(float)
    total = float((counters.corrected_symbols - before[1])[0])
    assert drawn.sum() == total
    wrong = fec.symbol_error_ratio(dr8.bank.rx.ber[0])
    expected = total * wrong / wrong.sum()
    usual = expected > 5
    assert usual.sum() > 3
    badness = ((drawn - expected) ** 2 / np.maximum(expected, 1e-9))[usual].sum()
    assert stats.chi2.sf(badness, usual.sum() - 1) > 1e-4


def test_without_fec_there_are_no_codewords(oio: World) -> None:
    oio.up()
    oio.run(2)
    assert not oio.bank.counters.codewords.any()
    assert not oio.bank.counters.bins.any()
    assert not oio.bank.counters.lane_symbols.any()


def test_a_narrower_link_has_fewer_codewords(dr8: World) -> None:
    dr8.up(4)
    dr8.run(1)
    assert dr8.bank.counters.codewords[0] == pytest.approx(4 * 106.25e9 / 5440, abs=1)


def test_locks_are_lost_as_often_as_three_in_a_row_come() -> None:
    world = World(narrow("dr8", ber_floor=1.28e-3), ports=60)
    world.up()
    lost = fec.word_odds(world.bank.rx.ber, fec.KP4).uncorrectable
    rate = fec.lock_loss_ratio(lost) * 8 * 106.25e9 / 5440
    assert 0.05 < rate.mean() < 5
    seen = 0
    for _ in range(60):
        world.run(0.5)
        seen += sum(world.bank.lost_lock(port, world.now_ns) for port in range(60))
    expected = rate.sum() * 30
    assert int(world.bank.counters.lock_losses.sum()) == pytest.approx(
        expected, abs=5 * math.sqrt(expected) + 0.02 * expected
    )
    assert seen <= world.bank.counters.lock_losses.sum()
    assert seen > 0.3 * expected  # some come twice between two looks
    assert (world.bank.counters.uncorrectable >= 3 * world.bank.counters.lock_losses).all()


def burst_of(world: World, port: int, **figures: float) -> None:
    causes = world.bank.causes_of(port)
    for name, amount in figures.items():
        causes.array(f"burst_{name}")[:] = amount
    world.bank.mark(port)
    world.bank.settle(world.now_ns)


def test_bursts_leave_a_good_mean_and_lost_codewords_all_the_same(dr8: World) -> None:
    dr8.up()
    chain = {"ber_good": 1e-9, "ber_bad": 3e-3, "good_to_bad": 1e-6, "bad_to_good": 0.01}
    burst_of(dr8, 0, **chain)
    dr8.run(10)
    counters, rx = dr8.bank.counters, dr8.bank.rx
    share = float(burst.share_bad(chain["good_to_bad"], chain["bad_to_good"]))
    bad = fec.word_odds(np.full((1, 8), chain["ber_bad"]), fec.KP4)
    words = float(counters.codewords[0])
    expected = words * share * bad.uncorrectable[0]
    assert float(counters.uncorrectable[0]) == pytest.approx(expected, rel=0.05)
    assert counters.uncorrectable[1] == 0
    assert (rx.ber[0] < 1e-6).all()
    drawn = counters.errors[0].sum() / counters.rx_bits[0].sum()
    assert drawn == pytest.approx(rx.ber[0].mean(), rel=0.05)
    assert counters.bins[0].sum() + counters.uncorrectable[0] == counters.codewords[0]
    middle = counters.bins[0, 4:8].sum()  # between the even errors and the bursts
    assert middle < counters.bins[0, 12:].sum()
    burst_of(dr8, 0, **dict.fromkeys(chain, 0.0))
    calm = counters.uncorrectable[0]
    dr8.run(10)
    assert counters.uncorrectable[0] == calm


def test_a_burst_on_one_lane_is_corrected_on_that_lane(dr8: World) -> None:
    dr8.up()
    causes = dr8.bank.causes_of(0)
    for name, amount in {"ber_bad": 1e-3, "good_to_bad": 1e-4, "bad_to_good": 0.05}.items():
        causes.array(f"burst_{name}")[5] = amount
    dr8.bank.mark(0)
    dr8.bank.settle(dr8.now_ns)
    counters = dr8.bank.counters
    dr8.run(3)
    symbols, errors = counters.lane_symbols[0], counters.errors[0]
    assert symbols.sum() == counters.corrected_symbols[0]
    assert symbols[5] > 0.99 * symbols.sum() > 1000
    assert errors[5] > 0.99 * errors.sum()
    assert (errors >= symbols).all()


def test_bursts_count_without_fec_too(oio: World) -> None:
    oio.up()
    burst_of(oio, 0, ber_bad=1e-3, good_to_bad=1e-6, bad_to_good=0.05)
    before = oio.bank.counters.errors.copy()
    oio.run(5)
    drawn = (oio.bank.counters.errors - before).astype(float)
    expected = oio.bank.rx.ber[0] * 32e9 * 5
    assert drawn[0].sum() == pytest.approx(expected.sum(), rel=0.25)
    assert drawn[1].sum() == 0


def test_a_lost_lock_names_the_ports_that_lost_it() -> None:
    world = World(narrow("dr8"), ports=4)
    world.up()
    world.cause("rx_penalty_db", 9.0, port=2, lane=slice(None))
    assert world.bank.counters.lock_due_ns[2] < world.now_ns + 1e6
    assert np.isinf(world.bank.counters.lock_due_ns[[0, 1, 3]]).all()
    world.run(0.5)
    assert [world.bank.lost_lock(port, world.now_ns) for port in range(4)] == [
        False, False, True, False
    ]  # fmt: skip
