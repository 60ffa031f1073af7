"""The numbered events of a chassis life, kept until a driver has stored them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from accelhw.interface.messages import Event
from accelhw.model.event import Severity

EVENTS_KEPT_MAX = 100_000

Detail = dict[str, str | int | float | bool]


class Journal:
    """Numbers without holes, from 1. What is acknowledged is forgotten."""

    def __init__(self, wall_ns: Callable[[], int], kept_max: int = EVENTS_KEPT_MAX) -> None:
        self._wall_ns = wall_ns
        self._kept_max = kept_max
        self._kept: deque[Event] = deque()
        self._lost = 0  # dropped unacknowledged, and not told yet
        self.newest = 0

    @property
    def oldest_kept(self) -> int:
        """Sequence of the oldest event at hand; the next one to come when there is none."""
        return self._kept[0].sequence if self._kept else self.newest + 1

    def record(
        self,
        kind: str,
        severity: Severity,
        subject: str,
        message: str,
        detail: Detail | None = None,
    ) -> Event:
        self.newest += 1
        event = Event(
            self.newest, self._wall_ns(), int(severity), kind, subject, message, detail or {}
        )
        self._kept.append(event)
        if len(self._kept) > self._kept_max:
            self._kept.popleft()
            self._lost += 1
        return event

    def acknowledge(self, sequence: int) -> None:
        """A driver has stored all events up to `sequence`."""
        while self._kept and self._kept[0].sequence <= sequence:
            self._kept.popleft()

    def after(self, sequence: int) -> Iterator[Event]:
        """Those at hand that are newer than `sequence`, oldest first."""
        skip = max(0, sequence + 1 - self.oldest_kept)
        return islice(self._kept, skip, None)

    def tell_loss(self) -> Event | None:
        """An event about those that were dropped since the last time, if any were."""
        if not self._lost:
            return None
        lost, self._lost = self._lost, 0
        return self.record(
            "EVENTS_LOST",
            Severity.WARNING,
            "chassis",
            f"{lost} events were dropped before a driver stored them; read states afresh",
            {"lost": lost},
        )
