"""What does a rack cost at rest, and how does that grow with cards, ports and lanes?

CPU of one core and memory (PSS) of daemon, chassis and workers while every link is up and nobody
asks anything. Fibres are in memory, so that many of them are quick to make.

    python benchmarks/scale.py [--cards 1,8,64,128] [--seconds 2] [--json]
"""

from __future__ import annotations

import argparse
import time

from support import network, rack
from support.answer import Answer, Figures, Line, run

GOAL_CPU_PERCENT = 5.0  # of a core, 8 cards
GOAL_PSS_MIB = 250.0


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    for cards in map(int, options.cards.split(",")):
        _at_rest(cards, "oio", options, answer)
    _at_rest(64, "dr8", options, answer)  # half of the ports and a quarter of the lanes of 64 oio


def _at_rest(cards: int, profile: str, options: argparse.Namespace, answer: Answer) -> None:
    with rack.running(rack.pairs(cards, profile=profile, transport="memory")) as running:
        links = running.client.host().link_count
        ports = len(list(running.client.engines.list()))  # each has one
        lanes = sum(engine.fitted_lanes for engine in running.client.engines.list())
        time.sleep(options.settle)  # lasers warm up for a while after training
        pids = running.pids()
        cpu: list[float] = []
        for _ in range(options.repeats):
            before = rack.cpu_s(list(pids.values()))
            began_s = time.monotonic()
            time.sleep(options.seconds)
            used_s = rack.cpu_s(list(pids.values())) - before
            cpu.append(100 * used_s / (time.monotonic() - began_s))
        pss = rack.pss_mib(list(pids.values()))
        ready_s = running.ready_s
    cores = Figures(cpu, "% of a core")
    answer.points.append(
        {
            "profile": profile, "cards": cards, "ports": ports, "lanes": lanes, "links_up": links,
            "cpu_percent": cores.median, "pss_mib": round(pss, 1), "ready_s": round(ready_s, 2),
        }
    )  # fmt: skip
    what = f"{cards} cards {profile}, {ports} ports, {lanes} lanes"
    goal = cards == 8
    answer.add(
        Line(
            f"{what}: CPU", cores,
            goal=GOAL_CPU_PERCENT if goal else None, better="less",
        )
    )  # fmt: skip
    answer.add(
        Line(
            f"{what}: memory", Figures([pss], "MiB PSS"),
            goal=GOAL_PSS_MIB if goal else None, better="less", note=f"ready in {ready_s:.1f} s",
        )
    )  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", default="1,8,64,128", help="sizes of the rack, with commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each look at the CPU")
    parser.add_argument("--settle", type=float, default=5.0, help="before the first look")


if __name__ == "__main__":
    run(__doc__, measure, arguments, repeats=2)
