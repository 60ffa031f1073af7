"""The bare calls of a transport, for the frames of a stream: no question asked per frame.

A stream's frames are counted and checked by whoever sends and takes them, so all that a transport
adds there is its system call. Errors come as the system raises them; `no_room` tells them apart.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accelhw.transport.base import InterfaceDown, Transport
from accelhw.wire.frame import HEADER_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

PEEK = socket.MSG_PEEK | socket.MSG_TRUNC | socket.MSG_DONTWAIT
_FULL = frozenset({errno.EAGAIN, errno.EINTR, errno.ENOBUFS, errno.ENOMEM})
_GONE = frozenset(
    {
        errno.ENETDOWN, errno.ENXIO, errno.ENODEV, errno.EIO, errno.EBADFD, errno.EPIPE,
        errno.ECONNRESET, errno.ENOTCONN,
    }
)  # fmt: skip


def is_outage(error: OSError) -> bool:
    """Whether it tells that the interface is down or gone."""
    return error.errno in _GONE


def no_room(error: OSError) -> bool:
    """Whether a frame found no room now. Raises InterfaceDown, or the error itself."""
    if error.errno in _FULL:
        return True
    if is_outage(error):
        raise InterfaceDown(error.errno, error.strerror) from None
    raise error


@dataclass(frozen=True, slots=True)
class Direct:
    """Only for frames that belong to no lane: a cable does not cross what passes here."""

    put: Callable[[Sequence[Buffer]], object]  # a whole frame out
    look: Callable[[], int]  # the next frame's first bytes into `head`; the frame's true length
    take: Callable[[Sequence[memoryview]], int]  # that frame, into the parts; its length
    head: memoryview  # a header's length
    # `take` without a look before, for who knows what comes: where it was something else, all of it
    # goes back by this, and is the next to be seen. None: look first.
    put_back: Callable[[bytearray], None] | None = None
    descriptor: int | None = None  # where `put` is its writev and `take` its readv


@runtime_checkable
class OffersDirect(Protocol):
    def direct(self) -> Direct | None:
        """Its bare calls, if it has them."""


def on_socket(opened: socket.socket) -> Direct:
    """The calls of a socket that keeps frames apart and can be peeked at.

    readv and writev on the descriptor: recvmsg and sendmsg build an address for each frame.
    """
    head = memoryview(bytearray(HEADER_BYTES))
    return Direct(
        put=partial(os.writev, opened.fileno()),
        look=partial(opened.recv_into, head, HEADER_BYTES, PEEK),
        take=partial(os.readv, opened.fileno()),
        head=head,
        descriptor=opened.fileno(),
    )


def direct_of(transport: Transport) -> Direct:
    """The transport's own bare calls, or the same made of its usual ones."""
    offered = transport.direct() if isinstance(transport, OffersDirect) else None
    return offered or _made_of(transport)


def _made_of(transport: Transport) -> Direct:
    head = memoryview(bytearray(HEADER_BYTES))

    def put(parts: Sequence[Buffer]) -> None:
        if not transport.send(parts):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def look() -> int:
        seen = transport.peek()
        if seen is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        head[: len(seen)] = seen
        return transport.peeked_bytes

    return Direct(put, look, transport.receive_into, head)
