"""A simulated past: samples as a scrape would have them, alerts as the rules would tell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import history  # noqa: E402

SPAN = history.Span(0.0, 36000.0, 3600.0)


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ('a{b="c d"} 1 2.0\n', 'a{job="acceld",instance="simulated:9437",b="c d"} 1 2.0\n'),
        ("a 1 2.0\n", 'a{job="acceld",instance="simulated:9437"} 1 2.0\n'),
        ("# TYPE a gauge\n", "# TYPE a gauge\n"),
        ("# EOF\n", "# EOF\n"),
    ],
)
def test_a_sample_gets_the_labels_of_a_scrape(line: str, result: str) -> None:
    assert history.scraped(line) == result


def test_records_are_written_out_to_the_last() -> None:
    records = {"accel:a:b": "x + accel:c:d", "accel:c:d": "y"}
    assert history.written_out("accel:a:b < 1", records) == "(x + (y)) < 1"


def test_no_alert_asks_for_a_record() -> None:
    found = history.alerts()
    assert len(found) > 40
    assert not [alert for alert in found if "accel:" in alert.expr]


def test_an_alert_comes_when_it_has_held_and_again_after_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hours = [1, 2, 3, 7, 9, 10, 11]
    answer = [
        {"metric": {"card": "card0", "oe": "oe1"}, "values": [[h * 3600, "1"] for h in hours]}
    ]
    monkeypatch.setattr(history, "ask", lambda *_: answer)
    found = list(history.firings("", history.Alert("A", "", 3600), SPAN))
    assert [(one.from_s / 3600, one.until_s / 3600) for one in found] == [(2, 3), (10, 11)]
    assert {one.place for one in found} == {"card0/oe1"}


def test_lanes_of_an_engine_are_told_together() -> None:
    found = [history.Firing("A", f"card0/oe1/lane{lane}", 86400.0, 90000.0) for lane in (0, 1)]
    (line,) = history.told(found, SPAN)
    assert line.split() == ["1970-01-02", "00:00", "day", "1.0", "A", "card0/oe1,", "2", "lanes"]
