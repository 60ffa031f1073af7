"""How fast do bytes go from HBM to HBM over one veth pair, all checks on?

The whole product runs: a chassis, its workers and a daemon of their own, one fibre. Beside it, in
the same rounds: one iperf3 TCP stream between two namespaces over a veth pair of the same MTU, a
loop in C that only moves frames (ceiling.c), and a memcpy. Needs root or a user namespace.

    python benchmarks/hbm_copy.py [--mtu 65535,9000] [--mib 1024] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack

import numpy as np
from support import copies, network, rack
from support.answer import Answer, Figures, Line, in_turn, run
from support.ceiling import ceiling

UNIT = "GB/s"
GOALS = {65535: {"iperf3": 1.8, "C loop": 0.65}, 9000: {"iperf3": 0.7}}


class Memcpy:
    def __init__(self, mib: int) -> None:
        self._source = np.ones(mib << 20, np.uint8)
        self._target = np.zeros_like(self._source)

    def gbyte_per_s(self) -> float:
        began_s = time.perf_counter()
        np.copyto(self._target, self._source)
        return float(self._source.nbytes / (time.perf_counter() - began_s) / 1e9)


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    for mtu in map(int, options.mtu.split(",")):
        _at(mtu, options, answer)


def _at(mtu: int, options: argparse.Namespace, answer: Answer) -> None:
    cpu_s: list[float] = []
    with ExitStack() as stack:
        config = rack.pairs(2, profile=options.profile, fibres=1, mtu=mtu)
        cards = stack.enter_context(rack.running(config))
        iperf3 = stack.enter_context(network.iperf3(mtu))
        loop = stack.enter_context(ceiling(mtu, options.mib))
        [way] = copies.prepare(cards, [("card0", "card1")], options.mib << 20)
        workers = cards.worker_pids()

        def ours() -> float:
            before_s = rack.cpu_s(workers)
            rate = copies.gbyte_per_s(cards, way)
            cpu_s.append((rack.cpu_s(workers) - before_s) / (options.mib << 20) * 1e9)
            return rate

        peers = {"memcpy": Memcpy(options.mib // 2).gbyte_per_s}
        if iperf3 is not None:
            peers["iperf3"] = iperf3.gbyte_per_s
        if loop is not None:
            peers["C loop"] = loop
        rates, *others = in_turn(options.repeats, ours, *peers.values())
        if cards.sha256(way[0]) != cards.sha256(way[1]):
            raise SystemExit("what arrived is not what was sent")
    what = f"HBM to HBM, MTU {mtu}"
    for name, values in zip(peers, others, strict=True):
        goal = GOALS.get(mtu, {}).get(name)
        answer.add(Line(what, Figures(rates, UNIT), Figures(values, UNIT), name, goal))
    answer.add(Line(f"its CPU, MTU {mtu}", Figures(cpu_s[1:], "s/GB")))
    answer.absent += [
        name for name in ("iperf3", "C loop") if name not in peers and name not in answer.absent
    ]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=1024, help="size of the copy")
    parser.add_argument("--mtu", default="65535,9000", help="one or several, with commas")
    parser.add_argument("--profile", default="oio")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
