"""The comparison of paths keeps to its published totals, and its page to the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from accelhw.optics.paths import compare

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from path_comparison import page  # noqa: E402


def test_totals_for_64_bytes_over_10_m_are_the_published_ones():
    times = {way.name: round(way.time_ns) for way in compare(64, 10.0)}
    assert times == {"pcie": 331, "pluggable": 375, "cpo": 207, "oio": 144}


def test_each_sum_is_the_sum_of_its_parts_and_each_part_has_a_source():
    for way in compare(1 << 20, 25.0):
        assert way.time_ns == pytest.approx(sum(part.value for part in way.latency))
        assert all(part.source for part in (*way.latency, *way.energy))
        assert way.ber_source
        assert way.rate_source


def test_a_gigabyte_costs_8_millijoules_per_picojoule_and_bit():
    for way in compare(10**9, 10.0):
        pj_per_bit = sum(part.value for part in way.energy)
        assert way.energy_j == pytest.approx(0.008 * pj_per_bit)


def test_pam4_lives_by_its_fec_and_nrz_without():
    ways = {way.name: way for way in compare(64, 10.0)}
    assert ways["oio"].pre_fec_ber < 1e-12 < ways["cpo"].pre_fec_ber
    assert ways["cpo"].frame_loss_ratio < 1e-30
    assert ways["oio"].frame_loss_ratio < 1e-9


def test_length_is_paid_in_light_only():
    near, far = compare(64, 1.0), compare(64, 101.0)
    for way, longer in zip(near, far, strict=True):
        expected = 0.0 if way.name == "pcie" else 489.54
        assert longer.time_ns - way.time_ns == pytest.approx(expected, abs=0.01)
    assert [way.within_reach for way in far] == [False, True, True, False]


@pytest.mark.parametrize(("nbytes", "length"), [(0, 10.0), (64, -1.0), (64, float("nan"))])
def test_what_cannot_be_is_refused(nbytes: int, length: float):
    with pytest.raises(ValueError, match=r"bytes|m; use"):
        compare(nbytes, length)


def test_the_module_prints_itself():
    done = subprocess.run(
        [sys.executable, "-m", "accelhw.optics.paths", "--bytes", "64", "--length", "10"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [way["name"] for way in json.loads(done.stdout)] == ["pcie", "pluggable", "cpo", "oio"]


def test_the_page_is_what_the_code_says():
    assert (ROOT / "docs/path-comparison.md").read_text() == page(), "run `make reference`"
