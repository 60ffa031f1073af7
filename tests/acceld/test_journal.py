"""Events in systemd's journal, and the catalogue that explains them there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from acceld import journal
from acceld.host.eventkinds import KINDS
from acceld.host.events import log_line
from acceld.journal import Journal, encoded, fields, say_events
from acceld.records import StoredEvent

ROOT = Path(__file__).resolve().parent.parent.parent
CATALOGUE = ROOT / "systemd/accel.catalog"
EVENT = StoredEvent(
    9, 5, 2, "LINK_DOWN", "card0/oe0", "down: CDR_NO_LOCK on lane 3",
    {"reason": "CDR_NO_LOCK", "lane": 3, "next_action": "clean it"},
    "CDR_NO_LOCK", "card0/oe0/lane3", "card1/oe0", 3, 1,
)  # fmt: skip


@pytest.fixture
def journald(tmp_path: Path) -> Iterator[socket.socket]:
    """Takes the journal's place."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "journal"))
        receiver.settimeout(60)
        yield receiver


def decoded(data: bytes) -> dict[str, str]:
    """An entry as journald reads it."""
    found = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, has_value, value = line.partition(b"=")
        if not has_value:
            (size,) = struct.unpack_from("<Q", data)
            value, data = data[8 : 8 + size], data[8 + size + 1 :]
        found[name.decode()] = value.decode()
    return found


def test_an_event_is_an_entry_with_fields(journald: socket.socket, tmp_path: Path) -> None:
    writer = Journal(str(tmp_path / "journal"))
    writer.say(EVENT)
    entry = decoded(journald.recv(65536))
    writer.close()
    assert entry == {
        "MESSAGE": "card0/oe0: down: CDR_NO_LOCK on lane 3 (3 times)",
        "MESSAGE_ID": KINDS["LINK_DOWN"].message_id,
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "acceld",
        "ACCEL_KIND": "LINK_DOWN",
        "ACCEL_OBJECT": "card0/oe0",
        "ACCEL_REASON": "CDR_NO_LOCK",
        "ACCEL_CAUSE": "card0/oe0/lane3",
        "ACCEL_PEER": "card1/oe0",
        "ACCEL_ACTION": "clean it",
        "ACCEL_REVISION": "9",
        "ACCEL_COUNT": "3",
        "ACCEL_DETAIL_LANE": "3",
    }


def test_a_text_of_many_lines_arrives_whole_and_injects_no_field() -> None:
    entry = {"MESSAGE": "one\nPRIORITY=0\n", "ACCEL_KIND": "X"}
    assert decoded(encoded(entry)) == entry


def test_a_name_from_outside_makes_a_name_that_the_journal_takes() -> None:
    event = StoredEvent(1, 1, 1, "DIAG_ENDED", "card0", "Ended.", {"a-b c=d": 1})
    assert "ACCEL_DETAIL_A_B_C_D" in fields(event)


def test_the_journal_is_used_only_where_stderr_leads_there(
    journald: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "journal")
    with (tmp_path / "stderr").open("w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        status = os.fstat(stream.fileno())
        here = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert say_events(here, path) is not log_line
        assert say_events({"JOURNAL_STREAM": "1:2"}, path) is log_line
        assert say_events({}, path) is log_line
        assert say_events(here, str(tmp_path / "nothing")) is log_line


def test_a_journal_that_is_too_busy_costs_no_event(
    journald: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[StoredEvent] = []
    monkeypatch.setattr(journal, "log_line", said.append)
    writer = Journal(str(tmp_path / "journal"))
    for _ in range(5000):  # Nobody reads: the queue fills.
        writer.say(EVENT)
        if said:
            break
    assert said == [EVENT]
    writer.close()


# ---- the catalogue -------------------------------------------------------------------------------


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_catalogue_and_the_pages_are_made_from_the_tables() -> None:
    events, health = tool("event_reference"), tool("health_reference")
    assert CATALOGUE.read_text() == events.catalogue(), "run `make reference`"
    assert (ROOT / "docs/reference/events.md").read_text() == events.page(), "run `make reference`"
    assert (ROOT / "docs/reference/health.md").read_text() == health.page(), "run `make reference`"


def test_every_kind_has_its_entry() -> None:
    text = CATALOGUE.read_text()
    for kind in KINDS.values():
        assert text.count(f"-- {kind.message_id}\n") == 1
        entry = text.partition(f"-- {kind.message_id}\n")[2].partition("\n-- ")[0]
        assert entry.startswith("Subject: @ACCEL_OBJECT@")
        assert kind.meaning in entry
        assert ("@ACCEL_ACTION@" in entry) == bool(kind.action)
        # journalctl puts a name where an entry lacks the field; these are in all that show it.
        assert set(re.findall("@([A-Z_]+)@", entry)) <= {"ACCEL_OBJECT", "ACCEL_ACTION"}


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="journalctl is not installed")
def test_journalctl_takes_the_catalogue(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    shutil.copy(CATALOGUE, folder)
    for arguments in (["--update-catalog"], ["--list-catalog"]):
        done = subprocess.run(
            ["journalctl", f"--root={tmp_path}", *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    assert all(kind.message_id in done.stdout for kind in KINDS.values())
