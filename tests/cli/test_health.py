"""accelctl health: the exit code is the answer, the line is for whoever reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accel.v1 import health_pb2

from .conftest import Accelctl
from .fake_server import FakeDaemon
from .fake_state import State

ROOT = Path(__file__).resolve().parent.parent.parent
UNWELL = "CRITICAL CDR_NO_LOCK card0/oe1: FAILED: a receiver does not lock to its lane"


def test_a_check_says_the_worst_cause_in_one_line(accelctl: Accelctl, daemon: FakeDaemon) -> None:
    outcome = accelctl("health", "check")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.startswith(UNWELL)
    assert outcome.out.endswith("(and 1 more)\n")
    assert outcome.out.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ("daemon", 0, "HEALTHY daemon"),
        ("card0/oe0/lane0", 0, "HEALTHY card0/oe0/lane0"),
        ("cards/card0/links/oe0", 0, "HEALTHY card0/oe0"),
        ("card0/oe0", 1, "WARNING RX_POWER_LOW card0/oe0/lane2: receives -7.10 dBm"),
        ("card0/oe0 --warning-ok", 0, "WARNING RX_POWER_LOW card0/oe0/lane2: receives -7.10 dBm"),
        ("card0 --warning-ok", 1, UNWELL),
        ("card1", 1, "CRITICAL card1: see card0/oe1"),
    ],
)
def test_each_object_can_be_checked(
    accelctl: Accelctl, daemon: FakeDaemon, arguments: str, code: int, line: str
) -> None:
    outcome = accelctl("health", "check", *arguments.split())
    assert (outcome.code, outcome.err) == (code, "")
    assert outcome.out.startswith(line)


@pytest.mark.parametrize(
    "number", [health_pb2.HEALTH_STATE_TRAINING, health_pb2.HEALTH_STATE_ABSENT]
)
def test_what_trains_or_is_not_in_service_passes(
    accelctl: Accelctl, state: State, daemon: FakeDaemon, number: health_pb2.HealthState
) -> None:
    state.health.state = number
    assert accelctl("health", "check").code == 0


def test_a_program_gets_the_causes(accelctl: Accelctl, daemon: FakeDaemon) -> None:
    outcome = accelctl("health", "check", "-o", "json")
    answer = json.loads(outcome.out)
    assert (outcome.code, answer["state"], answer["healthy"]) == (1, "CRITICAL", False)
    assert [one["code"] for one in answer["causes"]] == ["CDR_NO_LOCK", "RX_POWER_LOW"]


def test_a_daemon_that_is_not_there_is_neither(accelctl: Accelctl) -> None:
    outcome = accelctl("health", "check")
    assert outcome.code == 5
    assert outcome.out == "UNKNOWN host: no answer from the daemon\n"
    assert "no daemon at" in outcome.err


def test_hardware_that_is_gone_is_unhealthy(
    accelctl: Accelctl, state: State, daemon: FakeDaemon
) -> None:
    state.refuse["GetHealth"] = ("UNAVAILABLE", "CHASSIS_GONE", "the hardware does not answer")
    outcome = accelctl("health", "check", "card0")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out == "CRITICAL CHASSIS_GONE card0: the hardware does not answer\n"


def test_an_object_that_is_not_there_or_none(accelctl: Accelctl, daemon: FakeDaemon) -> None:
    assert accelctl("health", "check", "card9").code == 3
    outcome = accelctl("health", "show", "card0/lane")
    assert (outcome.code, "has health" in outcome.err) == (2, True)


def test_show_tells_what_to_do(accelctl: Accelctl, daemon: FakeDaemon) -> None:
    out = accelctl("health", "show").out
    assert out.startswith("host is CRITICAL: 2 causes\n")
    assert "  card0/oe1: look at the lane's margin; clean or shorten the fibre\n" in out
    assert "card1" not in out  # Its link is explained by the other end.


def test_the_plugin_for_node_problem_detector_in_the_docs_runs_what_there_is(
    accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    page = (ROOT / "docs/health.md").read_text()
    plugin = json.loads(page.partition("```json\n")[2].partition("```")[0])
    (rule,) = plugin["rules"]
    assert rule["condition"] == plugin["conditions"][0]["type"]
    outcome = accelctl(*rule["args"])
    assert (outcome.code, outcome.err) == (1, "")
    assert len(outcome.out) < plugin["pluginConfig"]["max_output_length"]
