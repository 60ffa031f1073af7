"""A fibre inside a simulated fleet: what one end sends lies at the other until it is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accelhw.wire.frame import HEADER_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

MTU = 9000
RECEIVE_FRAMES = 48


class FleetWire:
    """One end. `arrived` of the far end is called when a frame lies there that did not before."""

    mtu = MTU
    receive_frames = RECEIVE_FRAMES

    def __init__(self) -> None:
        self._inbox: deque[bytes] = deque()
        self._far: FleetWire | None = None
        self.arrived: Callable[[], None] = _nobody

    @classmethod
    def pair(cls) -> tuple[FleetWire, FleetWire]:
        a, b = cls(), cls()
        a._far, b._far = b, a
        return a, b

    @property
    def peeked_bytes(self) -> int:
        return len(self._inbox[0])

    @property
    def waiting(self) -> bool:
        return bool(self._inbox)

    def fileno(self) -> int:
        return -1

    def send(self, parts: Sequence[Buffer]) -> bool:
        far = self._far
        if far is not None:
            far._inbox.append(b"".join(parts))
            if len(far._inbox) == 1:
                far.arrived()
        return True

    def peek(self) -> memoryview | None:
        return memoryview(self._inbox[0])[:HEADER_BYTES] if self._inbox else None

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        frame, at = self._inbox.popleft(), 0
        for part in parts:
            piece = frame[at : at + len(part)]
            part[: len(piece)] = piece
            at += len(piece)
        return len(frame)

    def discard(self) -> None:
        self._inbox.popleft()

    def close(self) -> None:
        self._inbox.clear()


def _nobody() -> None: ...
