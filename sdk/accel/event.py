"""Events: what happened, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from accel.errors import Cancelled, TimedOut, Unreachable
from accel.v1 import event_pb2, event_pb2_grpc
from accel.wire import Patience, Wire

RECONNECT_S = 30.0


class Events:
    """Events; each method gives `accel.v1.Event`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = event_pb2_grpc.EventServiceStub(wire.channel)

    def list(
        self,
        subject: str = "",
        *,
        min_severity: str = "INFO",
        kinds: Sequence[str] = (),
        since: datetime | None = None,
        descending: bool = False,
    ) -> Iterator[event_pb2.Event]:
        """Those kept of an object and what is inside it, oldest first unless `descending`."""
        request = event_pb2.ListEventsRequest(
            subject=subject,
            descending=descending,
            min_severity=f"SEVERITY_{min_severity.upper()}",
            kinds=kinds,
        )
        if since is not None:
            request.since_time.FromDatetime(since)
        return self._wire.pages(self._stub.ListEvents, request, "events")

    def latest(
        self,
        count: int,
        subject: str = "",
        *,
        min_severity: str = "INFO",
        kinds: Sequence[str] = (),
        since: datetime | None = None,
    ) -> Sequence[event_pb2.Event]:
        """The newest few, oldest of them first."""
        newest = self.list(
            subject, min_severity=min_severity, kinds=kinds, since=since, descending=True
        )
        return tuple(islice(newest, count))[::-1]

    def watch(
        self,
        after_revision: int | None = None,
        subject: str = "",
        *,
        min_severity: str = "INFO",
        kinds: Sequence[str] = (),
    ) -> Iterator[event_pb2.Event]:
        """Events after a revision (0: all kept; None: only new ones), then each new one. One that
        is repeated comes again, with a new revision and a higher count."""
        request = event_pb2.WatchEventsRequest(
            subject=subject, min_severity=f"SEVERITY_{min_severity.upper()}", kinds=kinds
        )
        if after_revision is not None:
            request.after_revision = after_revision
        return self._wire.stream(self._stub.WatchEvents, request)

    def follow(
        self,
        after_revision: int | None = None,
        subject: str = "",
        *,
        min_severity: str = "INFO",
        kinds: Sequence[str] = (),
        reconnect_s: float = RECONNECT_S,
    ) -> Iterator[event_pb2.Event]:
        """As `watch`, but a daemon that restarts is found again and no event is missed."""
        patience = Patience(self._wire, reconnect_s)
        if after_revision is None:
            # Remember where "now" is: the first event may come only after a restart.
            after_revision = self.newest_revision()
        while True:
            try:
                for event in self.watch(
                    after_revision, subject, min_severity=min_severity, kinds=kinds
                ):
                    patience.restart()
                    after_revision = event.revision
                    yield event
                ended: Exception = Unreachable("the daemon closed the stream of events")
            except (Unreachable, Cancelled, TimedOut) as error:
                ended = error
            if not patience.wait():
                raise ended

    def newest_revision(self) -> int:
        request = event_pb2.ListEventsRequest(page_size=1, descending=True)
        return int(self._wire.call(self._stub.ListEvents, request).newest_revision)
