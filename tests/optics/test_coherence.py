"""Whatever happens to a link, in whatever order: its figures explain one another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.model.profile import load_profile
from accelhw.optics.causes import CAUSES, SWITCHES
from accelhw.optics.counters import BINS
from accelhw.optics.flags import HYSTERESIS, HYSTERESIS_RATIO

from .conftest import World

AMOUNTS = {
    "laser_wear_ratio": 0.7, "els_loss_db": 60.0, "tec_rise_c": 25.0, "extinction_drop_db": 3.0,
    "tdecq_rise_db": 2.0, "ring_error_k": 2.0, "tx_path_loss_db": 60.0, "rx_path_loss_db": 20.0,
    "mpi_penalty_db": 1.0, "rx_penalty_db": 6.0, "rx_monitor_error_db": -2.0,
    "crosstalk_penalty_db": 1.0, "burst_ber_good": 1e-8, "burst_ber_bad": 1e-2,
    "burst_good_to_bad": 1e-7, "burst_bad_to_good": 0.05, "ambient_rise_c": 40.0,
    "airflow_ratio": -0.6, "supply_error_v": -0.4, "hbm_heat_c": 40.0,
}  # fmt: skip
HAPPENINGS = st.one_of(
    st.tuples(st.just("cause"), st.sampled_from(sorted({*AMOUNTS, *SWITCHES})),
              st.integers(0, 1), st.integers(0, 15), st.floats(0, 1)),
    st.tuples(st.just("heal"), st.integers(0, 1)),
    st.tuples(st.just("laser"), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("width"), st.sampled_from([0, 1, 4, 8])),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.5, 7.0, 90.0])),
    st.tuples(st.just("load"), st.integers(0, 10**10)),
)  # fmt: skip


def happen(world: World, what: tuple[object, ...]) -> None:
    match what:
        case ("cause", str(name), int(port), int(lane), float(strength)):
            amount = float(strength > 0.5) if name in SWITCHES else AMOUNTS[name] * strength
            array = world.bank.causes_of(port).array(name)
            array[lane % len(array) if CAUSES[name] == "lane" else 0] = amount
            world.bank.mark(port)
        case ("heal", int(port)):
            world.bank.causes_of(port).heal()
            world.bank.mark(port)
        case ("laser", int(port), bool(on)):
            world.bank.set_transmit(port, on)
        case ("width", int(width)):
            world.up(min(width, world.bank.profile.lanes_per_oe))
        case ("wait", float(seconds)):
            world.run(seconds, seconds)
        case ("load", int(count)):
            heat = world.bank.heat
            world.bank.moved(0, float(heat.moved_bytes[0]) + count)
    world.shine()


def totals(world: World) -> list[np.ndarray]:
    counters, rx, flags = world.bank.counters, world.bank.rx, world.bank.flags
    return [
        array.astype(float).copy()
        for array in (
            counters.rx_bits, counters.errors, counters.codewords, counters.corrected_bits,
            counters.corrected_symbols, counters.uncorrectable, counters.bins,
            counters.lock_losses, rx.los_count, rx.lol_count, flags.count, flags.last_set_ns,
        )
    ]  # fmt: skip


def check(world: World) -> None:
    bank = world.bank
    tx, rx, counters, causes = bank.tx, bank.rx, bank.counters, bank.causes
    lanes = bank.profile.lanes_per_oe
    rx_loss = causes.rx_path_loss_db.reshape(2, lanes)
    for port in (0, 1):
        far = port ^ 1
        arriving = tx.sent_dbm[far] - world.loss_db - rx_loss[port]
        expected = np.where(tx.lit[far], np.maximum(arriving, -40.0), -40.0)
        assert rx.power_dbm[port] == pytest.approx(expected, abs=1e-6)
        sent = tx.power_dbm[far] - causes.tx_path_loss_db.reshape(2, lanes)[far]
        assert tx.sent_dbm[far][tx.lit[far]] == pytest.approx(sent[tx.lit[far]], abs=0.0051)
    assert not (rx.locked & ~rx.lit).any()
    assert (rx.ber[~rx.lit] == 0.5).all()
    assert (tx.power_dbm[~tx.on] == -40.0).all()
    assert (tx.bias_ma[~tx.on] == 0.0).all()
    assert (tx.bias_ma <= bank.profile.laser.bias_limit_ma).all()
    words, lost = counters.codewords.astype(np.int64), counters.uncorrectable.astype(np.int64)
    bins = counters.bins.astype(np.int64)
    assert np.array_equal(bins.sum(axis=1) + lost, words)
    assert np.array_equal(bins @ np.arange(BINS), counters.corrected_symbols.astype(np.int64))
    assert (counters.corrected_bits >= counters.corrected_symbols).all()
    assert (counters.errors.sum(axis=1) >= counters.corrected_bits).all()
    assert (counters.errors <= counters.rx_bits + 1).all()
    no_flag_without_its_cause(world)


def no_flag_without_its_cause(world: World) -> None:
    bank = world.bank
    tx, rx, flags = bank.tx, bank.rx, bank.flags
    values = {
        "tx_power": ("tx_power_dbm", np.where(tx.on, tx.power_dbm, np.nan)),
        "rx_power": ("rx_power_dbm", bank.seen_rx_dbm(np.array([0, 1]))),
        "tx_bias": ("tx_bias_ma", np.where(tx.on, tx.bias_ma, np.nan)),
        "laser_temp": ("laser_temp_c", np.where(tx.on, tx.laser_c, np.nan)),
        "pre_fec_ber": ("pre_fec_ber", np.where(rx.lit, rx.ber, np.nan)),
    }
    beyond: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
        "high": lambda value, level: value > level,
        "low": lambda value, level: value < level,
    }
    for stem, (quantity, value) in values.items():
        levels = bank.profile.thresholds[quantity]
        for name, level in zip(
            ("high_alarm", "high_warning", "low_warning", "low_alarm"), levels, strict=True
        ):
            if not np.isfinite(level):
                continue
            active = flags.active[flags.names.index(f"{stem}_{name}")]
            side = name.partition("_")[0]
            band = HYSTERESIS.get(quantity, abs(level) * HYSTERESIS_RATIO)
            near = level - band if side == "high" else level + band
            assert not (active & ~beyond[side](value, near)).any(), (stem, name)
            assert not (~active & beyond[side](value, level)).any(), (stem, name)
    for name, condition in (("los", ~rx.lit), ("lol", ~rx.locked), ("tx_fault", tx.fault)):
        assert np.array_equal(flags.active[flags.names.index(name)], condition), name
    assert not (flags.active & ~flags.latched).any()
    odd = (flags.count % 2).astype(bool)
    assert np.array_equal(odd, flags.active)  # each on has its off


@given(
    st.sampled_from(["dr8", "oio", "single"]), st.integers(0, 2**32),
    st.lists(HAPPENINGS, min_size=1, max_size=25),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_history_makes_figures_disagree(
    profile: str, seed: int, history: list[tuple[object, ...]]
) -> None:
    world = World(load_profile(profile), seed=seed)
    world.up()
    before = totals(world)
    for what in history:
        happen(world, what)
        check(world)
        after = totals(world)
        assert all((b >= a).all() for a, b in zip(before, after, strict=True)), what
        before = after


@given(st.integers(0, 2**32), st.lists(HAPPENINGS, min_size=1, max_size=12))
@settings(max_examples=15, deadline=None)
def test_the_same_seed_and_history_give_the_same_figures(
    seed: int, history: list[tuple[object, ...]]
) -> None:
    worlds = [World(load_profile("dr8"), seed=seed) for _ in range(2)]
    for world in worlds:
        world.up()
        for what in history:
            happen(world, what)
    for one, other in zip(totals(worlds[0]), totals(worlds[1]), strict=True):
        assert np.array_equal(one, other)
