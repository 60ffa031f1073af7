"""Rules and dashboard agree with what the daemon shows, and with their own sources."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from acceld.fields.table import FIELDS

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "monitoring"
DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.py"))
RULES = sorted((MONITORING / "alerts").glob("*.rules.yml"))


@pytest.mark.parametrize("source", DASHBOARDS, ids=lambda p: p.stem)
def test_a_dashboard_is_what_its_code_makes(source: Path) -> None:
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert source.with_suffix(".json").read_text() == module.text(), "run `make dashboards`"


@pytest.mark.parametrize(
    "user", [*RULES, *(p.with_suffix(".json") for p in DASHBOARDS)], ids=lambda p: p.name
)
def test_every_metric_in_use_is_one_that_the_daemon_shows(user: Path) -> None:
    shown = {field.metric for field in FIELDS}
    used = set(re.findall(r"\baccel_\w+", user.read_text()))
    assert used <= shown, sorted(used - shown)


@pytest.mark.parametrize("rules", RULES, ids=lambda p: p.name)
def test_every_alert_is_seen_firing_and_quiet(rules: Path) -> None:
    alerts = set(re.findall(r"- alert: (\w+)", rules.read_text()))
    tests = (rules.parent / "tests" / rules.name.replace(".rules.", ".test.")).read_text()
    quiet = set(re.findall(r"alertname: (\w+)\n +exp_alerts: \[\]", tests))
    firing = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", tests))
    assert alerts == quiet == firing
