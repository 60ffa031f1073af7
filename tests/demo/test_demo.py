"""`acceld demo` as a person runs it: the file arrives, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

DEMO = [
    sys.executable,
    "-c",
    "import sys; from acceld.demo import main; sys.exit(main(sys.argv[1:]))",
]
HANG_S = 120  # only ever reached by a test that fails


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nothing_outlives_a_test() -> Iterator[None]:
    yield
    while STARTED:
        demo = STARTED.pop()
        if demo.poll() is None:
            demo.kill()


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path)}


def start(tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    demo = subprocess.Popen(
        [*DEMO, *args],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    STARTED.append(demo)
    return demo


def read_until(demo: subprocess.Popen[str], text: str) -> str:
    assert demo.stdout
    seen = ""
    for line in demo.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"never said {text!r}:\n{seen}")


@pytest.mark.network
def test_a_file_of_ones_own_arrives_over_a_linux_interface(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    own = tmp_path / "own.bin"
    own.write_bytes(os.urandom(3_000_001))
    said = start(tmp_path / "work", "--file", str(own)).communicate(timeout=HANG_S)[0]
    assert "EQUAL" in said, said
    assert "the kernel counted" in said
    assert "UP" in said
    assert list((tmp_path / "work").iterdir()) == []


def test_where_no_interface_can_be_made_it_says_so_and_uses_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seen from here, a locked container is one where unshare(1) refuses and rights are missing.
    locked = tmp_path / "bin"
    locked.mkdir()
    (locked / "unshare").write_text(
        "#!/bin/sh\necho 'unshare: Operation not permitted' >&2\nexit 1\n"
    )
    (locked / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{locked}:{os.environ['PATH']}")
    drop = "import sys; from acceld.demo import way; way.PROBE = 'raise SystemExit(1)'; "
    command = [sys.executable, "-c", drop + DEMO[2].removeprefix("import sys; "), "--size", "1"]
    done = subprocess.run(
        command,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NO Linux interface is crossed" in done.stdout
    assert "Operation not permitted" in done.stdout
    assert "EQUAL" in done.stdout


@pytest.mark.network
@pytest.mark.parametrize(
    ("phase", "number"),
    [
        ("This run:", signal.SIGINT),
        ("1  Power on", signal.SIGTERM),
        ("2  Train", signal.SIGINT),
        ("3  Carry", signal.SIGINT),
        ("4  The light", signal.SIGTERM),
    ],
)
def test_an_interrupt_leaves_nothing(tmp_path: Path, phase: str, number: signal.Signals) -> None:
    demo = start(tmp_path, "--size", "64")
    read_until(demo, phase)
    demo.send_signal(number)
    said = demo.communicate(timeout=HANG_S)[0]
    assert demo.returncode == 130, said
    assert list(tmp_path.iterdir()) == []
    wait_until_nothing_runs_below(tmp_path)


@pytest.mark.network
def test_the_next_demo_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    demo = start(tmp_path, "--size", "64")
    read_until(demo, "3  Carry")
    demo.kill()
    demo.communicate(timeout=HANG_S)
    said = start(tmp_path, "--size", "1").communicate(timeout=HANG_S)[0]
    assert "EQUAL" in said, said
    assert list(tmp_path.iterdir()) == []
    wait_until_nothing_runs_below(tmp_path)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--file", "absent"], "absent: there is no such file"),
        (["--size", "0"], "empty"),
        (["--file", "/"], "not a file"),
    ],
)
def test_what_cannot_be_carried_is_named(tmp_path: Path, args: list[str], complaint: str) -> None:
    demo = start(tmp_path, *args)
    said = demo.communicate(timeout=HANG_S)[0]
    assert (demo.returncode, complaint in said) == (1, True), said


def wait_until_nothing_runs_below(folder: Path) -> None:
    """The last to end are told to by the kernel, when their parents have ended."""
    deadline_s = time.monotonic() + HANG_S
    while left := processes_below(folder):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.02)


def processes_below(folder: Path) -> list[str]:
    """Command lines of processes that still name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found
