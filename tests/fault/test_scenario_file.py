"""A scenario is read whole, or every mistake in it is named at once, before anything starts."""

from __future__ import annotations

import pytest

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.scenario import DIRT, REPLUG, At, Every, Level, Random
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import SECOND_NS, BadSpan, parse_span, show_span
from accelhw.model.config import Config
from accelhw.model.ids import LaneId, PortId
from accelhw.model.profile import load_profile

from .scenarios import FLEET, do, expect, mistakes, read

HOUR_NS = 3600 * SECOND_NS


def test_a_whole_scenario_is_read() -> None:
    scenario = read(
        'name = "night"\nfor = "2h"\nseed = 7\n'
        + FLEET
        + """
[telemetry]
every = "30s"
on = "card0/*"
[[do]]
name = "dirt"
fault = "dirty_connector_bad"
on = ["card0/oe0", "card1/oe0"]
lanes = [0, 3]
at = ["10m", "1h30m"]
for = ["5m", "20m"]
shape = "ramp"
ramp = "1m"
scale = 0.5
[[do]]
action = "replug"
on = "all ports"
pick = 2
every = "30m"
from = "5m"
[[do]]
fault = "laser_fail"
on = "all lanes"
fit = 500
[[do]]
clear = "dirt"
at = "1h40m"
[[expect]]
state = ["up", "degraded"]
on = "card2/*"
from = "10s"
[[expect]]
event = "LINK_DOWN"
at_most = 9
[[expect]]
metric = "rx_power_dbm"
on = "card3/oe0/*"
above = -9
how = "sometimes"
hold = "5m"
"""
    )
    assert (scenario.name, scenario.duration_ns, scenario.seed) == ("night", 2 * HOUR_NS, 7)
    assert scenario.topology is not None
    assert len(scenario.topology.fibres) == 4
    assert scenario.telemetry.ports == (PortId("card0", 0), PortId("card0", 1))
    dirt, replug, lasers, clear = scenario.lines
    assert dirt.when == At((600 * SECOND_NS, 5400 * SECOND_NS))
    assert dirt.lasts_ns == (300 * SECOND_NS, 1200 * SECOND_NS)
    assert dirt.targets is not None
    assert dirt.targets.level is Level.LANE
    assert LaneId(PortId("card1", 0), 3) in dirt.targets.subjects
    assert isinstance(replug.when, Every)
    assert replug.targets is not None
    assert replug.targets.pick == 2
    assert lasers.when == Random(500 / 1e9, 0, None)
    assert lasers.targets is not None
    assert len(lasers.targets.subjects) == 4 * 2 * 8
    assert clear.clear == "dirt"
    up, down, light = scenario.expectations
    assert up.states == {"UP", "DEGRADED"}
    assert (down.at_least, down.at_most) == (0, 9)
    assert light.hold_ns == 300 * SECOND_NS


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        (90, 90 * SECOND_NS),
        (0.5, SECOND_NS // 2),
        ("500ms", SECOND_NS // 2),
        ("1h30m", 5400 * SECOND_NS),
        ("30d", 30 * 24 * HOUR_NS),
        ("1.5d", 36 * HOUR_NS),
    ],
)
def test_spans_of_time(text: object, ns: int) -> None:
    assert parse_span(text) == ns
    assert parse_span(show_span(ns)) == ns


@pytest.mark.parametrize("text", ["", "5 s", "1x", "-1s", -1, True, None, 1e30, float("nan"), []])
def test_what_is_no_span_is_refused(text: object) -> None:
    with pytest.raises(BadSpan):
        parse_span(text)


