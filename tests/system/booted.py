"""A small machine with a real systemd, booted in a container, with acceld installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/systemd"
BOOT_S = 120


def missing() -> str:
    """Why no machine can be booted here; empty when one can."""
    if os.geteuid() != 0 or Path("/proc/self/uid_map").read_text().split()[2] != "4294967295":
        return "a systemd container needs real root"
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed (Debian package systemd-container)"
    if not (BUILD / "tree.holds").exists() or not (BUILD / "opt.holds").exists():
        return "no tree to boot; `make test-system` makes one"
    return ""


@dataclass(slots=True)
class Machine:
    leader: int  # pid of its systemd, as seen from here

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid",
             "--cgroup", "--wd=/root", *command],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"},
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def text(self, *command: str) -> str:
        return self.run(*command).stdout.strip()

    def main_pid(self, unit: str) -> int:
        return int(self.text("systemctl", "show", "--property=MainPID", "--value", unit))


@contextmanager
def booted(config: Path) -> Iterator[Machine]:
    """Boot, with `config` as /etc/acceld/acceld.toml. What it writes is gone with it."""
    units = ROOT / "systemd"
    binds = {
        BUILD / "opt": "/opt/acceld",
        config: "/etc/acceld/acceld.toml",
        units / "acceld.service": "/usr/lib/systemd/system/acceld.service",
        units / "accel-chassis.service": "/usr/lib/systemd/system/accel-chassis.service",
        units / "accel.sysusers": "/usr/lib/sysusers.d/accel.conf",
        units / "accel.tmpfiles": "/usr/lib/tmpfiles.d/accel.conf",
        units / "accel.catalog": "/usr/lib/systemd/catalog/accel.catalog",
    }
    nspawn = subprocess.Popen(
        ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network",
         "--volatile=overlay", f"--machine=accel{os.getpid()}", f"--directory={BUILD / 'tree'}",
         "--console=pipe", "--kill-signal=SIGRTMIN+4",
         *(f"--bind-ro={here}:{there}" for here, there in binds.items())],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        machine = Machine(_leader(nspawn))
        _wait_for_boot(machine, nspawn)
        yield machine
    finally:
        nspawn.send_signal(signal.SIGTERM)
        try:
            nspawn.wait(timeout=60)
        except subprocess.TimeoutExpired:
            nspawn.kill()
            nspawn.wait()


def _leader(nspawn: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children")
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and nspawn.poll() is None:
        for child in children.read_text().split():
            try:
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
            except OSError:
                continue
        time.sleep(0.05)
    output = nspawn.communicate(timeout=5)[0] if nspawn.poll() is not None else ""
    raise AssertionError(f"systemd-nspawn started no systemd: {output}")


def _wait_for_boot(machine: Machine, nspawn: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + BOOT_S
    state = ""
    while time.monotonic() < deadline and nspawn.poll() is None:
        state = machine.run("systemctl", "is-system-running", check=False).stdout.strip()
        if state in ("running", "degraded"):
            return
        time.sleep(0.1)
    raise AssertionError(f"not booted: {state}")
