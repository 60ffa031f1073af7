"""What each fault looks like at both ends, and the way back."""

from __future__ import annotations

import numpy as np
import pytest

from accelhw.model.link import LinkState

from .conftest import FAR, NEAR, Benches, Floats

UP = LinkState.UP
NOISE_DB = 0.35  # of two readings of a power monitor


def change(now: Floats, then: Floats) -> list[float]:
    return (now - then).tolist()


def about(*values: float, within: float = NOISE_DB) -> object:
    return pytest.approx(values, abs=within)


# ---- connectors and fibre ------------------------------------------------------------------------


def test_dirty_connector_mild(bench: Benches) -> None:
    link = bench()
    link.inject("dirty_connector_mild")
    near, far = link.run(5)
    before_near, before_far = link.before
    assert change(near.rx, before_near.rx) == about(*[-1.8] * 8)
    assert change(far.rx, before_far.rx) == about(*[0.0] * 8)
    assert change(near.tx, before_near.tx) == about(*[0.0] * 8)
    rise = near.ber / before_near.ber
    assert (rise > 5).all()
    assert (rise < 100).all()
    assert (near.state, near.los, near.port["fec_uncorrectable"]) == (UP, [], 0)
    assert (far.ber == before_far.ber).all()
    link.heals()


def test_dirty_connector_bad(bench: Benches) -> None:
    link = bench()
    link.inject("dirty_connector_bad")
    near, far = link.run(2)
    assert change(near.rx, link.before[NEAR].rx) == about(*[-6.0] * 8)
    assert change(far.rx, link.before[FAR].rx) == about(*[0.0] * 8)
    assert (near.ber > 2.4e-4).all()
    assert near.los == []
    assert near.port["fec_bins"][15] > 0
    assert near.port["fec_uncorrectable"] > 0
    assert far.port["fec_uncorrectable"] == 0
    assert near.reason == "BER_TOO_HIGH"
    near_port = link.world.ports[NEAR]
    assert link.world.run(30, until=lambda: not near_port.trainer.state.carries_data)
    link.heals()


def test_bent_fibre(bench: Benches) -> None:
    link = bench()
    link.inject("bent_fibre")
    for now, then in zip(link.run(5), link.before, strict=True):
        assert change(now.rx, then.rx) == about(*[-6.0] * 8)
        assert change(now.tx, then.tx) == about(*[0.0] * 8)
        assert change(now.bias, then.bias) == about(*[0.0] * 8, within=1.0)
        assert (now.ber > 100 * then.ber).all()
        assert now.los == []
    link.heals()


@pytest.mark.parametrize("kind", ["fibre_cut", "tx_tx_miscable"])
def test_a_dark_fibre_is_noticed_at_both_ends_at_once(bench: Benches, kind: str) -> None:
    link = bench()
    link.inject(kind)
    for now in link.run(100e-6):
        assert now.los == list(range(8))
    for now, then in zip(link.run(3), link.before, strict=True):
        assert now.rx.tolist() == [-40.0] * 8
        assert change(now.tx, then.tx) == about(*[0.0] * 8)  # lasers are on
        assert change(now.bias, then.bias) == about(*[0.0] * 8, within=1.0)
        assert now.lanes["los_count"].tolist() == [1] * 8
        assert (now.state, now.reason) == (LinkState.SEEKING, "NO_SIGNAL")
        words = now.port["fec_codewords"]
    assert link.run(1)[FAR].port["fec_codewords"] == words  # counters stand still
    after = link.heals()
    assert [end.port["downs"] for end in after] == [1, 1]


def test_unplug_replug(bench: Benches) -> None:
    link = bench()
    link.inject("unplug_replug")
    assert all(end.los for end in link.run(7.9))
    assert link.run_until_up(10)
    for now, then in zip(link.run(1), link.before, strict=True):
        assert change(now.rx, then.rx) == about(*[-0.3] * 8)
        assert change(now.margin, then.margin) == about(*[-0.3] * 8, within=0.02)
        assert now.port["downs"] == 1
    link.heals()


