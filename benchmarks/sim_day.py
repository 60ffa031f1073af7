"""How long does a day of a thousand links take in simulated time, on one core?

A fleet of dr8 cards in pairs (two engines of eight lanes each, so that a thousand cards make a
thousand links and 16 000 lanes), with some faults a day. No file is written.

    python benchmarks/sim_day.py [--cards 1000] [--for 1d] [--json]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofile import load
from accelhw.fault.scenariotime import parse_span
from accelhw.sim.run import Options, Run
from accelhw.sim.scenario import KNOWN

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


def measure(cards: int, span: str) -> dict[str, Any]:
    scenario = load(TEXT.format(cards=cards), KNOWN, lambda path: "")
    assert isinstance(scenario, Scenario)
    began_s, used_s = time.monotonic(), time.process_time()
    run = Run(scenario, Options(seed=1, duration_ns=parse_span(span)))
    run.go()
    result = run.finish()
    return {
        "links": result["links"],
        "lanes": result["lanes"],
        "simulated": span,
        "faults_injected": result["faults_injected"],
        "trainings": result["events"]["LINK_UP"],
        "wall_s": round(time.monotonic() - began_s, 1),
        "cpu_s": round(time.process_time() - used_s, 1),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=1000)
    parser.add_argument("--for", dest="span", default="1d")
    parser.add_argument("--json", action="store_true")
    chosen, _ = parser.parse_known_args()
    answer = measure(chosen.cards, chosen.span)
    if chosen.json:
        print(json.dumps(answer))
        return
    for key, value in answer.items():
        print(f"{key:<16} {value}")


if __name__ == "__main__":
    main()
