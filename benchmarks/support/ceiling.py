"""The C-speed ceiling: benchmarks/ceiling.c, compiled when it is asked for."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support import network

SOURCE = Path(__file__).resolve().parent.parent / "ceiling.c"
ETHERNET_BYTES = 14


@contextmanager
def ceiling(mtu: int, mib: int) -> Iterator[Callable[[], float] | None]:
    """Gives a function that measures GB/s over a veth pair; None where no compiler is."""
    compiler = next(filter(shutil.which, (os.environ.get("CC", "cc"), "cc", "gcc", "clang")), None)
    if compiler is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, network.veth(f"c{mtu}", mtu) as (a, b):
        program = Path(folder) / "ceiling"
        network.sh(f"{compiler} -O2 -o {program} {SOURCE}")
        frame_bytes = min(mtu + ETHERNET_BYTES, 65535)
        yield lambda: float(network.sh(f"{program} {a} {b} {frame_bytes} {mib}"))
