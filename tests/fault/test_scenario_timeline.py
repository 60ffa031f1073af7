"""The same seed unrolls the same moments; chance keeps its rates."""

from __future__ import annotations

import pytest

from accelhw.fault.scenario import Line, Random, Scenario
from accelhw.fault.scenariotime import SECOND_NS
from accelhw.fault.scenariotimeline import Moment, unroll
from accelhw.model.ids import PortId

from .scenarios import FLEET, do, read

DAY_NS = 86_400 * SECOND_NS
BIG = FLEET.replace("cards = 4", "cards = 64")


def times(moments: list[Moment]) -> list[float]:
    return [moment.time_ns / SECOND_NS for moment in moments]


def test_moments_come_in_order_of_time_then_of_lines() -> None:
    scenario = read(
        do('action = "clean"', 'on = "card0/oe0"', "at = [5, 20]")
        + '[[do]]\naction = "retrain"\non = "card0/oe0"\nevery = 10\nfrom = 0\nuntil = 30\n'
    )
    moments = unroll(scenario, 1, DAY_NS)
    assert times(moments) == [0, 5, 10, 20, 20]
    assert [moment.line.line for moment in moments[-2:]] == [5, 9]


def test_lanes_of_one_port_are_one_moment() -> None:
    scenario = read(do('fault = "laser_fail"', 'on = "card0/*/*"', "at = 1"))
    assert [(m.subject, m.lanes) for m in unroll(scenario, 1, DAY_NS)] == [
        (PortId("card0", 0), tuple(range(8))),
        (PortId("card0", 1), tuple(range(8))),
    ]


def random_scenario(**changes: str) -> Scenario:
    keys = {"fault": '"laser_fail"', "on": '"all lanes"', "per_day": "0.5", "for": '["1h", "8h"]'}
    lines = "".join(f"{key} = {value}\n" for key, value in (keys | changes).items())
    return read(BIG + f'[[do]]\nname = "x"\n{lines}')


def test_a_rate_is_kept() -> None:
    moments = unroll(random_scenario(), 7, 10 * DAY_NS)
    expected = 64 * 2 * 8 * 0.5 * 10
    assert abs(len(moments) - expected) < 4 * expected**0.5
    lasted = [m.lasts_ns / 3600 / SECOND_NS for m in moments if m.lasts_ns is not None]
    assert len(lasted) == len(moments)
    assert 1 <= min(lasted) < 1.1
    assert 7.9 < max(lasted) <= 8


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    scenario = random_scenario()
    assert unroll(scenario, 7, DAY_NS) == unroll(scenario, 7, DAY_NS)
    assert times(unroll(scenario, 7, DAY_NS)) != times(unroll(scenario, 8, DAY_NS))


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    scenario = random_scenario()
    short, long = unroll(scenario, 7, DAY_NS), unroll(scenario, 7, 3 * DAY_NS)
    assert long[: len(short)] == short


def test_another_line_moves_no_dice() -> None:
    alone = random_scenario()
    other = read(
        BIG
        + '[[do]]\nname = "x"\nfault = "laser_fail"\non = "all lanes"\nper_day = 0.5\n'
        + 'for = ["1h", "8h"]\n[[do]]\nfault = "fibre_cut"\non = "all ports"\nper_day = 1\n'
    )
    mine = [(m.time_ns, m.subject) for m in unroll(other, 7, DAY_NS) if m.line.name == "x"]
    assert mine == [(m.time_ns, m.subject) for m in unroll(alone, 7, DAY_NS)]


@pytest.mark.parametrize("seed", range(5))
def test_so_many_of_them_are_picked(seed: int) -> None:
    scenario = read(BIG + '[[do]]\naction = "replug"\non = "all ports"\npick = 5\nat = [1, 2]\n')
    first, second = (
        {m.subject for m in unroll(scenario, seed, DAY_NS) if m.time_ns == at * SECOND_NS}
        for at in (1, 2)
    )
    assert len(first) == len(second) == 5
    assert first != second


def test_no_rate_never_happens() -> None:
    scenario = random_scenario(per_day="0")
    line: Line = scenario.lines[0]
    assert line.when == Random(0.0, 0, None)
    assert unroll(scenario, 1, 100 * DAY_NS) == []
