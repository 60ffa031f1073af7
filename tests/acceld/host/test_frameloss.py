"""The prediction of lost frames agrees with the formulas as computed elsewhere with 60 digits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from acceld.host.frameloss import frame_loss, uncorrectable

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


CODES = [code for code in vectors("fec")["fec"] if code["k_symbols"] == 514]  # of these lanes


@pytest.mark.parametrize("code", CODES, ids=lambda code: code["fec"])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_codewords_and_frames_are_lost_as_the_formulas_say(code: Any, lanes: int) -> None:
    for row in code["rows"]:
        ber = [row["ber_pre_fec_ratio"]] * lanes
        lost = uncorrectable(tuple(ber), code["t_symbols"])
        assert lost == pytest.approx(row["p_uncorrectable_ratio"], rel=1e-8)
        for size in (64, 1518, 9216, 65536):
            for interleave in (1, 2, 4):
                expected = row[f"flr_{size}B_x{interleave}_ratio"]
                found = frame_loss(ber, code["t_symbols"], size, interleave)
                assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("row", vectors("fec_lane_mix")["rows"], ids=lambda row: row["case"])
def test_lanes_of_unequal_errors_share_each_codeword(row: Any) -> None:
    lost = uncorrectable(tuple(row["lane_ber_ratio"]), 15)
    assert lost == pytest.approx(row["p_uncorrectable_exact_ratio"], rel=1e-8)


def test_without_errors_nothing_is_lost() -> None:
    assert frame_loss([0.0] * 8, 15, 65536, 2) == 0.0
    assert frame_loss([0.0], 0, 65536, 1) == 0.0


def test_without_fec_every_bit_counts() -> None:
    assert frame_loss([1e-9], 0, 9216, 1) == pytest.approx(-math.expm1(-1e-9 * 8 * 9224), rel=1e-6)


def test_noise_loses_everything() -> None:
    assert frame_loss([0.5] * 4, 7, 64, 1) == 1.0
