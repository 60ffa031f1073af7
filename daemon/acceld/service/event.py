"""EventService: what happened, with revisions to resume from."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from accel.v1 import event_pb2, event_pb2_grpc
from acceld.errors import InvalidRequest, suggestion
from acceld.host.eventkinds import KINDS
from acceld.host.host import Host
from acceld.records import EventFilter
from acceld.service import convert
from acceld.service.pages import key_of, size_of, token_of
from acceld.service.times import nanoseconds
from accelhw.model.ids import PortId

_SUBJECT = re.compile(r"[a-z0-9][a-z0-9:/+-]{0,200}")
_PORT = re.compile(r"([^/:]+)/oe([0-9]{1,3})(?:/.*)?")
_NO_CARDS = ("daemon", "chassis", "host")  # subjects beside the cards


class EventServicer(event_pb2_grpc.EventServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListEvents(self, request: Any, context: Any) -> event_pb2.ListEventsResponse:
        wanted = self._wanted(request)
        if request.HasField("since_time"):
            wanted = replace(wanted, since_ns=nanoseconds(request.since_time))
        size = size_of(request.page_size)
        # Of another question, a page token leads nowhere.
        scope = f"events/{int(request.descending)}/{wanted}"
        after, before = 0, None
        if request.page_token:
            position = int(key_of(scope, request.page_token)[0])
            after, before = (0, position) if request.descending else (position, None)
        await self._host.events.settled()  # No answer of ours shows what this one does not tell.
        found = self._host.events.list(after, before, size + 1, request.descending, wanted)
        more = len(found) > size
        found = found[:size]
        return event_pb2.ListEventsResponse(
            events=[convert.event(event) for event in found],
            next_page_token=token_of(scope, (found[-1].revision,)) if more else "",
            newest_revision=self._host.events.newest_revision,
        )

    async def WatchEvents(self, request: Any, context: Any) -> AsyncIterator[event_pb2.Event]:
        after = request.after_revision if request.HasField("after_revision") else None
        wanted = self._wanted(request)
        if after is None:
            # The header tells that what happens from now on will come.
            after = self._host.events.newest_revision
            await context.send_initial_metadata(())
        elif after == 0:
            after = self._host.events.oldest_revision - 1
        async for event in self._host.events.watch(after, wanted):
            yield convert.event(event)

    def _wanted(self, request: Any) -> EventFilter:
        """Raises InvalidRequest, NotFound."""
        unknown = [kind for kind in request.kinds if kind not in KINDS]
        if unknown:
            raise InvalidRequest(
                "KIND_UNKNOWN",
                f"{unknown[0]!r} is no kind of event; {suggestion(unknown[0], KINDS, 'kind')}",
                kind=unknown[0],
            )
        subject = self._known(request.subject)
        return EventFilter(subject, request.min_severity, tuple(request.kinds))

    def _known(self, text: str) -> str:
        """The subject; one without events must at least be there.

        Raises InvalidRequest, NotFound.
        """
        subject, hardware = _subject(text), self._host.hardware
        if not subject or subject in _NO_CARDS or hardware.attachment is None:
            return subject
        if self._host.events.list(limit=1, wanted=EventFilter(subject)):
            return subject  # Perhaps of hardware that is gone.
        if port := _PORT.fullmatch(subject):
            hardware.port(PortId(port.group(1), int(port.group(2))))
        else:
            hardware.card(re.split("[/:]", subject)[0])
        return subject


def _subject(text: str) -> str:
    """An address, also in the form of a resource name. Raises InvalidRequest."""
    short = re.sub(r"^cards/", "", text)
    short = re.sub(r"/(links|engines|lanes)/", "/", short)
    short = re.sub(r"/regions/", ":", short)
    if short and not _SUBJECT.fullmatch(short):
        raise InvalidRequest(
            "SUBJECT_INVALID",
            f"{text!r} is no subject; try card0, card0/oe1, chassis or daemon",
            subject=text,
        )
    return short
