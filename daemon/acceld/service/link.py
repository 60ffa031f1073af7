"""LinkService: each port with a fibre, its training, and the channel maps of cards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from accel.v1 import link_pb2, link_pb2_grpc
from acceld.errors import InvalidRequest
from acceld.host.host import Host
from acceld.host.snapshot import CardSnapshot, PortSnapshot
from acceld.service import convert, names
from acceld.service.pages import page
from accelhw.model.link import TrainingPhase

# Counters move all the time: a watcher sees them at this beat, and a change of state at once.
LOOK_S = 1.0


class LinkServicer(link_pb2_grpc.LinkServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListLinks(self, request: Any, context: Any) -> link_pb2.ListLinksResponse:
        card = names.parse_card_parent(request.parent)
        chosen, token = page(
            list(enumerate(self._ports(card))),
            lambda item: (item[0],),
            f"links/{card or names.ANY}",
            request.page_size,
            request.page_token,
        )
        return link_pb2.ListLinksResponse(
            links=[convert.link(port) for _, port in chosen], next_page_token=token
        )

    async def GetLink(self, request: Any, context: Any) -> link_pb2.Link:
        port = names.parse_link(request.name)
        self._host.links.with_fibre(port)
        return convert.link(self._host.port(port))

    async def SetLinkAdmin(self, request: Any, context: Any) -> link_pb2.Link:
        port = names.parse_link(request.name)
        await self._host.links.set_admin(port, request.up)
        return convert.link(self._host.port(port))

    async def TrainLink(
        self, request: Any, context: Any
    ) -> AsyncIterator[link_pb2.TrainLinkProgress]:
        port = names.parse_link(request.name)
        async for step in self._host.links.train(port):
            yield link_pb2.TrainLinkProgress(
                state=convert.enum(step.state),
                phase=TrainingPhase(step.phase).name,
                lane=step.lane,
                text=step.text,
                link=convert.link(self._host.port(port)) if step.is_last else None,
            )

    async def WatchLinks(self, request: Any, context: Any) -> AsyncIterator[link_pb2.Link]:
        card = names.parse_card_parent(request.parent)
        changed = self._host.links.changed
        known: dict[str, link_pb2.Link] = {}
        while True:
            seen = changed.count
            for port in self._ports(card):
                message = convert.link(port)
                if known.get(message.name) != message:
                    known[message.name] = message
                    yield message
            await changed.past(seen, LOOK_S)

    async def GetChannelMap(self, request: Any, context: Any) -> link_pb2.ChannelMap:
        return convert.channel_map(self._host.card(names.parse_channel_map(request.name)))

    async def UpdateChannelMap(self, request: Any, context: Any) -> link_pb2.ChannelMap:
        card = names.parse_channel_map(request.name)
        lines: dict[int, int] = {}
        for entry in request.channels:
            if entry.channel in lines:
                raise InvalidRequest(
                    "CHANNEL_MAP_INVALID",
                    f"channel {entry.channel} is named twice",
                    channel=entry.channel,
                )
            lines[entry.channel] = entry.signal_line
        await self._host.links.move_channels(card, lines)
        return convert.channel_map(self._host.card(card))

    def _ports(self, card: str | None) -> list[PortSnapshot]:
        cards: list[CardSnapshot] = self._host.cards() if card is None else [self._host.card(card)]
        return [port for c in cards for port in c.ports if port.info.fibre is not None]
