"""How many series a host makes: counted in a real scrape, and the same by arithmetic."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from acceld.fields.table import FIELDS, GROUPS, Shape, series
from acceld.host.host import Host
from acceld.telemetry.scrape import scrape
from accelhw.model.flag import LANE_FLAGS
from accelhw.model.link import LinkState

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "scrape.py"
SERIES_MAX = 10_000
NONE_BEFORE = {"accel_daemon_scrape_duration_seconds", "accel_daemon_scrape_samples"}  # of scrapes


def rack(cards: int, engines: int, lanes: int, profile: str = "dr8") -> Host:
    spec = importlib.util.spec_from_file_location("scrape_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    if str(SCRIPT.parent) not in sys.path:
        sys.path.append(str(SCRIPT.parent))  # where a script run by itself finds what it shares
    spec.loader.exec_module(module)
    host: Host = module.rack(cards, engines, lanes, profile)
    return host


def counted(text: str) -> Counter[str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len({line.rpartition(" ")[0] for line in lines})
    return Counter(line.partition(" ")[0].partition("{")[0] for line in lines)


def test_256_lanes_make_fewer_than_ten_thousand_series() -> None:
    page = scrape(rack(8, 4, 8).snapshot())
    assert page.samples == counted(page.text).total() < SERIES_MAX


def test_they_do_so_in_the_dark_too_with_every_flag_that_it_raises() -> None:
    host = rack(8, 4, 8)
    table = host.hardware.now.tables
    table.port["state"] = LinkState.SEEKING
    table.lane["fitted_margin"] = 0
    for name in ("los", "lol", "rx_power_low_warning", "rx_power_low_alarm"):
        flags = table.lane_flag[:, LANE_FLAGS.index(name)]
        flags["active"] = flags["latched"] = flags["count"] = 1
    host.health.look()
    assert 8_000 < scrape(host.snapshot()).samples < SERIES_MAX


@pytest.mark.parametrize(
    ("profile", "lanes", "fitted"),
    [
        ("dr8", 8, {"cooled laser"}),
        ("oio", 16, {"cooled laser", "ring modulator", "external laser"}),
    ],
)
def test_the_arithmetic_of_the_table_is_what_a_scrape_counts(
    profile: str, lanes: int, fitted: set[str]
) -> None:
    host = rack(2, 4, lanes, profile)
    if "ring modulator" in fitted:
        host.hardware.now.tables.lane["heater_mw"] = 14.0
    host.store.path = Path("/dev/null")  # durable: its size has a sample
    found = counted(scrape(host.snapshot(), GROUPS).text)
    shape = Shape(2, 4, lanes, workers=2, fitted=frozenset(fitted))
    for field in FIELDS:
        if field.samples_each and field.metric not in NONE_BEFORE:
            assert found[field.metric] == series(field, shape), field.metric
