"""The command as people run it: what it prints, how it ends, what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from accel.v1 import host_pb2, memory_pb2
from acceld import config, paths, sockets
from acceld.config import Options, Settings, decide, metrics_address
from acceld.errors import StartFailure
from acceld.host import own_chassis
from acceld.notify import Notifier, watchdog_interval_s
from accelhw.interface import place

from .conftest import Daemon, until
from .fake_hardware import FakeHardware

CONFIG = """
[[card]]
name = "card0"
profile = "single"
[[card]]
name = "card1"
profile = "single"
[[fibre]]
a = "card0/oe0"
b = "card1/oe0"
transport = "memory"
"""


def acceld(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "acceld", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


# ---- words ---------------------------------------------------------------------------------------


def test_version() -> None:
    done = acceld("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "acceld")


def test_a_good_configuration_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(CONFIG)
    done = acceld("check-config", str(path))
    assert done.returncode == 0
    assert "good, 2 cards" in done.stdout
    assert "card0/oe0 to card1/oe0, memory" in done.stdout


def test_every_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(CONFIG.replace('"card1/oe0"', '"card7/oe0"').replace("transport", "transprt"))
    done = acceld("check-config", str(path))
    assert done.returncode == 2
    assert f"{path}:10:" in done.stdout
    assert f"{path}:11:" in done.stdout
    served = acceld("serve", "--config", str(path))
    assert (served.returncode, "card7" in served.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("--cards 64 --shape ring --transport memory", "64 cards, 4096 lanes, 128 fibres"),
        ("--cards 128", "128 cards, 8192 lanes, 256 fibres"),
        ("--cards 3 --profile dr8 --shape mesh --mtu 1500", "3 cards, 48 lanes, 3 fibres"),
    ],
)
def test_a_rack_that_is_made_up_is_a_good_one(words: str, counts: str, tmp_path: Path) -> None:
    done = acceld("make-config", *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / "rack.toml"
    path.write_text(done.stdout)
    assert f"good, {counts}" in acceld("check-config", str(path)).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--profile none", "--profile 'none': there is dr8, oio, single"),
        ("--shape star", "--shape 'star': there is pairs, ring, mesh"),
        ("--transport netdev", "--transport 'netdev': there is veth, tap, memory"),
        ("--cards 3", "--cards: 3 do not make pairs; use 4"),
        ("--cards 9 --shape mesh", "--cards: 9 cannot all meet: oio has 4 engines"),
        ("--cards 129", "--cards: at most 128 fit into one chassis"),
        ("--mtu 100", "mtu"),
        ("--cards 0 --shape ring", "--cards: a rack has at least one"),
    ],
)
def test_a_rack_that_cannot_be_is_refused_in_one_line(words: str, says: str) -> None:
    done = acceld("make-config", *words.split())
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert says in done.stderr


def test_a_rack_that_no_chassis_takes_is_not_made_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(config, "make_fleet")
    with pytest.raises(StartFailure, match="at most 128 fit into one chassis"):
        config.rack_text(100_000, "oio", "pairs", "veth", 9000, 10.0)


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    done = acceld("serve", "--config", str(tmp_path / "none.toml"))
    assert (done.returncode, "No such file" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr


def test_serve_needs_to_know_which_hardware() -> None:
    done = acceld("serve")
    assert (done.returncode, "--config FILE" in done.stderr) == (2, True)


def test_other_commands_are_passed_on() -> None:
    done = acceld("chassis", "--help")
    assert (done.returncode, "acceld chassis" in done.stdout) == (0, True)


def test_a_command_imports_only_what_it_needs() -> None:
    code = (
        "import sys; import acceld.main; print([m for m in ('grpc', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


# ---- settings ------------------------------------------------------------------------------------


def test_options_weigh_more_than_the_file_and_the_file_more_than_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCEL_SOCKET", raising=False)
    path = tmp_path / "c.toml"
    path.write_text(CONFIG + '[daemon]\nsocket = "/x/file.sock"\nmetrics = "off"\n')
    from_file = decide(Options(config=path))
    assert (from_file.socket, from_file.metrics) == (Path("/x/file.sock"), None)
    assert from_file.hardware_socket == Path("/x/hardware.sock")
    assert from_file.memory_socket == Path("/x/memory.sock")
    chosen = decide(Options(config=path, socket=Path("/y/o.sock"), metrics="[::1]:1"))
    assert (chosen.socket, chosen.metrics) == (Path("/y/o.sock"), ("::1", 1))
    monkeypatch.setenv("ACCEL_SOCKET", "/z/env.sock")
    assert decide(Options(config=path)).socket == Path("/z/env.sock")


@pytest.mark.parametrize("text", ["9437", "host:", ":9437", "host:port", "host:65536", "host:²"])
def test_a_metrics_address_that_is_none(text: str) -> None:
    with pytest.raises(StartFailure, match=r"127\.0\.0\.1:9437"):
        metrics_address(text)


def test_a_socket_path_that_the_kernel_would_cut_is_refused() -> None:
    with pytest.raises(StartFailure, match="too long"):
        decide(Options(chassis="attach", socket=Path("/tmp") / ("x" * 100) / "a.sock"))


def test_the_service_manager_says_where_to_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCEL_SOCKET", raising=False)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/acceld")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/acceld")
    assert paths.api_socket() == Path("/run/acceld/acceld.sock")
    assert paths.state_folder() == Path("/var/lib/acceld")


def test_a_user_lives_in_folders_of_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCEL_SOCKET", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(place, "UID_MAP", Path("/nonexistent"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("HOME", "/home/a")
    assert paths.api_socket() == Path("/run/user/1000/acceld/acceld.sock")
    assert paths.state_folder() == Path("/home/a/.local/state/acceld")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert paths.api_socket() == Path("/tmp/acceld-1000/acceld.sock")


def test_root_of_a_user_namespace_lives_where_that_user_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCEL_SOCKET", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "uid_map").write_text("         0       1000          1\n")
    monkeypatch.setattr(place, "UID_MAP", tmp_path / "uid_map")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("HOME", "/home/a")
    assert paths.api_socket() == Path("/tmp/acceld-1000/acceld.sock")
    assert paths.state_folder() == Path("/home/a/.local/state/acceld")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert paths.api_socket() == Path("/run/acceld/acceld.sock")


def test_a_folder_that_is_closed_to_us_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "lstat", refuse)
    with pytest.raises(StartFailure, match=r"cannot listen at .*Permission denied"):
        sockets.prepare(tmp_path / "a.sock")


def test_the_service_manager_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "n"))
        Notifier(str(tmp_path / "n"))(READY="1", STATUS="2 cards")
        assert manager.recv(100) == b"READY=1\nSTATUS=2 cards"
    Notifier(str(tmp_path / "n"))(WATCHDOG="1")  # Nobody there any more: no harm.
    monkeypatch.setenv("WATCHDOG_USEC", "20000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert watchdog_interval_s() == 10
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_interval_s() is None


# ---- the process ---------------------------------------------------------------------------------


class Process:
    """`acceld serve` as a process of its own."""

    def __init__(self, settings: Settings, *more: str) -> None:
        self._arguments = (
            "--socket", str(settings.socket), "--state-dir", str(settings.state_dir),
            "--hardware-socket", str(settings.hardware_socket), "--metrics", "127.0.0.1:0",
            "--log-format", "json", *more,
        )  # fmt: skip
        self.lines: list[dict[str, Any]] = []

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "acceld", "serve", *self._arguments,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read())
        await until(lambda: self.said("ready") or self._reader.done())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.lines.append({"event": "", "text": line.decode()})

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    async def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = await self.process.wait()
        await self._reader
        return code

    def peak_kib(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_clean_on_a_signal(
    hardware: FakeHardware, settings: Settings, number: int
) -> None:
    process = Process(settings, "--chassis", "attach")
    await process.start()
    assert process.said("ready")[0]["metrics"].startswith("127.0.0.1:")
    assert await process.end(number) == 0
    assert process.lines[-1]["event"] == "stopped"
    assert not settings.socket.exists()
    assert not settings.memory_socket.exists()


async def test_memory_does_not_grow_with_what_streams_through(
    hardware: FakeHardware, settings: Settings
) -> None:
    process = Process(settings, "--chassis", "attach")
    await process.start()
    client = Daemon(settings)
    client.connect()
    await client.region("card0", "weights", 512 << 20)
    piece = memory_pb2.WriteRegionRequest(data=b"x" * (1 << 20))

    async def stream(mebibytes: int) -> None:
        async def parts() -> AsyncIterator[memory_pb2.WriteRegionRequest]:
            header = memory_pb2.WriteRegionRequest.Header(
                name="cards/card0/regions/weights", length=mebibytes << 20
            )
            yield memory_pb2.WriteRegionRequest(header=header)
            for _ in range(mebibytes):
                yield piece

        await client.memory.WriteRegion(parts())
        read = memory_pb2.ReadRegionRequest(
            name="cards/card0/regions/weights", length=mebibytes << 20
        )
        async for _ in client.memory.ReadRegion(read):
            pass

    await stream(64)
    before = process.peak_kib()
    await stream(448)
    assert process.peak_kib() - before < 24 * 1024
    await client.stop()
    assert await process.end() == 0


async def test_it_powers_a_chassis_of_its_own_on_and_off(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pair.toml"
    config.write_text(CONFIG)
    fake = Path(__file__).with_name("fake_hardware.py")
    make = own_chassis.OwnChassis.__init__

    def with_fake(self: own_chassis.OwnChassis, *arguments: Any) -> None:
        make(self, *arguments)
        self._command = (sys.executable, str(fake), str(settings.hardware_socket))

    monkeypatch.setattr(own_chassis.OwnChassis, "__init__", with_fake)
    daemon = Daemon(settings_with(settings, config=config, chassis="own"))
    await daemon.start()
    host = await daemon.hosts.GetHost(host_pb2.GetHostRequest())
    first = host.chassis_pid
    await daemon.region("card0", "weights")
    os.kill(first, signal.SIGKILL)
    await until(lambda: "REGION_LOST" in kinds(daemon) or "WINDOW" in kinds(daemon))
    again = await daemon.hosts.GetHost(host_pb2.GetHostRequest())
    assert again.chassis_attached
    assert again.chassis_pid != first
    assert "CHASSIS_DIED" in kinds(daemon)
    await daemon.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(again.chassis_pid, 0)


async def test_a_chassis_that_does_not_come_up_ends_the_start(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pair.toml"
    config.write_text(CONFIG)
    make = own_chassis.OwnChassis.__init__

    def denied(self: own_chassis.OwnChassis, *arguments: Any) -> None:
        make(self, *arguments)
        self._command = (sys.executable, "-c", "raise SystemExit(4)")

    monkeypatch.setattr(own_chassis.OwnChassis, "__init__", denied)
    with pytest.raises(StartFailure, match="exit code 4") as caught:
        await Daemon(settings_with(settings, config=config, chassis="own")).start()
    assert caught.value.exit_code == 4
    assert not settings.socket.exists()


async def test_own_is_refused_where_a_chassis_answers(
    hardware: FakeHardware, settings: Settings, tmp_path: Path
) -> None:
    config = tmp_path / "pair.toml"
    config.write_text(CONFIG)
    with pytest.raises(StartFailure, match="--chassis attach") as caught:
        await Daemon(settings_with(settings, config=config, chassis="own")).start()
    assert caught.value.exit_code == 6


def kinds(daemon: Daemon) -> list[str]:
    return [event.kind for event in daemon.host.events.list()]


def settings_with(settings: Settings, **changes: Any) -> Settings:
    import dataclasses

    return dataclasses.replace(settings, **changes)


def test_a_full_disk_behind_stdout_is_named() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "acceld.main", "make-config", "--cards", "2"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (
        6,
        "acceld: cannot write stdout: No space left on device\n",
    )


async def test_an_unknown_group_is_refused_also_where_nothing_is_scraped(
    settings: Settings,
) -> None:
    unknown = settings_with(settings, metrics=None, metrics_collect=("zzz",))
    with pytest.raises(StartFailure, match="no group of metrics 'zzz'; there is daemon") as caught:
        await Daemon(unknown).start()
    assert caught.value.exit_code == 2


async def test_a_taken_metrics_address_is_found_before_anything_is_powered_on(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pair.toml"
    config.write_text(CONFIG)
    started: list[object] = []

    async def power_on(self: own_chassis.OwnChassis) -> None:
        started.append(self)

    monkeypatch.setattr(own_chassis.OwnChassis, "power_on", power_on)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()
        with pytest.raises(StartFailure, match="cannot serve metrics at") as caught:
            await Daemon(
                settings_with(settings, config=config, chassis="own", metrics=taken)
            ).start()
    assert caught.value.exit_code == 6
    assert started == []
