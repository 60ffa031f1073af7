"""A run is judged by what was expected of it, and told what was found instead."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from accelhw.fault.scenario import Subject
from accelhw.fault.scenariojudge import Judge, Outcome
from accelhw.fault.scenariotime import SECOND_NS
from accelhw.model.ids import LaneId, PortId

from .scenarios import expect, read

PORT, OTHER = PortId("card0", 0), PortId("card1", 0)
END_S = 100.0


def judge(*lines: str) -> Judge:
    scenario = read(expect(*lines))
    end_ns = round(END_S * SECOND_NS)
    return Judge(scenario.expectations, end_ns, lambda _, targets: targets.subjects)


def of_states(*lines: str, told: list[tuple[float, str]], port: PortId = PORT) -> Outcome:
    one = judge(*lines)
    for at_s, state in told:
        one.state(round(at_s * SECOND_NS), port, state)
    (outcome,) = one.finish(round(END_S * SECOND_NS))
    return outcome


ON = 'on = "card0/oe0"'
TRAINED = [(0.0, "SEEKING"), (1.0, "TRAINING"), (2.0, "UP")]


@pytest.mark.parametrize(
    ("lines", "met"),
    [
        (['state = "up"'], False),
        (['state = "up"', "from = 2"], False),
        (['state = "up"', "at = 2"], True),
        (['state = "up"', "at = 1.5"], False),
        (['state = ["up", "degraded"]', "from = 2"], True),
        (['state = "up"', "from = 2", "until = 50"], True),
        (['state = "up"', "from = 2", "until = 61"], False),
        (['state = ["up", "degraded"]', "from = 2", "until = 61"], True),
        (['state = "degraded"', "from = 60", "until = 70"], True),
        (['state = "degraded"', "from = 60", "until = 71"], False),
        (['state = "degraded"', 'how = "sometimes"'], True),
        (['state = "degraded"', 'how = "sometimes"', "from = 75"], False),
        (['state = "degraded"', 'how = "sometimes"', 'hold = "9s"'], True),
        (['state = "degraded"', 'how = "sometimes"', 'hold = "11s"'], False),
        (['state = "failed"', 'how = "never"'], True),
        (['state = "degraded"', 'how = "never"', "until = 59"], True),
        (['state = "degraded"', 'how = "never"', "until = 65"], False),
        (['state = "up"', 'how = "at_end"'], True),
        (['state = "up"', 'how = "at_end"', "until = 65"], False),
    ],
)
def test_states_over_time(lines: list[str], met: bool) -> None:
    told = [*TRAINED, (60.0, "DEGRADED"), (70.0, "UP")]
    assert of_states(*lines, ON, told=told).met is met


def test_what_was_found_instead_is_told() -> None:
    told = [*TRAINED, (60.0, "DEGRADED"), (70.0, "UP")]
    outcome = of_states('state = "up"', ON, "from = 2", told=told)
    assert outcome.detail == "card0/oe0 was DEGRADED at 1m"
    outcome = of_states('state = "up"', ON, "from = 65", told=told)
    assert outcome.detail == "card0/oe0 was DEGRADED at 1m5s"
    assert outcome.text == "state always UP on card0/oe0 from 1m5s"


def test_what_was_wrong_before_the_window_is_not_blamed() -> None:
    told = [(0.0, "FAILED"), (10.0, "UP"), (60.0, "DOWN")]
    assert of_states('state = "up"', ON, "from = 20", told=told).detail.endswith("DOWN at 1m")


def test_a_port_that_nobody_spoke_of_is_no_success() -> None:
    outcome = of_states('state = "up"', ON, told=TRAINED, port=OTHER)
    assert (outcome.met, outcome.detail) == (False, "nothing was heard of card0/oe0")


def test_a_run_that_ends_before_the_window_tells_nothing() -> None:
    one = judge('state = "up"', ON, "from = 50")
    one.state(0, PORT, "UP")
    (outcome,) = one.finish(10 * SECOND_NS)
    assert (outcome.met, outcome.detail) == (None, "the run ended before that")


@pytest.mark.parametrize(
    ("lines", "met"),
    [
        (['state = "up"'], True),
        (['state = "down"'], False),
        (['state = "down"', 'how = "sometimes"'], None),
        (['state = "down"', 'how = "at_end"'], None),
        (['state = "down"', 'how = "sometimes"', "until = 5"], False),
    ],
)
def test_what_a_short_run_can_tell(lines: list[str], met: bool | None) -> None:
    one = judge(*lines, ON)
    one.state(0, PORT, "UP")
    assert one.finish(10 * SECOND_NS)[0].met is met


@pytest.mark.parametrize(
    ("lines", "met"),
    [
        ([], True),
        (["count = 2"], True),
        (["count = 0"], False),
        (["at_least = 3"], False),
        (["at_most = 2"], True),
        (["at_most = 1"], False),
        (["count = 0", "from = 30"], True),
        (["count = 1", "until = 15"], True),
        ([ON, "count = 1"], True),
        (['on = "card0"', "count = 1"], True),
        (['on = "all ports"', "count = 2"], True),
        (['reason = "SIGNAL_LOST"', "count = 1"], True),
    ],
)
def test_events_are_counted(lines: list[str], met: bool) -> None:
    one = judge('event = "LINK_DOWN"', *lines)
    one.event(10 * SECOND_NS, "LINK_DOWN", PORT, {"reason": "SIGNAL_LOST"})
    one.event(20 * SECOND_NS, "LINK_DOWN", OTHER, {"reason": "PEER_RESTARTED"})
    one.event(20 * SECOND_NS, "LINK_UP", PORT, {})
    (outcome,) = one.finish(round(END_S * SECOND_NS))
    assert outcome.met is met
    if not met:
        assert outcome.detail.startswith("there were 2, first card0/oe0 at 10s")


def of_samples(*lines: str, values: list[tuple[float, list[float]]]) -> Outcome:
    one = judge('metric = "rx_power_dbm"', 'on = ["card0/oe0/lane0", "card0/oe0/lane1"]', *lines)
    for at_s, row in values:

        def read_row(
            metric: str, subjects: tuple[Subject, ...], row: list[float] = row
        ) -> NDArray[np.float64]:
            assert metric == "rx_power_dbm"
            assert subjects == (LaneId(PORT, 0), LaneId(PORT, 1))
            return np.array(row)

        one.sample(round(at_s * SECOND_NS), read_row)
    (outcome,) = one.finish(round(END_S * SECOND_NS))
    return outcome


@pytest.mark.parametrize(
    ("lines", "met"),
    [
        (["above = -9"], False),
        (["above = -9", "until = 25"], True),
        (["above = -9", "below = 0", "until = 25"], True),
        (["below = -5"], False),
        (["above = -9", 'how = "at_end"'], True),
        (["below = -9", 'how = "sometimes"'], False),  # lane1 never was
        (["above = -6", 'how = "sometimes"'], True),
        (["below = -20", 'how = "never"'], True),
        (["above = -6", 'how = "sometimes"', 'hold = "20s"'], True),
        (["above = -6", 'how = "sometimes"', 'hold = "60s"'], False),
    ],
)
def test_figures_over_time(lines: list[str], met: bool) -> None:
    values = [(10.0, [-4.0, -4.0]), (20.0, [-4.0, -4.0]), (30.0, [-4.0, -4.0])]
    values += [(40.0, [-12.0, -4.0]), (50.0, [-4.0, -4.0])]
    assert of_samples(*lines, values=values).met is met


def test_a_figure_that_is_not_there_is_not_as_expected() -> None:
    outcome = of_samples("above = -9", values=[(10.0, [-4.0, float("nan")])])
    assert (outcome.met, outcome.detail) == (False, "card0/oe0/lane1 was no value at 10s")


def test_the_figure_that_was_wrong_is_told() -> None:
    outcome = of_samples("above = -9", values=[(10.0, [-4.0, -9.25])])
    assert outcome.detail == "card0/oe0/lane1 was -9.25 at 10s"