MISTAKES = {
    "a seed that is no number": (
        'seed = "seven"\n' + FLEET,
        "1: seed: 'seven' is no whole number; use seed = 1",
    ),
    "an unknown fault": (
        do('fault = "dirty_conector_bad"', 'on = "card0/oe0"', "at = 1"),
        "6: do.fault: 'dirty_conector_bad' is no fault; did you mean 'dirty_connector_bad'?",
    ),
    "an unknown action": (
        do('action = "repluge"', 'on = "card0/oe0"', "at = 1"),
        "6: do.action: 'repluge' is no action; did you mean 'replug'?",
    ),
    "a card that is not in the rack": (
        do('fault = "fibre_cut"', 'on = "crd0/oe0"', "at = 1"),
        "7: do.on: 'crd0/oe0': there is no card 'crd0'; did you mean 'card0/oe0'?",
    ),
    "a port that the card lacks": (
        do('fault = "fibre_cut"', 'on = "card0/oe7"', "at = 1"),
        "7: do.on: 'card0/oe7': card0 has oe0 to oe1; use 'card0/oe1'",
    ),
    "a lane that the port lacks": (
        do('fault = "laser_fail"', 'on = "card0/oe0/lane8"', "at = 1"),
        "7: do.on: 'card0/oe0/lane8': card0/oe0 has lane0 to lane7; use 'card0/oe0/lane7'",
    ),
    "a pattern that matches nothing": (
        do('fault = "fibre_cut"', 'on = "rack*/oe0"', "at = 1"),
        "7: do.on: 'rack*/oe0' matches no port; known are card0, card1, card2, card3",
    ),
    "a fault of a lane on a port": (
        do('fault = "laser_fail"', 'on = "card0/oe0"', "at = 1"),
        "7: do.on: laser_fail happens to a lane, not to a port; use 'card0/*/*'",
    ),
    "a fault of a card on a port": (
        do('fault = "supply_droop"', 'on = "card0/oe0"', "at = 1"),
        "7: do.on: supply_droop happens to a card, not to a port; use 'card0'",
    ),
    "a time that is none": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', 'at = "soon"'),
        '8: do.at: \'soon\' is no span of time; use 90, "500ms", "1h30m" or "30d"',
    ),
    "nothing that happens": (
        do('on = "card0/oe0"', "at = 1"),
        "5: do.fault: missing, as are action and clear;"
        ' add fault = "dirty_connector_bad", or an action',
    ),
    "two things at once": (
        do('fault = "fibre_cut"', 'action = "clean"', 'on = "card0/oe0"', "at = 1"),
        "7: do.action: beside fault; write a table for each",
    ),
    "two kinds of when": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", "fit = 5"),
        "9: do.fit: beside at; write a table for each",
    ),
    "negative strength": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", "scale = -1"),
        "9: do.scale: -1 is too small; use 0.001 to 100",
    ),
    "impossible strength": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", "scale = 50"),
        "9: do.scale: rx_path_loss_db would be 3e+03; it goes from 0 to 100,"
        " which a scale of 1.67 reaches",
    ),
    "a ramp where none can be": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", 'shape = "pulse"', "ramp = 5"),
        '10: do.ramp: a pulse has no ramp; use shape = "ramp"',
    ),
    "a shape that is none": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", 'shape = "rampp"'),
        "9: do.shape: 'rampp' is no shape; did you mean 'ramp'?",
    ),
    "more than there are": (
        do('fault = "fibre_cut"', 'on = "all ports"', "at = 1", "pick = 9"),
        "9: do.pick: 9 is too large; use 1 to 8",
    ),
    "a clearing of nothing": (
        do('clear = "dirt"', "at = 1"),
        "6: do.clear: 'dirt' is no name of a line; known are none",
    ),
    "a period without end": (
        'for = "30d"\n' + do('action = "clean"', 'on = "card0/oe0"', 'every = "1ms"'),
        "9: do.every: that would be 2592000000 times; at most 100000; use a longer period",
    ),
    "what comes too late": (
        'for = "1h"\n' + do('action = "clean"', 'on = "card0/oe0"', 'at = "2h"'),
        "9: do.at: 2h, and the run ends at 1h; let it happen earlier",
    ),
    "a window that is none": (
        do('action = "clean"', 'on = "card0/oe0"', "per_day = 3", "from = 9", "until = 3"),
        "10: do.until: not after from; let it end later than it begins",
    ),
    "a range turned round": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "at = 1", 'for = ["2h", "1h"]'),
        "9: do.for: the longest is shorter than the shortest; swap them",
    ),
    "an unknown state": (
        expect('state = "upp"', 'on = "card0/oe0"'),
        "6: expect.state: 'upp' is no state of a link; did you mean 'up'?",
    ),
    "the state of a lane": (
        expect('state = "up"', 'on = "card0/oe0/lane0"'),
        "7: expect.on: a lane has no link state; name a port, as 'card0/*'",
    ),
    "an unknown event": (
        expect('event = "LINK_DWN"'),
        "6: expect.event: 'LINK_DWN' is no event; did you mean 'LINK_DOWN'?",
    ),
    "an unknown metric": (
        expect('metric = "rx_power"', 'on = "card0/oe0/*"', "above = -9"),
        "6: expect.metric: 'rx_power' is no metric; did you mean 'rx_power_dbm'?",
    ),
    "limits that leave nothing": (
        expect('metric = "rx_power_dbm"', 'on = "card0/oe0/*"', "above = 1", "below = 0"),
        "9: expect.below: no value lies between; let it be more than above",
    ),
    "no topology": (
        '[[do]]\naction = "clean"\non = "card0/oe0"\nat = 1\n',
        "1: topology: missing, and there is no rack to run on;"
        ' add [topology] with config = "FILE", or with cards and profile',
    ),
    "a configuration that is not there": (
        '[topology]\nconfig = "rack.toml"\n',
        "2: topology.config: 'rack.toml': No such file or directory;"
        " name a file, from this one's folder on",
    ),
    "a mesh that is too large": (
        '[topology]\ncards = 9\nshape = "mesh"\n',
        "2: topology.cards: 9 cannot all meet: dr8 has 2 engines;"
        " use at most 3 cards, or another shape",
    ),
    "an unknown key": (
        do('fault = "fibre_cut"', 'on = "card0/oe0"', "att = 1"),
        "8: do.att: no such key; did you mean 'at'?",
    ),
    "no TOML": ("[[do]\n", "1: syntax: not TOML: "),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_a_remedy(name: str) -> None:
    text, expected = MISTAKES[name]
    assert any(found.startswith(expected) for found in mistakes(text)), mistakes(text)


