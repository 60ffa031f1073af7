"""Cards."""

from __future__ import annotations

from collections.abc import Iterator

from accel.address import CardAddress
from accel.v1 import card_pb2, card_pb2_grpc
from accel.wire import Wire

RESET_TIMEOUT_S = 60.0


class Cards:
    """The cards of this host; each method gives `accel.v1.Card`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = card_pb2_grpc.CardServiceStub(wire.channel)

    def list(self) -> Iterator[card_pb2.Card]:
        return self._wire.pages(self._stub.ListCards, card_pb2.ListCardsRequest(), "cards")

    def get(self, card: str) -> card_pb2.Card:
        name = CardAddress.parse(card).name
        answer: card_pb2.Card = self._wire.call(
            self._stub.GetCard, card_pb2.GetCardRequest(name=name)
        )
        return answer

    def reset(self, card: str) -> card_pb2.Card:
        """Links go down and train again, its transfers fail, HBM content stays."""
        request = card_pb2.ResetCardRequest(name=CardAddress.parse(card).name)
        answer: card_pb2.Card = self._wire.call(self._stub.ResetCard, request, RESET_TIMEOUT_S)
        return answer

    def clear_flags(self, card: str) -> card_pb2.Card:
        """Clear the latched flags of the card itself; what is active stays latched."""
        request = card_pb2.ClearCardFlagsRequest(name=CardAddress.parse(card).name)
        answer: card_pb2.Card = self._wire.call(self._stub.ClearCardFlags, request)
        return answer
