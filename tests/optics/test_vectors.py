"""The optics agree with published formulas, as computed elsewhere with 60 digits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelhw.optics import ber, budget, fec

VECTORS = Path(__file__).parent.parent / "vectors"
RELATIVE = 1e-9


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def close(value: object, expected: float | None) -> bool:
    return value == pytest.approx(expected, rel=RELATIVE, abs=0.0)


def test_powers_convert_both_ways():
    rows = vectors("fibre_power")["dbm"]
    dbm, mw = ([row[key] for row in rows] for key in ("power_dbm", "power_mw"))
    np.testing.assert_allclose(budget.milliwatts(dbm), mw, rtol=RELATIVE)
    np.testing.assert_allclose(budget.dbm(mw), dbm, rtol=RELATIVE, atol=1e-12)


@pytest.mark.parametrize("row", vectors("fibre_power")["oma"])
def test_modulation_amplitude_follows_power_and_extinction(row: dict[str, float]):
    assert close(budget.oma_dbm(row["avg_power_dbm"], row["extinction_ratio_db"]), row["oma_dbm"])


@pytest.mark.parametrize("row", vectors("fibre_power")["loss"])
def test_losses_add_up(row: dict[str, float]):
    expected = row.pop("loss_db")
    assert close(budget.loss_db(**row), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", vectors("fibre_power")["delay"])
def test_light_takes_its_time(row: dict[str, float]):
    assert close(budget.delay_ns(row["length_m"], row["group_index"]), row["one_way_ns"])


def test_pam4_errors_follow_from_the_eye():
    rows = vectors("pam4_q_ber")["rows"]
    q = [row["q_ratio"] for row in rows]
    for function, key in (
        (ber.ser_pam4, "pam4_ser_ratio"),
        (ber.ber_pam4, "pam4_ber_gray_exact_ratio"),
        (ber.ber_nrz, "nrz_ber_same_q_ratio"),
    ):
        np.testing.assert_allclose(function(q), [row[key] for row in rows], rtol=RELATIVE)
    snr = [row["pam4_snr_db"] for row in rows]
    np.testing.assert_allclose(ber.snr_db(q, "pam4"), snr, rtol=RELATIVE)


@pytest.mark.parametrize("row", vectors("q_inverse")["rows"])
def test_q_is_found_from_errors(row: dict[str, float]):
    wanted = row["ber_ratio"]
    nrz, pam4 = ber.q_of_ber(wanted, "nrz"), ber.q_of_ber(wanted, "pam4")
    assert close(nrz, row["q_nrz_ratio"])
    assert close(pam4, row["q_pam4_eye_ratio"])
    over_nrz = ber.margin_of_q(nrz, ber.q_of_ber(1e-12, "nrz"), 0.0, 0.0)
    over_pam4 = ber.margin_of_q(pam4, ber.q_of_ber(2.4e-4, "pam4"), 0.0, 0.0)
    assert over_nrz == pytest.approx(row["margin_db_over_nrz_1e-12_thermal"], rel=1e-9, abs=1e-9)
    assert over_pam4 == pytest.approx(row["margin_db_over_pam4_2.4e-4_thermal"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "table", vectors("margin_q_ber")["tables"], ids=lambda t: f"{t['anchor']}-{t['noise_model']}"
)
def test_margin_gives_q_and_errors(table: dict[str, Any]):
    reference = ber.q_of_ber(table["ber_at_sensitivity_ratio"], table["modulation"])
    assert close(reference, table["q_at_sensitivity_ratio"])
    s, r = table["shot_over_thermal_var_ratio"], table["rin_over_thermal_var_ratio"]
    rows = table["rows"]
    q = ber.q_of_margin([row["margin_db"] for row in rows], reference, s, r)
    np.testing.assert_allclose(q, [row["q_ratio"] for row in rows], rtol=RELATIVE)
    errors = ber.ber_of_q(q, table["modulation"])
    np.testing.assert_allclose(np.log10(errors), [row["log10_ber"] for row in rows], atol=RELATIVE)
    if table["q_floor_ratio"] is not None:
        assert close(budget.rin_q_floor(r, s, reference), table["q_floor_ratio"])
    for row, margin in zip(rows, [row["margin_db"] for row in rows], strict=True):
        back = ber.margin_of_q(row["q_ratio"], reference, s, r)
        assert back == pytest.approx(margin, abs=1e-6)


@pytest.mark.parametrize("name", ["kr4", "kp4"])
def test_codewords_and_frames_are_lost_as_computed(name: str):
    code = fec.CODES[name]
    assert code is not None
    table = next(t for t in vectors("fec")["fec"] if t["fec"].startswith(name))
    assert (code.n, code.k, code.t) == (
        table["n_symbols"], table["k_symbols"], table["t_symbols"]
    )  # fmt: skip
    rows = table["rows"]
    errors = [row["ber_pre_fec_ratio"] for row in rows]
    symbols = fec.symbol_error_ratio(errors)
    np.testing.assert_allclose(symbols, [row["p_symbol_ratio"] for row in rows], rtol=RELATIVE)
    log_pu = fec.log_uncorrectable(errors, code)
    expected = [row["log10_p_uncorrectable"] for row in rows]
    np.testing.assert_allclose(log_pu / math.log(10), expected, rtol=RELATIVE, atol=RELATIVE)
    log_post = fec.log_post_fec_ber(errors, code) / math.log(10)
    np.testing.assert_allclose(log_post, [r["log10_ber_post_fec"] for r in rows], rtol=RELATIVE)
    for octets in (64, 1518, 9216, 65536):
        for interleave in (1, 2, 4):
            lost = [row[f"flr_{octets}B_x{interleave}_ratio"] for row in rows]
            ours = fec.frame_loss(log_pu, octets, interleave)
            np.testing.assert_allclose(ours, lost, rtol=RELATIVE)


def test_frames_without_fec_are_lost_as_computed():
    rows = vectors("fec")["no_fec"]["rows"]
    errors = [row["ber_ratio"] for row in rows]
    for octets in (64, 1518, 9216, 65536):
        lost = [row[f"flr_{octets}B_ratio"] for row in rows]
        ours = fec.frame_loss_without_fec(errors, octets)
        np.testing.assert_allclose(ours, lost, rtol=RELATIVE)


@pytest.mark.parametrize("row", vectors("fec_lane_mix")["rows"], ids=lambda row: row["case"])
def test_unequal_lanes_are_no_mean_lane(row: dict[str, Any]):
    lost = fec.uncorrectable(row["lane_ber_ratio"], fec.KP4)
    expected = row["log10_p_uncorrectable_exact"]
    assert math.log10(lost) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("row", vectors("link_chain")["rows"], ids=lambda row: row["case"])
def test_launch_power_leads_to_frame_loss(row: dict[str, Any]):
    loss = budget.loss_db(
        row["fibre_m"], row["fibre_db_per_km"], row["connectors"], row["connector_db"],
        extra_db=row["extra_loss_db"],
    )  # fmt: skip
    assert close(loss, row["path_loss_db"])
    received = row["tx_avg_power_dbm"] - loss
    margin = budget.margin_db(
        received, row["extinction_ratio_db"], row["tdecq_db"],
        row["sensitivity_oma_dbm_at_zero_tdecq"],
    )  # fmt: skip
    assert margin == pytest.approx(row["margin_db"], rel=1e-9, abs=1e-12)
    q = ber.q_of_margin(
        margin,
        ber.q_of_ber(row["ber_at_sensitivity_ratio"], row["modulation"]),
        row["shot_over_thermal_var_ratio"],
        row["rin_over_thermal_var_ratio"],
    )
    assert close(q, row["q_ratio"])
    errors = ber.ber_of_q(q, row["modulation"])
    assert np.log10(errors) == pytest.approx(row["log10_ber_pre_fec"], rel=1e-9)
    code = next((c for n, c in fec.CODES.items() if row["fec"] and row["fec"].startswith(n)), None)
    for octets in (64, 1518, 9216, 65536):
        if code is None:
            lost = fec.frame_loss_without_fec(errors, octets)
        else:
            lost = fec.frame_loss(fec.log_uncorrectable(errors, code), octets, row["interleave"])
        assert lost == pytest.approx(row[f"flr_{octets}B_ratio"], rel=1e-9)
