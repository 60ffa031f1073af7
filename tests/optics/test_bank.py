"""Light in a bank: every figure has its cause, and nothing else moves."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from accelhw.model.profile import load_profile
from accelhw.optics.bank import BankFull, LaneBank
from accelhw.optics.banks import Banks
from accelhw.optics.causes import CAUSES, LANE_CAUSES
from accelhw.optics.heat import nominal_case_c
from accelhw.optics.monitor import power_reading_dbm

from .conftest import World, narrow


def figures(world: World) -> dict[str, np.ndarray]:
    tx, rx = world.bank.tx, world.bank.rx
    return {
        "tx": tx.power_dbm, "bias": tx.bias_ma, "rx": rx.power_dbm, "ber": rx.ber,
        "margin": rx.margin_db, "lit": rx.lit, "locked": rx.locked, "fault": tx.fault,
    }  # fmt: skip


def test_received_is_launched_minus_lost(dr8: World) -> None:
    tx, rx = dr8.bank.tx, dr8.bank.rx
    assert rx.power_dbm[0] == pytest.approx(tx.power_dbm[1] - dr8.loss_db, abs=0.005)
    dr8.cause("tx_path_loss_db", 1.5, port=1, lane=3)
    dr8.cause("rx_path_loss_db", 0.7, port=0, lane=3)
    assert rx.power_dbm[0, 3] == pytest.approx(tx.power_dbm[1, 3] - dr8.loss_db - 2.2, abs=0.005)
    assert tx.power_dbm[1, 3] == tx.launch_dbm[1, 3]  # the monitor sits before the connector


@pytest.mark.parametrize("cause", LANE_CAUSES)
@pytest.mark.parametrize("profile", ["dr8", "oio", "single"])
def test_a_cause_moves_its_own_lanes_only_and_what_it_did_goes_with_it(
    profile: str, cause: str
) -> None:
    world = World(load_profile(profile), ports=4)
    world.run(1800, 30)  # warm
    before = {name: array.copy() for name, array in figures(world).items()}
    world.cause(cause, 1.0, port=0, lane=0)
    world.run(20)
    group = world.bank.profile.laser.lanes_per_laser
    for name, array in figures(world).items():
        assert np.array_equal(array[2:], before[name][2:]), name
        assert np.array_equal(array[:2, group:], before[name][:2, group:]), name
    world.cause(cause, 0.0, port=0, lane=0)
    world.run(900, 30)
    for name, array in figures(world).items():
        assert np.allclose(array, before[name], atol=0.03, equal_nan=True), name


def test_wear_costs_bias_first_and_light_later(dr8: World) -> None:
    bias, power, shown = [], [], []
    for wear in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        dr8.cause("laser_wear_ratio", wear, lane=2)
        bias.append(float(dr8.bank.tx.bias_ma[0, 2]))
        power.append(float(dr8.bank.tx.power_dbm[0, 2]))
        shown.append(float(dr8.bank.tx.wear_ratio[0, 2]))
    limit = dr8.bank.profile.laser.bias_limit_ma
    assert power[1] == power[2] == power[0]
    assert bias[0] < bias[1] < bias[2] < limit
    assert bias[-1] == bias[-2] == limit
    assert power[0] > power[-2] > power[-1]
    assert 1.0 < power[0] - power[-1] < 5.0
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0.0, 1.0)


def test_a_dead_laser_is_dark_where_it_shines_and_nowhere_else(dr8: World, oio: World) -> None:
    for world, dark in ((dr8, [5]), (oio, [4, 5, 6, 7])):
        world.cause("laser_dead", 1, port=1, lane=5)
        tx, rx = world.bank.tx, world.bank.rx
        lanes = world.bank.profile.lanes_per_oe
        assert np.flatnonzero(tx.fault[1]).tolist() == dark
        assert tx.power_dbm[1, dark].tolist() == [-40.0] * len(dark)
        assert tx.bias_ma[1, dark].tolist() == [0.0] * len(dark)
        assert np.flatnonzero(~rx.lit[0]).tolist() == dark
        assert rx.lit[1].all()
        assert rx.los_count[0].sum() == len(dark)
        assert rx.locked[0].sum() == lanes - len(dark)


def test_a_lost_source_darkens_its_group(oio: World) -> None:
    oio.cause("els_loss_db", 60.0, lane=9)
    assert np.flatnonzero(oio.bank.tx.fault[0]).tolist() == [8, 9, 10, 11]
    assert np.flatnonzero(~oio.bank.rx.lit[1]).tolist() == [8, 9, 10, 11]


def test_a_failing_cooler_warms_its_laser_which_takes_bias_and_loses_light(dr8: World) -> None:
    tx = dr8.bank.tx
    bias, power = tx.bias_ma[0, 1], tx.power_dbm[0, 1]
    dr8.cause("tec_rise_c", 25.0, lane=1)
    assert tx.laser_c[0, 1] == 50.0  # not at once
    dr8.run(40)
    assert tx.laser_c[0].round(2).tolist() == [50.0, 75.0, *[50.0] * 6]
    assert tx.bias_ma[0, 1] > bias + 5
    assert 1.0 < power - tx.power_dbm[0, 1] < 2.0
    assert tx.cooler_ratio[0, 1] == 1.0
    assert abs(tx.cooler_ratio[0, 0]) < 0.5
    flags = dr8.bank.flags
    assert flags.active[flags.names.index("laser_temp_high_alarm"), 0].tolist() == [
        False, True, *[False] * 6
    ]  # fmt: skip


def test_a_drifting_ring_keeps_its_power_and_loses_its_swing(oio: World) -> None:
    rx = oio.bank.rx
    power, margin = rx.power_dbm[1, 7], rx.margin_db[1, 7]
    oio.cause("ring_error_k", 1.0, lane=7)
    assert rx.power_dbm[1, 7] == power
    assert margin - rx.margin_db[1, 7] == pytest.approx(2.1484384804769787, abs=0.01)
    assert oio.bank.tx.heater_mw[0, 7] == oio.bank.profile.ring.heater_mw_max  # type: ignore[union-attr]


def test_a_ring_follows_the_case_as_far_as_its_heater_goes(oio: World) -> None:
    tx, heat = oio.bank.tx, oio.bank.heat
    oio.run(600, 5)
    heaters, penalties = [], []
    for rise in (0.0, 15.0, 30.0, 60.0):
        oio.bank.causes.ambient_rise_c[0] = rise
        oio.bank.mark_card(0)
        oio.run(900, 5)
        heaters.append(float(tx.heater_mw[0, 0]))
        penalties.append(float(tx.sent_penalty_db[0, 0]))
    assert heat.case_c[0] == pytest.approx(heat.case_c[1] + 60.0, abs=0.2)
    assert heaters == sorted(heaters, reverse=True)
    assert penalties[0] == penalties[1] == penalties[2]
    assert penalties[3] > penalties[0] + 3


def test_an_uncooled_laser_follows_its_case() -> None:
    world = World(load_profile("single"))
    tx = world.bank.tx
    world.run(600, 5)
    cold = float(tx.bias_ma[0, 0])
    assert tx.laser_c[0, 0] == pytest.approx(nominal_case_c(world.bank.profile) + 8.0, abs=0.2)
    world.bank.causes.ambient_rise_c[0] = 20.0
    world.bank.mark_card(0)
    world.run(600, 5)
    assert tx.bias_ma[0, 0] > cold + 2
    assert tx.power_dbm[0, 0] == tx.launch_dbm[0, 0]
    assert math.isnan(tx.cooler_ratio[0, 0])


def test_load_heats_and_air_cools(dr8: World) -> None:
    heat = dr8.bank.heat
    dr8.run(600, 5)
    idle = heat.hbm_c.copy()
    for second in range(600):
        dr8.bank.moved(0, second * 5e8)  # half of what counts as full load
        dr8.run(1, 1)
    assert heat.load_ratio[0] == pytest.approx(0.5)
    assert heat.hbm_c[0] - idle[0] == pytest.approx(0.35 * 0.5 * 3350 * 8 * 4e-3, abs=0.5)
    assert heat.hbm_c[1] == pytest.approx(idle[1], abs=0.01)
    case = float(heat.case_c[1])
    dr8.bank.causes.airflow_ratio[1] = -0.75
    dr8.run(900, 5)
    assert heat.case_c[1] - 35.0 == pytest.approx(4 * (case - 35.0), rel=0.01)
    flags = dr8.bank.card_flags
    assert flags.active[flags.names.index("case_temp_high_alarm")].tolist() == [False, True]


def test_the_supply_has_its_flags(dr8: World) -> None:
    dr8.bank.causes.supply_error_v[0] = -0.2
    dr8.run(1)
    flags = dr8.bank.card_flags
    on = {name for i, name in enumerate(flags.names) if flags.active[i, 0]}
    assert on == {"supply_low_warning"}
    dr8.bank.causes.supply_error_v[0] = -0.4
    dr8.run(1)
    assert flags.active[flags.names.index("supply_low_alarm"), 0]
    assert not flags.active[:, 1].any()


def test_crosstalk_is_there_while_neighbours_send(dr8: World) -> None:
    rx = dr8.bank.rx
    clean = rx.margin_db[0].copy()
    dr8.cause("crosstalk_penalty_db", 0.8, lane=slice(None))
    assert clean - rx.margin_db[0] == pytest.approx(np.full(8, 0.8))
    dr8.bank.set_transmit(0, [True] * 4 + [False] * 4)
    dr8.bank.settle(dr8.now_ns)
    assert clean - rx.margin_db[0] == pytest.approx(np.full(8, 0.4))


def test_a_receivers_own_troubles_leave_the_light_alone(dr8: World) -> None:
    rx = dr8.bank.rx
    power, margin = rx.power_dbm[0].copy(), rx.margin_db[0].copy()
    dr8.cause("rx_penalty_db", 4.0, lane=1)
    dr8.cause("mpi_penalty_db", 0.5, lane=2)
    dr8.cause("rx_monitor_error_db", -2.0, lane=3)
    dr8.cause("cdr_unlocked", 1, lane=4)
    assert np.array_equal(rx.power_dbm[0], power)
    assert margin - rx.margin_db[0] == pytest.approx([0, 4.0, 0.5, 0, 0, 0, 0, 0])
    seen = dr8.bank.seen_rx_dbm(np.array([0]))[0]
    assert power - seen == pytest.approx([0, 0, 0, 2.0, 0, 0, 0, 0])
    assert np.flatnonzero(~rx.locked[0]).tolist() == [4]
    assert rx.lol_count[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert rx.los_count.sum() == 0


def test_a_slower_lane_lets_less_noise_in(dr8: World) -> None:
    margin = dr8.bank.rx.margin_db[0].copy()
    dr8.bank.set_mode(0, "kp4", 2, dr8.now_ns)
    assert dr8.bank.rx.margin_db[0] - margin == pytest.approx(np.full(8, 5 * math.log10(2)))
    bits = dr8.bank.counters.rx_bits[0].copy()
    dr8.run(1)
    assert dr8.bank.counters.rx_bits[0] - bits == pytest.approx(np.full(8, 106.25e9 / 2))


def test_monitors_wander_a_little_and_errors_do_not_follow() -> None:
    world = World(load_profile("dr8"), ports=200)
    ber, monitor = world.bank.rx.ber.copy(), world.bank.tx_monitor
    readings = []
    for _ in range(200):
        world.run(1, 1)
        world.bank.sense()
        readings.append(monitor.error_db.copy())
    noise = np.array(readings)
    assert noise.std() == pytest.approx(math.hypot(0.1, 0.03), rel=0.1)
    quick = np.diff(noise, axis=0).std() / math.sqrt(2)
    walk = 0.1 * math.sqrt(1 - math.exp(-1 / 60))
    assert quick == pytest.approx(math.hypot(0.03, walk), rel=0.1)
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 0, 1])[0, 1]) < 0.9
    assert np.array_equal(world.bank.rx.ber, ber)


def test_parts_are_their_own_whoever_shares_the_bank() -> None:
    profile = load_profile("oio")
    alone, shared = LaneBank(profile, 3), LaneBank(profile, 3, ports=9, cards=9)
    for n in range(8):
        shared.add_port(f"card{n}", 0)
    row = shared.add_port("cardx", 1)
    alone.add_port("cardx", 1)
    assert np.array_equal(alone.tx.launch_dbm[0], shared.tx.launch_dbm[row])
    assert not np.array_equal(shared.tx.launch_dbm[0], shared.tx.launch_dbm[1])
    assert 0.2 < shared.tx.launch_dbm.std() < 1.0
    with pytest.raises(BankFull):
        shared.add_port("one more", 0)


def test_steps_of_any_length_lead_to_the_same_heat() -> None:
    ends = []
    for step_s in (0.5, 5.0, 60.0):
        world = World(load_profile("dr8"))
        world.bank.causes.ambient_rise_c[0] = 10.0
        world.run(60, step_s)
        ends.append(float(world.bank.heat.case_c[0]))
    assert all(abs(a - b) < 1.0 for a, b in pairwise(ends))


def test_what_stays_as_it_is_is_not_computed_again(
    dr8: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dr8.run(3600, 60)
    seen: list[int] = []
    update = dr8.bank.rx.update
    monkeypatch.setattr(dr8.bank.tx, "update", lambda ports, case: seen.append(len(ports)))
    monkeypatch.setattr(
        dr8.bank.rx, "update", lambda ports, share: seen.append(len(ports)) or update(ports, share)
    )
    dr8.bank.advance(dr8.now_ns + 1_000_000_000)
    assert seen == []
    dr8.bank.causes_of(1).rx_path_loss_db[0] = 1.0
    dr8.bank.mark(1)
    dr8.bank.advance(dr8.now_ns + 2_000_000_000)
    assert 1 in seen
    assert max(seen) == 1


def test_every_cause_has_a_place() -> None:
    world = World(narrow("oio", 4))
    for name in CAUSES:
        assert world.bank.causes.array(name).sum() == 0
    with pytest.raises(KeyError):
        world.bank.causes.array("no such cause")


def test_lateness_is_forgotten_by_halves() -> None:
    banks = Banks([load_profile("dr8")], seed=1)
    bank = banks.of(load_profile("dr8"))
    seen = []
    for late_ns in (0, 800, 0, 0, 1000, 0):
        banks.advance(1, late_ns)
        seen.append(bank.late_ns)
    assert seen == [0, 800, 400, 200, 1000, 500]


def test_registers_read_what_is_there_now_whatever_moved() -> None:
    world = World(load_profile("dr8"), ports=4)
    bank = world.bank
    steps = {
        "noise": lambda: (world.run(1, 1), bank.sense()),
        "dirt": lambda: world.cause("rx_path_loss_db", 3.0, port=1, lane=2),
        "wear": lambda: world.cause("laser_wear_ratio", 0.6, port=2, lane=slice(None)),
        "a monitor": lambda: world.cause("rx_monitor_error_db", -2.0, port=0, lane=5),
        "darkness": lambda: world.cause("laser_dead", 1, port=3, lane=7),
        "heat": lambda: (world.cause("tec_rise_c", 5.0, port=0), world.run(30)),
    }
    for what, happens in steps.items():
        happens()
        read, tx, rx = bank.readings(), bank.tx, bank.rx
        sent = power_reading_dbm(tx.power_dbm, bank.tx_monitor.error_db)
        seen = power_reading_dbm(bank.seen_rx_dbm(np.arange(4)), bank.rx_monitor.error_db)
        assert np.array_equal(read.tx_power_dbm, sent), what
        assert np.array_equal(read.rx_power_dbm, seen), what
        assert np.allclose(read.tx_bias_ma, tx.bias_ma, atol=0.001), what
        assert np.allclose(read.laser_temp_c, tx.laser_c, atol=1 / 512), what
        assert np.array_equal(read.margin_db, np.where(rx.lit, rx.margin_db, 0.0)), what
        assert np.array_equal(read.pre_fec_ber, np.where(rx.lit, rx.ber, 0.0)), what