def test_flapping(bench: Benches) -> None:
    link = bench()
    link.inject("flapping", shape="burst")
    ends = link.run(5.5)
    for now in ends:
        assert now.lanes["los_count"].tolist() == [6] * 8
        assert 1 <= now.port["downs"] <= 6
    assert "LINK_DOWN" in link.kinds
    link.heals(120)


def test_ber_creep(bench: Benches) -> None:
    link = bench()
    link.inject("ber_creep", ramp_s=20.0)
    logs = [float(np.log10(link.run(2)[NEAR].ber.max())) for _ in range(6)]
    steps = np.diff(logs)
    assert (steps > 0.3).all()  # decades, evenly
    assert steps.max() < 3 * steps.min()
    near, far = link.run(8)
    assert near.state is not UP  # the cliff
    assert far.ber.tolist() == link.before[FAR].ber.tolist()
    link.heals()


# ---- cables plugged wrong ------------------------------------------------------------------------


def test_polarity_swap(bench: Benches) -> None:
    link = bench()
    link.inject("polarity_swap", lanes=(2,))
    assert link.run(0.01)[FAR].state is not UP
    assert "LINK_DOWN" in link.kinds
    assert link.run_until_up()
    for now, then in zip(link.run(2), link.before, strict=True):
        assert now.lanes["inverted"].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
        assert now.lanes["peer_lane"].tolist() == list(range(8))
        assert now.ber.tolist() == then.ber.tolist()
    after = link.heals()
    assert not after[NEAR].lanes["inverted"].any()


def test_lane_swap_reversal(bench: Benches) -> None:
    link = bench()
    link.inject("lane_swap_reversal")
    down = link.run(0.01)
    assert "ALIGN_LOST" in {end.reason for end in down}
    assert link.run_until_up()
    for now in link.run(2):
        assert now.lanes["peer_lane"].tolist() == list(reversed(range(8)))
        assert not now.lanes["inverted"].any()
        assert now.width == 8
    after = link.heals()
    assert after[FAR].lanes["peer_lane"].tolist() == list(range(8))


# ---- transmitters --------------------------------------------------------------------------------


def test_laser_ageing(bench: Benches) -> None:
    link = bench()
    link.inject("laser_ageing", ramp_s=30.0)
    early, _ = link.run(10)
    growth = early.bias / link.before[NEAR].bias
    assert (growth > 1.2).all()
    assert change(early.tx, link.before[NEAR].tx) == about(*[0.0] * 8)
    late, far = link.run(25)
    fall = late.tx - link.before[NEAR].tx
    assert (fall < -2.0).all()
    assert (far.rx - link.before[FAR].rx).tolist() == about(*fall, within=2 * NOISE_DB)
    assert (far.ber > link.before[FAR].ber).all()
    assert (late.lanes["laser_wear_ratio"] > 0.9).all()
    assert late.ber.tolist() == link.before[NEAR].ber.tolist()
    link.heals()


def test_laser_fail(bench: Benches) -> None:
    link = bench()
    link.inject("laser_fail", lanes=(3,))
    near, far = link.run(5)
    others = [0, 1, 2, 4, 5, 6, 7]
    assert (near.tx[3], near.bias[3], near.lanes["tx_on"][3]) == (-40.0, 0.0, 0)
    assert change(near.tx[others], link.before[NEAR].tx[others]) == about(*[0.0] * 7)
    assert (far.rx[3], far.los) == (-40.0, [3])
    assert near.los == []
    assert (near.width, far.width) == (4, 4)
    assert {near.state, far.state} == {LinkState.DEGRADED}
    assert near.reason == "TX_FAULT"
    link.heals()


