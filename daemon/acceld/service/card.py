"""CardService: the cards of this host."""

from __future__ import annotations

from typing import Any

from accel.v1 import card_pb2, card_pb2_grpc
from acceld.host.host import Host
from acceld.service import convert, names
from acceld.service.pages import page


class CardServicer(card_pb2_grpc.CardServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListCards(self, request: Any, context: Any) -> card_pb2.ListCardsResponse:
        cards = list(enumerate(self._host.cards()))
        chosen, token = page(
            cards, lambda item: (item[0],), "cards", request.page_size, request.page_token
        )
        return card_pb2.ListCardsResponse(
            cards=[convert.card(card) for _, card in chosen], next_page_token=token
        )

    async def GetCard(self, request: Any, context: Any) -> card_pb2.Card:
        return convert.card(self._host.card(names.parse_card(request.name)))

    async def ResetCard(self, request: Any, context: Any) -> card_pb2.Card:
        name = names.parse_card(request.name)
        await self._host.reset_card(name)
        return convert.card(self._host.card(name))

    async def ClearCardFlags(self, request: Any, context: Any) -> card_pb2.Card:
        name = names.parse_card(request.name)
        await self._host.clear_flags(name, None)
        return convert.card(self._host.card(name))
