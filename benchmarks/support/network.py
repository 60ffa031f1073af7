"""Networks to compare with: a namespace for the benchmark, veth pairs, iperf3."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
HERE, THERE = "10.9.0.1", "10.9.0.2"


PATIENCE_S = 60.0


def sh(command: str) -> str:
    done = subprocess.run(
        command, shell=True, check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return done.stdout.strip()


def enter_own_namespace() -> None:
    """No interface of this host is touched. Raises SystemExit without the rights."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"needs root, or a user namespace: unshare -Ur python {sys.argv[0]}")
    sh("ip link set lo up")


@contextmanager
def far_namespace() -> Iterator[int]:
    """Another network namespace, by the process that holds it."""
    far = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
    assert far.stdin is not None
    try:
        while os.readlink(f"/proc/{far.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        yield far.pid
    finally:
        far.stdin.close()
        far.wait()


@contextmanager
def veth(name: str, mtu: int, far: int | None = None) -> Iterator[tuple[str, str]]:
    """A pair of interfaces that are up; the second one in namespace `far`, if given."""
    a, b = f"{name}0", f"{name}1"
    place = f" netns {far}" if far is not None else ""
    sh(f"ip link add {a} mtu {mtu} type veth peer name {b} mtu {mtu}{place}")
    enter = f"nsenter -t {far} -n " if far is not None else ""
    for command in ("sysctl -qw net.ipv6.conf.all.disable_ipv6=1", f"ip link set {b} up"):
        subprocess.run(f"{enter}{command}", shell=True, check=False, capture_output=True)
    sh(f"ip link set {a} up")
    try:
        yield a, b
    finally:
        sh(f"ip link del {a}")


class Iperf3:
    """One TCP stream over a veth pair between two namespaces."""

    @staticmethod
    def is_here() -> bool:
        return shutil.which("iperf3") is not None

    def __init__(self, port: int) -> None:
        self._port = port

    def gbyte_per_s(self) -> float:
        """Of a stream of 1 GiB: half a second, or twice that."""
        text = sh(f"iperf3 -c {THERE} -p {self._port} -J -n 1G")
        return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 8e9


@contextmanager
def iperf3(mtu: int) -> Iterator[Iperf3 | None]:
    """None where iperf3 is not installed."""
    if not Iperf3.is_here():
        yield None
        return
    port = 5201
    with far_namespace() as far, veth(f"ip{mtu}"[:12], mtu, far) as (a, b):
        sh(f"ip addr add {HERE}/24 dev {a}")
        sh(f"nsenter -t {far} -n ip addr add {THERE}/24 dev {b}")
        server = subprocess.Popen(
            ["nsenter", "-t", str(far), "-n", "iperf3", "-s", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(0.3)
            yield Iperf3(port)
        finally:
            server.terminate()
            server.wait()
