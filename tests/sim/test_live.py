"""A scenario on a real rack is planned and judged by the same rules."""

from __future__ import annotations

from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofile import load
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import SECOND_NS
from accelhw.model.ids import PortId
from accelhw.model.profile import load_profile
from accelhw.sim.live import LiveRun
from accelhw.sim.scenario import KNOWN

RACK = Rack({"card0": load_profile("dr8")}, frozenset({PortId("card0", 0)}))
TEXT = """
[[do]]
name = "dirt"
fault = "dirty_connector_mild"
on = "card0/oe0"
lanes = [3]
at = 20
for = 40
shape = "ramp"
ramp = 10
[[do]]
action = "clean"
on = "card0/oe0"
at = 30
[[do]]
clear = "dirt"
at = 40
[[do]]
action = "link_down"
on = "card0/oe0"
at = 50
[[expect]]
state = "up"
on = "card0/oe0"
until = 50
[[expect]]
event = "LINK_DOWN"
at_least = 1
[[expect]]
metric = "rx_power_dbm"
on = "card0/oe0/lane3"
above = -9
"""


def live(speed: float = 1.0) -> LiveRun:
    found = load(TEXT, KNOWN, lambda path: "", RACK)
    assert isinstance(found, Scenario)
    return LiveRun(found, 7, 60 * SECOND_NS, speed)


def test_the_plan_says_what_to_do_in_real_seconds() -> None:
    plan = live(speed=10).plan()
    assert plan["duration_s"] == 6.0
    assert plan["look_at"] == ["lane"]
    assert [(step["at_s"], step["do"]) for step in plan["moments"]] == [
        (2.0, "inject"),
        (3.0, "take_away"),
        (4.0, "clear"),
        (5.0, "link_down"),
    ]
    inject = plan["moments"][0]
    assert (inject["subject"], inject["lanes"], inject["kind"]) == (
        "card0/oe0",
        [3],
        "dirty_connector_mild",
    )
    assert (inject["duration_s"], inject["ramp_s"], inject["shape"]) == (4.0, 1.0, "ramp")
    assert plan["moments"][1]["kinds"] == ["dirty_connector_bad", "dirty_connector_mild"]
    assert plan["moments"][2]["of"] == "dirt"


def hear(run: LiveRun, rx_power_dbm: float) -> None:
    run.hear({"at_s": 0.1, "states": {"card0/oe0": "UP"}})
    run.hear({"at_s": 2.0, "figures": {"card0/oe0/lane3": {"rx_power_dbm": rx_power_dbm}}})
    down = {"kind": "LINK_DOWN", "subject": "card0/oe0", "detail": {"reason": "ADMIN_DOWN"}}
    run.hear({"at_s": 5.0, "states": {"card0/oe0": "DOWN"}, "events": [down]})


def test_what_is_seen_is_judged_in_the_scenarios_time() -> None:
    run = live(speed=10)
    hear(run, -3.0)
    result = run.finish({"end_s": 6.0})
    assert [each["met"] for each in result["expectations"]] == [True, True, True]
    assert (result["met"], result["duration_s"]) == (True, 60.0)


def test_what_is_seen_may_not_be_as_expected() -> None:
    run = live(speed=10)
    hear(run, -12.0)
    result = run.finish({"end_s": 6.0})
    assert [each["met"] for each in result["expectations"]] == [True, True, False]
    assert not result["met"]


def test_what_could_not_be_done_fails_the_run() -> None:
    run = live(speed=10)
    hear(run, -3.0)
    run.hear({"refused": "line 2: dirty_connector_mild on card0/oe0: no such port"})
    result = run.finish({"end_s": 6.0})
    assert (result["refused_count"], result["met"]) == (1, False)
