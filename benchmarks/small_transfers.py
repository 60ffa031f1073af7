"""How long does a small transfer take, from its start to the proof that it arrived?

Beside it: the same bytes from one Python process to another on bare packet sockets over the same
kind of veth, answered by a short frame; no link layer, no checksum. And the same transfer as a
client sees it, with its calls to the daemon.

    python benchmarks/small_transfers.py [--sizes 4096,65536] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support import network, rack
from support.answer import Answer, Figures, Line, in_turn, run

ETHERTYPE = 0x88B5
HEADER = b"\xff" * 12 + ETHERTYPE.to_bytes(2)
PAYLOAD_BYTES = 65000  # of one frame
TRANSFERS = 40  # in a round


def _open(interface: str) -> socket.socket:
    # Protocol 0 hears nothing before bind(): frames of the rack's own fibres are not for us.
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.bind((interface, ETHERTYPE))
    return opened


def _answer(interface: str, frames: int) -> None:
    """The far end: a short frame for each `frames` that came."""
    here = _open(interface)
    buffer = bytearray(1 << 16)
    while True:
        for _ in range(frames):
            here.recv_into(buffer)
        here.send(HEADER)


@contextmanager
def bare_ping_pong(interfaces: tuple[str, str], size_bytes: int) -> Iterator[object]:
    """Gives a function: the median time of a round trip in us."""
    lengths = [PAYLOAD_BYTES] * (size_bytes // PAYLOAD_BYTES)
    if rest := size_bytes % PAYLOAD_BYTES:
        lengths.append(rest)
    near = _open(interfaces[0])
    far = multiprocessing.get_context("fork").Process(
        target=_answer, args=(interfaces[1], len(lengths)), daemon=True
    )
    far.start()
    payload = memoryview(os.urandom(PAYLOAD_BYTES))
    time.sleep(0.2)

    def median_us() -> float:
        times = []
        for _ in range(TRANSFERS):
            began_s = time.perf_counter()
            for length in lengths:
                near.sendmsg([HEADER, payload[:length]])
            near.recv(64)
            times.append((time.perf_counter() - began_s) * 1e6)
        return statistics.median(times)

    try:
        yield median_us
    finally:
        far.kill()
        far.join()
        near.close()


def measure(options: argparse.Namespace, answer: Answer) -> None:
    network.enter_own_namespace()
    sizes = list(map(int, options.sizes.split(",")))
    with rack.running(rack.pairs(2, fibres=1)) as cards, network.veth("pp", 65535) as interfaces:
        out = cards.region("card0", "out", max(sizes), seed=1)
        into = cards.region("card1", "in", max(sizes))
        for size in sizes:
            calls: list[float] = []

            def ours(size: int = size, calls: list[float] = calls) -> float:
                walls, seen = [], []
                for _ in range(TRANSFERS):
                    began_s = time.perf_counter()
                    done = cards.client.transfers.copy(out, into, length=size)
                    seen.append((time.perf_counter() - began_s) * 1e6)
                    walls.append(done.wall_ms * 1e3)
                calls.append(statistics.median(seen))
                return statistics.median(walls)

            with bare_ping_pong(interfaces, size) as peer:
                wall, bare = in_turn(options.repeats, ours, peer)  # type: ignore[arg-type]
            name = f"{size >> 10} KiB"
            answer.add(
                Line(
                    f"{name}, card to card", Figures(wall, "us"), Figures(bare, "us"),
                    "bare sockets", better="less",
                )
            )  # fmt: skip
            answer.add(Line(f"{name}, as the client sees it", Figures(calls[1:], "us")))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", default="4096,65536", help="bytes, with commas")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
