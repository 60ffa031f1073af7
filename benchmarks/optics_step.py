"""How long does one step of 100,000 lanes take: idle, warming up, and when every lane changed?

One core, one process, links up. An idle fleet only counts; one that warms up follows its lasers; a
change everywhere computes light, errors, codewords and flags of every lane anew.

    python benchmarks/optics_step.py [--lanes 100000] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from support.answer import Answer, Figures, Line, run

from accelhw.model.profile import load_profile
from accelhw.optics.bank import LaneBank

SECOND_NS = 1_000_000_000
PROFILES = ("oio", "dr8")
GOAL_MS = 250.0


def lit_bank(name: str, lanes: int) -> LaneBank:
    """So many lanes whose links are up."""
    profile = load_profile(name)
    ports = lanes // profile.lanes_per_oe
    bank = LaneBank(profile, 1, ports=ports, cards=-(-ports // profile.oes))
    for port in range(ports):
        bank.add_port(f"card{port // profile.oes}", port % profile.oes, 0.6)
        bank.set_transmit(port, True)
    bank.advance(SECOND_NS)
    tx = bank.tx
    for port in range(ports):
        bank.hear(
            port, tx.lit[port], tx.sent_dbm[port], tx.sent_extinction_db[port],
            tx.sent_penalty_db[port],
        )  # fmt: skip
    bank.settle(SECOND_NS)
    bank.counters.used[:] = True
    bank.counters.aim(np.arange(ports), SECOND_NS)
    return bank


def cpu_ms(act: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append((time.process_time() - start) * 1e3)
    return times


def measure(options: argparse.Namespace, answer: Answer) -> None:
    for name in PROFILES:
        for what, times in steps(name, options.lanes, options.repeats).items():
            answer.add(
                Line(
                    f"{name}, {options.lanes:,} lanes, {what}",
                    Figures(times, "ms"),
                    goal=GOAL_MS,
                    better="less",
                )
            )


def steps(name: str, lanes: int, repeats: int) -> dict[str, list[float]]:
    bank = lit_bank(name, lanes)
    everyone = np.arange(bank.ports)

    def idle() -> None:
        bank.step(SECOND_NS)

    def change_all() -> None:
        bank.causes.rx_path_loss_db[:] += 0.01
        bank.mark(everyone)
        bank.step(SECOND_NS)

    def and_monitors() -> None:
        bank.step(SECOND_NS)
        bank.sense()

    warming = cpu_ms(idle, repeats)
    bank.step(7200 * SECOND_NS)
    bank.step(60 * SECOND_NS)
    return {
        "idle": cpu_ms(idle, repeats),
        "warming up": warming,
        "every lane changed": cpu_ms(change_all, repeats),
        "idle, with its monitors' noise": cpu_ms(and_monitors, repeats),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lanes", type=int, default=100_000)


if __name__ == "__main__":
    run(__doc__, measure, arguments)
