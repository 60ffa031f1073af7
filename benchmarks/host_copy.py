"""How fast is a host file in HBM, and a region of HBM in a host file, beside `cp` on tmpfs?

Both sides write to fresh pages: cp makes its file anew, and we our region and our file. The last
line is the whole way as a user types it: two runs of accelctl beside two of cp.

    python benchmarks/host_copy.py [--mib 512] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support import network, rack
from support.answer import Answer, Figures, Line, in_turn, run

GOAL = 0.5
TMPFS = Path("/dev/shm")


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    size = options.mib << 20
    folder = Path(tempfile.mkdtemp(prefix="accel-bench-", dir=TMPFS))
    file, copy, back = folder / "file", folder / "copy", folder / "back"
    try:
        with file.open("wb") as out:
            for _ in range(options.mib):
                out.write(os.urandom(1 << 20))
        with rack.running(rack.pairs(2, fibres=1, transport="memory")) as cards:
            regions = cards.client.regions
            where = {**os.environ, "ACCEL_SOCKET": str(cards.socket)}

            def cp() -> float:
                copy.unlink(missing_ok=True)
                return _rate(size, lambda: subprocess.run(["cp", file, copy], check=True))

            def upload() -> float:
                _drop(cards)
                regions.create("card0", "bench", size)
                return regions.upload(str(file), "card0:bench").wall_gbyte_per_s

            def download() -> float:
                back.unlink(missing_ok=True)
                return regions.download("card0:bench", str(back)).wall_gbyte_per_s

            def accelctl_both() -> float:
                _drop(cards)
                back.unlink(missing_ok=True)
                words = [sys.executable, "-m", "accelctl.main", "cp"]

                def both() -> None:
                    for pair in ((str(file), "card0:bench"), ("card0:bench", str(back))):
                        subprocess.run(
                            [*words, *pair], check=True, env=where, stdout=subprocess.DEVNULL
                        )

                return _rate(2 * size, both)

            into, out_of, whole, plain = in_turn(
                options.repeats, upload, download, accelctl_both, cp
            )
            if back.read_bytes() != file.read_bytes():
                raise SystemExit("what came back is not what went in")
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    peer = Figures(plain, "GB/s")
    for what, values, goal in (
        ("host file to HBM", into, GOAL),
        ("HBM to host file", out_of, GOAL),
        ("both, by accelctl from a shell", whole, None),
    ):
        answer.add(Line(what, Figures(values, "GB/s"), peer, "cp", goal))


def _drop(cards: rack.Rack) -> None:
    for region in cards.client.regions.list("card0"):
        cards.client.regions.delete(region.name)


def _rate(size: int, act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    return size / (time.perf_counter() - began_s) / 1e9


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=512, help="size of the file")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