def test_els_fail_shared(bench: Benches) -> None:
    link = bench("oio")
    link.inject("els_fail_shared", lanes=(5,))
    near, far = link.run(5)
    group = [4, 5, 6, 7]
    assert near.tx[group].tolist() == [-40.0] * 4
    assert near.bias[group].tolist() == [0.0] * 4
    assert (near.bias[:4] > 100).all()
    assert far.los == group
    assert far.width == near.width < 16
    link.heals()


def test_els_connector_dirty(bench: Benches) -> None:
    link = bench("oio")
    link.inject("els_connector_dirty")
    near, far = link.run(3)
    fall = [-2.0] * 4 + [0.0] * 12
    assert change(near.tx, link.before[NEAR].tx) == about(*fall)
    assert change(far.rx, link.before[FAR].rx) == about(*fall)
    assert change(near.bias, link.before[NEAR].bias) == about(*[0.0] * 16, within=5.0)
    link.heals()


def test_tec_fail(bench: Benches) -> None:
    link = bench()
    link.inject("tec_fail", ramp_s=2.0)
    near, far = link.run(25)
    then_near, then_far = link.before
    assert (near.lanes["laser_temp_c"] - then_near.lanes["laser_temp_c"]).tolist() == about(
        *[25.0] * 8, within=1.0
    )
    assert (near.bias > 1.05 * then_near.bias).all()
    assert change(near.tx, then_near.tx) == about(*[-1.5] * 8, within=0.6)
    assert change(far.rx, then_far.rx) == about(*[-1.5] * 8, within=0.6)
    assert (far.ber > then_far.ber).all()
    shift_pm = [light.wavelength_pm for light in link.world.ports[FAR].heard.lanes]  # type: ignore[union-attr]
    assert shift_pm[0] - 1_311_000 == pytest.approx(2500, abs=150)  # 0.1 nm a kelvin
    assert (near.lanes["tec_current_ratio"] == 1.0).all()
    link.heals(settle_s=40)  # it cools down


def test_ring_drift(bench: Benches) -> None:
    link = bench("oio")
    link.inject("ring_drift", ramp_s=5.0)
    near, far = link.run(8)
    assert change(near.tx, link.before[NEAR].tx) == about(*[0.0] * 16)
    assert change(far.rx, link.before[FAR].rx) == about(*[0.0] * 16)
    fall = (far.margin - link.before[FAR].margin).tolist()
    # 15 GHz beside a ring of 25 GHz: 10 log10(1 + (2 * 15 / 25)^2)
    assert fall[0] == pytest.approx(-3.87, abs=0.05)
    assert fall[1:] == about(*[0.0] * 15, within=0.05)
    heater = near.lanes["heater_mw"]
    assert heater[0] == 29.0  # its rail
    assert (heater[1:] < 25.0).all()
    link.heals()


def test_crosstalk(bench: Benches) -> None:
    link = bench()
    link.inject("crosstalk")
    near, far = link.run(2)
    lit = near.margin - link.before[NEAR].margin
    assert lit.tolist() == about(*[-0.8] * 8, within=0.05)
    assert (near.ber > link.before[NEAR].ber).all()
    assert change(near.rx, link.before[NEAR].rx) == about(*[0.0] * 8)
    assert far.ber.tolist() == link.before[FAR].ber.tolist()
    link.world.cards[NEAR].ports[1].set_admin(False, link.world.now_ns)  # neighbours fall silent
    near, _ = link.run(2)
    half = near.margin - link.before[NEAR].margin
    assert half.tolist() == about(*[-0.4] * 8, within=0.05)
    link.heals()


# ---- receivers -----------------------------------------------------------------------------------


def test_esd_rx(bench: Benches) -> None:
    link = bench()
    link.inject("esd_rx", lanes=(1,))
    near, far = link.run(3)
    reads = change(near.rx, link.before[NEAR].rx)
    assert reads == about(0.0, -2.0, *[0.0] * 6)
    assert change(far.tx, link.before[FAR].tx) == about(*[0.0] * 8)
    assert near.ber[1] > 100 * link.before[NEAR].ber[1]
    assert near.margin[1] - link.before[NEAR].margin[1] == pytest.approx(-4.0, abs=0.02)
    assert near.los == []
    assert far.ber.tolist() == link.before[FAR].ber.tolist()
    link.heals()


