"""What outlives a restart, in SQLite: regions, link admin, channels, events, transfers, tests.

Each change is one transaction. When the disk refuses (full, read-only), the store copies itself
into memory and goes on there: the daemon serves what it can, `trouble` says what happened, and
callers do not tell the hardware to forget anything, so that a later daemon misses nothing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from acceld.records import (
    ALL_EVENTS,
    Boot,
    EventFilter,
    NewEvent,
    Region,
    StoredEvent,
    Total,
    Transfer,
)
from acceld.store.schema import SCHEMA_VERSION, STEPS
from accelhw.model.ids import PortId
from accelhw.model.transfer import NO_ENDS, TRANSFER_ENDS, TRANSFER_STARTED, TransferEnds

EVENTS_MAX = 100_000
COLLAPSE_WINDOWS = 10  # repeats gather in one event for so many of their windows at most
TRANSFERS_MAX = 1_000  # ended ones
DIAGS_MAX = 64  # with their pictures, of some hundred kB each
FILE_NAME = "acceld.db"

T = TypeVar("T")
_NOT_OURS = ("not a database", "malformed", "corrupt")


class StoreUnusable(Exception):
    """The file exists but cannot serve; the message names it and what to do."""


class StoreLocked(Exception):
    """Another daemon uses this folder."""


class Store:
    """Thread-safe; calls take a lock and some tens of microseconds. `path` None: memory only."""

    def __init__(
        self, path: Path | None, events_max: int = EVENTS_MAX, transfers_max: int = TRANSFERS_MAX
    ) -> None:
        self.path = path
        self.trouble = ""  # why the store is in memory only; empty while the disk takes it
        self.on_trouble: Callable[[str], None] = lambda why: None
        self._lock = threading.RLock()
        self._events_max = events_max
        self._transfers_max = transfers_max
        self._folder_lock: int | None = None
        self._db = self._open_memory() if path is None else self._open(path)
        row = self._db.execute("SELECT newest, forgotten FROM event_log").fetchone()
        self._newest, self._oldest = int(row[0]), int(row[1]) + 1
        self._ends = {
            card: TransferEnds(*counts)
            for card, *counts in self._db.execute(
                "SELECT card, done, failed, cancelled FROM transfer_ends"
            )
        }

    @classmethod
    def in_folder(cls, folder: Path) -> Store:
        """The store of a state folder, made when absent. Raises StoreUnusable, StoreLocked."""
        try:
            folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            store = cls(None)
            store.trouble = f"{folder} cannot be made: {error.strerror}"
            return store
        return cls(folder / FILE_NAME)

    @property
    def is_durable(self) -> bool:
        return self.path is not None and not self.trouble

    @property
    def size_bytes(self) -> int | None:
        """Of the file with its log of writes; None while it is in memory only."""
        if self.path is None or self.trouble:
            return None
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    # ---- boot ---------------------------------------------------------------------------------

    def boot(self) -> Boot:
        row = self._rows("SELECT boot_id, last_event FROM boot")[0]
        return Boot(row[0], row[1])

    def set_boot(self, boot_id: str, last_event: int = 0) -> None:
        self._change(
            lambda db: db.execute(
                "UPDATE boot SET boot_id = ?, last_event = ?", (boot_id, last_event)
            )
        )

    def begin_life(self, boot_id: str) -> None:
        """The hardware was powered on anew: its events count from one, and what it will count
        comes on top of all that was counted so far."""

        def change(db: sqlite3.Connection) -> None:
            db.execute("UPDATE boot SET boot_id = ?, last_event = 0", (boot_id,))
            db.execute(
                "INSERT OR REPLACE INTO totals"
                " SELECT 1, card, part, name, figures FROM totals WHERE base = 0"
            )

        self._change(change)

    def totals(self, base: bool = False) -> list[Total]:
        """Counted so far; `base`: when the present life of the hardware began."""
        return [
            Total(*row)
            for row in self._rows(
                "SELECT card, part, name, figures FROM totals WHERE base = ?", (int(base),)
            )
        ]

    def put_totals(self, totals: Iterable[Total], base: bool = False) -> None:
        rows = [(int(base), t.card, t.part, t.column, t.figures) for t in totals]
        self._change(
            lambda db: db.executemany("INSERT OR REPLACE INTO totals VALUES (?,?,?,?,?)", rows)
        )

    # ---- regions ------------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        return [
            Region(*row)
            for row in self._rows(
                "SELECT card, name, region_id, key, address, size, created_ns FROM regions"
                " ORDER BY card, name"
            )
        ]

    def put_region(self, region: Region) -> None:
        values = (
            region.card, region.name, region.region_id, region.key,
            region.address, region.size, region.created_ns,
        )  # fmt: skip
        self._change(
            lambda db: db.execute("INSERT OR REPLACE INTO regions VALUES (?,?,?,?,?,?,?)", values)
        )

    def remove_region(self, region: Region) -> None:
        self._change(
            lambda db: db.execute(
                "DELETE FROM regions WHERE card = ? AND name = ?", (region.card, region.name)
            )
        )

    def remove_all_regions(self) -> None:
        self._change(lambda db: db.execute("DELETE FROM regions"))

    # ---- links --------------------------------------------------------------------------------

    def link_admin(self) -> dict[PortId, bool]:
        rows = self._rows("SELECT card, oe, up FROM link_admin")
        return {PortId(card, oe): bool(up) for card, oe, up in rows}

    def set_link_admin(self, port: PortId, up: bool) -> None:
        self._change(
            lambda db: db.execute(
                "INSERT OR REPLACE INTO link_admin VALUES (?, ?, ?)", (port.card, port.oe, int(up))
            )
        )

    def channel_maps(self) -> dict[str, dict[int, int]]:
        """Signal line of each channel, for cards whose map was set."""
        maps: dict[str, dict[int, int]] = {}
        for card, channel, line in self._rows(
            "SELECT card, channel, signal_line FROM channel_maps ORDER BY card, channel"
        ):
            maps.setdefault(card, {})[channel] = line
        return maps

    def set_channel_map(self, card: str, lines: dict[int, int]) -> None:
        def change(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM channel_maps WHERE card = ?", (card,))
            db.executemany(
                "INSERT INTO channel_maps VALUES (?, ?, ?)",
                [(card, channel, line) for channel, line in lines.items()],
            )

        self._change(change)

    # ---- events -------------------------------------------------------------------------------

    @property
    def newest_revision(self) -> int:
        return self._newest

    @property
    def oldest_revision(self) -> int:
        return self._oldest

    def append_events(self, events: Sequence[NewEvent]) -> list[StoredEvent]:
        """Give revisions to events and keep them, all or none. Events of the hardware that are
        kept already (by their sequence in this boot) are left out."""

        def change(db: sqlite3.Connection) -> list[StoredEvent]:
            last = int(db.execute("SELECT last_event FROM boot").fetchone()[0])
            newest = self._newest
            stored: list[StoredEvent] = []
            for event in events:
                if event.sequence:
                    if event.sequence <= last:
                        continue
                    last = event.sequence
                newest += 1
                stored.append(_append(db, event, newest))
            forgotten = max(self._oldest - 1, newest - self._events_max)
            db.execute("UPDATE boot SET last_event = ?", (last,))
            db.execute("DELETE FROM events WHERE revision <= ?", (forgotten,))
            db.execute("UPDATE event_log SET newest = ?, forgotten = ?", (newest, forgotten))
            return stored

        with self._lock:
            stored = self._change(change)
            if stored:
                self._newest = stored[-1].revision
                self._oldest = max(self._oldest, self._newest - self._events_max + 1)
            return stored

    def events(
        self,
        after: int = 0,
        before: int | None = None,
        limit: int = 500,
        descending: bool = False,
        wanted: EventFilter = ALL_EVENTS,
    ) -> list[StoredEvent]:
        """Events with after < revision < before that are wanted."""
        where, values = _where(wanted)
        where.append("revision > ?")
        values.append(after)
        if before is not None:
            where.append("revision < ?")
            values.append(before)
        rows = self._rows(
            f"SELECT * FROM events WHERE {' AND '.join(where)}"
            f" ORDER BY revision {'DESC' if descending else 'ASC'} LIMIT ?",
            (*values, limit),
        )
        return [_event(row) for row in rows]

    # ---- transfers ----------------------------------------------------------------------------

    def put_transfer(self, transfer: Transfer) -> None:
        """Keep a transfer as it stands; the oldest ended ones beyond the bound are forgotten.

        Its end is counted in the same transaction, so once, whatever dies meanwhile.
        """
        ended = int(transfer.status.state.ended)
        body = msgspec.json.encode(transfer).decode()

        def change(db: sqlite3.Connection) -> TransferEnds | None:
            before = db.execute(
                "SELECT ended FROM transfers WHERE id = ?", (transfer.id,)
            ).fetchone()
            db.execute(
                "INSERT OR REPLACE INTO transfers VALUES (?, ?, ?, ?)",
                (transfer.id, transfer.created_ns, ended, body),
            )
            if ended:
                db.execute(
                    "DELETE FROM transfers WHERE id IN (SELECT id FROM transfers WHERE ended = 1"
                    " ORDER BY created_ns DESC LIMIT -1 OFFSET ?)",
                    (self._transfers_max,),
                )
            return _count_end(db, transfer) if ended and before != (1,) else None

        with self._lock:
            if (ends := self._change(change)) is not None:
                self._ends = {**self._ends, transfer.status.local_card: ends}

    def transfer_ends(self, card: str) -> TransferEnds:
        """Of the transfers that were posted to the card, over all its lives."""
        return self._ends.get(card, NO_ENDS)

    def transfers_without_end(self) -> list[str]:
        """Ids of those whose beginning is in the event log, and whose end is not."""
        kinds = ", ".join(f"'{kind}'" for kind in TRANSFER_ENDS.values())
        told = "SELECT json_extract(detail, '$.transfer') FROM events WHERE kind"
        rows = self._rows(f"{told} = '{TRANSFER_STARTED}' EXCEPT {told} IN ({kinds})")
        return [row[0] for row in rows if row[0]]

    def remove_transfer(self, transfer_id: str) -> None:
        self._change(lambda db: db.execute("DELETE FROM transfers WHERE id = ?", (transfer_id,)))

    def transfer(self, transfer_id: str) -> Transfer | None:
        rows = self._rows("SELECT body FROM transfers WHERE id = ?", (transfer_id,))
        return msgspec.json.decode(rows[0][0], type=Transfer) if rows else None

    def transfers(self, active_only: bool = False) -> list[Transfer]:
        """Newest first."""
        rows = self._rows(
            f"SELECT body FROM transfers {'WHERE ended = 0' if active_only else ''}"
            " ORDER BY created_ns DESC, id"
        )
        return [msgspec.json.decode(row[0], type=Transfer) for row in rows]

    # ---- tests of links -----------------------------------------------------------------------

    def put_diag(self, diag_id: str, ended_ns: int, body: bytes) -> None:
        """Keep the results of a test; the oldest beyond the bound are forgotten."""

        def change(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO diags VALUES (?, ?, ?)", (diag_id, ended_ns, body))
            db.execute(
                "DELETE FROM diags WHERE id IN"
                " (SELECT id FROM diags ORDER BY ended_ns DESC, id LIMIT -1 OFFSET ?)",
                (DIAGS_MAX,),
            )

        self._change(change)

    def diags(self) -> list[bytes]:
        """Oldest first."""
        rows = self._rows("SELECT body FROM diags ORDER BY ended_ns, id DESC")
        return [row[0] for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._unlock_folder()

    # ---- below the nouns ----------------------------------------------------------------------

    def _rows(self, query: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()

    def _change(self, change: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                with self._db:
                    return change(self._db)
            except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
                if self.path is None or self.trouble or isinstance(error, sqlite3.IntegrityError):
                    raise
                self._leave_disk(str(error))
            with self._db:
                return change(self._db)

    def _leave_disk(self, why: str) -> None:
        memory = self._open_memory(fresh=False)
        self._db.backup(memory)
        self._db.close()
        self._db = memory
        self.trouble = f"{self.path}: {why}"
        self.on_trouble(self.trouble)

    def _open_memory(self, fresh: bool = True) -> sqlite3.Connection:
        db = sqlite3.connect(":memory:", check_same_thread=False)
        if fresh:
            _bring_up(db)
        return db

    def _open(self, path: Path) -> sqlite3.Connection:
        self._folder_lock = self._lock_folder(path.parent)
        try:
            db = sqlite3.connect(path, check_same_thread=False, timeout=1.0)
        except sqlite3.OperationalError as error:  # It is not there, and cannot be made.
            self.trouble = f"{path}: {error}"
            return self._copy_of(path)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            _check(db, path)
            _bring_up(db)
            # A write that changes nothing tells a read-only file before anybody relies on it.
            with db:
                db.execute("UPDATE boot SET one = 1")
            return db
        except sqlite3.DatabaseError as error:
            db.close()
            if any(word in str(error) for word in _NOT_OURS):
                self._unlock_folder()
                raise StoreUnusable(
                    f"{path} is damaged ({error}). Move it away and start again:"
                    f" mv {path} {path}.damaged; the names of regions, the event log and link"
                    " settings start anew"
                ) from error
            if "locked" in str(error):
                self._unlock_folder()
                raise StoreLocked(f"{path} is used by another program") from error
            self.trouble = f"{path}: {error}"
            return self._copy_of(path)
        except StoreUnusable:
            db.close()
            self._unlock_folder()
            raise

    def _copy_of(self, path: Path) -> sqlite3.Connection:
        """What can be read of a store that cannot be written, in memory."""
        memory = self._open_memory(fresh=False)
        # The first way sees what a killed daemon left in the log beside the file, the second reads
        # where not even the log's index can be opened.
        for way in ("mode=ro", "mode=ro&immutable=1"):
            try:
                source = sqlite3.connect(f"file:{path}?{way}", uri=True)
                source.backup(memory)
                source.close()
                break
            except sqlite3.DatabaseError:
                memory.close()
                memory = self._open_memory(fresh=False)
        _bring_up(memory)
        return memory

    def _unlock_folder(self) -> None:
        if self._folder_lock is not None:
            os.close(self._folder_lock)
            self._folder_lock = None

    @staticmethod
    def _lock_folder(folder: Path) -> int | None:
        try:
            fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError:
            return None  # Read-only: there is nothing to write that two could spoil.
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StoreLocked(
                f"another acceld uses {folder}; stop it, or give this one its own --state-dir"
            ) from error
        return fd


def _count_end(db: sqlite3.Connection, transfer: Transfer) -> TransferEnds:
    status = transfer.status
    column = status.state.name.lower()
    db.execute("INSERT OR IGNORE INTO transfer_ends VALUES (?, 0, 0, 0)", (status.local_card,))
    db.execute(
        f"UPDATE transfer_ends SET {column} = {column} + 1 WHERE card = ?", (status.local_card,)
    )
    counts = db.execute(
        "SELECT done, failed, cancelled FROM transfer_ends WHERE card = ?", (status.local_card,)
    ).fetchone()
    return TransferEnds(*counts)


def _append(db: sqlite3.Connection, event: NewEvent, revision: int) -> StoredEvent:
    """Keep an event. One that repeats another takes its place in the log."""
    count, first_ns = 1, event.time_ns
    if event.collapse_ns and (alike := _alike(db, event)) is not None:
        old_revision, count, first_ns = alike[0], alike[1] + 1, alike[2]
        db.execute("DELETE FROM events WHERE revision = ?", (old_revision,))
    stored = StoredEvent(
        revision, event.time_ns, event.severity, event.kind, event.subject, event.message,
        event.detail, event.reason, event.cause, event.peer, count, first_ns,
    )  # fmt: skip
    db.execute(
        "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            revision, event.time_ns, event.severity, event.kind, event.subject, event.message,
            msgspec.json.encode(event.detail).decode(), event.reason, event.cause, event.peer,
            count, first_ns,
        ),
    )  # fmt: skip
    return stored


def _event(row: tuple[Any, ...]) -> StoredEvent:
    revision, time_ns, severity, kind, subject, message, detail, *rest = row
    told = msgspec.json.decode(detail)
    return StoredEvent(revision, time_ns, severity, kind, subject, message, told, *rest)


def _alike(db: sqlite3.Connection, event: NewEvent) -> tuple[int, int, int] | None:
    """Revision, count and first time of what an event repeats. A row that went on for long is left
    alone, so that a link that never rests still has a history."""
    found: tuple[int, int, int] | None = db.execute(
        "SELECT revision, count, first_time_ns FROM events WHERE subject = ? AND kind = ?"
        " AND reason = ? AND severity = ? AND time_ns >= ? AND first_time_ns >= ?"
        " ORDER BY revision DESC LIMIT 1",
        (
            event.subject, event.kind, event.reason, event.severity,
            event.time_ns - event.collapse_ns,
            event.time_ns - COLLAPSE_WINDOWS * event.collapse_ns,
        ),
    ).fetchone()  # fmt: skip
    return found


def _where(wanted: EventFilter) -> tuple[list[str], list[object]]:
    where = ["severity >= ?"]
    found: list[object] = [wanted.min_severity]
    if wanted.subject:
        # Names hold no character that LIKE or GLOB would read as a pattern.
        where.append("(subject = ? OR subject GLOB ? OR subject GLOB ?)")
        found += [wanted.subject, wanted.subject + "/*", wanted.subject + ":*"]
    if wanted.kinds:
        where.append(f"kind IN ({','.join('?' * len(wanted.kinds))})")
        found += wanted.kinds
    if wanted.since_ns:
        where.append("time_ns >= ?")
        found.append(wanted.since_ns)
    return where, found


def _check(db: sqlite3.Connection, path: Path) -> None:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"{path} was written by a newer acceld (schema {version}, this one knows"
            f" {SCHEMA_VERSION}); use that one, or move the file away"
        )
    verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError("malformed: " + " ".join(verdict.split()))


def _bring_up(db: sqlite3.Connection) -> None:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    db.create_function("first_figure", 1, _first_figure, deterministic=True)
    for number, step in enumerate(STEPS[version:], version + 1):
        db.executescript(f"BEGIN; {step} PRAGMA user_version = {number}; COMMIT;")


def _first_figure(figures: bytes) -> int:
    """Of a column of 64-bit counters, as a Total has them."""
    return int.from_bytes(figures[:8], sys.byteorder)
