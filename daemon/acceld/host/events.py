"""The event log: the hardware's events and our own, with revisions, kept before acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence

import structlog

from acceld.errors import OutOfRange
from acceld.host.eventfields import completed
from acceld.host.hardware import Hardware
from acceld.host.notice import Notice
from acceld.records import ALL_EVENTS, EventFilter, NewEvent, StoredEvent
from acceld.store.store import Store
from accelhw.interface.messages import AcknowledgeEvents, Event
from accelhw.model.event import Severity

log = structlog.get_logger()

BATCH = 500

_LOG_METHOD = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.ERROR: "error"}


class EventLog:
    """Watchers read the store and wait for the bell, so a slow one costs no memory and none sees
    a hole or the same event twice."""

    def __init__(self, hardware: Hardware, store: Store, says_events: bool = True) -> None:
        self._hardware = hardware
        self._store = store
        self._incoming: list[NewEvent] = []
        self._arrived = asyncio.Event()
        self._taken = self._kept = 0  # events so far
        self._batch_kept = Notice()
        self._appended = Notice()
        self._says_events = says_events
        self.listeners: list[Callable[[StoredEvent], None]] = []
        self.say: Callable[[StoredEvent], None] = log_line

    @property
    def newest_revision(self) -> int:
        return self._store.newest_revision

    @property
    def oldest_revision(self) -> int:
        return self._store.oldest_revision

    def take(self, event: Event) -> None:
        """An event of the hardware; kept and acknowledged soon, in order."""
        self._put(
            NewEvent(
                event.time_ns, event.severity, event.kind, event.subject, event.message,
                event.detail, event.sequence,
            )
        )  # fmt: skip

    def report(
        self,
        severity: Severity,
        kind: str,
        message: str,
        subject: str = "daemon",
        **detail: str | int | float | bool,
    ) -> None:
        """An event of the daemon itself."""
        self._put(NewEvent(time.time_ns(), severity, kind, subject, message, detail))

    def _put(self, event: NewEvent) -> None:
        self._incoming.append(completed(event, self._hardware.far_end))
        self._taken += 1
        self._arrived.set()

    async def settled(self) -> None:
        """Wait until everything taken so far is in the store."""
        taken = self._taken
        while self._kept < taken:
            await self._batch_kept.past(self._batch_kept.count)

    async def run(self) -> None:
        """Keep what arrives, in batches, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            batch, self._incoming = self._incoming, []
            stored = await asyncio.to_thread(self._store.append_events, batch)
            self._tell(batch, stored)
            if stored:
                self._appended.ring()
            self._acknowledge(max((event.sequence for event in batch), default=0))
            self._kept += len(batch)
            self._batch_kept.ring()

    def flush(self) -> None:
        """At the end, when `run` is over: keep what is left."""
        batch, self._incoming = self._incoming, []
        if batch:
            self._tell(batch, self._store.append_events(batch))

    def list(
        self,
        after: int = 0,
        before: int | None = None,
        limit: int = BATCH,
        descending: bool = False,
        wanted: EventFilter = ALL_EVENTS,
    ) -> list[StoredEvent]:
        return self._store.events(after, before, limit, descending, wanted)

    async def watch(
        self, after: int, wanted: EventFilter = ALL_EVENTS
    ) -> AsyncIterator[StoredEvent]:
        """Events past a revision, then each new one, for ever. One that repeats another comes
        again, with its new revision and count.

        Raises OutOfRange when what follows that revision is no longer, or not yet, kept.
        """
        newest = self._store.newest_revision
        position = after
        if position > newest:
            raise OutOfRange(
                "REVISION_UNKNOWN",
                f"revision {position} has not happened; the newest is {newest}. Was the store"
                " replaced? Start from 0",
                newest_revision=newest,
            )
        while True:
            seen = self._appended.count
            if position < self._store.oldest_revision - 1:
                raise OutOfRange(
                    "REVISION_TOO_OLD",
                    f"events after revision {position} are not kept any more; the oldest is"
                    f" {self._store.oldest_revision}. Start from 0 and read the state anew",
                    oldest_revision=self._store.oldest_revision,
                    newest_revision=self._store.newest_revision,
                )
            end = self._store.newest_revision
            batch = self._store.events(position, end + 1, BATCH, wanted=wanted)
            for event in batch:
                yield event
            position = batch[-1].revision if len(batch) == BATCH else end
            if position >= self._store.newest_revision:
                await self._appended.past(seen)

    def _tell(self, batch: Sequence[NewEvent], stored: Sequence[StoredEvent]) -> None:
        own = {(event.time_ns, event.kind) for event in batch if not event.sequence}
        for event in stored:
            if self._says_events or (event.time_ns, event.kind) in own:
                self.say(event)
            for listener in self.listeners:
                listener(event)

    def _acknowledge(self, sequence: int) -> None:
        """What comes next is kept meanwhile, however long the hardware takes to answer. One that
        is gone learns from the next Hello what we hold."""
        if sequence and self._store.is_durable:
            self._hardware.tell(AcknowledgeEvents(0, sequence))


def log_line(event: StoredEvent) -> None:
    """An event as a line of the log."""
    write = getattr(log, _LOG_METHOD.get(Severity(event.severity), "info"))
    detail = {k: v for k, v in event.detail.items() if k not in ("event", "level", "timestamp")}
    write(
        event.kind.lower(), **{"revision": event.revision, "subject": event.subject, **detail},
        message=event.message,
    )  # fmt: skip