def test_cdr_unlock(bench: Benches) -> None:
    link = bench()
    link.inject("cdr_unlock", lanes=(6,))
    assert link.run(0.02)[NEAR].lol == [6]
    assert link.run_until_up(10)
    near, far = link.run(1)
    assert near.lanes["lol_count"].tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert not near.lanes["los_count"].any()
    assert not far.lanes["lol_count"].any()
    assert near.ber.tolist() == link.before[NEAR].ber.tolist()
    link.heals()


@pytest.mark.parametrize("profile", ["dr8", "single"])
def test_burst_errors(bench: Benches, profile: str) -> None:
    link = bench(profile)
    link.inject("burst_errors")
    near, far = link.run(60)
    before = link.before[NEAR]
    assert (near.ber < 1e-6).all()  # the mean looks well
    lost = int(near.port["fec_uncorrectable"])
    assert 5 < lost < 1000  # some, over a minute
    bins, t = near.port["fec_bins"] - before.port["fec_bins"], int(near.port["fec_t"])
    assert (bins[t - 1 : t + 1] > lost / 10).all()  # a tail that even errors never have
    assert (before.port["fec_bins"][t - 1 :] == 0).all()
    assert bins[0] > 1e8
    np.testing.assert_allclose(near.margin, before.margin, atol=0.02)  # the light is what it was
    assert far.port["fec_uncorrectable"] == 0
    for now in (near, far):
        assert (now.state, now.port["downs"], now.port["recoveries"]) == (UP, 0, 0)
        assert now.port["fec_lock_losses"] == 0
    link.heals()


def test_burst_errors_without_fec(bench: Benches) -> None:
    link = bench("oio")
    link.inject("burst_errors")
    near, far = link.run(10)
    before = link.before[NEAR]
    wrong = near.lanes["pre_fec_errors"] - before.lanes["pre_fec_errors"]
    assert (wrong > 10).all()
    assert (near.ber < 1e-9).all()
    assert (near.ber > 100 * before.ber).all()
    np.testing.assert_allclose(near.margin, before.margin, atol=0.02)  # the light is what it was
    assert far.lanes["pre_fec_errors"].tolist() == link.before[FAR].lanes["pre_fec_errors"].tolist()
    for now in (near, far):
        assert (now.state, now.port["downs"], now.port["recoveries"]) == (UP, 0, 0)
    link.heals()


# ---- card ----------------------------------------------------------------------------------------


def test_thermal_runaway_airflow(bench: Benches) -> None:
    link = bench()
    link.inject("thermal_runaway_airflow", "card0", ramp_s=1.0)
    near, far = link.run(100)
    assert near.card["case_temp_c"] > 75.0  # its alarm
    assert near.card["case_temp_c"] - link.before[NEAR].card["case_temp_c"] > 30.0
    assert far.card["case_temp_c"] < 65.0
    link.world.clear()
    near, _ = link.run(150)
    assert near.card["case_temp_c"] < 70.0


def test_supply_droop(bench: Benches) -> None:
    link = bench()
    link.inject("supply_droop", "card0")
    near, far = link.run(1)
    assert near.card["supply_v"] == pytest.approx(3.3 * 0.89)
    assert far.card["supply_v"] == pytest.approx(3.3)
    link.heals()
    assert link.look()[NEAR].card["supply_v"] == pytest.approx(3.3)


def test_hbm_overheat(bench: Benches) -> None:
    link = bench()
    link.inject("hbm_overheat", "card0", ramp_s=1.0)
    near, _ = link.run(60)
    assert near.card["hbm_temp_c"] - link.before[NEAR].card["hbm_temp_c"] == pytest.approx(
        30.0, abs=6.0
    )
