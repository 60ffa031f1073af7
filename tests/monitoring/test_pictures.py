"""Pictures arrange answers as the boards say: units, tables, spells of a state."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "monitoring"))

from boards import grafana  # noqa: E402
from pictures.answers import choose, table  # noqa: E402
from pictures.charts import begins, spells  # noqa: E402
from pictures.draw import PANELS  # noqa: E402
from pictures.prometheus import Series  # noqa: E402
from pictures.units import written  # noqa: E402

BOARDS = sorted((ROOT / "monitoring/dashboards").glob("*.json"))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.857, "percentunit", "85.7 %"),
        (1.0, "percentunit", "100 %"),
        (2e-16, "percentunit", "2e-14 %"),
        (6.67e12, "bps", "6.67 Tb/s"),
        (24 * 2**20, "bytes", "24 MiB"),
        (1536, "binBps", "1.5 KiB/s"),
        (0.048, "amp", "48 mA"),
        (0.0178, "watt", "17.8 mW"),
        (258.4, "watt", "258 W"),
        (-5.0123, "dBm", "-5.01 dBm"),
        (7.79e-5, "sci", "7.79e-05"),
        (0.0363, "s", "36.3 ms"),
        (1.2e-5, "s", "12 µs"),
        (0, "s", "0 s"),
        (118, "s", "1.97 min"),
        (6190, "short", "6.19 K"),
        (2, "none", "2"),
        (float("nan"), "dB", "none"),
    ],
)
def test_values_are_written_with_their_unit(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text


def panel_of(sort: str, *, falling: bool) -> dict[str, Any]:
    organize = {
        "excludeByName": {"Time": True, "job": True},
        "indexByName": {"card": 0, "lane": 1, "Value #A": 2, "Value #B": 3},
        "renameByName": {"Value #A": "margin", "Value #B": "Rx"},
    }
    return {
        "targets": [{}, {}],
        "transformations": [{"id": "merge"}, {"id": "organize", "options": organize}],
        "options": {"sortBy": [{"displayName": sort, "desc": falling}]},
    }


def one(value: float, **labels: str) -> Series:
    return Series({"job": "acceld", **labels}, [(0.0, value)])


LANES = [
    ("A", one(7.0, card="card0", lane="lane0")),
    ("A", one(1.5, card="card0", lane="lane1")),
    ("B", one(1.0, card="card0", lane="lane0")),
    ("B", one(-5.0, card="card0", lane="lane1")),
    ("B", one(-40.0, card="card0", lane="lane2")),  # dark: it has no margin
]


def test_a_table_merges_queries_and_puts_what_has_no_value_lowest() -> None:
    shown = table(panel_of("margin", falling=False), LANES)
    assert shown.columns == ["card", "lane", "margin", "Rx"]
    assert shown.rows == [
        ["card0", "lane2", None, -40.0],
        ["card0", "lane1", 1.5, -5.0],
        ["card0", "lane0", 7.0, 1.0],
    ]


def test_a_table_can_have_the_highest_first() -> None:
    shown = table(panel_of("Rx", falling=True), LANES)
    assert [row[3] for row in shown.rows] == [1.0, -5.0, -40.0]


def test_a_state_is_one_bar_until_it_changes_or_is_not_known() -> None:
    points = [(0.0, 4.0), (1.0, 4.0), (2.0, 2.0), (3.0, 2.0), (7.0, 2.0)]
    assert spells(Series({}, points), 1.0) == [(0, 2, 4), (2, 4, 2), (7, 8, 2)]


def test_a_mark_is_made_whenever_more_was_counted() -> None:
    points = [(0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 1.0), (4.0, 1.0)]
    assert begins(Series({}, points)) == [0, 2]


class Listed:
    """A Prometheus that knows the values of labels, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def label_values(self, selector: str, label: str, _span: object) -> list[str]:
        self.asked.append(selector)
        return [f"{label}1", f"{label}2"]


def test_variables_are_chosen_one_after_the_other() -> None:
    board = json.loads((ROOT / "monitoring/dashboards/accel-link.json").read_text())
    prometheus: Any = Listed()
    chosen = choose(board, prometheus, grafana.Span(0, 60, 1, 1), {"card": "card7"})
    assert chosen["job"] == ["job1", "job2"]  # All stands for its values
    assert (chosen["instance"], chosen["card"], chosen["oe"]) == ("instance1", "card7", "oe1")
    assert chosen["peer_card"] == "peer_card1"
    assert prometheus.asked[-1] == (
        'accel_link_info{job=~"(job1|job2)",instance=~"instance1",card=~"card7",oe=~"oe1"}'
    )


@pytest.mark.parametrize("file", BOARDS, ids=lambda p: p.stem)
def test_every_kind_of_panel_can_be_drawn(file: Path) -> None:
    kinds = {panel["type"] for panel in grafana.panels(json.loads(file.read_text()))}
    assert kinds <= set(PANELS)
