"""Frames through memory: a socket pair between processes, or two queues inside one."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelhw.transport.base import InterfaceDown
from accelhw.transport.sockets import SocketTransport
from accelhw.wire.frame import HEADER_BYTES, MAX_MTU

if TYPE_CHECKING:
    from typing_extensions import Buffer

SOCKET_FRAMES = 32  # the socket pair pushes back by itself; this only bounds what is in flight
_SO_SNDBUFFORCE = 32
_SEND_BUFFER_BYTES = 4 << 20


def open_memory_pair() -> tuple[int, int]:
    """Two connected descriptors, one for the MemoryTransport at each end."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        try:
            end.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES // 2)
        except PermissionError:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES // 2)
    return ends[0].detach(), ends[1].detach()


class MemoryTransport(SocketTransport):
    """One end of a socket pair, where no network interface can be had. Takes over `fd`."""

    __slots__ = ()

    def __init__(self, fd: int, mtu: int = MAX_MTU) -> None:
        super().__init__(socket.socket(fileno=fd), mtu, SOCKET_FRAMES)


class InProcessTransport:
    """One end of an InProcessPair. Stores into destinations by slices: only for backed memory."""

    __slots__ = ("_in", "_out", "down", "dropped_frames", "mtu", "peeked_bytes", "receive_frames")

    def __init__(
        self, incoming: deque[bytes], outgoing: deque[bytes], mtu: int, receive_frames: int
    ) -> None:
        self._in = incoming
        self._out = outgoing
        self.mtu = mtu
        self.receive_frames = receive_frames
        self.peeked_bytes = 0
        self.dropped_frames = 0  # the queue was full: credits should never let this happen
        self.down = False

    def fileno(self) -> int:
        return -1

    @property
    def readable(self) -> bool:
        return bool(self._in)

    def send(self, parts: Sequence[Buffer]) -> bool:
        if self.down:
            raise InterfaceDown(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
        # Twice the credits: acknowledgements and training need room that no credit covers.
        if len(self._out) >= 2 * self.receive_frames + 64:
            self.dropped_frames += 1
        else:
            self._out.append(b"".join(parts))
        return True

    def peek(self) -> memoryview | None:
        if self.down:
            raise InterfaceDown(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
        if not self._in:
            return None
        frame = self._in[0]
        self.peeked_bytes = len(frame)
        return memoryview(frame)[:HEADER_BYTES]

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        frame = memoryview(self._in.popleft())
        start = 0
        for part in parts:
            piece = frame[start : start + len(part)]
            part[: len(piece)] = piece
            start += len(piece)
        return len(frame)

    def discard(self) -> None:
        self._in.popleft()

    def close(self) -> None:
        self._in.clear()


class InProcessPair:
    """Two ends in one process, for tests and simulation."""

    def __init__(self, mtu: int = MAX_MTU, receive_frames: int = 64) -> None:
        forth: deque[bytes] = deque()
        back: deque[bytes] = deque()
        self.a = InProcessTransport(back, forth, mtu, receive_frames)
        self.b = InProcessTransport(forth, back, mtu, receive_frames)
