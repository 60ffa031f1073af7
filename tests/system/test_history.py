"""A month of a simulated fleet: the laser's alert comes long before its link suffers."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import history  # noqa: E402

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not all(map(shutil.which, ("prometheus", "promtool"))),
        reason="promtool and prometheus are not installed (Debian package prometheus)",
    ),
]
SCENARIO = ROOT / "examples/scenarios/laser_month.toml"
DAY_S = 86400
LEAD_S = 7 * DAY_S  # enough to get an engine and a night to change it


def first_trouble_s(events: Path) -> float:
    """When a link first lost a lane or went down."""
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["kind"] in ("LINK_DOWN", "LINK_DEGRADED"):
            return datetime.fromisoformat(event["time"]).timestamp()
    raise AssertionError("the link never suffered")


def test_ageing_is_told_a_week_before_the_link_suffers(tmp_path: Path) -> None:
    span = history.backfill(SCENARIO, tmp_path, [])
    with history.over(tmp_path / "data", span) as web:
        cards = history.ask(web, "count(count by (card) (accel_link_up))", span)
        found = history.story(web, span)
    assert {value for _, value in cards[0]["values"]} == {"8"}
    assert span.last_s - span.first_s > 29.8 * DAY_S
    ageing = [one for one in found if one.alert == "AccelLaserAgeing"]
    assert {one.place for one in ageing} == {"card2/oe0"}
    suffers_s = first_trouble_s(tmp_path / "run/events.jsonl")
    lead_s = suffers_s - min(one.from_s for one in ageing)
    print(f"\nlead time of AccelLaserAgeing: {lead_s / DAY_S:.1f} days")
    print("\n".join(history.told(found, span)))
    assert lead_s > LEAD_S
    ends = {"card2/oe0", "card3/oe1"}  # of the one fibre
    assert {"/".join(one.place.split("/")[:2]) for one in found} <= ends
