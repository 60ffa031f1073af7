"""A rack of our own while a benchmark runs: configuration, daemon, client, and what they cost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel import Client, Unreachable

PATIENCE_S = 60.0
LOOK_S = 0.005


@dataclass(slots=True)
class Rack:
    """A daemon that is ready. Times are from the start of its process, in seconds."""

    folder: Path
    daemon: subprocess.Popen[bytes]
    client: Client
    began_s: float
    ready_s: float

    @property
    def socket(self) -> Path:
        return self.folder / "acceld.sock"

    def links(self) -> list[Any]:
        return [link for link in self.client.links.list() if link.HasField("fibre")]

    def wait_up(self, patience_s: float = PATIENCE_S) -> float:
        """Until every link is up; how long that took from the start of the daemon's process."""
        while True:
            host = self.client.host()
            if host.links_up_count == host.link_count:
                return time.monotonic() - self.began_s
            if time.monotonic() - self.began_s > patience_s:
                raise SystemExit(f"{host.links_up_count} of {host.link_count} links came up")
            time.sleep(10 * LOOK_S)

    def region(self, card: str, name: str, size_bytes: int, seed: int | None = None) -> str:
        """Allocated; filled with pseudo-random bytes where a seed is given."""
        self.client.regions.create(card, name, size_bytes)
        if seed is not None:
            for _ in self.client.regions.fill(f"{card}:{name}", seed=seed):
                pass
        return f"{card}:{name}"

    def sha256(self, region: str) -> str:
        return list(self.client.regions.checksum(region))[-1].sha256

    def worker_pids(self) -> list[int]:
        return [worker.pid for worker in self.client.host().workers]

    def pids(self) -> dict[str, int]:
        host = self.client.host()
        workers = {f"worker{worker.index}": worker.pid for worker in host.workers}
        return {"daemon": host.daemon_pid, "chassis": host.chassis_pid, **workers}


MOVER = "accel-mover"  # the name of the processes that a worker makes for bulk, and a number


def with_movers(pids: Sequence[int]) -> list[int]:
    """These processes, and the movers that they have made until now."""
    found = dict.fromkeys(pids)
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                if Path(f"/proc/{child}/comm").read_text().startswith(MOVER):
                    found[int(child)] = None
    return list(found)


def cpu_s(pids: Sequence[int]) -> float:
    """CPU time that the threads of processes and of their movers have used: to the ns, not to the
    tick."""
    used_ns = 0
    for pid in with_movers(pids):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            used_ns += int((thread / "schedstat").read_text().split()[0])
    return used_ns / 1e9


def pss_mib(pids: Sequence[int], kind: str = "Pss") -> float:
    """Proportional set size of processes and their movers: shared pages count once in all.
    `Pss_Anon`: what is theirs alone."""
    kib = 0
    for pid in with_movers(pids):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(f"{kind}:"):
                kib += int(line.split()[1])
    return kib / 1024


def pairs(
    cards: int,
    *,
    profile: str = "oio",
    fibres: int | Sequence[int] | None = None,
    transport: str = "veth",
    mtu: int = 65535,
) -> str:
    """A configuration: card 0 with card 1, 2 with 3 and so on, engine by engine.

    `fibres` is how many between the two of a pair, or of each pair; None joins every engine.
    """
    from accelhw.model.profile import load_profile

    if fibres is None:
        fibres = load_profile(profile).oes
    counts = [fibres] * (cards // 2) if isinstance(fibres, int) else fibres
    text = "".join(f'[[card]]\nname = "card{n}"\nprofile = "{profile}"\n' for n in range(cards))
    for pair, count in enumerate(counts):
        for oe in range(count):
            text += (
                f'[[fibre]]\na = "card{2 * pair}/oe{oe}"\nb = "card{2 * pair + 1}/oe{oe}"\n'
                f'transport = "{transport}"\nmtu = {mtu}\n'
            )
    return text


@contextmanager
def running(config: str, *, up: bool = True, metrics: str = "off") -> Iterator[Rack]:
    """A daemon with a chassis of its own; `up`: with all links up, too."""
    folder = Path(tempfile.mkdtemp(prefix="accel-bench-"))
    file = folder / "rack.toml"
    file.write_text(config)
    began_s = time.monotonic()
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [
                sys.executable, "-m", "acceld.main", "serve", "--config", str(file),
                "--state-dir", str(folder / "state"), "--socket", str(folder / "acceld.sock"),
                "--metrics", metrics, "--chassis", "own",
                "--hardware-socket", str(folder / "hardware.sock"),
            ],
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        with Client(folder / "acceld.sock") as client:
            ready_s = _ready(client, daemon, began_s, folder / "log")
            rack = Rack(folder, daemon, client, began_s, ready_s)
            if up:
                rack.wait_up()
            yield rack
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        shutil.rmtree(folder)


def _ready(client: Client, daemon: subprocess.Popen[bytes], began_s: float, log: Path) -> float:
    """When it said that it is ready: in its log, so that asking costs it nothing."""
    while True:
        if b'"ready"' in log.read_bytes():
            took_s = time.monotonic() - began_s
            break
        if daemon.poll() is not None or time.monotonic() - began_s > PATIENCE_S:
            raise SystemExit(log.read_text())
        time.sleep(LOOK_S)
    while True:
        try:
            client.host()
            return took_s
        except Unreachable:
            time.sleep(LOOK_S)


def private_mib(pids: Sequence[int]) -> float:
    """Memory that processes and their movers have for themselves: not HBM, which is shared."""
    kib = 0
    for pid in with_movers(pids):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                kib += int(line.split()[1])
    return kib / 1024
