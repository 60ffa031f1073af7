"""The book of a card's outgoing transfers: which there are, whose turn it is, whose CRC lacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, ValuesView

from accelhw.device.push import Push


class Pushes:
    """By transfer id, commanded or asked for by a far card."""

    def __init__(self) -> None:
        self.scans: deque[Push] = deque()  # whose source must be read for a CRC
        self._pushes: dict[str, Push] = {}
        self._turns: dict[str, deque[Push]] = {}  # by peer card: whose chunk is next
        self._next_stream = 1

    def __contains__(self, name: str) -> bool:
        return name in self._pushes

    def __iter__(self) -> Iterator[str]:
        return iter(self._pushes)

    def __bool__(self) -> bool:
        return bool(self._pushes)

    def get(self, name: str) -> Push | None:
        return self._pushes.get(name)

    def values(self) -> ValuesView[Push]:
        return self._pushes.values()

    def turns(self, peer: str) -> deque[Push] | None:
        """The transfers to that card, the next one first; whoever takes a turn rotates it."""
        return self._turns.get(peer)

    def new_stream(self) -> int:
        """A number for the far end to tell this transfer's frames by."""
        self._next_stream = (self._next_stream % 0xFFFFFFFF) + 1
        return self._next_stream

    def add(self, push: Push) -> None:
        self._pushes[push.transfer_id] = push
        self._turns.setdefault(push.peer, deque()).append(push)

    def drop(self, name: str) -> None:
        """Forget it, if it is known; ways send no more of it."""
        push = self._pushes.pop(name, None)
        if push is None:
            return
        self._turns[push.peer].remove(push)
        if push in self.scans:
            self.scans.remove(push)
        for cut in push.cuts.values():
            cut.port.drop_cut(cut)
        push.cuts.clear()
