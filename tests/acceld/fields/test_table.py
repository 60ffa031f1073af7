"""The field table: its names, its page, and what a host of it costs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from acceld.fields.field import Derived, Field, Noun
from acceld.fields.table import DEFAULT, FIELDS, GROUPS, OPT_IN, Shape, series

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
