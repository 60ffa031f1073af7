"""`accelctl cp`: right bytes or nothing, whatever happens on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Accelctl
from .fake_canned import MIB
from .fake_server import FakeDaemon
from .fake_state import PATTERN, State

WEIGHTS = PATTERN * (MIB // 256)


@pytest.fixture(params=[False, True], ids=["streamed", "mapped"])
def daemon(request: pytest.FixtureRequest, tmp_path: Path, state: State) -> Iterator[FakeDaemon]:
    state.mappable = request.param
    fake = FakeDaemon(tmp_path, state).start()
    yield fake
    fake.stop()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1_300_001))  # neither a page nor a chunk divides it
    return path


def content(daemon: FakeDaemon, region: str) -> bytes:
    card, _, name = region.partition(":")
    full = f"cards/{card}/regions/{name}"
    found = daemon.state.regions[full]
    if daemon.state.mappable:
        return daemon.hbm(found.address, found.size_bytes)
    return bytes(daemon.state.memory[full])


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def test_a_file_goes_into_a_region_of_its_size(
    accelctl: Accelctl, daemon: FakeDaemon, file: Path
) -> None:
    outcome = accelctl("cp", str(file), "card1:model", "-o", "json")
    assert outcome.code == 0
    assert content(daemon, "card1:model") == file.read_bytes()
    result = json.loads(outcome.out)
    assert result["total_bytes"] == file.stat().st_size
    assert result["mapped"] == daemon.state.mappable
    assert result["allocated"] is True


def test_a_file_comes_back_as_it_went(accelctl: Accelctl, daemon: FakeDaemon, file: Path) -> None:
    back = file.with_name("back")
    there = json.loads(accelctl("cp", str(file), "card1:model", "-o", "json").out)
    here = json.loads(accelctl("cp", "card1:model", str(back), "-o", "json").out)
    assert back.read_bytes() == file.read_bytes()
    assert there["crc32c"] == here["crc32c"]
    assert leftovers(file.parent) == []


def test_an_offset_and_a_length_touch_no_other_byte(
    accelctl: Accelctl, daemon: FakeDaemon, file: Path
) -> None:
    assert accelctl("cp", str(file), "card0:weights+4096", "--length", "5000").code == 0
    wanted = WEIGHTS[:4096] + file.read_bytes()[:5000] + WEIGHTS[9096:]
    assert content(daemon, "card0:weights") == wanted


def test_a_region_goes_into_a_folder_under_its_name(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path
) -> None:
    assert accelctl("cp", "card0:weights+16", str(tmp_path), "--length", "32").code == 0
    assert (tmp_path / "weights").read_bytes() == WEIGHTS[16:48]


def test_a_download_replaces_a_file_and_keeps_its_mode(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path
) -> None:
    target, link = tmp_path / "old", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert accelctl("cp", "card0:weights", str(link)).code == 0
    assert target.read_bytes() == WEIGHTS
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640


def run(daemon: FakeDaemon, command: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", f'accelctl() {{ {sys.executable} -m accelctl.main "$@"; }}; {command}'],
        env={**os.environ, "ACCEL_SOCKET": str(daemon.socket)},
        capture_output=True,
        **more,
    )


def test_pipes_carry_bytes_and_nothing_else(daemon: FakeDaemon, file: Path) -> None:
    done = run(
        daemon, f"cat {file} | accelctl cp - card1:model >&2 && accelctl cp card1:model - | cat"
    )
    assert done.stdout == file.read_bytes()
    assert b"CRC-32C" in done.stderr


def test_an_empty_source_is_refused_before_anything_is_allocated(
    daemon: FakeDaemon, accelctl: Accelctl, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    outcome = accelctl("cp", str(tmp_path / "empty"), "card1:model")
    assert outcome.code == 2
    assert "empty is empty; a region holds at least one byte" in outcome.err
    done = run(daemon, "accelctl cp - card1:model < /dev/null")
    assert b"stdin is empty" in done.stderr
    assert "cards/card1/regions/model" not in daemon.state.regions


def test_a_named_pipe_or_a_file_that_hides_its_size_is_sent_through_a_pipe(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = accelctl("cp", str(tmp_path / "pipe"), "card1:model")
    assert "it is not a regular file; use - and a pipe" in outcome.err
    outcome = accelctl("cp", "/proc/self/status", "card1:model")
    assert (outcome.code, "does not tell its size; use - and a pipe" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("source", "target", "code", "says"),
    [
        ("./none", "card1:model", 3, "cannot read ./none: there is no such file"),
        ("none", "card1:model", 3, "for a region write card0:none"),
        (".", "card1:model", 2, "cannot read .: it is a folder"),
        ("card0:none", "./copy", 3, "no region card0:none"),
        ("card0:weights", "./none/copy", 3, "cannot write ./none/copy: there is no such folder"),
        ("card0:weights+2000000", "./copy", 2, "card0:weights holds 0 bytes from offset 2000000"),
        ("card0:weights", "card1", 2, "'card1' is a card; write card1:weights for a region of it"),
        ("./file", "card7:model", 3, "no card card7"),
        ("./file", "card0:scratchpad", 2, "8192 bytes left in card0:scratchpad"),
        ("card0:weights", "card0:scratchpad+1", 2, "8191 bytes left in card0:scratchpad"),
        ("card0:none", "card1:model", 3, "no region card0:none"),
    ],
)
def test_what_cannot_be_copied(
    source: str,
    target: str,
    code: int,
    says: str,
    accelctl: Accelctl,
    daemon: FakeDaemon,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    before = dict(daemon.state.regions)
    outcome = accelctl("cp", source, target)
    assert (outcome.code, outcome.out) == (code, "")
    assert says in outcome.err
    assert daemon.state.regions == before
    assert leftovers(file.parent) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import hostcopy

    room = 50_000
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        nonlocal room
        if room == 0:
            raise OSError(28, "No space left on device")
        room -= min(room, len(data))
        return real(descriptor, data)

    monkeypatch.setattr(hostcopy.os, "write", write)
    target = tmp_path / "copy"
    target.write_text("the old content")
    outcome = accelctl("cp", "card0:weights", str(target))
    monkeypatch.undo()
    assert outcome.code == 6
    assert outcome.err == f"accelctl: cannot write {target}: the disk is full\n"
    assert target.read_text() == "the old content"
    assert leftovers(tmp_path) == []


def shrinking(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the file shrink as soon as its first chunk was read."""
    from accel import hostcopy

    real = os.readv

    def readv(descriptor: int, buffers: Any) -> int:
        count = real(descriptor, buffers)
        os.truncate(file, 1000)
        return count

    monkeypatch.setattr(hostcopy.os, "readv", readv)


