"""A port without a fibre: light leaves and is lost, none comes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelhw.wire.frame import MIN_MTU

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Unplugged:
    """A transport to nowhere."""

    mtu = MIN_MTU
    receive_frames = 1
    peeked_bytes = 0

    def fileno(self) -> int:
        return -1

    def send(self, parts: Sequence[Buffer]) -> bool:
        return True

    def peek(self) -> memoryview | None:
        return None

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        raise OSError("nothing was peeked")

    def discard(self) -> None: ...

    def close(self) -> None: ...
