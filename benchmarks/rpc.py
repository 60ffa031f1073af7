"""How long does a call to the daemon take, beside a bare grpc.aio echo on the same kind of socket?

The client is the same for both: one synchronous channel on a Unix socket. Then the tail of the same
calls while a transfer keeps both workers busy.

    python benchmarks/rpc.py [--calls 300] [--repeats 5] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from support import copies, network, rack
from support.answer import Answer, Figures, Line, in_turn, run

from accel import Client
from accel.v1 import card_pb2, card_pb2_grpc, link_pb2, link_pb2_grpc, memory_pb2, memory_pb2_grpc

METHOD = "/bench.Echo/Echo"
SPAWN = multiprocessing.get_context("spawn")  # grpc and fork do not mix
MIB = 64


async def _serve(path: str) -> None:
    async def echo(request: bytes, context: Any) -> bytes:
        return request

    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", handlers),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    await server.wait_for_termination()


def _echo_server(path: str) -> None:
    asyncio.run(_serve(path))


@contextmanager
def bare_echo() -> Iterator[Callable[[bytes], bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "echo.sock"
        server = SPAWN.Process(target=_echo_server, args=(str(path),), daemon=True)
        server.start()
        while not path.exists():
            time.sleep(0.01)
        with grpc.insecure_channel(f"unix:{path}") as channel:
            yield channel.unary_unary(METHOD)
        server.kill()
        server.join()


def _copy_for_ever(socket: str, out: str, into: str) -> None:
    with Client(socket) as client:
        while True:
            client.transfers.copy(out, into)


def times_us(call: Callable[[], object], count: int) -> list[float]:
    times = []
    for _ in range(count):
        began_s = time.perf_counter()
        call()
        times.append((time.perf_counter() - began_s) * 1e6)
    return times


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def measure(options: argparse.Namespace, answer: Answer) -> None:
    # Real-time workers (a chrt before this script) would starve the daemon; nobody runs it so.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    network.enter_own_namespace()
    with rack.running(rack.pairs(8)) as cards, bare_echo() as echo:
        [(out, into)] = copies.prepare(cards, [("card0", "card1")], MIB << 20)
        channel: Any = grpc.insecure_channel(f"unix:{cards.socket}")
        calls = _calls(channel)
        body = b"x" * 200  # about what a card's request and answer are in the mean
        tails: dict[str, list[float]] = {}

        def of(name: str, call: Callable[[], object]) -> Callable[[], float]:
            def median_us() -> float:
                found = times_us(call, options.calls)
                tails.setdefault(name, []).append(p99(found))
                return statistics.median(found)

            return median_us

        names = list(calls)
        *ours, bare = in_turn(
            options.repeats,
            *(of(name, calls[name]) for name in names),
            of("echo", lambda: echo(body)),
        )
        for name, values in zip(names, ours, strict=True):
            answer.add(
                Line(
                    f"{name}, p50", Figures(values, "us"), Figures(bare, "us"), "bare echo",
                    1.5 if name == "GetRegion" else None, "less",
                )
            )  # fmt: skip
        idle = tails["GetRegion"][1:]
        load = SPAWN.Process(
            target=_copy_for_ever, args=(str(cards.socket), out, into), daemon=True
        )
        load.start()
        while not list(cards.client.transfers.list(active_only=True)):
            time.sleep(0.01)
        busy, _ = in_turn(
            options.repeats,
            lambda: p99(times_us(calls["GetRegion"], options.calls)),
            of("echo while busy", lambda: echo(body)),
        )
        load.kill()
        load.join()
        channel.close()
    answer.add(
        Line(
            "GetRegion, p99 while transfers run", Figures(busy, "us"), Figures(idle, "us"),
            "idle", 3.0, "less",
            note=f"the bare echo's: {statistics.median(tails['echo while busy'][1:]):.0f} us,"
            f" idle {statistics.median(tails['echo'][1:]):.0f} us",
        )
    )  # fmt: skip


def _calls(channel: Any) -> dict[str, Callable[[], object]]:
    memory = memory_pb2_grpc.MemoryServiceStub(channel)
    card = card_pb2_grpc.CardServiceStub(channel)
    link = link_pb2_grpc.LinkServiceStub(channel)
    region = memory_pb2.GetRegionRequest(name="cards/card0/regions/bench-out0")
    return {
        "GetRegion": lambda: memory.GetRegion(region),
        "GetLink": lambda: link.GetLink(link_pb2.GetLinkRequest(name="cards/card0/links/oe0")),
        "GetCard": lambda: card.GetCard(card_pb2.GetCardRequest(name="cards/card0")),
        "ListLinks of 32": lambda: link.ListLinks(
            link_pb2.ListLinksRequest(parent="cards/-", page_size=100)
        ),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=300, help="in a round")


if __name__ == "__main__":
    run(__doc__, measure, arguments)
