"""The frame: one Ethernet header and one fixed header of ours for every type, then the payload.

All fields are big-endian and naturally aligned in the frame; the payload starts at byte 56. The
layout is told field by field in docs/wire.md.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from accelhw.wire.checksum import crc32c

if TYPE_CHECKING:
    from typing_extensions import Buffer

ETHERTYPE = 0x88B5  # IEEE 802 local experimental 1
MAGIC = 0xACCE
VERSION = 1
ETHERNET_BYTES = 14
HEADER_BYTES = 56  # with the Ethernet header
BODY_HEADER_BYTES = HEADER_BYTES - ETHERNET_BYTES
ETHERNET_MIN_BYTES = 60  # a shorter frame may arrive padded to this
MIN_MTU = 1280  # the longest message fits
MAX_MTU = 65535
NO_LANE = 0xFF
PORTS_REMEMBERED = 1 << 10
CHANNELS_MAX = 4  # virtual channels beside channel 0, which every link has
CHANNEL_SHIFT = 4  # the upper half of the flags is the virtual channel
# A group address, so that a bridge between two TAP devices floods it; both are locally assigned.
DESTINATION = bytes.fromhex("03acce1d0000")
DEFAULT_SOURCE = bytes.fromhex("02acce1d0000")

_LAYOUT = struct.Struct("!6s6sHHBBBBHHIIIIQII")
_FIELDS = struct.Struct("!HBBBBHHIIIIQI")  # all that the header checksum covers
_CHECKSUM = struct.Struct("!I")
_END = struct.Struct("!BH")  # flags and length
FLAGS_AT = 19
_COVERED = slice(ETHERNET_BYTES, HEADER_BYTES - _CHECKSUM.size)
_LANE_AT = 18
CHECKSUM_AT = HEADER_BYTES - _CHECKSUM.size
PLACE_AT = 28  # of sequence, ack, stream, offset and payload checksum
assert _LAYOUT.size == HEADER_BYTES


# The same header read without names, for the receive path's usual case: one word of EtherType,
# magic, version, type, lane and flags, then length, credit, epoch, sequence, ack, stream, offset,
# payload checksum, header checksum. `covered` is what the last is over.
unpack_bare = struct.Struct("!12xQHHIIIIQII").unpack_from
covered = _COVERED
BARE_FLAGS_BITS = CHANNEL_SHIFT  # of the word, without the channel


class FrameType(IntEnum):
    CARRIER = 1  # light: power, wavelength and marker per lane; unsequenced
    TRAINING = 2  # one physical lane; unsequenced
    ACK = 3  # acknowledges alone; unsequenced
    DATA = 4  # bytes of a transfer; sequenced
    MESSAGE = 5  # a word between transfer engines; sequenced


_DATA = int(FrameType.DATA)
# What differs from frame to frame in a run of DATA, for whoever packs it in a loop of their own.
pack_checksum = _CHECKSUM.pack_into
pack_place = struct.Struct("!IIIQI").pack_into


def bare_data(channel: int) -> int:
    """The word of every DATA frame of a channel, without its flags."""
    return _bare(FrameType.DATA, channel)


def bare_ack(channel: int) -> int:
    """The word of an ACK frame of a channel that only acknowledges: none of the flags is set."""
    return _bare(FrameType.ACK, channel) << BARE_FLAGS_BITS


def _bare(type_: FrameType, channel: int) -> int:
    word = (ETHERTYPE << 16 | MAGIC) << 16 | VERSION << 8 | type_
    return word << 12 | NO_LANE << 4 | channel


class FrameFlag(IntFlag):
    """The lower half of the flags."""

    NACK = 1  # on ACK: `ack` is missing, send again from there
    ACK_NOW = 2  # on DATA and MESSAGE: nothing follows soon, do not hold the acknowledgement back
    DROPPED = 4  # beside `ack`: a DATA frame shortly before it was taken, but stored nowhere


class MalformedFrame(ValueError):
    """Ours by its EtherType, but not a frame that an end of a link sends."""


class ForeignFrame(MalformedFrame):
    """Another EtherType: not for us."""


class ChecksumDiffers(MalformedFrame):
    """Header or payload are not what was sent."""


class Header(NamedTuple):
    """A frame's header without the Ethernet part. A named tuple, because one is built per frame."""

    type: int
    lane: int
    flags: int
    length: int  # payload bytes
    credit: int  # frames that the sender's receive buffer holds
    epoch: int
    sequence: int
    ack: int  # next sequence expected from the other end
    stream: int
    offset: int  # DATA: place of the payload in its transfer, bytes
    payload_crc: int

    @property
    def channel(self) -> int:
        """Virtual channel: sequence, acknowledgement, credit and epoch are of it."""
        return self.flags >> CHANNEL_SHIFT

    def encode(self, payload: Buffer = b"", source: bytes = DEFAULT_SOURCE) -> bytes:
        """A whole frame; `length` and `payload_crc` are taken from the payload."""
        writer = HeaderWriter(source)
        body = bytes(payload)
        header = writer.write(
            self.type, self.lane, self.flags, len(body), self.credit, self.epoch, self.sequence,
            self.ack, self.stream, self.offset, crc32c(body),
        )  # fmt: skip
        return bytes(header) + body


