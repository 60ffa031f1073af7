"""Do transfers at the same time share fairly, and how fast are they together?

Both directions of one link, all links of a pair, and several transfers on one link, each beside a
single transfer on a single link in the same rack. Fairness is the slowest transfer's speed over the
fastest one's.

    python benchmarks/many_transfers.py [--mib 256] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from support import copies, network, rack
from support.answer import Answer, Figures, Line, in_turn, run

SHARERS = 4
UNIT = "GB/s"


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    size = options.mib << 20
    config = rack.pairs(4, fibres=(1, 4))
    with rack.running(config) as cards:
        there = copies.prepare(cards, [("card0", "card1")], size, "there")
        back = copies.prepare(cards, [("card1", "card0")], size, "back")
        wide = copies.prepare(cards, [("card2", "card3")], size, "wide")
        share = copies.prepare(cards, [("card0", "card1")] * SHARERS, size // SHARERS, "share")
        fairness: dict[str, list[float]] = {}

        def of(name: str, ways: list[copies.Way]) -> Callable[[], float]:
            def once() -> float:
                done = copies.together(cards, ways)
                fairness.setdefault(name, []).append(done.fairness)
                return done.total_gbyte_per_s

            return once

        single, both, links, several = in_turn(
            options.repeats,
            of("single", there),
            of("both", there + back),
            of("links", wide),
            of("several", share),
        )
    for what, key, rates in (
        ("both directions of a link", "both", both),
        ("4 links of a pair, one transfer", "links", links),
        (f"{SHARERS} transfers on a link", "several", several),
    ):
        answer.add(Line(what, Figures(rates, UNIT), Figures(single, UNIT), "one on one link"))
        if key != "links":
            fair = Figures(fairness[key][1:], "min/max")
            answer.add(Line(f"fairness, {what}", fair))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=256, help="of each; several share it")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
