"""What transfer engines say to each other, in the payload of MESSAGE frames.

A link delivers messages in order and once within an epoch; when it dies they are lost, and the
engines say again what their state asks for. So each may come twice, and none is needed twice.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from accelhw.wire.frame import MalformedFrame

MAX_ID_BYTES = 64
MAX_DETAIL_BYTES = 160
MAX_CHUNKS = 8192  # so that a bitmap fits in the smallest MTU


class MessageType(IntEnum):
    OPEN = 1
    ACCEPT = 2
    END = 3
    FINISH = 4
    DONE = 5
    PULL = 6
    UNKNOWN = 7
    WIDEN = 8


@dataclass(frozen=True, slots=True)
class Open:
    """The sending engine names a transfer and the stream that its DATA frames carry on this link.

    With `join` it adds a link to a transfer that was accepted; this is not answered.
    """

    type: ClassVar[MessageType] = MessageType.OPEN
    transfer_id: str
    kind: int  # TransferKind: WRITE or READ
    join: bool
    stream: int
    region_id: int  # WRITE: where it goes; READ: the asking engine knows
    key: int
    offset: int  # in the region, bytes
    length: int
    chunk_bytes: int  # a power of two
    deadline_ms: int  # how long to keep the record without a link


@dataclass(frozen=True, slots=True)
class Accept:
    """Answer to Open, and to a Finish that came too early: which chunks are complete here."""

    type: ClassVar[MessageType] = MessageType.ACCEPT
    transfer_id: str
    complete: bytes  # a bit per chunk, lowest first; shorter is padded with zeros


@dataclass(frozen=True, slots=True)
class End:
    """No, or no longer: a TransferError tells why. Sent by either side; not answered."""

    type: ClassVar[MessageType] = MessageType.END
    transfer_id: str
    error: int
    detail: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Every chunk left; `crc` is of all bytes."""

    type: ClassVar[MessageType] = MessageType.FINISH
    transfer_id: str
    crc: int


@dataclass(frozen=True, slots=True)
class Done:
    """Every chunk is in HBM; `crc` is of what landed, `error` NONE or CHECKSUM_DIFFERS."""

    type: ClassVar[MessageType] = MessageType.DONE
    transfer_id: str
    error: int
    crc: int


@dataclass(frozen=True, slots=True)
class Pull:
    """READ: asks the far engine to send from its region; it answers with Open or End."""

    type: ClassVar[MessageType] = MessageType.PULL
    transfer_id: str
    region_id: int
    key: int
    offset: int
    length: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A join or a Finish for a transfer without a record here: open it anew."""

    type: ClassVar[MessageType] = MessageType.UNKNOWN
    transfer_id: str


@dataclass(frozen=True, slots=True)
class Widen:
    """Of the link, not of a transfer: so many virtual channels are open here beside channel 0.

    Whoever has much to send asks; the answer says how many both ends then use, 0 for none. Asked
    twice, the answer is the same.
    """

    type: ClassVar[MessageType] = MessageType.WIDEN
    transfer_id: ClassVar[str] = ""
    channels: int
    answer: bool


TransferMessage = Open | Accept | End | Finish | Done | Pull | Unknown | Widen

_OPEN = struct.Struct("!B?IIIQQII")
_END = struct.Struct("!B")
_FINISH = struct.Struct("!I")
_DONE = struct.Struct("!BI")
_PULL = struct.Struct("!IIQQI")
_WIDEN = struct.Struct("!B?")


def _fixed(message: TransferMessage) -> bytes:
    match message:
        case Open():
            return _OPEN.pack(
                message.kind, message.join, message.stream, message.region_id, message.key,
                message.offset, message.length, message.chunk_bytes, message.deadline_ms,
            )  # fmt: skip
        case Accept():
            return message.complete
        case End():
            detail = message.detail.encode()[:MAX_DETAIL_BYTES].decode(errors="ignore").encode()
            return _END.pack(message.error) + detail
        case Finish():
            return _FINISH.pack(message.crc)
        case Done():
            return _DONE.pack(message.error, message.crc)
        case Pull():
            return _PULL.pack(
                message.region_id, message.key, message.offset, message.length,
                message.deadline_ms,
            )  # fmt: skip
        case Unknown():
            return b""
        case Widen():
            return _WIDEN.pack(message.channels, message.answer)


def encode_message(message: TransferMessage) -> bytes:
    """The payload: type, length of the id, the id, then the fields. Raises ValueError."""
    name = message.transfer_id.encode()
    if not isinstance(message, Widen) and not 1 <= len(name) <= MAX_ID_BYTES:
        raise ValueError(f"a transfer id has 1 to {MAX_ID_BYTES} bytes, not {len(name)}")
    return bytes((message.type, len(name))) + name + _fixed(message)


def decode_message(payload: bytes | memoryview) -> TransferMessage:
    """Raises MalformedFrame on whatever encode_message does not make."""
    data = bytes(payload)
    try:
        kind, name_bytes = data[0], data[1]
        name, rest = data[2 : 2 + name_bytes].decode(), data[2 + name_bytes :]
        if kind == MessageType.WIDEN and not name_bytes:
            return Widen(*_WIDEN.unpack(rest))
        if not 1 <= name_bytes <= MAX_ID_BYTES or len(data) < 2 + name_bytes:
            raise MalformedFrame("message without an id")
        match kind:
            case MessageType.OPEN:
                opened = Open(name, *_OPEN.unpack(rest))
                chunk = opened.chunk_bytes
                if chunk == 0 or chunk & (chunk - 1) or opened.length == 0:
                    raise MalformedFrame(f"{chunk} bytes in a chunk, {opened.length} in all")
                if -(-opened.length // chunk) > MAX_CHUNKS:
                    raise MalformedFrame(f"more than {MAX_CHUNKS} chunks")
                return opened
            case MessageType.ACCEPT:
                if len(rest) > MAX_CHUNKS // 8:
                    raise MalformedFrame(f"a bitmap of {len(rest)} bytes")
                return Accept(name, rest)
            case MessageType.END:
                return End(name, rest[0], rest[1:].decode())
            case MessageType.FINISH:
                return Finish(name, *_FINISH.unpack(rest))
            case MessageType.DONE:
                return Done(name, *_DONE.unpack(rest))
            case MessageType.PULL:
                return Pull(name, *_PULL.unpack(rest))
            case MessageType.UNKNOWN if not rest:
                return Unknown(name)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"message: {error}") from None
    raise MalformedFrame(f"message type {kind}")
