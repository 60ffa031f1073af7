"""Does a transfer need more memory the larger it is?

The most private memory (not HBM, which is shared and counted as HBM) that daemon, chassis and
workers had while a file went into HBM, across by light and out again, small and large. Then what
many regions, many transfers that ended, and a large region that nobody wrote to add to it.

    python benchmarks/memory.py [--mib 16,1024] [--json]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import network, rack
from support.answer import Answer, Figures, Line, run

LOOK_S = 0.02
MANY = 500
LARGE_BYTES = 2 << 30
COPY = """
import resource, sys
from accel import Client
path, size = sys.argv[1], int(sys.argv[2])
with Client() as client:
    client.regions.upload(path, "card0:bench", create=True)
    client.transfers.copy("card0:bench", "card1:bench", create=True)
    client.regions.download("card1:bench", path)
    for card in ("card0", "card1"):
        client.regions.delete(f"{card}:bench")
    own = [l for l in open("/proc/self/status") if l.startswith("RssAnon")][0]
print(own.split()[1])
"""


@contextmanager
def peak_mib(pids: list[int]) -> Iterator[list[float]]:
    """The most that they had together, looked at often; in the list at the end."""
    seen = [0.0]
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(LOOK_S):
            seen[0] = max(seen[0], rack.private_mib(pids))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    sizes = list(map(int, options.mib.split(",")))
    peaks: dict[int, list[float]] = {size: [] for size in sizes}
    clients: dict[int, list[float]] = {size: [] for size in sizes}
    with rack.running(rack.pairs(2, fibres=1)) as cards:
        pids = list(cards.pids().values())
        file = Path(f"/dev/shm/{cards.folder.name}")
        try:
            for _ in range(options.repeats):
                for size in sizes:
                    with file.open("wb") as out:
                        out.truncate(size << 20)
                    with peak_mib(pids) as peak:
                        own = subprocess.run(
                            [sys.executable, "-c", COPY, str(file), str(size << 20)],
                            env={"ACCEL_SOCKET": str(cards.socket)},
                            check=True, capture_output=True, text=True,
                        )  # fmt: skip
                    peaks[size].append(peak[0])
                    clients[size].append(int(own.stdout) / 1024)
        finally:
            file.unlink(missing_ok=True)
        added = _many(cards, pids)
    small, large = min(sizes), max(sizes)
    for what, found in (("daemon, chassis and workers", peaks), ("the client", clients)):
        answer.add(
            Line(
                f"{what}: {large} MiB", Figures(found[large], "MiB"), Figures(found[small], "MiB"),
                f"for {small} MiB", 1.1, "less",
            )
        )  # fmt: skip

    for what, mib in added.items():
        answer.add(Line(what, Figures([mib], "MiB more")))


def _many(cards: rack.Rack, pids: list[int]) -> dict[str, float]:
    """MiB that each of these adds, one after the other."""
    regions, transfers = cards.client.regions, cards.client.transfers
    added, before = {}, rack.private_mib(pids)

    def note(what: str) -> None:
        nonlocal before
        now = rack.private_mib(pids)
        added[what], before = now - before, now

    for number in range(MANY):
        regions.create("card0", f"many{number}", 4096)
    note(f"{MANY} regions of a page")
    regions.create("card1", "into", 4096)
    for number in range(MANY):
        transfers.copy(f"card0:many{number}", "card1:into")
    note(f"{MANY} transfers that ended")
    regions.create("card1", "large", LARGE_BYTES)
    note(f"a region of {LARGE_BYTES >> 30} GiB that nobody wrote to")
    return added


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", default="16,1024", help="sizes of the transfer, with commas")


if __name__ == "__main__":
    run(__doc__, measure, arguments, repeats=3)
