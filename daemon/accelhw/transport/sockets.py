"""What all transports over a socket have in common: it keeps frames apart and can be peeked at."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from accelhw.transport.base import InterfaceDown
from accelhw.transport.direct import PEEK, Direct, is_outage, no_room, on_socket
from accelhw.wire.frame import HEADER_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")


class SocketTransport:
    """One end of a fibre. Takes over the descriptor."""

    __slots__ = ("_fd", "_head", "_socket", "mtu", "peeked_bytes", "receive_frames")

    def __init__(self, opened: socket.socket, mtu: int, receive_frames: int) -> None:
        opened.setblocking(False)
        self._socket = opened
        self._fd = opened.fileno()
        self.mtu = mtu
        self.receive_frames = receive_frames
        self.peeked_bytes = 0
        self._head = memoryview(bytearray(HEADER_BYTES))

    def fileno(self) -> int:
        return self._fd

    def send(self, parts: Sequence[Buffer]) -> bool:
        try:
            # Leaner than sendmsg(), which builds and reads an address for each frame.
            os.writev(self._fd, parts)
        except OSError as error:
            return not no_room(error)
        return True

    def peek(self) -> memoryview | None:
        try:
            self.peeked_bytes = length = self._socket.recv_into(self._head, HEADER_BYTES, PEEK)
        except OSError as error:
            no_room(error)
            return None
        if length == 0:
            raise InterfaceDown(errno.EPIPE, "the far end of the socket pair is closed")
        return self._head if length >= HEADER_BYTES else self._head[:length]

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        self._take(lambda: os.readv(self._fd, parts))
        return self.peeked_bytes

    def discard(self) -> None:
        self._take(self._drop)

    def _drop(self) -> int:
        return self._socket.recv_into(self._head, 1, socket.MSG_DONTWAIT)

    def _take(self, take: Callable[[], T]) -> T:
        """An outage since the frame was peeked at is told once by the system, instead of the frame,
        which would be seen a second time."""
        try:
            return take()
        except OSError as error:
            if not is_outage(error):
                raise
            self._drop()
            raise InterfaceDown(error.errno, error.strerror) from None

    def direct(self) -> Direct:
        return on_socket(self._socket)

    def close(self) -> None:
        self._socket.close()
