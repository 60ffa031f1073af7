"""Events to systemd's journal with fields of their own, for `journalctl ACCEL_OBJECT=card0/oe1`.

The native protocol: one datagram an entry, a line `NAME=value` a field; a value with line ends goes
as `NAME`, its length as 64 bits little endian, and the bytes (systemd's JOURNAL_NATIVE_PROTOCOL).
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping

from acceld.host.eventkinds import KINDS, action_of
from acceld.host.events import log_line
from acceld.records import StoredEvent
from accelhw.model.event import Severity

SOCKET = "/run/systemd/journal/socket"
PRIORITIES = {Severity.INFO: 6, Severity.WARNING: 4, Severity.ERROR: 3}  # of syslog
_NOT_A_NAME = re.compile(r"[^A-Z0-9_]")
LENGTH = struct.Struct("<Q")

Say = Callable[[StoredEvent], None]


def say_events(environment: Mapping[str, str] = os.environ, path: str = SOCKET) -> Say:
    """How to tell of events: to the journal where stderr leads there anyway, else as log lines."""
    if not leads_to_journal(environment.get("JOURNAL_STREAM", "")):
        return log_line
    try:
        return Journal(path).say
    except OSError:
        return log_line


def leads_to_journal(stream: str) -> bool:
    """`JOURNAL_STREAM` names device and inode of what the service manager gave us as stderr; a
    shell's child inherits the variable, and not the stream."""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"


class Journal:
    """Raises OSError when there is no journal."""

    def __init__(self, path: str = SOCKET) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.connect(path)
        self._socket.setblocking(False)

    def say(self, event: StoredEvent) -> None:
        """An entry of the journal; a log line where the journal is too busy to take it."""
        try:
            self._socket.send(encoded(fields(event)))
        except OSError:
            log_line(event)

    def close(self) -> None:
        self._socket.close()


def fields(event: StoredEvent) -> dict[str, str]:
    """What the entry of an event says. What is empty has no field."""
    kind = KINDS.get(event.kind)
    repeats = f" ({event.count} times)" if event.count > 1 else ""
    found = {
        "MESSAGE": f"{event.subject}: {event.message}{repeats}",
        "MESSAGE_ID": kind.message_id if kind is not None else "",
        "PRIORITY": str(PRIORITIES.get(Severity(event.severity), 6)),
        "SYSLOG_IDENTIFIER": "acceld",
        "ACCEL_KIND": event.kind,
        "ACCEL_OBJECT": event.subject,
        "ACCEL_REASON": event.reason,
        "ACCEL_CAUSE": event.cause,
        "ACCEL_PEER": event.peer,
        "ACCEL_ACTION": action_of(event),
        "ACCEL_REVISION": str(event.revision),
        "ACCEL_COUNT": str(event.count),
        **{
            f"ACCEL_DETAIL_{_NOT_A_NAME.sub('_', name.upper())}": str(value)
            for name, value in event.detail.items()
            if name not in ("reason", "cause", "peer", "next_action")
        },
    }
    return {name: value for name, value in found.items() if value}


def encoded(entry: Mapping[str, str]) -> bytes:
    return b"".join(_field(name, value.encode()) for name, value in entry.items())


def _field(name: str, value: bytes) -> bytes:
    if b"\n" in value:
        return name.encode() + b"\n" + LENGTH.pack(len(value)) + value + b"\n"
    return name.encode() + b"=" + value + b"\n"
