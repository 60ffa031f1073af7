"""How long does one step of 100,000 lanes take: idle, warming up, and when every lane changed?

One core, one process, links up. An idle fleet only counts; one that warms up follows its lasers; a
change everywhere computes light, errors, codewords and flags of every lane anew.

    python benchmarks/optics_step.py [--lanes 100000] [--repeats 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from accelhw.model.profile import load_profile
from accelhw.optics.bank import LaneBank

SECOND_NS = 1_000_000_000
PROFILES = ("oio", "dr8")


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


def median_ms(act: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append((time.process_time() - start) * 1e3)
    return statistics.median(times)


def measure(name: str, lanes: int, repeats: int) -> dict[str, float]:
    bank = lit_bank(name, lanes)
    everyone = np.arange(bank.ports)

    def change_all() -> None:
        bank.causes.rx_path_loss_db[:] += 0.01
        bank.mark(everyone)
        bank.step(SECOND_NS)

    warming = median_ms(lambda: bank.step(SECOND_NS), repeats)
    bank.step(7200 * SECOND_NS)
    bank.step(60 * SECOND_NS)
    idle = median_ms(lambda: bank.step(SECOND_NS), repeats)
    changed = median_ms(change_all, repeats)
    noise = median_ms(lambda: (bank.step(SECOND_NS), bank.sense()), repeats) - idle
    return {
        f"{name}_idle_ms": idle,
        f"{name}_warming_ms": warming,
        f"{name}_all_changed_ms": changed,
        f"{name}_monitors_ms": max(noise, 0.0),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options, _ = parser.parse_known_args()
    answer: dict[str, float] = {"lanes": options.lanes}
    for name in PROFILES:
        answer |= measure(name, options.lanes, options.repeats)
    answer = {key: round(value, 1) for key, value in answer.items()}
    if options.json:
        print(json.dumps(answer))
    else:
        for key, value in answer.items():
            print(f"{key:<24} {value:>10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
