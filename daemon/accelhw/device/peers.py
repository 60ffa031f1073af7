"""The far cards of a card: which ways lead to each now, and what one without a way has to hear."""

from __future__ import annotations

from collections.abc import Sequence

from accelhw.device.way import Way
from accelhw.wire.message import End, TransferMessage

UNSAID_MAX = 1024  # ends kept for a far card, until a link to it is up


def card_beyond(way: Way) -> str:
    """The far card of a way that is up."""
    assert way.peer is not None
    return way.peer.card


class Peers:
    """By name of the far card."""

    def __init__(self) -> None:
        self.ready: set[Way] = set()  # have something to send: pump them
        self._ways: dict[str, list[Way]] = {}  # up
        self._unsaid: dict[str, list[End]] = {}

    def ways(self, peer: str) -> Sequence[Way]:
        return self._ways.get(peer, ())

    def add(self, way: Way) -> None:
        """The way is up; the far card hears what was kept for it."""
        peer = card_beyond(way)
        self._ways.setdefault(peer, []).append(way)
        for end in self._unsaid.pop(peer, ()):
            self.say(way, end)

    def remove(self, way: Way) -> None:
        self._ways[card_beyond(way)].remove(way)
        self.ready.discard(way)

    def wake(self, peer: str) -> None:
        """There is something to send to that card, over whichever way."""
        self.ready.update(self._ways.get(peer, ()))

    def say(self, way: Way, message: TransferMessage) -> None:
        way.say(message)
        self.ready.add(way)

    def tell(self, peer: str, end: End) -> None:
        """Now, or when a link is up again."""
        ways = self._ways.get(peer)
        if ways:
            self.say(ways[0], end)
        else:
            unsaid = self._unsaid.setdefault(peer, [])
            unsaid.append(end)
            del unsaid[:-UNSAID_MAX]
