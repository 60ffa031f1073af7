"""The two loops that every byte goes through: frames of one chunk, one behind the other.

`PlainBursts` has them in Python, over any transport. `accelhw.device.native` has the same two in C,
for sockets, where a compiler was there at set-up; tests hold them to the same answers. Both know
frames only: what a burst means for the link, for transfers and counters is for whoever asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

from accelhw.link.retry import SEQUENCE_MASK
from accelhw.transport.direct import Direct
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    BARE_FLAGS_BITS,
    CHECKSUM_AT,
    HEADER_BYTES,
    PLACE_AT,
    FrameFlag,
    HeaderWriter,
    covered,
    pack_checksum,
    pack_place,
    unpack_bare,
)

BURST_FRAMES_MAX = 1024
SPILL_BYTES = 1 << 16
_FLAGS_MASK = (1 << BARE_FLAGS_BITS) - 1


class Turns(ctypes.Structure):
    """How a burst goes on behind the far end's turn, if it can; native.c has the same fields."""

    _fields_ = (
        ("now_ns", ctypes.c_int64),  # the time; answer: that of the last answer, with patience
        ("loop", ctypes.c_int32),  # an epoll that has the transport's descriptor among others
        ("patience_ms", ctypes.c_int32),  # to wait for that and no other; 0: do not wait
        ("answers", ctypes.c_uint32),  # answer: plain acknowledgements heard, or sent
    )


