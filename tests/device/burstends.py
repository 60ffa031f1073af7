"""One end of a socket pair with a set of the loops of `accelhw.device.bursts` on it, for tests."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Callable

from accelhw.device import native
from accelhw.device.bursts import Bursts, PlainBursts
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.direct import Direct, direct_of
from accelhw.transport.memory import MemoryTransport, open_memory_pair
from accelhw.wire.frame import MAX_MTU, HeaderWriter

LANES = 4
RECEIVED_BYTES_MAX = 1 << 18

Make = Callable[[Direct, memoryview, HeaderWriter], Bursts]


def _library() -> ctypes.CDLL | None:
    try:
        return native.library()
    except native.Unusable:
        return None


LIBRARY = _library()


def in_c(direct: Direct, memory: memoryview, writer: HeaderWriter) -> Bursts:
    assert LIBRARY is not None
    return native.NativeBursts(LIBRARY, direct, memory, writer)


# All that this machine has: the reference, and the loops in C where set-up could make them.
LOOPS: list[Make] = [PlainBursts] if LIBRARY is None else [PlainBursts, in_c]


class End:
    """`far` is the other end of the pair: what leaves is read there, and what arrives written."""

    def __init__(self, make: Make, memory: bytes | memoryview, channel: int = 0) -> None:
        here, there = open_memory_pair()
        self.socket = here
        self.far = socket.socket(fileno=there)
        self.far.setblocking(False)
        self.transport = Cable(MemoryTransport(here, MAX_MTU), CableMap.straight_of(LANES))
        self.memory = memoryview(bytearray(memory)) if isinstance(memory, bytes) else memory
        self.writer = HeaderWriter(channel=channel)
        self.direct = direct_of(self.transport)
        self.bursts = make(self.direct, self.memory, self.writer)

    def __enter__(self) -> End:
        return self

    def __exit__(self, *_: object) -> None:
        self.transport.close()
        self.far.close()

    def arrived_far(self) -> list[bytes]:
        """All frames that wait at the far end."""
        frames = []
        while True:
            try:
                frames.append(self.far.recv(RECEIVED_BYTES_MAX))
            except BlockingIOError:
                return frames

    def next_shown(self) -> tuple[bytes, bytes] | None:
        """What the transport shows next: its first bytes, and then the frame, which is taken."""
        head = self.transport.peek()
        if head is None:
            return None
        seen, frame = bytes(head), memoryview(bytearray(self.transport.peeked_bytes))
        self.transport.receive_into((frame,))
        return seen, bytes(frame)


def fields(values: ctypes.Structure) -> dict[str, object]:
    return {
        name: fields(value) if isinstance(value, ctypes.Structure) else value
        for name, value in ((name, getattr(values, name)) for name, *_ in values._fields_)
    }
