"""The newest message heard from each sender, so that late ones are known to be late."""

from __future__ import annotations

from collections import OrderedDict

from accelhw.model.link import PeerId

SENDERS_REMEMBERED = 16

Position = tuple[int, ...]  # compared left to right, as (session, sequence)


class Newest:
    """Remembers a position per sender; of very many senders, those heard last."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: OrderedDict[PeerId, Position] = OrderedDict()

    def of(self, sender: PeerId) -> Position | None:
        return self._positions.get(sender)

    def advance(self, sender: PeerId, position: Position) -> bool:
        """Whether this is newer than all before; it is the newest then."""
        known = self._positions.get(sender)
        if known is not None and position <= known:
            return False
        self._positions[sender] = position
        self._positions.move_to_end(sender)
        if len(self._positions) > SENDERS_REMEMBERED:
            self._positions.popitem(last=False)
        return True
