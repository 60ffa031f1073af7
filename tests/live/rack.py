"""A rack that runs: a real daemon and a real chassis as processes, driven as people drive them.

Whatever a test does to it, `close` ends exactly the processes that were started and then insists
that nothing is left: no process, interface, namespace, socket file or shared memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from accel.client import Client
from accel.errors import AccelError
from accel.plain import word
from accel.v1 import event_pb2, link_pb2, transfer_pb2
from accelhw.chassis import namespace
from accelhw.device.native import SWITCH

MARK = "ACCEL_TEST_RACK"  # in the environment of all that a rack starts, and of their children
PATIENCE_S = 60.0  # for conditions that hold soon on an idle machine
END_S = 60.0
LOOK_S = 0.02

T = TypeVar("T")


def until(
    condition: Callable[[], T],
    what: str,
    patience_s: float = PATIENCE_S,
    story: Callable[[], str] = str,
) -> T:
    """The first true value of a condition; a daemon out of reach is not true yet."""
    deadline = time.monotonic() + patience_s
    while True:
        failure: object = None
        try:
            if value := condition():
                return value
        except (AccelError, OSError) as error:
            failure = error
        assert time.monotonic() < deadline, f"it never came true that {what} ({failure}); {story()}"
        time.sleep(LOOK_S)


def pair_config(
    *,
    profile: str = "single",
    fibres: Sequence[str] = ("0",),
    fibre: str = "",
    card: str = "",
    head: str = "",
) -> str:
    """Two cards and a fibre between each two engines named in `fibres`."""
    text = head + "\n"
    for name in ("card0", "card1"):
        text += f'[[card]]\nname = "{name}"\nprofile = "{profile}"\n{card}\n'
    for oe in fibres:
        text += f'[[fibre]]\na = "card0/oe{oe}"\nb = "card1/oe{oe}"\nlength_m = 2\n{fibre}\n'
    return text


# Small frames, and the loops in Python, take their time, so that a copy has a middle.
SLOW = "mtu = 1500"
LONG = 192 << 20  # bytes that take some seconds there, whoever else wants the CPU meanwhile


class Rack:
    """`netns` names the namespace that its processes live in; None is the test's own."""

    def __init__(self, folder: Path, config: str, netns: str | None = None) -> None:
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.netns = netns
        self.loops = {SWITCH: "0"} if SLOW in config else {}
        self.config = folder / "rack.toml"
        self.config.write_text(config)
        self.socket = folder / "acceld.sock"
        self.hardware_socket = folder / "hardware.sock"
        self.daemon: subprocess.Popen[bytes] | None = None
        self.chassis: subprocess.Popen[bytes] | None = None
        self._before = traces(netns)

    # ---- power ----------------------------------------------------------------------------------

    def serve(
        self,
        *arguments: str,
        chassis: str = "auto",
        wait: bool = True,
        wrapper: Sequence[str] = (),
    ) -> None:
        """Start the daemon, by a `wrapper` that executes it; `wait` until it is attached."""
        self.daemon = self.start(
            *wrapper, *program("acceld"), "serve", "--config", str(self.config), "--state-dir",
            str(self.folder / "state"), "--socket", str(self.socket), "--metrics",
            "127.0.0.1:0", "--chassis", chassis, *arguments,
        )  # fmt: skip
        if wait:
            until(self._is_attached, "it is attached", story=self.logs)

    def _is_attached(self) -> bool:
        assert self.daemon is not None
        assert self.daemon.poll() is None, f"the daemon ended: {self.logs()}"
        return self.client.host().chassis_attached

    def power_on(self) -> None:
        """Start a chassis that outlives the daemon; returns when it answers."""
        self.chassis = self.start(
            *program("acceld"), "chassis", "--config", str(self.config), "--socket",
            str(self.hardware_socket),
        )  # fmt: skip
        until(self._chassis_answers, "the chassis answers")

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Any command, in the rack's environment, its output in a file."""
        with open(self.folder / "log", "ab") as log:
            return namespace.run_inside(
                self.netns,
                lambda: subprocess.Popen(
                    command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                ),
            )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ, **self.loops, MARK: self.mark, "ACCEL_SOCKET": str(self.socket),
            "NO_COLOR": "1",
        }  # fmt: skip

    def logs(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def end(self, process: subprocess.Popen[bytes] | None) -> int:
        """As `kill` and service managers do it; returns the exit code."""
        assert process is not None
        process.send_signal(signal.SIGTERM)
        return process.wait(END_S)

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        assert process is not None
        process.kill()
        process.wait(END_S)

    def _chassis_answers(self) -> bool:
        assert self.chassis is not None
        assert self.chassis.poll() is None, f"the chassis ended: {self.logs()}"
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PATIENCE_S)
            return probe.connect_ex(str(self.hardware_socket)) == 0

    # ---- use ------------------------------------------------------------------------------------

    @cached_property
    def client(self) -> Client:
        return Client(self.socket, timeout_s=PATIENCE_S)

    def cli(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        """accelctl, to its end."""
        done = subprocess.run(
            accelctl(*arguments),
            env=self.environment,
            input=stdin,
            capture_output=True,
            timeout=3 * PATIENCE_S,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def ask(self, *arguments: str) -> Any:
        """What accelctl says as JSON."""
        done = self.cli(*arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def running(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """accelctl while it runs; end it, or wait for it."""
        return subprocess.Popen(
            accelctl(*arguments),
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def links(self) -> list[link_pb2.Link]:
        return [link for link in self.client.links.list() if link.HasField("fibre")]

    def interfaces(self) -> set[str]:
        """What its fibres are, by name."""
        return {link.fibre.interface for link in self.links()}

    def link(self, port: str) -> link_pb2.Link:
        return self.client.links.get(port)

    def wait_up(self, count: int | None = None) -> None:
        """Until all links are up, or those so many."""
        until(
            lambda: (
                (states := [word(link, "state") for link in self.links()])
                and states.count("UP") == (count if count is not None else len(states))
            ),
            "links are up",
            story=self.logs,
        )

    def fill(self, region: str, size: int, seed: int = 1) -> str:
        """Allocate a region of pseudo-random bytes; their SHA-256."""
        card, _, name = region.partition(":")
        self.client.regions.create(card, name, size)
        for _ in self.client.regions.fill(region, seed=seed):
            pass
        return self.sha256(region)

    def sha256(self, region: str) -> str:
        return list(self.client.regions.checksum(region))[-1].sha256

    def begin(self, source: str, target: str, **options: Any) -> str:
        """Start a copy by light into a new region of the same size; the transfer's name."""
        card, _, name = target.partition(":")
        self.client.regions.create(card, name, self.client.regions.get(source).size_bytes)
        return str(self.client.transfers.create(source, target, **options).name)

    def transfer(self, name: str) -> transfer_pb2.Transfer:
        return self.client.transfers.get(name)

    def in_the_middle(self, name: str, share: float = 0.1) -> transfer_pb2.Transfer:
        """Wait until some of a transfer is done, and it is not over."""

        def begun() -> Any:
            now = self.transfer(name)
            assert word(now, "state") in ("QUEUED", "RUNNING", "WAITING"), now
            return now if now.good_bytes >= share * now.total_bytes else None

        return until(begun, f"{name} is in its middle", story=self.logs)

    def ended(self, name: str) -> transfer_pb2.Transfer:
        def over() -> Any:
            now = self.transfer(name)
            return now if word(now, "state") in ("DONE", "FAILED", "CANCELLED") else None

        return until(over, f"{name} ends", 2 * PATIENCE_S, self.logs)

    def done(self, name: str) -> transfer_pb2.Transfer:
        ended = self.ended(name)
        assert word(ended, "state") == "DONE", ended
        return ended

    def worker_of(self, card: str) -> int:
        """The process that carries a card."""
        return int(next(w.pid for w in self.client.host().workers if card in w.cards))

    def told(self, *kinds: str, subject: str = "") -> list[event_pb2.Event]:
        """All events, once there are as many of each kind as it is named here: a state is seen in
        shared memory, and may be seen before the event that tells of it has come."""
        wanted = Counter(kinds)

        def come() -> list[event_pb2.Event]:
            found = list(self.client.events.list(subject))
            return found if wanted <= Counter(event.kind for event in found) else []

        return until(come, f"{kinds} are told of {subject or 'anything'}", story=self.logs)

    def never_told(self, kind: str) -> bool:
        """So far, and a kind of event that would have been told long ago."""
        return all(event.kind != kind for event in self.client.events.list())

    # ---- the end --------------------------------------------------------------------------------

    def processes(self) -> list[int]:
        """All processes of this rack, whoever their parent is now."""
        found = []
        wanted = f"{MARK}={self.mark}".encode()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
        return found

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()
        try:
            for process in (self.daemon, self.chassis):
                if process is not None and process.poll() is None:
                    self.end(process)
            until(lambda: not self.processes(), "its processes ended", END_S)
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        left = [*traces(self.netns) - self._before, *self.folder.glob("*.sock")]
        assert not left, f"left behind: {left}; {self.logs()}"
        shutil.rmtree(self.folder)


def program(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"{name}.main", *arguments]


def accelctl(*arguments: str) -> list[str]:
    return program("accelctl", "--timeout", f"{PATIENCE_S:g}", *arguments)


def interfaces(netns: str | None) -> set[str]:
    return namespace.run_inside(netns, lambda: {name for _, name in socket.if_nameindex()})


def traces(netns: str | None) -> set[str]:
    """What a rack may leave outside its folder. Namespaces of tests have our process in their
    name, because other test processes make some too."""
    return {
        *(f"interface {name}" for name in interfaces(netns)),
        *(f"namespace {name}" for name in namespace.names() if str(os.getpid()) in name),
        *(f"/dev/shm/{path.name}" for path in Path("/dev/shm").iterdir() if "accel" in path.name),
    }


@contextlib.contextmanager
def running_rack(
    folder: Path,
    config: str,
    netns: str | None = None,
    *,
    separate: bool = False,
    up: bool = True,
) -> Iterator[Rack]:
    """A rack with all links up. `separate`: chassis and daemon on their own, as services run."""
    rack = Rack(folder, config, netns)
    try:
        if separate:
            rack.power_on()
        rack.serve()
        if up:
            rack.wait_up()
        yield rack
    finally:
        rack.close()
