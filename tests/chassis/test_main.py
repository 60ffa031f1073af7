"""The chassis as a process: how it starts, tells that it is ready, ends, and what a kill leaves."""

import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from accelhw.chassis import netlink
from accelhw.interface.client import DeviceClient
from accelhw.interface.messages import INTERFACE_VERSION, Event, Hello

RUN = Path(__file__).with_name("run_chassis.py")
VETH = """
[[card]]
name = "card0"
profile = "single"
[[card]]
name = "card1"
profile = "single"
[[fibre]]
a = "card0/oe0"
b = "card1/oe0"
"""
MEMORY = VETH + 'transport = "memory"\n'
OURS = {"card0-oe0", "card1-oe0"}
HANG_S = 60  # only ever reached by a test that fails
PR_CAPBSET_DROP = 24  # linux/prctl.h


def names():
    return {i.name for i in netlink.interfaces(None)} - {"lo"}


def wait_gone(pid):
    """Until a process that is not our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([fd], [], [], HANG_S)
    os.close(fd)
    assert ended, f"process {pid} lives on"


def workers_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Place:
    """A folder with a configuration, a device socket, and an ear for sd_notify."""

    def __init__(self, folder, text):
        self.config = folder / "rack.toml"
        self.config.write_text(text)
        self.socket = folder / "hardware.sock"
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.bind(str(folder / "notify"))
        self.ear.settimeout(HANG_S)
        self.environment = {**os.environ, "NOTIFY_SOCKET": str(folder / "notify")}

    def command(self, *more):
        config = ("--config", str(self.config), "--socket", str(self.socket))
        return [sys.executable, str(RUN), *config, *more]

    @contextmanager
    def running(self, *more, **options):
        process = subprocess.Popen(self.command(*more), env=self.environment, **options)
        try:
            assert self.ear.recv(4096).startswith(b"READY=1\n")
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(HANG_S)

    def ends(self, *more, wrapper=()):
        """How it ends by itself; `wrapper` is a command that executes it."""
        return subprocess.run(
            [*wrapper, *self.command(*more)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )


@pytest.fixture
def place(tmp_path):
    made = []

    def make(text):
        made.append(Place(tmp_path, text))
        return made[-1]

    yield make
    for one in made:
        one.ear.close()


@pytest.mark.network
@pytest.mark.parametrize(("word", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_clean_stop_removes_all(place, word, status):
    here = place(VETH)
    with here.running() as chassis:
        assert names() == OURS
        workers = workers_of(chassis.pid)
        chassis.send_signal(word)
        assert here.ear.recv(4096) == b"STOPPING=1"
        assert chassis.wait(HANG_S) == status
    assert names() == set()
    assert not here.socket.exists()
    assert workers
    for worker in workers:
        wait_gone(worker)


@pytest.mark.network
async def test_what_a_killed_chassis_left_is_reaped_by_the_next_which_says_so(place):
    here = place(VETH)
    with here.running() as chassis:
        workers = workers_of(chassis.pid)
        chassis.kill()
        chassis.wait(HANG_S)
    for worker in workers:
        wait_gone(worker)  # They die with their chassis.
    assert names() == OURS
    assert here.socket.exists()

    with here.running():
        assert names() == OURS
        client = await DeviceClient.connect(str(here.socket), Hello(INTERFACE_VERSION))
        reaped = set()
        async for message in client:
            if isinstance(message, Event) and message.kind == "INTERFACE_REAPED":
                reaped.add(message.detail["interface"])
            if isinstance(message, Event) and message.kind == "CARD_READY":
                break
        assert reaped == OURS
        await client.close()
    assert names() == set()


@pytest.mark.network
def test_two_chassis_live_side_by_side(place, tmp_path):
    here = place(VETH)
    with here.running():
        (tmp_path / "other").mkdir()
        other = Place(tmp_path / "other", VETH)
        with other.running():
            assert len(names()) == 4
        assert names() == OURS
        other.ear.close()


@pytest.mark.network
def test_a_chassis_powers_off_with_its_parent(place):
    here = place(VETH)
    program = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen({here.command('--die-with-parent')!r})\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=here.environment, stdout=subprocess.PIPE
    ) as parent:
        try:
            chassis = int(parent.stdout.readline())
            assert here.ear.recv(4096).startswith(b"READY=1\n")
            assert names() == OURS
        finally:
            parent.kill()
    try:
        wait_gone(chassis)
    except AssertionError:
        os.kill(chassis, signal.SIGTERM)
        raise
    assert names() == set()


def test_it_prints_nothing_but_its_log(place):
    here = place(MEMORY)
    with here.running("--log-format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        it.terminate()
        out, err = it.communicate(timeout=HANG_S)
    assert out == b""
    assert all(line.startswith(b"{") for line in err.splitlines())


def test_a_socket_in_use(place):
    here = place(MEMORY)
    with here.running():
        second = here.ends()
        assert second.returncode == 6
        assert second.stderr == (
            f"a chassis answers at {here.socket} already; stop it, or use --socket with another"
            " path\n"
        )
        assert here.socket.exists()


def test_a_wrong_configuration(place):
    here = place(MEMORY + "mtu = 3\n")
    done = here.ends()
    assert done.returncode == 2
    assert done.stderr == (f"{here.config}:12: fibre.mtu: 3 is too small; use 1500 to 65535\n")


def test_no_configuration(place):
    here = place("")
    here.config.unlink()
    done = here.ends()
    assert done.returncode == 3
    assert "there is no file" in done.stderr


@pytest.mark.network
@pytest.mark.parametrize("capability", [12, 13], ids=["CAP_NET_ADMIN", "CAP_NET_RAW"])
def test_missing_rights_are_told_in_a_line(place, capability):
    """Dropped from the bounding set, so that the program starts without it, even as root."""
    here = place(VETH)
    drop = (
        "import ctypes, os, sys;"
        f" ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, {capability}, 0, 0, 0);"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = here.ends(wrapper=(sys.executable, "-c", drop))
    assert done.returncode == 4
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("{", "20"))]
    assert lines == [
        "fibre fibre0: Operation not permitted: sockets on interfaces take CAP_NET_RAW, making"
        " interfaces takes CAP_NET_ADMIN; run as root, by the systemd unit, or under"
        " `unshare -Urn`; or use transport memory, which crosses no interface"
    ]
    assert names() == set()
