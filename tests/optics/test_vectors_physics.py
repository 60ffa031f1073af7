"""Lasers, rings, heat, bursts and many ports' FEC agree with figures computed with 60 digits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelhw.optics import burst, fec, laser, ring, thermal

VECTORS = Path(__file__).parent.parent / "vectors"
RELATIVE = 1e-9
CODES = {"kp4_rs544_514": fec.KP4, "kr4_rs528_514": fec.KR4}


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def close(value: object, expected: float) -> bool:
    return value == pytest.approx(expected, rel=RELATIVE, abs=0.0)


@pytest.mark.parametrize("row", vectors("ageing_thermal")["laser_li"])
def test_light_follows_bias_and_bias_follows_light(row: dict[str, float]):
    temp_c = row["laser_temp_c"]
    assert close(laser.threshold_ma(temp_c), row["threshold_ma"])
    assert close(laser.power_mw(row["bias_ma"], temp_c), row["facet_power_mw"])
    assert close(laser.bias_ma(row["facet_power_mw"], temp_c), row["bias_ma"])


@pytest.mark.parametrize("row", vectors("ageing_thermal")["arrhenius"])
def test_heat_ages(row: dict[str, float]):
    factor = laser.acceleration(row["t_use_c"], row["t_stress_c"], row["activation_energy_ev"])
    assert close(factor, row["acceleration_factor_ratio"])


@pytest.mark.parametrize("row", vectors("ageing_thermal")["apc_bias"])
def test_power_control_pays_for_age_with_bias(row: dict[str, float]):
    growth = laser.aged_growth(
        row["age_h_at_ref_temp"], row["eol_increase_ratio"], row["eol_h"], row["beta"]
    )
    assert close(row["bias0_ma"] * growth, row["bias_ma"])


@pytest.mark.parametrize("row", vectors("ageing_thermal")["rin"])
def test_laser_noise_alone_leaves_so_much_q(row: dict[str, float]):
    figures = row["rin_db_per_hz"], row["extinction_ratio_db"], row["bandwidth_hz"]
    assert close(laser.rin_q(*figures, 4), row["q_pam4_top_eye_rin_only_ratio"])
    assert close(laser.rin_q(*figures, 2), row["q_nrz_one_level_rin_only_ratio"])


@pytest.mark.parametrize("row", vectors("ageing_thermal")["ring"])
def test_a_detuned_ring_costs_amplitude(row: dict[str, float]):
    penalty = ring.detuned_penalty_db(
        row["uncorrected_delta_t_k"], row["drift_ghz_per_k"], row["fwhm_ghz"]
    )
    assert close(penalty, row["oma_penalty_db"])


@pytest.mark.parametrize("row", vectors("ageing_thermal")["thermal_rc"])
@pytest.mark.parametrize("steps", [1, 7])
def test_a_case_warms_up_however_time_is_cut(row: dict[str, float], steps: int):
    final = thermal.final_c(row["ambient_c"], row["power_w"], row["r_theta_k_per_w"])
    case: Any = row["ambient_c"]
    for _ in range(steps):
        case = thermal.relaxed_c(case, final, row["t_s"] / steps, row["tau_s"])
    assert close(case, row["case_temp_c"])


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("row", vectors("fec_histogram")["rows"])
def test_bins_are_the_histogram(row: dict[str, Any], lanes: int):
    code = CODES[row["fec"]]
    odds = fec.word_odds([[row["ber_pre_fec_ratio"]] * lanes], code)
    np.testing.assert_allclose(odds.bins[0], row["bins_0_to_t_ratio"], rtol=RELATIVE)
    assert close(odds.uncorrectable[0], row["uncorrectable_ratio"])
    rate = row["codeword_rate_per_lane_cw_per_s"]
    np.testing.assert_allclose(odds.bins[0] * rate, row["expected_counts_per_s_per_lane"], RELATIVE)


@pytest.mark.parametrize("row", vectors("fec_lane_mix")["rows"], ids=lambda row: row["case"])
def test_many_ports_at_once_are_as_one(row: dict[str, Any]):
    many = fec.word_odds([row["lane_ber_ratio"]] * 3, fec.KP4).uncorrectable
    expected = row["log10_p_uncorrectable_exact"]
    assert np.log10(many) == pytest.approx([expected] * 3, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("row", vectors("fec_thresholds")["rows"], ids=lambda r: r["target"])
def test_the_limits_that_standards_name_meet_their_targets(row: dict[str, Any]):
    limit = row["ber_pre_fec_limit_ratio"]
    code = CODES.get(row["fec"], fec.Code("low latency", 272, 258))
    if row["interleave"] is None:
        reached = math.exp(float(fec.log_post_fec_ber(limit, code)))
        wanted = row["target_ber_ratio"]
    else:
        blocks = code.payload_bits * 4 // 257  # of 66 bits, transcoded
        touched = row["interleave"] + 9 / blocks
        lost = math.exp(float(fec.log_uncorrectable(limit, code)))
        reached, wanted = -math.expm1(touched * math.log1p(-lost)), row["target_flr_ratio"]
    assert reached == pytest.approx(wanted, rel=1e-7)  # steep: 1e-9 of the limit is more of it


@pytest.mark.parametrize("row", vectors("fec_latency")["rows"], ids=lambda row: row["case"])
def test_fec_waits_for_its_codewords(row: dict[str, Any]):
    code = fec.Code("any", row["codeword_bits"] // 10, 1)
    delay = fec.receive_delay_ns(code, row["interleave"], row["line_rate_gbit_per_s"])
    assert close(delay, row["total_rx_fec_ns"])


@pytest.mark.parametrize("row", vectors("pcs_lock")["rows"])
def test_three_lost_codewords_in_a_row_come_so_often(row: dict[str, float]):
    odds = fec.word_odds([[row["ber_pre_fec_ratio"]] * 4], fec.KP4)
    assert close(odds.uncorrectable[0], row["p_uncorrectable_ratio"])
    rate = fec.lock_loss_ratio(odds.uncorrectable[0]) * row["codeword_rate_per_s"]
    assert close(1.0 / rate, row["mean_time_to_lock_loss_s"])


@pytest.mark.parametrize("row", vectors("gilbert_elliott")["rows"])
def test_a_burst_chain_has_its_long_run(row: dict[str, float]):
    share = burst.share_bad(row["p_good_to_bad_per_codeword"], row["p_bad_to_good_per_codeword"])
    assert close(share, row["share_bad_ratio"])
    good, bad = row["ber_good_ratio"], row["ber_bad_ratio"]
    assert close(burst.mixed(good, bad, share), row["mean_ber_ratio"])
    lost = fec.word_odds([[good], [bad]], fec.KP4).uncorrectable
    assert close(burst.mixed(lost[0], lost[1], share), row["p_uncorrectable_ratio"])


def test_the_chance_to_lose_lock_in_a_burst_is_that_of_throwing_dice():
    dice = np.random.Generator(np.random.PCG64(5))
    for lost, leave in ((0.9, 0.05), (0.3, 0.2), (0.05, 0.05), (1.0, 0.5)):
        hits, bursts = 0, 4000
        for length in dice.geometric(leave, bursts):
            row = dice.random(length) < lost
            hits += bool((row[2:] & row[1:-1] & row[:-2]).any())
        expected = burst.lock_loss_in_burst(lost, leave)
        assert hits / bursts == pytest.approx(expected, abs=5 * math.sqrt(0.25 / bursts))
