"""How long from a command to its effect: daemon ready, links up, accelctl back at the prompt?

python benchmarks/start.py [--repeats 3] [--json]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from support import network, rack
from support.answer import Answer, Figures, Line, run

GOAL_READY_S = 1.5
GOAL_PROMPT_MS = 300.0
GOAL_MEMORY_S = 5.0
GOAL_VETH_S = 10.0


def seconds_of(*command: str, **environment: str) -> float:
    began_s = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    return time.perf_counter() - began_s


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    accelctl = (sys.executable, "-m", "accelctl.main")
    ready, up, prompt = [], [], []
    python = [1e3 * seconds_of(sys.executable, "-c", "pass") for _ in range(options.repeats)]
    plain = [1e3 * seconds_of(*accelctl, "--help") for _ in range(options.repeats)]
    for _ in range(options.repeats):
        with rack.running(rack.pairs(8)) as eight:
            ready.append(eight.ready_s)
            up.append(eight.wait_up())
            where = {"ACCEL_SOCKET": str(eight.socket)}
            prompt.append(1e3 * seconds_of(*accelctl, "link", "list", **where))
    many = []
    for cards, transport in ((128, "memory"), (32, "veth")):
        took = []
        for _ in range(max(options.repeats // 3, 1)):
            with rack.running(rack.pairs(cards, transport=transport)) as large:
                took.append(large.wait_up() - large.ready_s)
                if transport == "memory":
                    many.append(large.ready_s)
        goal = GOAL_MEMORY_S if transport == "memory" else GOAL_VETH_S
        answer.add(
            Line(
                f"{2 * cards} links up over {transport}, from ready",
                Figures(took, "s"), goal=goal, better="less",
            )
        )  # fmt: skip
    answer.lines[:0] = [
        Line(
            "daemon ready, 8 cards, 16 veth fibres", Figures(ready, "s"),
            goal=GOAL_READY_S, better="less",
        ),
        Line("its 16 links up", Figures(up, "s")),
        Line("daemon ready, 128 cards, 256 fibres in memory", Figures(many, "s")),
        Line(
            "accelctl --help", Figures(plain, "ms"), goal=GOAL_PROMPT_MS, better="less",
            note=f"an empty Python: {sorted(python)[len(python) // 2]:.0f} ms",
        ),
        Line("accelctl link list", Figures(prompt, "ms"), goal=GOAL_PROMPT_MS, better="less"),
    ]  # fmt: skip


if __name__ == "__main__":
    run(__doc__, measure, repeats=3)
