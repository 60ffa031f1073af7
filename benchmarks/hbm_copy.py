"""How fast do bytes go from HBM to HBM over one veth pair, beside one iperf3 TCP stream?

The whole product runs: a chassis, its workers and a daemon of their own, one fibre, all checks on.
iperf3 runs over a veth pair of the same kind between two network namespaces, in turn with ours, so
that both meet the same machine. Needs root or a user namespace, and iperf3.

    python benchmarks/hbm_copy.py [--mib 1024] [--repeats 5] [--mtu 65535] [--json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
CONFIG = """
[[card]]
name = "card0"
profile = "{profile}"
[[card]]
name = "card1"
profile = "{profile}"
[[fibre]]
a = "card0/oe0"
b = "card1/oe0"
mtu = {mtu}
extra_loss_db = {extra_loss_db}
"""


def sh(command: str) -> str:
    done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def lanes_up(client: Any) -> int:
    """How many ends of links are up; none while the daemon still starts."""
    from accel import Unreachable

    try:
        return sum(link.width_lanes > 0 for link in client.links.list())
    except Unreachable:
        return 0


@contextmanager
def rack(options: argparse.Namespace) -> Iterator[Any]:
    """A client of a running daemon whose one link is up."""
    from accel import Client

    folder = Path(tempfile.mkdtemp(prefix="accel-bench-"))
    config = folder / "rack.toml"
    config.write_text(CONFIG.format(**vars(options)))
    socket = folder / "acceld.sock"
    daemon = subprocess.Popen(
        [
            sys.executable, "-m", "acceld.main", "serve", "--config", str(config),
            "--state-dir", str(folder / "state"), "--socket", str(socket), "--metrics", "off",
            "--chassis", "own", "--hardware-socket", str(folder / "hardware.sock"),
        ],
        stderr=(folder / "log").open("w"),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not socket.exists():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.05)
        with Client(str(socket)) as client:
            while lanes_up(client) < 2:
                if time.monotonic() > deadline:
                    raise SystemExit("the link did not come up in 30 s")
                time.sleep(0.05)
            yield client
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        shutil.rmtree(folder)


@contextmanager
def iperf_peer(mtu: int) -> Iterator[None]:
    """An iperf3 server in another namespace, behind a veth pair."""
    far = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
    assert far.stdin is not None
    while os.readlink(f"/proc/{far.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    enter = ["nsenter", "-t", str(far.pid), "-n"]
    sh(f"ip link add bench0 mtu {mtu} type veth peer name bench1 mtu {mtu} netns {far.pid}")
    sh("ip link set bench0 up; ip addr add 10.9.0.1/24 dev bench0")
    sh(f"{' '.join(enter)} sh -c 'ip link set bench1 up; ip addr add 10.9.0.2/24 dev bench1'")
    server = subprocess.Popen([*enter, "iperf3", "-s"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        yield
    finally:
        server.terminate()
        server.wait()
        far.stdin.close()
        far.wait()


def iperf3_gbyte_per_s(seconds: float) -> float:
    end = json.loads(sh(f"iperf3 -c 10.9.0.2 -J -t {seconds:g}"))["end"]
    return float(end["sum_received"]["bits_per_second"]) / 8e9


def worker_cpu_ns(client: Any) -> int:
    """CPU time that the workers have used."""
    pids = [worker.pid for worker in client.host().workers]
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)


def measure(options: argparse.Namespace) -> dict[str, object]:
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"needs root, or a user namespace: unshare -Ur python {sys.argv[0]}")
    sh("ip link set lo up")
    size_bytes = options.mib << 20
    ours: list[float] = []
    theirs: list[float] = []
    cpu: list[float] = []
    with rack(options) as client, iperf_peer(options.mtu):
        for card in ("card0", "card1"):
            client.regions.create(card, "bench", size_bytes)
        for _ in client.regions.fill("card0:bench", seed=7):
            pass
        client.transfers.copy("card0:bench", "card1:bench")  # the first one also maps the pages
        replayed = 0
        for _ in range(options.repeats):
            if not options.no_iperf:
                theirs.append(iperf3_gbyte_per_s(1.0))
            before = worker_cpu_ns(client)
            done = client.transfers.copy("card0:bench", "card1:bench")
            cpu.append((worker_cpu_ns(client) - before) / size_bytes)
            ours.append(done.wall_gbyte_per_s)
            replayed += done.replayed_frames_total
        sums = [
            [step.sha256 for step in client.regions.checksum(f"{card}:bench")][-1]
            for card in ("card0", "card1")
        ]
    result: dict[str, object] = {
        "what": "HBM to HBM over one veth pair, checksum and retry on",
        "mib": options.mib, "mtu": options.mtu, "repeats": options.repeats,
        "gbyte_per_s": [round(v, 2) for v in ours],
        "median_gbyte_per_s": round(statistics.median(ours), 2),
        "worker_cpu_s_per_gbyte": round(statistics.median(cpu), 2),
        "replayed_frames": replayed,
        "sha256_equal": sums[0] == sums[1],
    }  # fmt: skip
    if theirs:
        result |= {
            "iperf3_gbyte_per_s": [round(v, 2) for v in theirs],
            "median_iperf3_gbyte_per_s": round(statistics.median(theirs), 2),
            "ratio": round(statistics.median(ours) / statistics.median(theirs), 2),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the copy")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mtu", type=int, default=65535)
    parser.add_argument("--profile", default="oio")
    parser.add_argument("--extra-loss-db", type=float, default=0.0, help="makes bit errors")
    parser.add_argument("--no-iperf", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    for key, value in result.items():
        print(f"{key:28} {value}")


if __name__ == "__main__":
    main()
