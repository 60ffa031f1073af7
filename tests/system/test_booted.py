"""Both services under a real systemd, driven through accelctl alone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from booted import ROOT, Machine, booted, missing

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]

CAP_NET_ADMIN, CAP_NET_RAW = 1 << 12, 1 << 13
UNITS = ("accel-chassis.service", "acceld.service")
WAIT_S = 60


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with booted(ROOT / "examples/pair.toml") as machine:
        machine.run("systemd-sysusers")
        machine.run("systemd-tmpfiles", "--create")
        machine.run("journalctl", "--update-catalog")
        started = machine.run("systemctl", "enable", "--now", *UNITS, check=False)
        assert started.returncode == 0, started.stderr + journal(machine)
        yield machine
        print(journal(machine))


def journal(machine: Machine) -> str:
    return machine.text("journalctl", "--no-pager", "--output=cat", *(f"-u{u}" for u in UNITS))


def links(machine: Machine) -> list[dict[str, Any]]:
    done = machine.run("accelctl", "link", "list", "-o", "json", check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    return found if isinstance(found, list) else found["links"]


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.2)


def all_up(machine: Machine) -> bool:
    found = links(machine)
    return bool(found) and all(link["state"] == "UP" for link in found)


def effective(machine: Machine, pid: int) -> int:
    lines = machine.text("cat", f"/proc/{pid}/status").splitlines()
    return int(next(line for line in lines if line.startswith("CapEff")).split()[1], 16)


def test_both_services_start_and_the_links_come_up(machine: Machine) -> None:
    assert machine.text("systemctl", "is-active", *UNITS).split() == ["active", "active"]
    until(lambda: all_up(machine), "links up")


def test_each_service_holds_the_rights_it_needs_and_no_more(machine: Machine) -> None:
    chassis, daemon = (machine.main_pid(unit) for unit in UNITS)
    assert effective(machine, chassis) == CAP_NET_ADMIN | CAP_NET_RAW
    assert effective(machine, daemon) == 0
    assert machine.text("stat", "-c", "%U", f"/proc/{chassis}", f"/proc/{daemon}") == "accel\naccel"


def test_events_are_in_the_journal_with_their_fields_and_texts(machine: Machine) -> None:
    until(lambda: all_up(machine), "links up")
    wanted = "ACCEL_KIND=LINK_UP", "ACCEL_OBJECT=card0/oe0"

    def entries() -> list[dict[str, Any]]:
        lines = machine.text("journalctl", "--output=json", *wanted).splitlines()
        return [json.loads(line) for line in lines]

    until(lambda: bool(entries()), "an entry in the journal")
    entry = entries()[-1]
    assert (entry["SYSLOG_IDENTIFIER"], entry["PRIORITY"]) == ("acceld", "6")
    assert entry["_SYSTEMD_UNIT"] == "acceld.service"
    assert entry["ACCEL_PEER"] == "card1/oe0"
    explained = machine.text("journalctl", "--catalog", "--no-hostname", *wanted)
    assert "Subject: card0/oe0: a link trained and carries data" in explained
    assert "journalctl -o verbose ACCEL_OBJECT=card0/oe0" in explained


def test_a_health_check_is_the_answer(machine: Machine) -> None:
    until(lambda: all_up(machine), "links up")
    until(lambda: machine.text("accelctl", "health", "check") == "HEALTHY host", "health")
    machine.run("systemctl", "stop", "acceld.service")
    done = machine.run("accelctl", "health", "check", check=False)
    machine.run("systemctl", "start", "acceld.service")
    assert (done.returncode, done.stdout) == (5, "UNKNOWN host: no answer from the daemon\n")


def test_a_file_goes_in_across_and_out(machine: Machine) -> None:
    machine.run("dd", "if=/dev/urandom", "of=/root/in", "bs=1M", "count=64", "status=none")
    machine.run("accelctl", "cp", "/root/in", "card0:weights")
    machine.run("accelctl", "cp", "card0:weights", "card1:weights")
    machine.run("accelctl", "cp", "card1:weights", "/root/out")
    machine.run("cmp", "/root/in", "/root/out")


def test_a_daemon_restart_is_a_driver_reload(machine: Machine) -> None:
    chassis = machine.main_pid("accel-chassis.service")
    before = {link["name"]: link["epoch"] for link in links(machine)}
    machine.run("systemctl", "restart", "acceld.service")
    after = {link["name"]: link["epoch"] for link in links(machine) if link["state"] == "UP"}
    assert after == before
    assert machine.main_pid("accel-chassis.service") == chassis


def test_a_killed_daemon_is_started_again(machine: Machine) -> None:
    before = machine.main_pid("acceld.service")
    machine.run("kill", "-9", str(before))
    until(
        lambda: machine.main_pid("acceld.service") not in (0, before) and all_up(machine),
        "the daemon back",
    )
    machine.run("accelctl", "cp", "card1:weights", "/root/again")
    machine.run("cmp", "/root/in", "/root/again")


def test_a_killed_chassis_is_power_loss_and_comes_back(machine: Machine) -> None:
    before = machine.main_pid("accel-chassis.service")
    machine.run("kill", "-9", str(before))
    until(
        lambda: machine.main_pid("accel-chassis.service") not in (0, before) and all_up(machine),
        "the chassis back, links up",
    )
    assert machine.text("systemctl", "is-active", "acceld.service") == "active"


def test_stopping_leaves_nothing(machine: Machine) -> None:
    machine.run("systemctl", "stop", "acceld.service")
    assert "@" in machine.text("ip", "-brief", "link", "show", "type", "veth")
    machine.run("systemctl", "stop", "accel-chassis.service")
    assert machine.text("ip", "-brief", "link", "show", "type", "veth") == ""
    assert machine.run("pgrep", "-u", "accel", check=False).stdout == ""
    assert machine.text("ls", "/dev/shm") == ""
