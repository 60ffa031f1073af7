"""A simulated run, told as it happens: two ports train over a bad fibre. Same seed, same story."""

from __future__ import annotations

import argparse

from accelhw.model.profile import load_profile, profile_names
from accelhw.sim.linkpair import LinkPair, straight_fibre


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m accelhw.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what the fibre does follows it")
    parser.add_argument("--profile", choices=profile_names(), default="oio")
    parser.add_argument("--loss-ratio", type=float, default=0.2, help="frames lost, 0 to 1")
    parser.add_argument("--length-m", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="give up after, simulated")
    chosen = parser.parse_args()
    pair = LinkPair(
        seed=chosen.seed,
        profile=load_profile(chosen.profile),
        fibre=straight_fibre(chosen.length_m),
        watch=print,
        loss_ratio=chosen.loss_ratio,
        duplicate_ratio=0.1,
        late_ratio=0.1,
        corrupt_ratio=0.05,
    )
    pair.enable()
    came_up = pair.run_until(pair.both_agree, chosen.seconds)
    for end in pair.ends.values():
        trainer = end.trainer
        reason = (
            f" {trainer.reason.code.name} {trainer.reason.detail}" if trainer.reason.code else ""
        )
        print(f"{end.me}: {trainer.state.name}, {trainer.width} lanes{reason}")
    return 0 if came_up else 1


if __name__ == "__main__":
    raise SystemExit(main())
