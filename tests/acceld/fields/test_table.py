"""The field table: its names, its page, and what a host of it costs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from acceld.fields.field import Column, Derived, Field, Noun
from acceld.fields.table import DEFAULT, FIELDS, GROUPS, OPT_IN, Shape, series
from accelhw.interface import tables

ROOT = Path(__file__).resolve().parents[3]
OF_THE_SCRAPER = {"job", "instance"}
UNITS = {
    "seconds": "_seconds", "bytes": "_bytes", "celsius": "_celsius", "volts": "_volts",
    "watts": "_watts", "amperes": "_amperes", "ratio": "_ratio", "dBm": "_dbm", "dB": "_db",
    "bytes_per_second": "_bytes_per_second",
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.metric)
def test_a_name_tells_its_unit_and_a_text_its_meaning(field: Field) -> None:
    assert re.fullmatch(r"accel_[a-z0-9]+(_[a-z0-9]+)*", field.metric)
    if field.unit:
        name = field.metric.removesuffix("_total")
        assert name.endswith(UNITS[field.unit]), field.unit
    assert field.text.endswith(".")
    assert not re.search(r'[\\\n"]', field.text)


def test_no_family_is_there_twice() -> None:
    names = [field.metric for field in FIELDS]
    assert len(names) == len(set(names))


def test_no_label_is_the_scrapers() -> None:
    for field in FIELDS:
        assert not OF_THE_SCRAPER & set(field.labels)
        assert len(field.labels) == len(set(field.labels))


def test_every_group_has_a_field_and_every_field_a_group() -> None:
    assert {field.group for field in FIELDS} == set(GROUPS) == DEFAULT | OPT_IN


def test_a_name_tells_its_kind() -> None:
    def field(metric: str, **more: Any) -> Field:
        return Field(Noun.HOST, "daemon", metric, "X.", Derived(lambda host: 1), **more)

    with pytest.raises(ValueError, match="_total"):
        field("accel_x", kind="counter")
    with pytest.raises(ValueError, match="_total"):
        field("accel_x_total")
    with pytest.raises(ValueError, match="_info"):
        field("accel_x_info")
    with pytest.raises(ValueError, match="message"):
        field("accel_x", key="x")


def test_a_rack_of_256_lanes_stays_under_ten_thousand_series() -> None:
    fitted = frozenset({"cooled laser", "ring modulator", "external laser"})
    shape = Shape(cards=8, engines=4, lanes=8, workers=8, fitted=fitted)
    assert sum(series(field, shape) for field in FIELDS if field.group in DEFAULT) < 10_000


def test_the_page_is_made_from_the_table() -> None:
    path = ROOT / "tools" / "metric_reference.py"
    spec = importlib.util.spec_from_file_location("metric_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert page == module.page(), "make reference"


TOLD_OTHERWISE = {
    "CARD": {
        "seq": "the lock", "state": "by its words", "worker": "in accel_card_info",
        "ecc_rows": "a list", "ecc_row_states": "a list",
    },
    "PORT": {
        "state": "by its words", "phase": "in the API", "reason": "by its words",
        "reason_lane": "in the API", "reason_lanes": "in the API", "peer_reason": "by its words",
        "peer_reason_lane": "in the API", "peer_oe": "in accel_link_info",
        "peer_card": "in accel_link_info", "peer_chassis": "in the API", "epoch": "in the API",
        "up_since_ns": "while it is up", "mode": "by its words", "fec_bins": "by bin",
    },
    "LANE": {
        "peer_lane": "in the API", "inverted": "in the API", "fitted_margin": "as what is absent",
    },
}  # fmt: skip
ROWS = {"CARD": (Noun.CARD,), "PORT": (Noun.LINK,), "LANE": (Noun.LANE,)}


@pytest.mark.parametrize("table", ROWS)
def test_every_column_of_the_hardware_is_shown_once(table: str) -> None:
    columns = {name for name in getattr(tables, table).names if not name.startswith("_")}
    shown = [
        f.source.name for f in FIELDS if isinstance(f.source, Column) and f.noun in ROWS[table]
    ]
    assert len(shown) == len(set(shown))
    assert set(shown) | set(TOLD_OTHERWISE[table]) == columns
    assert not set(shown) & set(TOLD_OTHERWISE[table])


STEMS = {  # column and name of the family, where they are not alike
    "bus_read_bytes": "card_bus_read_bytes", "ecc_sbe": "hbm_corrected_errors",
    "ecc_dbe": "hbm_uncorrectable_errors", "hbm_temp_c": "hbm_temperature",
    "case_temp_c": "card_case_temperature", "laser_temp_c": "lane_laser_temperature",
    "fec_corrected_bits": "fec_corrected_bit_errors", "fec_t": "fec_correctable_symbols",
    "fec_uncorrectable": "fec_uncorrectable_codewords", "training_ns": "training_duration",
    "rtt_ns": "round_trip", "q": "q_factor", "pre_fec_ber": "pre_fec_error", "rx_bits": "rx_bytes",
    "los_count": "los_events", "lol_count": "lol_events", "ready_since_ns": "ready_time",
}  # fmt: skip


@pytest.mark.parametrize(
    "field", [f for f in FIELDS if isinstance(f.source, Column)], ids=lambda f: f.metric
)
def test_a_family_is_named_after_its_column(field: Field) -> None:
    assert isinstance(field.source, Column)
    column = field.source.name
    stem = STEMS.get(column) or re.sub(r"_(ma|mw|v|w|dbm|db|ratio)$", "", column)
    assert stem in field.metric