def test_a_shrinking_file_frees_the_region_it_had_allocated(
    accelctl: Accelctl, daemon: FakeDaemon, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrinking(file, monkeypatch)
    outcome = accelctl("cp", str(file), "card1:model")
    assert outcome.code == 6
    assert re.search(r"file ended after \d+ of 1300001 bytes; did it shrink", outcome.err)
    assert "cards/card1/regions/model" not in daemon.state.regions


def test_a_shrinking_file_over_older_content_is_partly_done(
    accelctl: Accelctl, daemon: FakeDaemon, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.state.add_region("card1", "model", bytes(1_300_001), 0x900000)
    shrinking(file, monkeypatch)
    outcome = accelctl("cp", str(file), "card1:model")
    assert outcome.code == 8
    assert "card1:model is partly overwritten" in outcome.err


# ---- by light ------------------------------------------------------------------------------------


def test_by_light_allocates_the_target(accelctl: Accelctl, daemon: FakeDaemon) -> None:
    outcome = accelctl("cp", "card0:weights+256", "card1:model", "-o", "json")
    assert outcome.code == 0
    assert daemon.state.regions["cards/card1/regions/model"].size_bytes == MIB - 256
    assert bytes(daemon.state.memory["cards/card1/regions/model"]) == WEIGHTS[256:]
    assert json.loads(outcome.out)["state"] == "DONE"


@pytest.mark.parametrize(
    ("error", "code"), [("LINK_DEADLINE", 7), ("NO_PATH", 6), ("CHECKSUM_DIFFERS", 1)]
)
def test_a_transfer_that_fails_says_how_far_it_came(
    error: str, code: int, accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    daemon.state.transfer_end, daemon.state.transfer_error = "FAILED", error
    outcome = accelctl("cp", "card0:weights", "card1:model")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err == (
        f"accelctl: transfer 7f3a03 failed: {error}: no usable link for 30 s; "
        "524288 of 1048576 bytes are good, the first gap is at offset 524288\n"
    )
    assert "cards/card1/regions/model" not in daemon.state.regions


def test_a_transfer_that_fails_over_older_content_is_partly_done(
    accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    daemon.state.add_region("card1", "model", bytes(MIB), 0x900000)
    daemon.state.transfer_end = "FAILED"
    assert accelctl("cp", "card0:weights", "card1:model").code == 8


def test_a_daemon_that_restarts_meanwhile_changes_nothing(
    accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    import threading

    def restart() -> None:
        daemon.stop()
        daemon.start()

    daemon.state.on_watch = threading.Thread(target=restart).start
    outcome = accelctl("cp", "card0:weights", "card1:model", "-o", "json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["state"] == "DONE"
    assert daemon.state.calls.count("CreateTransfer") == 1
    assert daemon.state.calls.count("WatchTransfer") >= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_cancels_the_transfer_and_frees_the_target(
    number: signal.Signals, daemon: FakeDaemon
) -> None:
    daemon.state.transfer_end = "HANG"
    copy = subprocess.Popen(
        [
            # Who runs us may ignore it, as nohup does.
            "env", f"--default-signal={number.name[3:]}",
            sys.executable, "-m", "accelctl.main", "cp", "card0:weights", "card1:model",
        ],
        env={**os.environ, "ACCEL_SOCKET": str(daemon.socket)},
        stderr=subprocess.PIPE,
    )  # fmt: skip
    while "WatchTransfer" not in daemon.state.calls:
        assert copy.poll() is None
        time.sleep(0.01)
    copy.send_signal(number)
    _, err = copy.communicate()
    assert (copy.returncode, err.decode()) == (
        130,
        "accelctl: interrupted; transfer 7f3a03 is cancelled; card1:model is freed again\n",
    )
    assert daemon.state.calls.count("CancelTransfer") == 1
    assert "cards/card1/regions/model" not in daemon.state.regions


def test_an_interrupt_that_falls_where_nothing_can_be_raised_comes_again() -> None:
    lost = """
import sys, time
from accelctl import main, root

class InALibrary:
    def __del__(self):
        raise KeyboardInterrupt

def run(arguments):
    try:
        InALibrary()  # which Python can only tell of
        time.sleep(60)
    except KeyboardInterrupt:
        return 130

root.run = run
main.main()
"""
    done = subprocess.run([sys.executable, "-c", lost], stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (130, b"")


def test_an_interrupted_download_leaves_no_file(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import hostcopy

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hostcopy, "_write_all", interrupted)
    outcome = accelctl("cp", "card0:weights", str(tmp_path / "copy"))
    assert outcome.code == 130
    assert not (tmp_path / "copy").exists()
    assert leftovers(tmp_path) == []


def test_a_progress_bar_is_for_terminals(daemon: FakeDaemon, file: Path) -> None:
    command = f"{sys.executable} -m accelctl.main cp {file} card1:model"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env={**os.environ, "ACCEL_SOCKET": str(daemon.socket), "TERM": "xterm", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout
    assert "MB/s" in done.stdout or "GB/s" in done.stdout or "━" in done.stdout


@pytest.mark.parametrize("method", ["CreateRegion", "CreateTransfer"])
def test_an_interrupt_while_the_daemon_answers_forgets_nothing(
    method: str, accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    daemon.state.transfer_end = "HANG"
    daemon.state.busy_answers = 2  # the far card lets go of the region a moment later
    daemon.state.on_answer[method] = lambda: os.kill(os.getpid(), signal.SIGINT)
    outcome = accelctl("cp", "card0:weights", "card1:model")
    assert outcome.code == 130
    assert "card1:model is freed again" in outcome.err
    assert "cards/card1/regions/model" not in daemon.state.regions
    assert daemon.state.calls.count("CancelTransfer") == (method == "CreateTransfer")