class HeaderWriter:
    """Packs headers into one buffer, again and again, for a port that sends many."""

    __slots__ = ("_channel", "buffer", "covered")

    def __init__(self, source: bytes = DEFAULT_SOURCE, channel: int = 0) -> None:
        self._channel = channel << CHANNEL_SHIFT  # beside the flags of each frame
        self.buffer = bytearray(HEADER_BYTES)
        self.buffer[:ETHERNET_BYTES] = DESTINATION + source + ETHERTYPE.to_bytes(2, "big")
        self.covered = memoryview(self.buffer)[_COVERED]

    def beside(self) -> HeaderWriter:
        """Another buffer for frames of the same port and channel."""
        source = bytes(self.buffer[len(DESTINATION) : 2 * len(DESTINATION)])
        return HeaderWriter(source, self._channel >> CHANNEL_SHIFT)

    def begin_run(self, flags: int, length: int, credit: int, epoch: int) -> None:
        """Set what a run of DATA frames has in common. The rest is packed by the sender, frame by
        frame, straight into `buffer`."""
        _FIELDS.pack_into(
            self.buffer, ETHERNET_BYTES, MAGIC, VERSION, _DATA, NO_LANE, flags | self._channel,
            length, credit, epoch, 0, 0, 0, 0, 0,
        )  # fmt: skip

    def end_run(self, flags: int, length: int) -> None:
        """The run's last frame, which is told apart by what it says beside."""
        _END.pack_into(self.buffer, FLAGS_AT, self.buffer[FLAGS_AT] | flags, length)

    def write(
        self, type_: int, lane: int, flags: int, length: int, credit: int, epoch: int,
        sequence: int, ack: int, stream: int, offset: int, payload_crc: int,
    ) -> bytearray:  # fmt: skip
        """The header, valid until the next call. Raises struct.error on a field out of range."""
        buffer = self.buffer
        _FIELDS.pack_into(
            buffer, ETHERNET_BYTES, MAGIC, VERSION, type_, lane, flags | self._channel, length,
            credit, epoch, sequence, ack, stream, offset, payload_crc,
        )  # fmt: skip
        pack_checksum(buffer, CHECKSUM_AT, crc32c(self.covered))
        return buffer


