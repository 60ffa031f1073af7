"""Rules agree with what the daemon shows, and with their own tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acceld.fields.table import FIELDS

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "monitoring"
RULES = sorted((MONITORING / "alerts").glob("*.rules.yml"))


@pytest.mark.parametrize("rules", RULES, ids=lambda p: p.name)
def test_every_metric_in_use_is_one_that_the_daemon_shows(rules: Path) -> None:
    shown = {field.metric for field in FIELDS}
    used = set(re.findall(r"\baccel_\w+", rules.read_text()))
    assert used <= shown, sorted(used - shown)


@pytest.mark.parametrize("rules", RULES, ids=lambda p: p.name)
def test_every_alert_is_seen_firing_and_quiet(rules: Path) -> None:
    alerts = set(re.findall(r"- alert: (\w+)", rules.read_text()))
    tests = (rules.parent / "tests" / rules.name.replace(".rules.", ".test.")).read_text()
    quiet = set(re.findall(r"alertname: (\w+)\n +exp_alerts: \[\]", tests))
    firing = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", tests))
    assert alerts == quiet == firing
