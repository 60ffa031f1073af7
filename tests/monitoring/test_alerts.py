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
from accelhw.fault.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "monitoring"
RUNBOOKS = ROOT / "docs/runbooks"
RUNBOOK_URL = "https://acceld.example/docs/runbooks/{}.md"
SECTIONS = (
    "What it means", "How to see it", "Likely causes", "What to do", "How to try it",
)  # fmt: skip
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SCRAPER = {"job", "instance"}
GROUND_TRUTH = "accel_fault_active"  # an operator of real hardware has no such thing


def rules_of(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


FILES = sorted((MONITORING / "alerts").glob("*.rules.yml"))
RULES = list(chain.from_iterable(map(rules_of, FILES)))
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"]: rule for rule in RULES if "record" in rule}
MANAGER = yaml.safe_load((MONITORING / "alertmanager.yml").read_text())

each_alert = pytest.mark.parametrize("name", ALERTS)
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.get("alert") or r["record"])


def seconds(duration: str | None) -> int:
    return int(duration[:-1]) * SECONDS[duration[-1]] if duration else 0


# ---- metrics and labels -------------------------------------------------------------------------


def parts(expr: promql.Expr) -> Iterator[promql.Expr]:
    """The expression with all that it is made of."""
    yield expr
    for name in ("expr", "lhs", "rhs", "vector_selector", "args", "param"):
        inner = getattr(expr, name, None)
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, promql.Expr):
                yield from parts(one)


def labels_of(metric: str) -> set[str]:
    """That its samples may have."""
    if metric == "up":
        return SCRAPER
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
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


# ---- pages --------------------------------------------------------------------------------------


@each_alert
def test_an_alert_has_a_severity_and_a_page(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"] == {"severity": alert["labels"]["severity"]}
    assert alert["labels"]["severity"] in ("critical", "warning")
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


# ---- one cause pages once -----------------------------------------------------------------------


def chosen_by(matchers: list[str]) -> set[str]:
    """Alerts that matchers of Alertmanager choose."""
    found = set(ALERTS)
    for matcher in matchers:
        label, how, value = re.fullmatch(r'(\w+)(=~|!~|!=|=)"(.*)"', matcher).groups()  # type: ignore[union-attr]
        for name in list(found):
            has = name if label == "alertname" else ALERTS[name]["labels"].get(label, "")
            same = bool(re.fullmatch(value, has)) if "~" in how else has == value
            if same == how.startswith("!"):
                found.discard(name)
    return found


def silences() -> Iterator[tuple[str, str]]:
    for rule in MANAGER["inhibit_rules"]:
        sources, targets = (chosen_by(rule[f"{side}_matchers"]) for side in ("source", "target"))
        assert sources, rule
        assert targets - sources, rule
        yield from ((s, t) for s in sources for t in targets if s != t)


# No figures arrive then, so that nothing waits for its turn.
NO_FIGURES = {"AccelDaemonAbsent", "AccelChassisDetached"}
NET = "AccelHealthCritical"
# Its worker is silent or gone before the card is told lost; what was told by then was true.
EARLIER = {
    ("AccelCardLost", target) for target in ("AccelHbmUncorrectableErrors", "AccelHbmRemapFailed")
}


def test_what_silences_has_waited_no_longer_than_what_it_silences() -> None:
    for source, target in silences():
        if source not in NO_FIGURES and (source, target) not in EARLIER and target != NET:
            waits = [seconds(ALERTS[name].get("for")) for name in (source, target)]
            assert waits[0] <= waits[1], (source, target)


# What has no figures or no link cannot begin to be in trouble, so that none is left at the end.
DOWN = {*NO_FIGURES, "AccelCardLost", "AccelWorkerSilent", "AccelLinkDown", "AccelLinkMiswired"}


def test_what_silences_ends_no_earlier_than_what_it_silences() -> None:
    """Else the end of a trouble would page."""
    for source, target in silences():
        if source not in DOWN:
            holds = [seconds(ALERTS[name].get("keep_firing_for")) for name in (source, target)]
            assert holds[0] >= holds[1], (source, target)


def test_no_two_alerts_silence_each_other() -> None:
    edges = set(silences())
    assert not {(a, b) for a, b in edges if (b, a) in edges}


def test_every_alert_is_in_the_net_and_in_a_route() -> None:
    net = {source for source, target in silences() if target == NET}
    assert net == set(ALERTS) - {NET}
    receivers = {receiver["name"] for receiver in MANAGER["receivers"]}
    routes = MANAGER["route"]["routes"]
    assert {MANAGER["route"]["receiver"], *(r["receiver"] for r in routes if "receiver" in r)} == (
        receivers
    )
