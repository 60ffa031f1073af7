"""`acceld demo`: two emulated cards train a link and carry a file by light, told as it happens.

It starts a daemon of its own on the smallest rack, drives it through the SDK as any program would,
and leaves nothing behind: no process, no interface, no file.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from acceld.demo.way import enter, find_way

SIZE_MIB = 256


def main(args: Sequence[str]) -> int:
    """Run it with these command line arguments. 0 when the file arrived as it left."""
    options = parser().parse_args(list(args))
    way = find_way(host_net=options.host_net)
    enter(way, list(args))  # may start this program anew, inside
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Its log lines are not for users.
    from acceld.demo.place import DemoFailed, workplace
    from acceld.demo.screen import Screen
    from acceld.demo.story import Demo

    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        with workplace() as folder:
            return Demo(options, way, folder, Screen(sys.stdout)).run()
    except KeyboardInterrupt:
        print("\ninterrupted: daemon and cards are off, nothing is left behind", file=sys.stderr)
        return 130
    except (DemoFailed, OSError) as failure:
        print(f"\nthe demo failed: {failure}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="acceld demo",
        description="Two emulated cards train a link and carry a file by light.",
    )
    made.add_argument("--file", type=Path, help="carry this file instead of random bytes")
    made.add_argument(
        "--size", type=int, default=SIZE_MIB, metavar="MIB", help="random bytes (default: 256)"
    )
    made.add_argument("--config", type=Path, help="another rack that has a card0 and a card1")
    made.add_argument(
        "--host-net", action="store_true", help="make the fibre here, in no namespace of its own"
    )
    made.add_argument(
        "--stay", action="store_true", help="keep it running until Ctrl-C, to look around"
    )
    return made


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