def test_all_mistakes_are_told_at_once_in_the_order_of_lines() -> None:
    found = mistakes(
        'seed = -1\n[topology]\ncards = 4\n[[do]]\nfault = "none"\non = "card7"\nat = -5\n'
    )
    assert [text.partition(":")[0] for text in found] == ["1", "5", "6", "7"]


CONTRADICTIONS = {
    "cleared before it comes": (
        ['name = "cut"', 'fault = "fibre_cut"', 'on = "card0/oe0"', 'at = "10m"'],
        ['clear = "cut"', 'at = "5m"'],
        "12: do.at: clears at 5m, but line 5 begins at 10m; clear it later",
    ),
    "cleared when it has ended": (
        ['name = "cut"', 'fault = "fibre_cut"', 'on = "card0/oe0"', 'at = "10m"', 'for = "1m"'],
        ['clear = "cut"', 'at = "20m"'],
        "12: do.clear: the fault of line 5 has ended at 11m;"
        " clear it earlier, or leave one of both out",
    ),
    "the same fault twice": (
        ['fault = "fibre_cut"', 'on = "card0/oe0"', 'at = "10m"'],
        ['fault = "fibre_cut"', 'on = "card0/*"', 'at = "20m"'],
        "10: do.fault: card0/oe0 has fibre_cut at 20m already, since 10m (line 5);"
        " clear that before, or give it an end with for",
    ),
    "the same fault on a lane of the port": (
        ['fault = "crosstalk"', 'on = "card0/oe0"', 'at = "10m"'],
        ['fault = "crosstalk"', 'on = "card0/oe0"', "lanes = [3]", 'at = "20m"'],
        "10: do.fault: card0/oe0 has crosstalk at 20m already, since 10m (line 5);"
        " clear that before, or give it an end with for",
    ),
    "on and off at one time": (
        ['action = "link_down"', 'on = "card0/oe0"', 'at = "10m"'],
        ['action = "link_up"', 'on = "card0/oe0"', 'at = "10m"'],
        "12: do.at: card0/oe0 is still at link_down of line 5, begun at 10m; let it happen later",
    ),
    "a plug that is out already": (
        ['action = "replug"', 'on = "card0/oe0"', 'at = "10m"'],
        ['action = "replug"', 'on = "card0/oe0"', 'at = "10m3s"'],
        "12: do.at: card0/oe0 is still at replug of line 5, begun at 10m; let it happen later",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_lines_that_contradict_each_other_are_refused(name: str) -> None:
    first, second, expected = CONTRADICTIONS[name]
    found = mistakes(do(*first) + "[[do]]\n" + "\n".join(second) + "\n")
    assert found == [expected.replace("12:", f"{_line_of(found)}:")]


def _line_of(found: list[str]) -> str:
    return found[0].partition(":")[0] if found else "?"


@pytest.mark.parametrize(
    "between",
    [
        'clear = "dirt"\nat = "15m"',
        'action = "clean"\non = "card0/oe0"\nat = "15m"',
        'action = "repair"\non = "card0"\nat = "15m"',
    ],
)
def test_a_fault_may_come_again_when_it_was_taken_away(between: str) -> None:
    dirt = 'fault = "dirty_connector_bad"\non = "card0/oe0"\n'
    read(do('name = "dirt"', dirt + 'at = "10m"', "[[do]]", between, "[[do]]", dirt + 'at = "20m"'))


def test_a_live_rack_stands_for_the_topology() -> None:
    rack = Rack(
        dict.fromkeys(("left", "right"), load_profile("single")), frozenset({PortId("left", 0)})
    )
    text = '[[do]]\naction = "retrain"\non = "left/oe0"\nat = 1\n'
    assert read(text, rack=rack).topology is None
    assert mistakes(text.replace("left", "right"), rack=rack) == [
        "3: do.on: 'right/oe0': no fibre is plugged in there; right has no fibre at all"
    ]


def test_where_no_fibre_is_an_engine_can_fail_and_a_fibre_cannot() -> None:
    rack = Rack({"left": load_profile("oio")}, frozenset({PortId("left", 0)}))
    line = '[[do]]\nfault = "{}"\non = "{}"\nat = 1\n'
    read(line.format("laser_fail", "left/oe1/lane3"), rack=rack)
    read(line.format("laser_ageing", "left/oe1"), rack=rack)
    for kind in ("fibre_cut", "tx_tx_miscable", "dirty_connector_bad"):
        assert mistakes(line.format(kind, "left/oe1"), rack=rack) == [
            "3: do.on: 'left/oe1': no fibre is plugged in there; one with a fibre is 'left/oe0'"
        ]


def test_how_long_it_runs_may_come_from_outside() -> None:
    text = do('action = "clean"', 'on = "card0/oe0"', 'at = "2h"')
    read('for = "1h"\n' + text, for_ns=3 * HOUR_NS)
    read('for = "9h"\n' + text, for_ns=HOUR_NS)  # cut off, on purpose
    assert mistakes(text, for_ns=HOUR_NS)


@pytest.mark.parametrize(
    ("shape", "cards", "profile", "fibres"),
    [
        ("pairs", 6, "oio", 12),
        ("ring", 5, "dr8", 5),
        ("ring", 5, "oio", 10),
        ("mesh", 5, "oio", 10),
    ],
)
def test_fleets_join_each_port_once(shape: str, cards: int, profile: str, fibres: int) -> None:
    scenario = read(f'[topology]\ncards = {cards}\nprofile = "{profile}"\nshape = "{shape}"\n')
    topology = scenario.topology
    assert isinstance(topology, Config)
    ends = [end.port for fibre in topology.fibres for end in (fibre.a, fibre.b) if end]
    assert len(topology.fibres) == fibres
    assert len(set(ends)) == len(ends) == 2 * fibres


def test_what_operators_do_is_in_the_catalogue() -> None:
    assert set(CATALOGUE) >= DIRT | {REPLUG}
    assert all("clean" in CATALOGUE[kind].repair for kind in DIRT)
