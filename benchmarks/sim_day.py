"""How long does a day of a thousand links take in simulated time, on one core?

A fleet of dr8 cards in pairs (two engines of eight lanes each, so that a thousand cards make a
thousand links and 16 000 lanes), with some faults a day. No file is written. Without --full it is
fewer links, and some hours stand for the day: what they cost after all had trained is stretched.

    python benchmarks/sim_day.py [--full] [--cards 300] [--json]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

from support.answer import Answer, Figures, Line, run

from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofile import load
from accelhw.fault.scenariotime import parse_span
from accelhw.sim.run import Options, Run
from accelhw.sim.scenario import KNOWN

DAY_NS = 86_400_000_000_000
GOAL_S_PER_LINK = 0.06
OPENING = "10m"  # in which every link trains
PART = "4h"

TEXT = """
[topology]
cards = {cards}
profile = "dr8"
shape = "pairs"
[[do]]
fault = "dirty_connector_bad"
on = "all ports"
per_day = 0.005
for = ["10m", "1h"]
[[do]]
fault = "laser_fail"
on = "all lanes"
per_day = 0.0005
for = ["10m", "4h"]
"""


def measure(options: argparse.Namespace, answer: Answer) -> None:
    cards = options.cards or (1000 if options.full else 300)
    cpu_s: list[float] = []
    for _ in range(options.repeats):
        start_s, _ = timed(cards, OPENING)
        whole_s, result = timed(cards, "1d" if options.full else PART)
        rest_ns = parse_span("1d" if options.full else PART) - parse_span(OPENING)
        share = (DAY_NS - parse_span(OPENING)) / rest_ns
        cpu_s.append(start_s + (whole_s - start_s) * share)
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    links = int(result["links"])
    answer.add(
        Line(
            f"a day of {links:,} links", Figures(cpu_s, "s of CPU"),
            goal=GOAL_S_PER_LINK * links, better="less",
            note=f"{start_s:.1f} s of it until all had trained",
        )
    )  # fmt: skip
    answer.add(Line("its memory", Figures([memory_mib], "MiB")))


def timed(cards: int, span: str) -> tuple[float, dict[str, Any]]:
    began_s = time.process_time()
    result = simulate(cards, span)
    return time.process_time() - began_s, result


def simulate(cards: int, span: str) -> dict[str, Any]:
    scenario = load(TEXT.format(cards=cards), KNOWN, lambda path: "")
    assert isinstance(scenario, Scenario)
    simulation = Run(scenario, Options(seed=1, duration_ns=parse_span(span)))
    simulation.go()
    return simulation.finish()


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", type=int, help="300; with --full 1000")


if __name__ == "__main__":
    run(__doc__, measure, arguments, repeats=1)
