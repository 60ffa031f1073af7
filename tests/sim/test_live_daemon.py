"""The same file against a daemon: it happens to real links, is judged, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

RACK = """
[[card]]
name = "card0"
profile = "dr8"
hbm_gib = 0.125
[[card]]
name = "card1"
profile = "dr8"
hbm_gib = 0.125
[[fibre]]
a = "card0/oe0"
b = "card1/oe0"
transport = "memory"
"""
STORY = """
for = "8s"
[[do]]
fault = "laser_fail"
on = "card0/oe0/lane3"
at = 1
for = 60
[[do]]
action = "link_down"
on = "card1/oe0"
at = 4
[[expect]]
event = "FAULT_INJECTED"
on = "card0/oe0"
count = 1
[[expect]]
state = "degraded"
on = "card0/oe0"
how = "sometimes"
[[expect]]
state = "down"
on = "card1/oe0"
how = "at_end"
[[expect]]
metric = "tx_power_dbm"
on = "card0/oe0/lane3"
at = 3
below = -30
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("rack")
    (folder / "rack.toml").write_text(RACK)
    (folder / "story.toml").write_text(STORY)
    log = (folder / "log").open("w")
    daemon = subprocess.Popen(
        [sys.executable, "-m", "acceld", "serve", "--config", "rack.toml", "--socket", "a.sock",
         "--hardware-socket", "h.sock", "--state-dir", "state", "--metrics", "off"],
        cwd=folder, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        for _ in range(100):
            if accelctl(folder, "link", "up", "card0/oe0", "--wait", "20").returncode == 0:
                break
            try:
                daemon.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            break
        yield folder
    finally:
        daemon.terminate()
        daemon.wait(60)
        log.close()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "accelctl.main", *arguments]


def accelctl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=folder, env=environment(folder), capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"ACCEL_SOCKET": str(folder / "a.sock")}


def test_it_happens_and_is_judged(rack: Path) -> None:
    done = accelctl(rack, "scenario", "run", "story.toml", "-o", "json")
    result = json.loads(done.stdout)
    assert [each["met"] for each in result["expectations"]] == [True] * 4, result
    assert (done.returncode, result["met"]) == (0, True), done.stderr
    assert accelctl(rack, "fault", "list", "-o", "json").stdout == "[]\n"
    link = json.loads(accelctl(rack, "link", "show", "card1/oe0", "-o", "json").stdout)
    assert link["admin_up"] is True


def test_ctrl_c_takes_away_what_was_injected(rack: Path) -> None:
    running = subprocess.Popen(
        command("scenario", "run", "story.toml", "--for", "10m"),
        cwd=rack, env=environment(rack), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert "laser_fail on card0/oe0/lane3" in running.stdout.readline()
    while accelctl(rack, "fault", "list", "-o", "json").stdout == "[]\n":
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (
        130,
        "accelctl: interrupted; what was injected is taken away\n",
    )
    assert accelctl(rack, "fault", "list", "-o", "json").stdout == "[]\n"


def test_a_port_that_the_rack_lacks_is_told_before_the_start(rack: Path) -> None:
    (rack / "other.toml").write_text(STORY.replace("card1/oe0", "card1/oe1"))
    done = accelctl(rack, "scenario", "run", "other.toml")
    assert done.returncode == 2
    assert "no fibre is plugged in there; one with a fibre is 'card1/oe0'" in done.stdout
    assert accelctl(rack, "fault", "list", "-o", "json").stdout == "[]\n"
