"""One cause pages once: what Alertmanager silences, held against how the rules begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import promql_parser as promql
import pytest

from accelhw.model.profile import load_profile, profile_names

from .rulebook import ALERTS, MANAGER, PROMETHEUS, RECORDS, parts, seconds

NET = "AccelHealthCritical"  # whatever else fires silences it
KNOWN = "AccelCauseKnown"  # fires with each other alert, and for a while after it
EVALUATION_S = seconds(PROMETHEUS["global"]["evaluation_interval"])
# Source and target are evaluated in groups of their own, and each is told a scrape late.
JITTER_S = 3 * EVALUATION_S
# From one level to the next as heat leaves: after four time constants a part is within 2 % of
# where it ends. Light and errors follow it at once.
HEAT_S = max(
    4 * max(thermal.case_tau_s, thermal.hbm_tau_s)
    for thermal in (load_profile(name).thermal for name in profile_names())
)


class Silence(NamedTuple):
    source: str
    target: str
    equal: tuple[str, ...]


def chosen_by(matchers: list[str]) -> set[str]:
    """Alerts that matchers of Alertmanager choose; by `cause`, those that it stands for."""
    found = set(ALERTS)
    for matcher in matchers:
        label, how, value = re.fullmatch(r'(\w+)(=~|!~|!=|=)"(.*)"', matcher).groups()  # type: ignore[union-attr]
        for name in list(found):
            is_named = label in ("alertname", "cause")
            has = name if is_named else ALERTS[name]["labels"].get(label, "")
            same = bool(re.fullmatch(value, has)) if "~" in how else has == value
            if same == how.startswith("!"):
                found.discard(name)
    return found


def silences(*, afterwards: bool) -> Iterator[Silence]:
    """By the alert itself while it fires, or `afterwards` by what stands for it."""
    for rule in MANAGER["inhibit_rules"]:
        if any(matcher.startswith("cause") for matcher in rule["source_matchers"]) != afterwards:
            continue
        sources, targets = (chosen_by(rule[f"{side}_matchers"]) for side in ("source", "target"))
        assert sources, rule
        assert targets - sources, rule
        for source in sources:
            for target in targets - {source, KNOWN}:
                yield Silence(source, target, tuple(rule["equal"]))


MEANWHILE = sorted(set(silences(afterwards=False)))
AFTERWARDS = sorted(set(silences(afterwards=True)))


def is_critical(alert: str) -> bool:
    return bool(ALERTS[alert]["labels"]["severity"] == "critical")


def holds_s(alert: str) -> int:
    return seconds(ALERTS[alert].get("keep_firing_for"))


# ---- the beginning ------------------------------------------------------------------------------

# No figures arrive then, so that nothing waits for its turn.
NO_FIGURES = {"AccelDaemonAbsent", "AccelChassisDetached"}
# Its worker is silent or gone before the card is told lost; what was told by then was true.
EARLIER = {
    ("AccelCardLost", target) for target in ("AccelHbmUncorrectableErrors", "AccelHbmRemapFailed")
}


def test_what_silences_has_waited_no_longer_than_what_it_silences() -> None:
    for source, target, _ in MEANWHILE:
        if source not in NO_FIGURES and (source, target) not in EARLIER and target != NET:
            waits = [seconds(ALERTS[name].get("for")) for name in (source, target)]
            assert waits[0] <= waits[1], (source, target)


# ---- the end: else a trouble that is over would page --------------------------------------------


def test_a_warning_is_silent_for_a_while_after_what_silenced_it() -> None:
    """But after AccelDaemonAbsent: what is seen then was not seen before."""
    warnings = [s for s in MEANWHILE if not is_critical(s.target)]
    assert [s for s in warnings if s.source != "AccelDaemonAbsent"] == AFTERWARDS


def looks_back_s(expr: promql.Expr) -> float:
    """The longest window of an expression and of the records in it; what fired does not count."""
    longest = 0.0
    for part in parts(expr):
        if isinstance(part, promql.MatrixSelector) and part.vector_selector.name != "ALERTS":
            longest = max(longest, part.range.total_seconds())
        elif isinstance(part, promql.VectorSelector) and part.name in RECORDS:
            longest = max(longest, looks_back_s(promql.parse(RECORDS[part.name]["expr"])))
    return longest


def asks_for_s(alert: str, source: str, equal: tuple[str, ...]) -> float:
    """How far back it asks whether another alert fired on the same object; 0: it does not."""
    for part in parts(promql.parse(ALERTS[alert]["expr"])):
        if not isinstance(part, promql.BinaryExpr) or str(part.op) != "unless":
            continue
        for asked in parts(part.rhs):
            if isinstance(asked, promql.MatrixSelector) and part.modifier is not None:
                selector = asked.vector_selector
                wanted = {m.name: m.value for m in selector.matchers.matchers}
                if (
                    selector.name == "ALERTS"
                    and wanted["alertstate"] == "firing"
                    and re.fullmatch(wanted["alertname"], source)
                    and tuple(part.modifier.matching.labels) == equal
                ):
                    return asked.range.total_seconds()
    return 0.0


# Their windows do not make them last: they need not ask.
ENDS_AT_ONCE = {
    "AccelLaserAgeing",  # asks for the wear of now as well
    "AccelHbmCorrectedErrors",  # silenced by a lost card alone, which counts no errors
}


def ends_after_s(source: str, target: str) -> float:
    """How long a warning can go on after the trouble that it tells."""
    window_s = looks_back_s(promql.parse(ALERTS[target]["expr"]))
    on = [silence.equal for silence in AFTERWARDS if silence[:2] == (source, target)]
    forgets = target in ENDS_AT_ONCE or max(asks_for_s(target, source, x) for x in on) >= window_s
    if source == "AccelChassisDetached" and window_s > known_for_s():
        forgets = True  # Hardware that was switched on again counts from zero.
    return (0 if forgets else window_s) + holds_s(target) + HEAT_S + JITTER_S


def known_for_s() -> float:
    """What stands for a cause looks back so far."""
    return max(
        part.range.total_seconds()
        for part in parts(promql.parse(ALERTS[KNOWN]["expr"]))
        if isinstance(part, promql.MatrixSelector)
    )


@pytest.mark.parametrize(("source", "target"), sorted({silence[:2] for silence in AFTERWARDS}))
def test_a_warning_that_a_cause_silenced_ends_before_that_is_forgotten(
    source: str, target: str
) -> None:
    assert ends_after_s(source, target) <= known_for_s()


def test_each_cause_has_what_stands_for_it_on_the_same_object() -> None:
    everything = list(parts(promql.parse(ALERTS[KNOWN]["expr"])))
    (by,) = (part for part in everything if isinstance(part, promql.AggregateExpr))
    places = set().union(*(silence.equal for silence in AFTERWARDS))
    assert places <= set(by.modifier.labels)
    (fired,) = (part for part in everything if isinstance(part, promql.VectorSelector))
    named = [m for m in fired.matchers.matchers if m.name == "alertname"]
    (all_of,) = (m.value for m in named if m.op == promql.MatchOp.Re)
    (none_of,) = (m.value for m in named if m.op == promql.MatchOp.NotRe)
    known = chosen_by([f'alertname=~"{all_of}"', f'alertname!~"{none_of}"'])
    assert {silence.source for silence in AFTERWARDS} <= known


# What is critical is told at once when its cause is over, so it must have ended by then.
ENDS_FIRST = {
    # Links on a card that is gone have no figures; nobody takes its HBM's for new.
    *(("AccelCardLost", t) for t in ("AccelLinkDown", "AccelLinkMiswired")),
    *EARLIER,
    # Only another card ends it, which counts from zero.
    ("AccelHbmRemapFailed", "AccelHbmUncorrectableErrors"),
}


def test_what_is_critical_ends_before_what_silences_it() -> None:
    for source, target, _ in MEANWHILE:
        if is_critical(target) and source not in NO_FIGURES and (source, target) not in ENDS_FIRST:
            assert holds_s(source) >= holds_s(target) + JITTER_S, (source, target)


# ---- the whole ----------------------------------------------------------------------------------


def test_no_two_alerts_silence_each_other() -> None:
    edges = {(source, target) for source, target, _ in MEANWHILE}
    assert not {(a, b) for a, b in edges if (b, a) in edges}


def test_every_alert_is_in_the_net_and_in_a_route() -> None:
    net = {source for source, target, _ in MEANWHILE if target == NET}
    assert net == set(ALERTS) - {NET, KNOWN}
    receivers = {receiver["name"] for receiver in MANAGER["receivers"]}
    routes = MANAGER["route"]["routes"]
    assert {MANAGER["route"]["receiver"], *(r["receiver"] for r in routes if "receiver" in r)} == (
        receivers
    )


def test_what_only_silences_is_told_to_nobody() -> None:
    first = MANAGER["route"]["routes"][0]
    assert chosen_by(first["matchers"]) == {KNOWN}
    assert {"name": first["receiver"]} in MANAGER["receivers"]
