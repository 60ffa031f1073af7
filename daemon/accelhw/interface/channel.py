"""Messages over a Unix stream socket: a 4-byte big-endian length, then a MessagePack body.

`Decoder` and `pack` are the codec. `Channel` runs it under asyncio, `LoopChannel` under a loop that
polls by itself. Descriptors travel with one message only, the answer to a Hello.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from accelhw.interface import messages

HEADER = struct.Struct("!I")  # bytes of the body
MESSAGE_BYTES_MAX = 16 << 20
FDS_MAX = 253  # SCM_MAX_FD of Linux: descriptors that one message may carry
READ_BYTES = 1 << 16

M = TypeVar("M")
Decode = Callable[[bytes | bytearray | memoryview], M]


class ChannelClosed(Exception):
    """The other side is gone."""


class MalformedMessage(Exception):
    """Bytes that are no message of ours; the connection cannot go on."""


def pack(message: msgspec.Struct) -> bytes:
    """A message as it goes over the socket. Raises ValueError if it is too large to be read."""
    body = messages.encode(message)
    if len(body) > MESSAGE_BYTES_MAX:
        raise ValueError(
            f"{type(message).__name__} takes {len(body)} bytes; at most {MESSAGE_BYTES_MAX} go"
        )
    return HEADER.pack(len(body)) + body


def _checked_length(header: bytes | bytearray | memoryview) -> int:
    length: int = HEADER.unpack_from(header)[0]
    if length > MESSAGE_BYTES_MAX:
        raise MalformedMessage(f"a message of {length} bytes; at most {MESSAGE_BYTES_MAX} go")
    return length


def _decoded(decode: Decode[M], body: bytes | bytearray | memoryview) -> M:
    try:
        return decode(body)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(str(error)) from error


class Decoder(Generic[M]):
    """Bytes in, in any pieces; whole messages out."""

    def __init__(self, decode: Decode[M]) -> None:
        self._decode = decode
        self._buffer = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> list[M]:
        """The messages that `data` completes. Raises MalformedMessage."""
        self._buffer += data
        found: list[M] = []
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            end = start + HEADER.size + _checked_length(self._buffer[start : start + HEADER.size])
            if end > len(self._buffer):
                break
            found.append(_decoded(self._decode, self._buffer[start + HEADER.size : end]))
            start = end
        del self._buffer[:start]
        return found

    @property
    def pending_bytes(self) -> int:
        """Bytes of a message that has not come whole yet."""
        return len(self._buffer)


class LoopChannel(Generic[M]):
    """For a loop that polls: nothing here blocks. Poll `fileno()` for reading, and for writing
    while `wants_write`."""

    def __init__(self, sock: socket.socket, decode: Decode[M]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._decoder = Decoder(decode)
        self._unsent = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._unsent)

    @property
    def unsent_bytes(self) -> int:
        """How far the other side lags; callers leave out what may be left out when it is much."""
        return len(self._unsent)

    def send(self, message: msgspec.Struct) -> None:
        """Send now, or keep what the socket does not take. Raises ChannelClosed."""
        self._unsent += pack(message)
        self.flush()

    def keep(self, message: msgspec.Struct) -> None:
        """To be sent with the next `send` or `flush`."""
        self._unsent += pack(message)

    def flush(self) -> None:
        """Call when the socket can be written. Raises ChannelClosed."""
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                return
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            del self._unsent[:sent]

    def receive(self) -> list[M]:
        """What has come, perhaps nothing. Raises ChannelClosed, MalformedMessage."""
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not data:
            raise ChannelClosed("end of stream")
        return self._decoder.feed(data)

    def close(self) -> None:
        self._socket.close()


class Channel(Generic[M]):
    """Under asyncio. Make it with `Channel.over(socket, decode)` after the handshake."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decode: Decode[M]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decode = decode

    @classmethod
    async def over(cls, sock: socket.socket, decode: Decode[M]) -> Channel[M]:
        """Takes the socket over."""
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=READ_BYTES)
        return cls(reader, writer, decode)

    def post(self, message: msgspec.Struct) -> None:
        """Hand a message to the socket's buffer, in order, without waiting.

        A peer that is gone is noticed by the reader, not here.
        """
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def drain(self) -> None:
        """Wait until the peer has taken enough. Raises ChannelClosed."""
        try:
            await self._writer.drain()
        except (ConnectionError, OSError) as error:
            raise ChannelClosed(str(error)) from error

    async def send(self, message: msgspec.Struct) -> None:
        """Raises ChannelClosed."""
        self.post(message)
        await self.drain()

    @property
    def unsent_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    async def receive(self) -> M:
        """The next message. Raises ChannelClosed, MalformedMessage."""
        try:
            header = await self._reader.readexactly(HEADER.size)
            body = await self._reader.readexactly(_checked_length(header))
        except asyncio.IncompleteReadError as error:
            raise ChannelClosed("end of stream") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        return _decoded(self._decode, body)

    def abort(self) -> None:
        """Close at once; what was not sent is lost."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close after what was posted went out."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionError, OSError):
            return  # It was gone already, which is what we want.


# ---- the handshake: the socket is used bare, so that no byte is read ahead -----------------------


async def send_bare(sock: socket.socket, message: msgspec.Struct, fds: Sequence[int] = ()) -> None:
    """Send one message, with descriptors. The socket must not block. Raises ChannelClosed."""
    if len(fds) > FDS_MAX:
        raise ValueError(f"{len(fds)} descriptors; at most {FDS_MAX} go with one message")
    data = memoryview(pack(message))
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
    while data:
        try:
            sent = sock.sendmsg([data], ancillary)
        except BlockingIOError:
            await _ready(sock, write=True)
            continue
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        ancillary = []  # They went with the first byte.
        data = data[sent:]


async def receive_bare(sock: socket.socket, decode: Decode[M]) -> tuple[M, tuple[int, ...]]:
    """Receive one message and its descriptors, and not a byte more.

    The descriptors are the caller's, close-on-exec. Raises ChannelClosed, MalformedMessage; then
    nothing is left open.
    """
    fds: list[int] = []
    try:
        header = await _receive_exactly(sock, HEADER.size, fds)
        body = await _receive_exactly(sock, _checked_length(header), fds)
        return _decoded(decode, body), tuple(fds)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise


async def _receive_exactly(sock: socket.socket, size: int, fds: list[int]) -> bytearray:
    data = bytearray()
    space = socket.CMSG_SPACE(FDS_MAX * array("i").itemsize)
    while len(data) < size:
        try:
            piece, ancillary, flags, _ = sock.recvmsg(
                min(size - len(data), READ_BYTES), space, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            await _ready(sock, write=False)
            continue
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                whole = len(content) - len(content) % array("i").itemsize
                fds.extend(array("i", content[:whole]))
        if flags & socket.MSG_CTRUNC:
            raise MalformedMessage("descriptors were lost: too many open files here")
        if not piece:
            raise ChannelClosed("end of stream")
        data += piece
    return data


async def _ready(sock: socket.socket, *, write: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    )
    add(sock.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock.fileno())
