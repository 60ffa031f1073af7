"""Flags: exact under any storm, quiet at the edge, and never without a cause."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.interface.tables import FLAG
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS, LANE_QUANTITIES, LEVELS
from accelhw.optics.flags import HYSTERESIS, FlagBank

from .conftest import World

T0 = 10**18
MS = 1_000_000


def one_flag() -> FlagBank:
    return FlagBank(("los",), (2, 3), {}, {})


def of(bank: FlagBank, name: str, *owner: int) -> SimpleNamespace:
    at = (bank.names.index(name), *owner)
    fields = ("active", "latched", "count", "first_set_ns", "last_set_ns", "last_clear_ns")
    return SimpleNamespace(**{field: getattr(bank, field)[at].item() for field in fields})


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 2000)), max_size=200))
@settings(max_examples=80, deadline=None)
def test_every_edge_is_counted_and_dated(edges: list[tuple[bool, int]]) -> None:
    bank, now, state = one_flag(), T0, False
    count, first, last_set, last_clear = 0, 0, 0, 0
    for on, wait_us in edges:
        now += wait_us * 1000
        bank.condition("los", np.array([[on, False, False]]), now, np.array([1]))
        if on != state:
            count += 1
            state = on
            first = first or (now if on else 0)
            last_set, last_clear = (now, last_clear) if on else (last_set, now)
    flag = of(bank, "los", 1, 0)
    assert flag == SimpleNamespace(
        active=state, latched=count > 0, count=count, first_set_ns=first, last_set_ns=last_set,
        last_clear_ns=last_clear,
    )  # fmt: skip
    assert bank.count.sum() == count  # nobody else's


def test_a_thousand_flaps_a_second_are_counted_one_by_one(dr8: World) -> None:
    start, flags = dr8.now_ns, dr8.bank.flags
    before = of(flags, "los", 0, 4).count
    causes = dr8.bank.causes_of(0)
    for turn in range(1000):
        dr8.now_ns = start + (turn + 1) * MS // 2
        causes.rx_path_loss_db[4] = 0.0 if turn % 2 else 60.0
        dr8.bank.mark(0)
        dr8.bank.settle(dr8.now_ns)
    los = of(flags, "los", 0, 4)
    assert los.count == before + 1000
    assert not los.active
    assert los.latched
    assert los.last_set_ns == start + dr8.bank.wall_offset_ns + 999 * MS // 2
    assert los.last_clear_ns == start + dr8.bank.wall_offset_ns + 500 * MS
    assert dr8.bank.rx.los_count[0].tolist() == [0, 0, 0, 0, 500, 0, 0, 0]
    assert of(flags, "los", 0, 3).count == of(flags, "los", 1, 3).count


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_noise_at_a_level_makes_no_flood(noise: list[float]) -> None:
    levels = {"tx_power_dbm": (5.0, 4.0, -2.0, -4.0)}
    names = LANE_FLAGS
    bank = FlagBank(names, (1,), LANE_QUANTITIES, levels)
    band = HYSTERESIS["tx_power_dbm"]
    bank.watch("tx_power_dbm", np.array([4.0 + band]), T0)
    for turn, part in enumerate(noise):
        bank.watch("tx_power_dbm", np.array([4.0 + part * 0.99 * band]), T0 + turn)
    assert of(bank, "tx_power_high_warning", 0).count == 1
    bank.watch("tx_power_dbm", np.array([4.0 - band - 0.01]), T0 + 99)
    assert not of(bank, "tx_power_high_warning", 0).active


def test_levels_go_on_in_order_and_absent_values_raise_nothing() -> None:
    bank = FlagBank(LANE_FLAGS, (1,), LANE_QUANTITIES, {"tx_bias_ma": (75.0, 70.0, 15.0, 10.0)})
    for value, expected in (
        (40.0, set()), (72.0, {"high_warning"}), (80.0, {"high_warning", "high_alarm"}),
        (math.nan, set()), (12.0, {"low_warning"}), (5.0, {"low_warning", "low_alarm"}),
    ):  # fmt: skip
        bank.watch("tx_bias_ma", np.array([value]), T0)
        on = {level for level in LEVELS if of(bank, f"tx_bias_{level}", 0).active}
        assert on == expected, value
    bank.watch("rx_power_dbm", np.array([99.0]), T0)  # a quantity without thresholds
    assert not any(of(bank, f"rx_power_{level}", 0).active for level in LEVELS)


def test_a_latch_stays_until_it_is_cleared() -> None:
    bank = one_flag()
    for turn, on in enumerate((True, False)):
        bank.condition("los", np.full((1, 3), on), T0 + turn, np.array([1]))
    assert of(bank, "los", 1, 2).latched
    bank.unlatch(1)
    assert not of(bank, "los", 1, 2).latched
    assert of(bank, "los", 1, 2).count == 2


def test_flags_outlive_their_bank_in_the_table(dr8: World) -> None:
    dr8.cause("rx_path_loss_db", 60.0, lane=1)
    rows = np.zeros((8, len(LANE_FLAGS)), FLAG)
    dr8.bank.flags.store(rows, 0)
    later = World(dr8.bank.profile)
    later.bank.flags.resume(rows, 0)
    for name in LANE_FLAGS:
        assert of(later.bank.flags, name, 0, 1) == of(dr8.bank.flags, name, 0, 1)
    row = rows[1, LANE_FLAGS.index("los")]
    assert (row["active"], row["latched"]) == (1, 1)
    assert row["last_set_ns"] == dr8.now_ns + dr8.bank.wall_offset_ns
    untouched = np.zeros((8, len(LANE_FLAGS)), FLAG)
    dr8.bank.flags.store(untouched, 0)  # nothing changed since
    assert not untouched["count"].any()


def test_a_healthy_link_raises_nothing_and_a_switched_off_laser_is_no_fault(oio: World) -> None:
    oio.run(1200, 30)
    for flags in (oio.bank.flags, oio.bank.card_flags):
        assert not flags.active.any()
    oio.bank.set_transmit(0, False)
    oio.bank.settle(oio.now_ns)
    assert not oio.bank.flags.active[:, 0].any()
    assert len(CARD_FLAGS) == len(oio.bank.card_flags.names)
