"""What do bit errors cost: the same copy over lanes of BER 1e-9 without FEC, beside clean ones?

Two pairs of cards in one rack; the connectors of one pair lose so much light that its lanes flip
bits in frames, which checksums find and replays repair.

    python benchmarks/bit_errors.py [--ber 1e-9] [--mib 512] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse

from support import copies, network, rack
from support.answer import Answer, Figures, Line, in_turn, run


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    with rack.running(rack.pairs(4, fibres=1)) as cards:
        ways = [("card0", "card1"), ("card2", "card3")]
        clean, noisy = copies.prepare(cards, ways, options.mib << 20)
        cards.client.faults.inject("dirty_connector_mild", "card3/oe0", target_ber=options.ber)
        cards.wait_up()
        replayed: list[float] = []

        def over_noise() -> float:
            done = cards.client.transfers.copy(*noisy)
            replayed.append(done.replayed_frames_total)
            return float(done.wall_gbyte_per_s)

        with_errors, without = in_turn(
            options.repeats, over_noise, lambda: copies.gbyte_per_s(cards, clean)
        )
        ber = max(lane.pre_fec_ber for lane in cards.client.lanes.list("card3/oe0"))
        if cards.sha256(noisy[0]) != cards.sha256(noisy[1]):
            raise SystemExit("what arrived is not what was sent")
    answer.add(
        Line(
            f"HBM to HBM at BER {options.ber:g}, no FEC", Figures(with_errors, "GB/s"),
            Figures(without, "GB/s"), "clean lanes", 0.9, note=f"worst lane at {ber:.1e}",
        )
    )  # fmt: skip
    answer.add(Line("frames replayed in a copy", Figures(replayed[1:], "frames")))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=512, help="size of the copy")
    parser.add_argument("--ber", type=float, default=1e-9, help="of the lanes of the noisy pair")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
