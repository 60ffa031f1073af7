"""A fibre of a test's world behind a socket pair, for loops that move frames by a descriptor."""

from __future__ import annotations

import contextlib
import socket

from accelhw.transport.base import InterfaceDown, Transport
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.memory import MemoryTransport, open_memory_pair
from accelhw.wire.frame import ETHERNET_BYTES, MAX_MTU


class Gateway:
    """Between a fibre's end and a socket pair, for loops that move frames by a descriptor."""

    def __init__(self, lane: Transport) -> None:
        near, far = open_memory_pair()
        inner = MemoryTransport(near, lane.mtu)
        inner.receive_frames = lane.receive_frames
        self.end = Cable(inner, CableMap.straight_of(1))
        self._far = socket.socket(fileno=far)
        self._far.setblocking(False)
        self._lane = lane

    def pass_on(self) -> None:
        """What waits at either side. While the interface is down, all that comes is lost."""
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = self._far.recv(MAX_MTU + ETHERNET_BYTES)
                with contextlib.suppress(InterfaceDown):
                    self._lane.send((frame,))
        with contextlib.suppress(InterfaceDown):
            while self._lane.peek() is not None:
                frame = bytearray(self._lane.peeked_bytes)
                self._lane.receive_into((memoryview(frame),))
                self._far.send(frame)

    def close(self) -> None:
        self.end.close()
        self._far.close()