def decode_header(view: Buffer, frame_bytes: int) -> Header:
    """The header of a frame of which `view` holds the first bytes and `frame_bytes` is the length.

    Raises ForeignFrame, ChecksumDiffers (the header's own), or MalformedFrame: wrong magic, version
    or type, cut short, or longer or shorter than the header says (Ethernet's padding is allowed).
    """
    data = memoryview(view)
    if frame_bytes < ETHERNET_BYTES or len(data) < ETHERNET_BYTES:
        raise MalformedFrame(f"only {frame_bytes} bytes")
    if data[12] != ETHERTYPE >> 8 or data[13] != ETHERTYPE & 0xFF:
        raise ForeignFrame(f"EtherType 0x{data[12]:02x}{data[13]:02x}")
    if frame_bytes < HEADER_BYTES or len(data) < HEADER_BYTES:
        raise MalformedFrame(f"only {frame_bytes} bytes")
    (
        _, _, _, magic, version, type_, lane, flags, length, credit, epoch, sequence, ack, stream,
        offset, payload_crc, header_crc,
    ) = _LAYOUT.unpack_from(data)  # fmt: skip
    if magic != MAGIC or version != VERSION:
        raise MalformedFrame(f"magic 0x{magic:04x}, version {version}")
    if crc32c(data[_COVERED]) != header_crc:
        raise ChecksumDiffers("header checksum differs")
    if not FrameType.CARRIER <= type_ <= FrameType.MESSAGE:
        raise MalformedFrame(f"type {type_}")
    expected = HEADER_BYTES + length
    if frame_bytes != expected and frame_bytes != max(expected, ETHERNET_MIN_BYTES):
        raise MalformedFrame(f"{frame_bytes} bytes where the header says {expected}")
    return Header(
        type_, lane, flags, length, credit, epoch, sequence, ack, stream, offset, payload_crc
    )


def decode_frame(frame: Buffer) -> tuple[Header, memoryview]:
    """Header and payload of a whole frame, both checked. Raises as decode_header."""
    data = memoryview(frame)
    header = decode_header(data, len(data))
    payload = data[HEADER_BYTES : HEADER_BYTES + header.length]
    check_payload(header, payload)
    return header, payload


def check_payload(header: Header, payload: Buffer) -> None:
    """Raises ChecksumDiffers when the payload is not what was sent."""
    if crc32c(payload) != header.payload_crc:
        raise ChecksumDiffers("payload checksum differs")


def encode_frame(
    type_: FrameType,
    payload: Buffer = b"",
    *,
    lane: int = NO_LANE,
    epoch: int = 0,
    source: bytes = DEFAULT_SOURCE,
) -> bytes:
    """A whole unsequenced frame, for light and training."""
    body = bytes(payload)
    header = _writer(source).write(
        type_, lane, 0, len(body), 0, epoch, 0, 0, 0, 0, crc32c(body)
    )  # fmt: skip
    return bytes(header) + body


@lru_cache(PORTS_REMEMBERED)
def _writer(source: bytes) -> HeaderWriter:
    """One for each port; its buffer is copied before the next one writes."""
    return HeaderWriter(source)


def rewrite_lane(frame: bytearray | memoryview, lane: int) -> None:
    """Change the lane of a frame in place and mend its header checksum, as a crossed cable does."""
    frame[_LANE_AT] = lane
    _CHECKSUM.pack_into(frame, CHECKSUM_AT, crc32c(memoryview(frame)[_COVERED]))


def rewrite_payload_crc(frame: bytearray | memoryview, payload_crc: int) -> None:
    """Set the payload checksum in place and mend the header's, for a payload changed on purpose."""
    _CHECKSUM.pack_into(frame, CHECKSUM_AT - _CHECKSUM.size, payload_crc)
    _CHECKSUM.pack_into(frame, CHECKSUM_AT, crc32c(memoryview(frame)[_COVERED]))


def channel_epoch(epoch: int, channel: int) -> int:
    """The epoch that a virtual channel's frames carry in a link's epoch.

    Each channel counts from 0, so a frame must not be taken for one of another channel.
    """
    return (epoch + channel * 0x9E3779B9) & 0xFFFFFFFF  # 2**32 over the golden ratio


def source_address(port: str) -> bytes:
    """A locally assigned unicast address for a port, the same at each start."""
    return b"\x02\xac" + crc32c(port.encode()).to_bytes(4, "big")


def payload_limit(mtu: int) -> int:
    """Largest payload in a frame of this MTU, a multiple of 8 bytes."""
    return (min(mtu, MAX_MTU) - BODY_HEADER_BYTES) & ~7
