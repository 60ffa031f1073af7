"""Rules agree with what the daemon shows, their tests, their pages and each other."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from click import Group

from accelctl.root import cli
from acceld.fields.table import FIELDS
from acceld.health.reasons import REASONS
from acceld.health.report import HealthState
from accelhw.fault.catalogue import CATALOGUE

from .rulebook import ALERTS, FILES, RECORDS, RULES, parts, rules_of

ROOT = Path(__file__).resolve().parent.parent.parent
RUNBOOKS = ROOT / "docs/runbooks"
RUNBOOK_URL = "https://acceld.example/docs/runbooks/{}.md"
SECTIONS = (
    "What it means", "How to see it", "Likely causes", "What to do", "How to try it",
)  # fmt: skip
SCRAPER = {"job", "instance"}
PLACES = {"card", "oe", "lane", "fibre", "worker"}  # of what fires, as Prometheus itself shows it
GROUND_TRUTH = "accel_fault_active"  # an operator of real hardware has no such thing


each_alert = pytest.mark.parametrize("name", ALERTS)
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.get("alert") or r["record"])


# ---- metrics and labels -------------------------------------------------------------------------


def labels_of(metric: str) -> set[str]:
    """That its samples may have."""
    if metric == "up":
        return SCRAPER
    if metric == "ALERTS":
        return {*SCRAPER, *PLACES, "alertname", "alertstate"}
    if metric in RECORDS:
        return made_of(RECORDS[metric]["expr"])
    field = next((field for field in FIELDS if field.metric == metric), None)
    assert field is not None, f"{metric} is no metric of acceld"
    return {*field.labels, *SCRAPER}


def made_of(expr: str) -> set[str]:
    """Labels of all metrics in an expression."""
    found = [p for p in parts(promql.parse(expr)) if isinstance(p, promql.VectorSelector)]
    return set().union(*(labels_of(selector.name) for selector in found))


@each_rule
def test_every_metric_and_label_is_one_of_the_field_table(rule: dict[str, Any]) -> None:
    known = made_of(rule["expr"])
    for part in parts(promql.parse(rule["expr"])):
        modifier = getattr(part, "modifier", None)
        if isinstance(part, promql.VectorSelector):
            assert {m.name for m in part.matchers.matchers} <= labels_of(part.name)
        elif isinstance(part, promql.AggregateExpr) and modifier:
            assert set(modifier.labels) <= known
        elif isinstance(part, promql.BinaryExpr) and modifier and modifier.matching:
            assert {*modifier.matching.labels, *(modifier.group_labels or ())} <= known


# {{ range printf `metric{...}` ... }}what is shown of each{{ end }}
ASKED = re.compile(r"{{ range printf `(\w+){[^`]*`[^}]*}}(.*?){{ end }}")


@each_alert
def test_what_an_alert_tells_asks_for_labels_that_it_has(name: str) -> None:
    known = made_of(ALERTS[name]["expr"])
    for text in ALERTS[name]["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= known
        for metric, shown in ASKED.findall(text):
            assert set(re.findall(r"\.Labels\.(\w+)", shown)) <= labels_of(metric)


@each_rule
def test_no_rule_looks_at_the_ground_truth(rule: dict[str, Any]) -> None:
    assert GROUND_TRUTH not in str(rule)


def test_the_net_looks_for_reasons_that_can_be_critical() -> None:
    selectors = [
        part
        for part in parts(promql.parse(ALERTS["AccelHealthCritical"]["expr"]))
        if isinstance(part, promql.VectorSelector) and part.name == "accel_health_reason"
    ]
    ((left_out,),) = [selector.matchers.matchers for selector in selectors]
    assert (left_out.name, left_out.op) == ("reason", promql.MatchOp.NotRe)
    assert set(left_out.value.split("|")) == {
        code for code, kind in REASONS.items() if HealthState.CRITICAL not in kind.states
    }


# ---- their own tests ----------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.name)
def test_every_alert_is_seen_firing_and_quiet(file: Path) -> None:
    alerts = {rule["alert"] for rule in rules_of(file) if "alert" in rule}
    if not alerts:
        return
    tests = yaml.safe_load(
        (file.parent / "tests" / file.name.replace(".rules.", ".test.")).read_text()
    )
    cases = [case for test in tests["tests"] for case in test["alert_rule_test"]]
    assert alerts <= {case["alertname"] for case in cases if case["exp_alerts"]}
    assert alerts <= {case["alertname"] for case in cases if not case["exp_alerts"]}


# ---- pages --------------------------------------------------------------------------------------


@each_alert
def test_an_alert_has_a_severity_and_a_page(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"] == {"severity": alert["labels"]["severity"]}
    assert alert["labels"]["severity"] in ("critical", "warning", "none")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == RUNBOOK_URL.format(name)
    page = (RUNBOOKS / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    assert tuple(re.findall(r"^## (.+)$", page, re.M)) == SECTIONS
    assert f"severity: **{alert['labels']['severity']}**" in page


def test_the_page_of_all_alerts_is_up_to_date() -> None:
    path = ROOT / "tools/alert_reference.py"
    spec = importlib.util.spec_from_file_location("alert_reference", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/alerts.md").read_text() == module.page(), "run `make reference`"


def test_no_page_is_about_an_alert_that_is_gone() -> None:
    pages = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(ALERTS)


def commands(text: str) -> Iterator[list[str]]:
    for line in re.findall(r"accelctl ([^`\n;|]+)", text):
        yield shlex.split(re.sub(r"{{.*?}}", "X", line).replace("'", ""), comments=True)


@each_alert
def test_commands_that_a_page_or_an_alert_names_exist(name: str) -> None:
    told = " ; ".join(ALERTS[name]["annotations"].values())
    for words in chain(commands((RUNBOOKS / f"{name}.md").read_text()), commands(told)):
        if not words or words[0].startswith("-"):
            continue  # accelctl alone
        noun = cli.get_command(None, words[0])  # type: ignore[arg-type]
        assert noun is not None, words
        if isinstance(noun, Group) and len(words) > 1:
            verb = noun.get_command(None, words[1])  # type: ignore[arg-type]
            assert verb is not None, words
            known = {option for parameter in verb.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known | {"--help"}, words
        if words[:2] == ["fault", "inject"]:
            assert words[2] in CATALOGUE, words
