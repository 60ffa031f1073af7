"""The receiving half of a port: frames that land in HBM, and messages, each checked first.

The kernel writes a payload where it belongs, the checksum reads it there; nothing else touches it.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from accelhw.device.answers import Answers
from accelhw.device.bursts import Arriving, Bursts, Outcome, Stage
from accelhw.device.outbound import Outbound
from accelhw.device.pace import Pace
from accelhw.device.sink import Landing, Sink
from accelhw.transport.base import Transport
from accelhw.transport.direct import no_room
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    BARE_FLAGS_BITS,
    HEADER_BYTES,
    NO_LANE,
    FrameFlag,
    FrameType,
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


class Inbound:
    """`light` is asked for each payload that lands: which bits the optics flipped in it."""

    __slots__ = (
        "_answers",
        "_arriving",
        "_bursts",
        "_direct_head",
        "_engine",
        "_every_frames",
        "_head",
        "_light",
        "_outbound",
        "_port",
        "_transport",
        "_view",
        "_waits",
        "landing",
        "streams",
    )

    def __init__(
        self, port: DataPort, transport: Transport, bursts: Bursts, direct_head: memoryview,
        engine: Engine, answers: Answers, outbound: Outbound, light: Light,
        streams: dict[int, Sink], pace: Pace,
    ) -> None:  # fmt: skip
        self.streams = streams  # what the far end's stream numbers mean here
        self._port = port
        self._transport = transport
        self._bursts = bursts
        self._direct_head = direct_head  # of the frame that a burst looked at last
        self._arriving = Arriving(data=bare_data(port.channel))
        self._waits = pace.waits
        if pace.waits is not None:
            self._arriving.turns.loop = pace.waits.fileno()
        self._every_frames = pace.ack_every_frames(transport.mtu, port.credit_frames)
        self._engine = engine
        self._answers = answers
        self._outbound = outbound
        self._light = light
        self._view = engine.hbm.view
        self._head = memoryview(bytearray(HEADER_BYTES))
        self.landing: Landing | None = None  # the chunk that comes in now

    def stop(self) -> None:
        self.landing = None
        self.streams.clear()

    # ---- the usual: the next frames of a chunk ----

    def run(self, left: int, now_ns: int) -> int:
        """Take frames of the chunk that comes in, one behind the other, for as long as they do.

        Returns what is left of the limit: 0 when nothing waits.
        """
        answers, landing = self._answers, self.landing
        while left and landing is not None:
            limit = left if self._let_answer(now_ns) else min(left, answers.frames_until_due)
            limit = self._back(landing, limit)
            taken, empty = self._land_frames(landing, limit)
            now_ns = self._arriving.turns.now_ns
            left -= taken
            if answers.many and not self._port.held:
                self._outbound.acknowledge()
            if empty:
                return 0
            if taken < limit or self.landing is not landing:
                break
        return left

    def _land_frames(self, landing: Landing, limit: int) -> tuple[int, bool]:
        """Up to `limit` frames of it. Returns how many were taken, and whether no more wait.

        What they change is written down once behind them all; a frame of another kind stays. The
        frames themselves are the hot path of receiving: see accelhw.device.bursts.
        """
        light, retry, memory, arriving = (
            self._light, self._outbound.retry, self._view, self._arriving
        )  # fmt: skip
        end, first = landing.end, landing.next
        arriving.base, arriving.offset, arriving.end = landing.base, first, end
        arriving.share, arriving.stream, arriving.crc = landing.share, landing.stream, landing.crc
        arriving.sequence, arriving.epoch = self._answers.receiver.expected, self._port.epoch
        arriving.ack, arriving.limit = retry.base, limit
        arriving.frames = arriving.flags = arriving.stage = 0
        while True:
            arriving.light_left = light.left
            arriving.light_fixed, arriving.light_per_byte = light.fixed, light.per_byte
            outcome = self._bursts.take(arriving)
            light.left = arriving.light_left
            if outcome is Outcome.STRUCK:
                start = arriving.base + arriving.offset
                for bit in light.strike(arriving.length):
                    memory[start + (bit >> 3)] ^= 1 << (bit & 7)
                arriving.stage = Stage.LIT
            elif outcome is Outcome.ACKED:
                proved = not arriving.frame_flags & _DROPPED
                self._outbound.acknowledged(arriving.frame_ack, proved, arriving.turns.now_ns)
                arriving.ack = retry.base
                if landing.end != end:  # what it acknowledged ended this transfer
                    outcome = Outcome.OTHER
                    break
                arriving.stage = Stage.HEARD
            else:
                break
        if outcome is Outcome.OTHER:
            self._bursts.give_back(arriving)
        fault: OSError | None = None
        if outcome is Outcome.FAILED:
            fault = OSError(arriving.error, os.strerror(arriving.error))
            hole = self._bursts.blind and fault.errno in _UNBACKED
            if hole and not self._was_next(arriving):
                fault = None  # Another frame fell into it: that is lost as any may be.
        frames, offset = arriving.frames, arriving.offset
        landing.next, landing.crc = offset, arriving.crc
        counters, unheard, now_ns = self._port.counters, frames, arriving.turns.now_ns
        if sent := arriving.turns.answers:
            unheard = arriving.owed
            self._answers.receiver.accept_run(frames - unheard, now_ns)
            self._answers.carried()
            counters.tx_frames += sent
            counters.tx_bytes += sent * HEADER_BYTES
            counters.acks_sent += sent
        self._answers.receiver.accept_run(unheard, now_ns)
        if arriving.flags & _ACK_NOW:
            self._answers.now = True
        counters.rx_payload_bytes += offset - first
        taken, arrived_bytes = frames, offset - first
        if outcome is Outcome.DAMAGED or (fault is not None and fault.errno in _UNBACKED):
            taken, arrived_bytes = taken + 1, arrived_bytes + arriving.length
        counters.rx_frames += taken
        counters.rx_bytes += arrived_bytes + taken * HEADER_BYTES
        if outcome is Outcome.DAMAGED:
            counters.crc_errors += 1
            self._answers.refuse()
        elif fault is not None:
            self._on_fault(landing, fault, now_ns)
        elif offset == end:
            self.landing = None
            self._engine.landed_chunk(landing, now_ns)
        return taken, outcome is Outcome.EMPTY

    def _let_answer(self, now_ns: int) -> bool:
        """Whether the next burst may acknowledge, and wait for more: nothing is to be sent here,
        and nothing but that to be said."""
        arriving, answers, port = self._arriving, self._answers, self._port
        turns = arriving.turns
        turns.now_ns, arriving.owed = now_ns, answers.receiver.owed
        arriving.every = turns.answers = turns.patience_ms = 0
        if self._waits is None or port.held or not answers.plain or not self._outbound.idle:
            return False
        arriving.every = self._every_frames
        turns.patience_ms = self._waits.patience_ms()
        self._bursts.answer.write(
            FrameType.ACK, NO_LANE, 0, 0, port.credit_frames, port.epoch, 0, 0, 0, 0, 0
        )
        return True

    def _was_next(self, arriving: Arriving) -> bool:
        """Of a frame that was gone before it was looked at."""
        head = self._direct_head
        word, _, _, epoch, sequence, _, stream, at, _, header_crc = unpack_bare(head)
        return (sequence, at, stream, epoch, word >> BARE_FLAGS_BITS) == (
            arriving.sequence, arriving.offset, arriving.stream, arriving.epoch, arriving.data
        ) and crc32c(head[covered]) == header_crc  # fmt: skip

    # ---- any other expected frame ----

    def land(self, header: Header, now_ns: int) -> bool:
        """Put an expected DATA frame in its place; False if it came damaged."""
        stream, offset, length = header.stream, header.offset, header.length
        landing = self.landing
        if (
            landing is None
            or landing.stream != stream
            or landing.next != offset
            or offset + length > landing.end
            or not length
        ):
            sink = self.streams.get(stream)
            landing = self.landing = (
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

    def _back(self, landing: Landing, frames: int) -> int:
        """Pages for up to so many frames of it, which come next. For how many there are some."""
        base, share = landing.base, landing.share
        stop = min(landing.end, landing.next + frames * share)
        if landing.backed >= stop:
            return frames
        first, end = base + max(landing.next, landing.backed), base + stop
        for ask in (self._engine.hbm.use, self._engine.hbm.prepare):
            end = ask(first, min(end, base + stop), base, base + landing.sink.total_bytes)
        landing.backed = end - base
        return min(frames, -(-(landing.backed - landing.next) // share))

    def _store(
        self, landing: Landing, offset: int, length: int, payload_crc: int, now_ns: int
    ) -> bool:
        """Land the peeked frame, of which all but the payload is known to be right."""
        landing.share = length
        self._back(landing, 1)
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
        self._port.counters.rx_payload_bytes += length
        if landing.next == landing.end:
            self.landing = None
            self._engine.landed_chunk(landing, now_ns)
        return True

    def _on_fault(self, landing: Landing, error: OSError, now_ns: int) -> None:
        """A page of HBM could not be backed: the transfer fails, the link goes on."""
        if error.errno not in _UNBACKED:
            no_room(error)
            return
        self.landing = None
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