class Leaving(ctypes.Structure):
    """A burst that is sent; native.c has the same fields. Offsets are of the transfer."""

    _fields_ = (
        ("turns", Turns),
        ("base", ctypes.c_int64),  # of the transfer in HBM
        ("offset", ctypes.c_int64),  # of the first byte
        ("stop", ctypes.c_int64),  # behind the last
        ("round_trip_ns", ctypes.c_int64),  # answer: from a full window to its acknowledgement
        ("plain", ctypes.c_uint64),  # `bare_ack` of the channel
        ("share", ctypes.c_uint32),  # bytes of a frame, 1 or more; the last may be shorter
        ("sequence", ctypes.c_uint32),  # of the first frame
        ("ack", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("crc", ctypes.c_uint32),  # of the chunk up to `offset`
        ("last_flags", ctypes.c_uint32),  # that the last frame has, too
        ("acked", ctypes.c_uint32),  # all before that arrived; answer: likewise
        ("window", ctypes.c_uint32),  # as many frames may be behind `acked`
        ("epoch", ctypes.c_uint32),
        ("credit", ctypes.c_uint32),  # that the far end granted last
        ("error", ctypes.c_int32),  # answer: why it ended before `stop`; 0: it did not
    )


class Arriving(ctypes.Structure):
    """A burst that is taken; native.c has the same fields. `offset`, `sequence`, `crc`,
    `light_left` move with each frame that is taken."""

    _fields_ = (
        ("turns", Turns),
        ("base", ctypes.c_int64),  # of the transfer in HBM
        ("offset", ctypes.c_int64),  # of the next byte
        ("end", ctypes.c_int64),  # of the chunk; -1: not a byte of it lands any more
        ("data", ctypes.c_uint64),  # `bare_data` of the channel
        ("light_left", ctypes.c_double),
        ("light_fixed", ctypes.c_double),
        ("light_per_byte", ctypes.c_double),
        ("share", ctypes.c_uint32),  # the length that is expected of a frame
        ("sequence", ctypes.c_uint32),  # expected next
        ("ack", ctypes.c_uint32),  # heard of already
        ("stream", ctypes.c_uint32),
        ("epoch", ctypes.c_uint32),
        ("crc", ctypes.c_uint32),  # of the chunk up to `offset`
        ("limit", ctypes.c_uint32),  # of frames
        ("stage", ctypes.c_uint32),  # a Stage: what is done for the next frame already
        ("frames", ctypes.c_uint32),  # answer: so many were taken, over all calls of this burst
        ("flags", ctypes.c_uint32),  # answer: all flags that they had
        ("length", ctypes.c_uint32),  # answer: payload bytes of the frame that was looked at last,
        # or, with FAILED, of the one that the system dropped, as far as it was read
        ("frame_flags", ctypes.c_uint32),  # answer: its flags
        ("frame_ack", ctypes.c_uint32),  # answer: what it acknowledges
        ("frame_bytes", ctypes.c_uint32),  # answer: all its bytes
        ("owed", ctypes.c_uint32),  # frames taken and not acknowledged; answer: likewise
        ("every", ctypes.c_uint32),  # send an answer for so many; 0: none
        ("error", ctypes.c_int32),  # answer, with FAILED: errno; else 0
    )


class Stage(IntEnum):
    """Of the frame that is next."""

    FRESH = 0
    HEARD = 1  # it is here and right, and its acknowledgement was made use of
    LIT = 2  # and light has flipped what it flips


class Outcome(IntEnum):
    """Why a burst that is taken ended. HEARD and STRUCK ask for something and a call again."""

    FULL = 0  # the limit, or the end of the chunk, or an answer found no room
    EMPTY = 1  # nothing waits
    OTHER = 2  # the next frame is not the one expected: give it back
    ACKED = 3  # the next frame acknowledges something: make use of it, set `stage` to HEARD
    STRUCK = 4  # light flips bits of the next frame: flip them in its place, set `stage` to LIT
    DAMAGED = 5  # the next frame is not what was sent; it is gone
    FAILED = 6  # the system refused: `error`


class Bursts(Protocol):
    takes_turns: bool  # makes use of Turns; else whoever calls does all that is between frames
    answer: HeaderWriter  # has the plain acknowledgement that a burst sends

    def send(self, leaving: Leaving) -> Sequence[int]:
        """Send frames until `stop`, until the window is full, until one finds no room, or
        BURST_FRAMES_MAX. The CRC of the chunk behind each frame that left. The writer's buffer has
        what all have in common. The frame that fills the window asks for its acknowledgement."""

    def take(self, arriving: Arriving) -> Outcome:
        """Take frames until something else is to be done; see Outcome."""

    def give_back(self, arriving: Arriving) -> None:
        """The frame that was looked at last is the next that the transport shows. Where it was
        no frame but the end of all, the transport shows that by itself."""

    @property
    def blind(self) -> bool:
        """Whether a frame may be gone before it was looked at."""


class PlainBursts:
    """The reference. A frame costs no object and no call of ours."""

    takes_turns = False

    def __init__(self, direct: Direct, memory: memoryview, writer: HeaderWriter) -> None:
        self._direct = direct
        self._memory = memory
        self._writer = writer
        self.answer = writer.beside()
        self._scratch = memoryview(bytearray(HEADER_BYTES))
        self._spill = memoryview(bytearray(SPILL_BYTES))  # for what is longer than was thought

    @property
    def blind(self) -> bool:
        return self._direct.put_back is not None

    def send(self, leaving: Leaving) -> list[int]:
        memory, put, writer = self._memory, self._direct.put, self._writer
        buffer, covered_part = writer.buffer, writer.covered
        base, offset, stop, share = leaving.base, leaving.offset, leaving.stop, leaving.share
        sequence, ack, stream, crc = (
            leaving.sequence, leaving.ack, leaving.stream, leaving.crc
        )  # fmt: skip
        crcs: list[int] = []
        add = crcs.append
        leaving.error = 0
        room = leaving.window - ((sequence - leaving.acked) & SEQUENCE_MASK)
        filling = base + offset + (room - 1) * share  # the frame with which the window is full
        try:
            burst_stop = min(stop, offset + min(room, BURST_FRAMES_MAX) * share)
            for start in range(base + offset, base + burst_stop, share):
                length = share
                if start == filling:
                    writer.end_run(FrameFlag.ACK_NOW, length)
                if offset + share >= stop:
                    length = stop - offset
                    writer.end_run(leaving.last_flags, length)
                view = memory[start : start + length]
                crc = crc32c(view, crc)
                pack_place(buffer, PLACE_AT, sequence, ack, stream, offset, crc)
                pack_checksum(buffer, CHECKSUM_AT, crc32c(covered_part))
                put((buffer, view))
                add(crc)
                offset += length
                sequence = (sequence + 1) & SEQUENCE_MASK
        except OSError as error:
            leaving.error = error.errno or -1
        return crcs

    def take(self, arriving: Arriving) -> Outcome:
        direct = self._direct
        look, take, head = direct.look, direct.take, direct.head
        blind, head_covered = direct.put_back is not None, head[covered]
        memory, scratch, spill = self._memory, self._scratch, self._spill
        base, end, share, stream = arriving.base, arriving.end, arriving.share, arriving.stream
        data, epoch, ack, limit = arriving.data, arriving.epoch, arriving.ack, arriving.limit
        left, fixed, per_byte = (
            arriving.light_left, arriving.light_fixed, arriving.light_per_byte
        )  # fmt: skip
        offset, expected, crc = arriving.offset, arriving.sequence, arriving.crc
        frames, flags, stage = arriving.frames, arriving.flags, arriving.stage
        owed = arriving.owed
        length, frame_bytes = arriving.length, arriving.frame_bytes
        frame_ack, word, payload_crc = arriving.frame_ack, arriving.frame_flags, 0
        outcome, arriving.error = Outcome.FULL, 0
        if stage:
            *_, payload_crc, _ = unpack_bare(head)
            place = memory[base + offset : base + offset + length]
        try:
            while frames < limit and offset < end:
                if not stage:
                    if not blind:
                        frame_bytes = look()
                    else:
                        # Nearly always the next one is the next of these, as long as the last.
                        # What stands at `place` is worth nothing until that has come.
                        if offset + share > end:
                            share = end - offset
                        place = memory[base + offset : base + offset + share]
                        frame_bytes = take((head, place, spill))
                    (
                        word, length, _, frame_epoch, sequence, frame_ack, frame_stream,
                        frame_offset, payload_crc, header_crc,
                    ) = unpack_bare(head)  # fmt: skip
                    if (
                        sequence != expected
                        or frame_offset != offset
                        or frame_stream != stream
                        or frame_epoch != epoch
                        or word >> BARE_FLAGS_BITS != data
                        or frame_bytes != HEADER_BYTES + length
                        or offset + length > end
                        or not length
                        or (blind and length != share)
                        or crc32c(head_covered) != header_crc
                    ):
                        outcome = Outcome.OTHER
                        break
                    if frame_ack != ack:
                        outcome = Outcome.ACKED
                        break
                if stage < Stage.LIT:
                    if not blind:
                        place = memory[base + offset : base + offset + length]
                        take((scratch, place))
                    left_with = left - fixed - length * per_byte
                    if left_with <= 0.0:
                        outcome = Outcome.STRUCK
                        break
                    left = left_with
                stage = 0
                crc_with = crc32c(place, crc)
                if crc_with != payload_crc:
                    outcome = Outcome.DAMAGED
                    break
                crc = crc_with
                offset += length
                expected = (expected + 1) & SEQUENCE_MASK
                frames += 1
                owed += 1
                flags |= word
        except BlockingIOError:
            outcome = Outcome.EMPTY
        except OSError as error:
            outcome = Outcome.FAILED
            arriving.error = error.errno or -1
            _, length, *_ = unpack_bare(head)
        arriving.offset, arriving.sequence, arriving.crc = offset, expected, crc
        arriving.frames, arriving.flags, arriving.share = frames, flags & _FLAGS_MASK, share
        arriving.light_left, arriving.stage, arriving.owed = left, stage, owed
        arriving.length, arriving.frame_bytes, arriving.frame_ack = length, frame_bytes, frame_ack
        arriving.frame_flags = word & _FLAGS_MASK
        return outcome

    def give_back(self, arriving: Arriving) -> None:
        put_back = self._direct.put_back
        if put_back is not None and arriving.frame_bytes:
            start = arriving.base + arriving.offset
            place = self._memory[start : start + arriving.share]
            put_back(joined(arriving.frame_bytes, self._direct.head, place, self._spill))


def joined(frame_bytes: int, head: memoryview, place: memoryview, spill: memoryview) -> bytearray:
    """A frame of that length that was taken into head, place and what spilled over."""
    frame = bytearray(head[:frame_bytes])
    frame += place[: max(0, frame_bytes - HEADER_BYTES)]
    frame += spill[: frame_bytes - len(frame)]
    return frame
