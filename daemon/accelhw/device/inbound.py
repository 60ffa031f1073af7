"""The receiving half of a port: frames that land in HBM, and messages, each checked first.

The kernel writes a payload where it belongs, the checksum reads it there; nothing else touches it.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from accelhw.device.answers import Answers
from accelhw.device.outbound import Outbound
from accelhw.device.sink import Landing, Sink
from accelhw.interface.hugepages import EXTENT_BYTES
from accelhw.link.retry import SEQUENCE_MASK
from accelhw.transport.base import Transport
from accelhw.transport.direct import Direct, no_room
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    BARE_FLAGS_BITS,
    HEADER_BYTES,
    FrameFlag,
    Header,
    MalformedFrame,
    bare_data,
    covered,
    unpack_bare,
)
from accelhw.wire.message import Widen, decode_message

if TYPE_CHECKING:
    from accelhw.device.dataport import DataPort, Engine

_ACK_NOW, _DROPPED = int(FrameFlag.ACK_NOW), int(FrameFlag.DROPPED)
_SPILL = memoryview(bytearray(1 << 16))  # for what is longer than was thought
_UNBACKED = (errno.EFAULT, errno.ENOMEM)  # HBM has no page there, and the machine gives none


class Light(Protocol):
    """What the optics do to payloads. `accelhw.optics.strikes.Strikes` is one.

    Each payload takes `fixed` and, for each byte, `per_byte` from `left`. While that stays above 0
    nothing is flipped, and whoever takes frames may count down by himself; else `strike` tells.
    """

    left: float
    fixed: float
    per_byte: float

    def strike(self, nbytes: int) -> Sequence[int]:
        """The bits that are flipped in a payload of so many bytes."""


class Asked:
    """Light that is asked for each payload."""

    def __init__(self, strike: Callable[[int], Sequence[int]]) -> None:
        self.left = self.fixed = self.per_byte = 0.0
        self.strike = strike


class Clear:
    """Light that flips nothing."""

    def __init__(self) -> None:
        self.left, self.fixed, self.per_byte = math.inf, 0.0, 0.0

    def strike(self, nbytes: int) -> Sequence[int]:
        return ()


def _joined(frame_bytes: int, head: memoryview, place: memoryview) -> bytearray:
    """A frame of that length that was taken into head, place and what spilled over."""
    frame = bytearray(head[:frame_bytes])
    frame += place[: max(0, frame_bytes - HEADER_BYTES)]
    frame += _SPILL[: frame_bytes - len(frame)]
    return frame


class Inbound:
    """`light` is asked for each payload that lands: which bits the optics flipped in it."""

    __slots__ = (
        "_answers",
        "_data_word",
        "_direct",
        "_engine",
        "_head",
        "_landing",
        "_light",
        "_outbound",
        "_port",
        "_transport",
        "_view",
        "streams",
    )

    def __init__(
        self, port: DataPort, transport: Transport, direct: Direct, engine: Engine,
        answers: Answers, outbound: Outbound, light: Light, streams: dict[int, Sink],
    ) -> None:  # fmt: skip
        self.streams = streams  # what the far end's stream numbers mean here
        self._port = port
        self._transport = transport
        self._direct = direct
        self._engine = engine
        self._answers = answers
        self._outbound = outbound
        self._light = light
        self._data_word = bare_data(port.channel)
        self._view = engine.hbm.view
        self._head = memoryview(bytearray(HEADER_BYTES))
        self._landing: Landing | None = None  # the chunk that comes in now

    def stop(self) -> None:
        self._landing = None
        self.streams.clear()

    # ---- the usual: the next frames of a chunk ----

    def run(self, left: int, now_ns: int) -> int:
        """Take frames of the chunk that comes in, one behind the other, for as long as they do.

        Returns what is left of the limit: 0 when nothing waits.
        """
        answers, landing = self._answers, self._landing
        while left and landing is not None:
            limit = min(left, answers.frames_until_due)
            if landing.backed <= landing.next:
                self._back(landing)
            taken, empty = self._land_frames(landing, limit, now_ns)
            left -= taken
            if answers.many and not self._port.held:
                self._outbound.acknowledge()
            if empty:
                return 0
            if taken < limit or self._landing is not landing:
                break
        return left

    def _land_frames(self, landing: Landing, limit: int, now_ns: int) -> tuple[int, bool]:
        """Up to `limit` frames of it. Returns how many were taken, and whether no more wait.

        This is the hot path of receiving: no header object and no call of ours per frame, and what
        a frame changes is written down once behind them all. A frame of another kind stays.
        """
        direct, light, retry = self._direct, self._light, self._outbound.retry
        look, take, put_back, head, scratch = (
            direct.look, direct.take, direct.put_back, direct.head, self._head
        )  # fmt: skip
        head_covered = head[covered]
        memory, epoch, base = self._view, self._port.epoch, landing.base
        data, heard_ack = self._data_word, retry.base
        end, stream, share = landing.end, landing.stream, landing.share
        offset, crc, expected = landing.next, landing.crc, self._answers.receiver.expected
        first, frames, length, answer_now = offset, 0, 0, 0
        empty = damaged = False
        fault: OSError | None = None
        try:
            while frames < limit and offset < end:
                start = base + offset
                if put_back is None:
                    frame_bytes = look()
                else:
                    # Nearly always the next one is the next of these, as long as the last. What
                    # stands at `place` is worth nothing until that has come.
                    if offset + share > end:
                        share = end - offset
                    place = memory[start : start + share]
                    frame_bytes = take((head, place, _SPILL))
                (
                    word, length, _, frame_epoch, sequence, ack, frame_stream, frame_offset,
                    payload_crc, header_crc,
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
                    or (put_back is not None and length != share)
                    or crc32c(head_covered) != header_crc
                ):
                    if put_back is not None:
                        put_back(_joined(frame_bytes, head, place))
                    break
                if ack != heard_ack:
                    self._outbound.acknowledged(ack, not word & _DROPPED, now_ns)
                    heard_ack = retry.base
                    if landing.end != end:  # what it acknowledged ended this transfer
                        if put_back is not None:
                            put_back(_joined(frame_bytes, head, place))
                        break
                if put_back is None:
                    place = memory[start : start + length]
                    take((scratch, place))
                left = light.left - light.fixed - length * light.per_byte
                if left > 0.0:
                    light.left = left
                else:
                    for bit in light.strike(length):
                        place[bit >> 3] ^= 1 << (bit & 7)
                crc_with = crc32c(place, crc)
                if crc_with != payload_crc:
                    damaged = True
                    break
                crc = crc_with
                offset += length
                expected = (expected + 1) & SEQUENCE_MASK
                frames += 1
                answer_now |= word
        except BlockingIOError:
            empty = True
        except OSError as error:
            fault = error
            if put_back is not None and not self._was_next(head, landing, expected, offset):
                fault = None  # Another frame fell into the hole: it is lost as any may be.
        landing.next, landing.crc = offset, crc
        self._answers.receiver.accept_run(frames, now_ns)
        if answer_now & _ACK_NOW:
            self._answers.now = True
        counters = self._port.counters
        counters.rx_payload_bytes += offset - first
        taken, arrived_bytes = frames, offset - first
        if damaged or (fault is not None and fault.errno in _UNBACKED):
            taken, arrived_bytes = taken + 1, arrived_bytes + length
        counters.rx_frames += taken
        counters.rx_bytes += arrived_bytes + taken * HEADER_BYTES
        if damaged:
            counters.crc_errors += 1
            self._answers.refuse()
        elif fault is not None:
            self._on_fault(landing, fault, now_ns)
        elif offset == end:
            self._landing = None
            self._engine.landed_chunk(landing, now_ns)
        return taken, empty

    def _was_next(self, head: memoryview, landing: Landing, expected: int, offset: int) -> bool:
        """Of a frame that was gone before it was looked at."""
        word, _, _, epoch, sequence, _, stream, at, _, header_crc = unpack_bare(head)
        return (sequence, at, stream, epoch, word >> BARE_FLAGS_BITS) == (
            expected, offset, landing.stream, self._port.epoch, self._data_word
        ) and crc32c(head[covered]) == header_crc  # fmt: skip

    # ---- any other expected frame ----

    def land(self, header: Header, now_ns: int) -> bool:
        """Put an expected DATA frame in its place; False if it came damaged."""
        stream, offset, length = header.stream, header.offset, header.length
        landing = self._landing
        if (
            landing is None
            or landing.stream != stream
            or landing.next != offset
            or offset + length > landing.end
            or not length
        ):
            sink = self.streams.get(stream)
            landing = self._landing = (
                sink.landing(self._port, stream, offset, length) if sink is not None else None
            )
            if self._port.epoch != header.epoch or not self._port.up:
                self._transport.discard()  # The link went down while somebody else was asked.
                return True
            if landing is None:
                # Nobody waits for it (cancelled, or here already): take it from the link only.
                self._transport.discard()
                if sink is not None and sink.has(offset):
                    self._answers.receiver.accept(now_ns)
                else:
                    self._answers.drop(now_ns)
                return True
        return self._store(landing, offset, length, header.payload_crc, now_ns)

    def _back(self, landing: Landing) -> None:
        """Pages for what comes next of it."""
        hbm, base, first = self._engine.hbm, landing.base, landing.base + landing.next
        landing.backed = first // EXTENT_BYTES * EXTENT_BYTES + EXTENT_BYTES - base
        for ask in (hbm.use, hbm.prepare):
            ask(first, first + 1, base, base + landing.sink.total_bytes)

    def _store(
        self, landing: Landing, offset: int, length: int, payload_crc: int, now_ns: int
    ) -> bool:
        """Land the peeked frame, of which all but the payload is known to be right."""
        if landing.backed <= offset:
            self._back(landing)
        start = landing.base + offset
        place = self._view[start : start + length]
        try:
            self._transport.receive_into((self._head, place))
        except OSError as error:
            self._on_fault(landing, error, now_ns)
            return True
        for bit in self._light.strike(length):
            place[bit >> 3] ^= 1 << (bit & 7)
        crc = crc32c(place, landing.crc)
        if crc != payload_crc:
            return False
        self._answers.receiver.accept(now_ns)
        landing.crc = crc
        landing.next = offset + length
        landing.share = length
        self._port.counters.rx_payload_bytes += length
        if landing.next == landing.end:
            self._landing = None
            self._engine.landed_chunk(landing, now_ns)
        return True

    def _on_fault(self, landing: Landing, error: OSError, now_ns: int) -> None:
        """A page of HBM could not be backed: the transfer fails, the link goes on."""
        if error.errno not in _UNBACKED:
            no_room(error)
            return
        self._landing = None
        self._answers.drop(now_ns)
        self._engine.memory_fault(landing, now_ns)

    def listen(self, header: Header, now_ns: int) -> bool:
        """Hear an expected MESSAGE; False if it came damaged."""
        payload = memoryview(bytearray(header.length))
        self._transport.receive_into((self._head, payload))
        for bit in self._light.strike(header.length):
            payload[bit >> 3] ^= 1 << (bit & 7)
        if crc32c(payload) != header.payload_crc:
            return False
        self._answers.receiver.accept(now_ns)
        try:
            message = decode_message(payload)
        except MalformedFrame:
            self._port.counters.malformed_frames += 1
        else:
            if isinstance(message, Widen):
                self._port.on_widen(message, now_ns)
            else:
                self._engine.on_message(self._port, message, now_ns)
        return True
