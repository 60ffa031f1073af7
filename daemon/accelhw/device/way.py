"""What the transfer engine sees of a link: a way for frames to the far card.

Channel 0 of a link is a `DataPort` in the same process; its other virtual channels are
`ChannelPort`s, whose frames another process moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from accelhw.model.link import PeerId
from accelhw.wire.message import TransferMessage

if TYPE_CHECKING:
    from accelhw.device.push import Cut
    from accelhw.device.sink import Landing, Sink

BULK_BYTES = 8 << 20  # of a transfer from which it is worth more than one CPU


class Way(Protocol):
    @property
    def name(self) -> str:
        """Of the port: card0/oe1."""

    @property
    def peer(self) -> PeerId | None: ...

    @property
    def streams(self) -> dict[int, Sink]:
        """What the far end's stream numbers mean here."""

    def carries(self, total_bytes: int) -> bool:
        """Whether transfers of this size go this way now."""

    def burdened(self) -> None:
        """It was given a chunk of a transfer that is worth more ways than this."""

    def say(self, message: TransferMessage) -> None:
        """Queue a message, ahead of data that has not left. Dropped when the link is down."""

    def drop_cut(self, cut: Cut) -> None:
        """Its transfer ended: send no more of it."""

    def void(self, landing: Landing) -> None:
        """The chunk belongs to another way, or to nobody: not a byte of it lands any more."""
