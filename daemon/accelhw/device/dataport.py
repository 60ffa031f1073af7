"""A port's data path: frames between the fibre and HBM, in order, checked, sent again when lost.

The payload is touched by the kernel twice (out of the source, into the destination) and by the
checksum twice; nothing else reads or copies it.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from accelhw.device.hbm import Hbm
from accelhw.device.push import Cut
from accelhw.device.sink import Landing, Sink
from accelhw.link.retry import ACK_EVERY_FRAMES, SEQUENCE_MASK, RetryReceiver, RetrySender, Verdict
from accelhw.model.link import PeerId
from accelhw.transport.base import Transport
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    BARE_DATA,
    BARE_WORD,
    HEADER_BYTES,
    NO_LANE,
    ChecksumDiffers,
    ForeignFrame,
    FrameFlag,
    FrameType,
    Header,
    HeaderWriter,
    MalformedFrame,
    covered,
    decode_header,
    payload_limit,
    source_address,
    unpack_bare,
)
from accelhw.wire.message import TransferMessage, decode_message, encode_message

PUMP_FRAMES = 32  # sent in one turn, before the loop looks at other ports
RECEIVE_FRAMES = 32
WINDOW_FRAMES_MAX = 128  # more only fills caches
FRAME_ALIGNMENT = 64  # bytes; payloads are multiples of this, but for a transfer's last
_ACK, _DATA, _MESSAGE = int(FrameType.ACK), int(FrameType.DATA), int(FrameType.MESSAGE)
_NACK, _ACK_NOW = int(FrameFlag.NACK), int(FrameFlag.ACK_NOW)
_DROPPED = int(FrameFlag.DROPPED)
_NO_STREAM = 0  # means nothing to the far end, which takes such a frame and forgets it


@dataclass(slots=True)
class PortCounters:
    """Counts since the port was made; names as in accelhw.interface.tables.PORT."""

    tx_frames: int = 0
    tx_bytes: int = 0
    rx_frames: int = 0
    rx_bytes: int = 0
    tx_payload_bytes: int = 0
    rx_payload_bytes: int = 0
    replayed_frames: int = 0
    acks_sent: int = 0
    acks_received: int = 0
    nacks_sent: int = 0
    nacks_received: int = 0
    crc_errors: int = 0
    malformed_frames: int = 0
    foreign_frames: int = 0
    stale_frames: int = 0
    duplicate_frames: int = 0
    missing_frames: int = 0
    replay_timeouts: int = 0
    tx_stalls: int = 0
    in_flight_frames: int = 0
    credit_frames: int = 0


class Outgoing:
    """A frame in flight. DATA holds a view of its source, which is the replay buffer."""

    __slots__ = ("crc", "crc_before", "cut", "flags", "offset", "stream", "type", "view")

    def __init__(
        self, type_: int, stream: int, offset: int, view: memoryview | bytes, crc: int, flags: int,
        cut: Cut | None, crc_before: int = 0,
    ) -> None:  # fmt: skip
        self.type = type_
        self.stream = stream
        self.offset = offset
        self.view = view
        self.crc = crc
        self.flags = flags
        self.cut = cut
        self.crc_before = crc_before  # of the chunk up to this frame


class Engine(Protocol):
    """What a port asks of its card's transfer engine."""

    hbm: Hbm

    def port_up(self, port: DataPort, now_ns: int) -> None: ...
    def port_down(self, port: DataPort, lost: list[bytes], now_ns: int) -> None: ...
    def next_cut(self, port: DataPort, now_ns: int) -> Cut | None: ...
    def cut_left(self, cut: Cut, now_ns: int) -> None: ...
    def cut_arrived(self, cut: Cut, proved: bool, now_ns: int) -> None: ...
    def landed_chunk(self, landing: Landing, now_ns: int) -> None: ...
    def memory_fault(self, sink: Sink, now_ns: int) -> None: ...
    def source_changed(self, cut: Cut, now_ns: int) -> None: ...
    def on_message(self, port: DataPort, message: TransferMessage, now_ns: int) -> None: ...


def _no_strike(payload_bytes: int) -> Sequence[int]:
    return ()


class DataPort:
    """One port. The loop calls `receive` when the transport is readable, then `pump`.

    `strike` is asked for each payload that lands: which bits the optics flipped in it.
    InterfaceDown from the transport passes through `receive`, `pump` and `on_deadline`.
    """

    __slots__ = (
        "_ack_every", "_ack_now", "_cut", "_dropped_at", "_engine", "_frame_bytes", "_head",
        "_landing", "_limit", "_messages", "_nack_now", "_receiver", "_sender", "_strike",
        "_transport", "_unsent", "_view", "_writer", "counters", "credit_frames", "epoch",
        "exhausted", "held", "name", "peer", "streams", "up", "wants_write",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        transport: Transport,
        engine: Engine,
        strike: Callable[[int], Sequence[int]] = _no_strike,
        counters: PortCounters | None = None,
    ) -> None:
        self.name = name  # card0/oe1
        self.counters = counters or PortCounters()
        self.credit_frames = max(1, min(transport.receive_frames, 0xFFFF))  # what we grant
        self.epoch = 0
        self.exhausted = False  # the replay limit was reached: the port must train again
        self.held = False  # the link is in trouble: nothing is sent, all in flight is kept
        self.peer: PeerId | None = None
        self.up = False
        self.wants_write = False
        self.streams: dict[int, Sink] = {}  # what the far end's stream numbers mean here
        self._transport = transport
        self._engine = engine
        self._strike = strike
        self._view = engine.hbm.view
        self._writer = HeaderWriter(source_address(name))
        self._limit = payload_limit(transport.mtu) // FRAME_ALIGNMENT * FRAME_ALIGNMENT
        self._head = memoryview(bytearray(HEADER_BYTES))
        self._sender: RetrySender[Outgoing] = RetrySender()
        self._receiver = RetryReceiver()
        self._ack_every = max(1, min(ACK_EVERY_FRAMES, self.credit_frames // 4))
        self._ack_now = False
        self._nack_now = False
        self._messages: deque[bytes] = deque()
        self._cut: Cut | None = None
        self._frame_bytes = self._limit  # payload of the frames of the present cut
        self._unsent: Outgoing | None = None  # made, but the transport was full
        self._landing: Landing | None = None
        self._dropped_at: int | None = None  # the last sequence that was taken and not stored

    # ---- the link ----

    def link_up(self, epoch: int, peer: PeerId, credit_frames: int, now_ns: int) -> None:
        """Training succeeded: `peer` grants `credit_frames`; frames of other epochs are stale."""
        if self.up:
            self.link_down(now_ns)
        self.epoch = epoch
        self.peer = peer
        self.exhausted = False
        self.held = False
        window = max(1, min(credit_frames, WINDOW_FRAMES_MAX))
        self._sender.start(window)
        self._receiver.start()
        self._ack_now = self._nack_now = False
        self._dropped_at = None
        self.up = True
        self.counters.credit_frames = window
        self._engine.port_up(self, now_ns)

    def link_down(self, now_ns: int) -> None:
        """What is unacknowledged counts as not sent; the engine sends it over another epoch."""
        if not self.up:
            return
        unproved = [*self._sender.records, *([self._unsent] if self._unsent else [])]
        lost = [bytes(record.view) for record in unproved if record.cut is None]
        lost += self._messages
        self.up = False
        self.wants_write = False
        self._sender.start(0)
        self._messages.clear()
        self._cut = self._unsent = self._landing = None
        self.streams.clear()
        self.counters.in_flight_frames = self.counters.credit_frames = 0
        self._engine.port_down(self, lost, now_ns)

    def hold(self) -> None:
        """Send nothing until `release`. What comes meanwhile is still taken."""
        self.held = self.up

    def release(self, now_ns: int) -> None:
        """The link is good again: go on where it was, and send again what may have been lost."""
        if self.held:
            self.held = self.exhausted = False
            self._sender.resume(now_ns)
            self._ack_now = True  # the far end's view of us may be old
            self._receiver.owed = self._receiver.owed or 1

    @property
    def rtt_ns(self) -> int:
        """Smoothed round trip of frame and acknowledgement, 0 before the first."""
        return self._sender.rtt_ns

    @property
    def awaits_credit(self) -> bool:
        """More of a transfer is at hand than the far end's credits let out."""
        return self._cut is not None and self._sender.room <= 0

    def say(self, message: TransferMessage) -> None:
        """Queue a message, ahead of data that has not left. Dropped when the link is down."""
        if self.up:
            self._messages.append(encode_message(message))

    def drop_cut(self, cut: Cut) -> None:
        """Its transfer ended: send no more of it."""
        if self._cut is cut:
            self._cut = None

    # ---- out ----

    def pump(self, now_ns: int) -> bool:
        """Send what may be sent now, a bounded batch. True: more could leave at once."""
        self.wants_write = False
        if not self.up or self.exhausted or self.held:
            return False
        budget = PUMP_FRAMES
        sender = self._sender
        while budget and sender.replaying:
            budget -= 1
            sequence, record = sender.next_replay()
            if not self._replay(sequence, record, now_ns):
                return False
        while budget > 0 and (room := sender.room) > 0:
            fresh = self._unsent
            if fresh is None:
                if not self._messages and self._cut is None:
                    self._begin(now_ns)
                if self._messages:
                    payload = self._messages.popleft()
                    fresh = Outgoing(_MESSAGE, 0, 0, payload, crc32c(payload), _ACK_NOW, None)
                elif self._cut is not None:
                    budget -= self._stream(self._cut, min(room, budget), room, now_ns)
                    if self._unsent is not None:
                        return False
                    continue
                else:
                    break
            self._unsent = fresh
            if not self._transmit(fresh, sender.next_sequence, fresh.flags):
                return False
            self._unsent = None
            sender.sent(fresh, now_ns)
            budget -= 1
            if fresh.cut is not None:
                self.counters.tx_payload_bytes += len(fresh.view)
        if not sender.room and (self._cut is not None or self._messages):
            self.counters.tx_stalls += 1
        self.counters.in_flight_frames = len(sender.records)
        receiver = self._receiver
        if self._nack_now or (receiver.owed and (self._ack_now or receiver.ack_due(now_ns))):
            self._acknowledge()
        return budget <= 0 and (sender.replaying or sender.room > 0)

    def _stream(self, cut: Cut, limit: int, room: int, now_ns: int) -> int:
        """Send up to `limit` frames of the cut; how many. One that finds no room is `_unsent`.

        This is the hot path of sending: a chunk's frames one after the other, no call per field.
        """
        sender = self._sender
        memory, write, send = self._view, self._writer.write_data, self._transport.send
        share, base, end, stream = self._frame_bytes, cut.base, cut.end, cut.stream
        credit, epoch, ack = self.credit_frames, self.epoch, self._receiver.expected
        dropped = self._dropped_flag()
        sequence, offset, crc = sender.next_sequence, cut.next, cut.crc
        left: list[Outgoing] = []
        while len(left) < limit and offset < end:
            length = share if end - offset > share else end - offset
            start = base + offset
            view = memory[start : start + length]
            before, crc = crc, crc32c(view, crc)
            flags = _ACK_NOW if offset + length == end or len(left) + 1 == room else 0
            record = Outgoing(_DATA, stream, offset, view, crc, flags, cut, before)
            header = write(
                flags | dropped, length, credit, epoch, sequence, ack, stream, offset, crc
            )
            offset += length
            if not send((header, view)):
                self._unsent = record
                self._full()
                break
            left.append(record)
            sequence = (sequence + 1) & SEQUENCE_MASK
        count = len(left)
        payload_bytes = offset - cut.next
        cut.next, cut.crc = offset, crc
        cut.in_flight += count
        if self._unsent is not None:
            cut.in_flight += 1
            payload_bytes -= len(self._unsent.view)
        if count:
            sender.sent_run(left, now_ns)
            counters = self.counters
            counters.tx_frames += count
            counters.tx_bytes += count * HEADER_BYTES + payload_bytes
            counters.tx_payload_bytes += payload_bytes
            self._receiver.owed = 0
            self._ack_now = False
        if offset == end:
            self._cut = None
            self._engine.cut_left(cut, now_ns)
        return count

    def _begin(self, now_ns: int) -> None:
        """Ask for a cut, and deal it evenly: a small last frame would cost as much as any."""
        self._cut = cut = self._engine.next_cut(self, now_ns)
        if cut is not None:
            length = cut.end - cut.next
            frames = -(-length // self._limit)
            share = -(-length // frames)
            self._frame_bytes = -(-share // FRAME_ALIGNMENT) * FRAME_ALIGNMENT

    def _replay(self, sequence: int, record: Outgoing, now_ns: int) -> bool:
        cut = record.cut
        if (
            cut is not None
            and record.stream != _NO_STREAM
            and crc32c(record.view, record.crc_before) != record.crc
        ):
            # The source was changed meanwhile: what was promised is gone, and so is the transfer.
            # Its frames keep their place in the sequence, but belong to nobody now.
            for other in self._sender.records:
                if other.cut is not None and other.cut.push is cut.push:
                    other.stream = _NO_STREAM
            self._engine.source_changed(cut, now_ns)
        if not self._transmit(record, sequence, record.flags):
            return False
        self._sender.resent()
        self.counters.replayed_frames += 1
        if cut is not None:
            cut.push.replayed_frames += 1
        return True

    def _transmit(self, record: Outgoing, sequence: int, flags: int) -> bool:
        receiver = self._receiver
        length = len(record.view)
        if self._dropped_at is not None:
            flags |= self._dropped_flag()
        header = self._writer.write(
            record.type, NO_LANE, flags, length, self.credit_frames, self.epoch, sequence,
            receiver.expected, record.stream, record.offset, record.crc,
        )  # fmt: skip
        if not self._transport.send((header, record.view)):
            self._full()
            return False
        receiver.owed = 0
        self._ack_now = False
        counters = self.counters
        counters.tx_frames += 1
        counters.tx_bytes += HEADER_BYTES + length
        return True

    def _acknowledge(self) -> None:
        flags = _NACK if self._nack_now else 0
        receiver = self._receiver
        dropped = self._dropped_flag()
        header = self._writer.write(
            _ACK,
            NO_LANE,
            flags | dropped,
            0,
            self.credit_frames,
            self.epoch,
            0,
            receiver.expected,
            0,
            0,
            0,
        )
        if not self._transport.send((header,)):
            self._full()
            return
        counters = self.counters
        counters.tx_frames += 1
        counters.tx_bytes += HEADER_BYTES
        if flags:
            counters.nacks_sent += 1
        else:
            counters.acks_sent += 1
        receiver.acknowledged()
        self._ack_now = self._nack_now = False

    def _dropped_flag(self) -> int:
        """DROPPED, until the far end must have heard it with whichever ack first covered it."""
        if self._dropped_at is None:
            return 0
        if (self._receiver.expected - self._dropped_at) & SEQUENCE_MASK > WINDOW_FRAMES_MAX:
            self._dropped_at = None
            return 0
        return _DROPPED

    def _full(self) -> None:
        self.wants_write = True
        self.counters.tx_stalls += 1

    # ---- in ----

    def receive(self, now_ns: int, limit: int = RECEIVE_FRAMES) -> Header | None:
        """Take up to `limit` frames that belong to the data path or to nobody.

        Stops at a CARRIER or TRAINING frame and returns its header; it is counted, and the caller
        takes the frame from the transport and calls again. None: nothing waits, or the limit.
        """
        transport = self._transport
        counters = self.counters
        left = limit
        while left > 0:
            if self._landing is not None:
                head, left = self._land_run(self._landing, left, now_ns)
            else:
                head = transport.peek()
                left -= 1
            if head is None:
                return None
            frame_bytes = transport.peeked_bytes
            counters.rx_frames += 1
            counters.rx_bytes += frame_bytes
            try:
                header = decode_header(head, frame_bytes)
            except ForeignFrame:
                counters.foreign_frames += 1
            except ChecksumDiffers:
                counters.crc_errors += 1
            except MalformedFrame:
                counters.malformed_frames += 1
            else:
                if header.type < _ACK:
                    return header
                self._take(header, now_ns)
                continue
            transport.discard()
        return None

    def _land_run(self, landing: Landing, left: int, now_ns: int) -> tuple[memoryview | None, int]:
        """Take the frames of the chunk that comes in, one behind the other, for as long as they do.

        This is the hot path of receiving: no header object, no call per step. Returns the first
        frame that is anything else, peeked at (None: nothing waits), and what is left of the limit.
        """
        transport, receiver, counters = self._transport, self._receiver, self.counters
        peek, receive_into, strike = transport.peek, transport.receive_into, self._strike
        memory, scratch, epoch = self._view, self._head, self.epoch
        base, end, stream = landing.base, landing.end, landing.stream
        while left > 0:
            head = peek()
            left -= 1
            if head is None:
                return None, left
            frame_bytes = transport.peeked_bytes
            if frame_bytes <= HEADER_BYTES:
                return head, left
            (
                word, kind, _, flags, length, _, frame_epoch, sequence, ack, frame_stream, offset,
                payload_crc, header_crc,
            ) = unpack_bare(head)  # fmt: skip
            if (
                sequence != receiver.expected
                or offset != landing.next
                or frame_stream != stream
                or frame_epoch != epoch
                or word != BARE_WORD
                or kind != BARE_DATA
                or frame_bytes != HEADER_BYTES + length
                or offset + length > end
                or crc32c(head[covered]) != header_crc
            ):
                return head, left
            counters.rx_frames += 1
            counters.rx_bytes += frame_bytes
            if ack != self._sender.base:
                self._acknowledged(ack, not flags & _DROPPED, now_ns)
                if landing.end != end:
                    return None, left  # what it acknowledged ended this transfer
            start = base + offset
            place = memory[start : start + length]
            try:
                receive_into((scratch, place))
            except OSError as error:
                self._on_fault(landing, error, now_ns)
                return None, left
            for bit in strike(length):
                place[bit >> 3] ^= 1 << (bit & 7)
            crc = crc32c(place, landing.crc)
            if crc != payload_crc:
                self._answer(False, flags)
                return None, left
            landing.crc = crc
            landing.next = offset = offset + length
            receiver.accept(now_ns)
            counters.rx_payload_bytes += length
            if flags & _ACK_NOW:
                self._ack_now = True
            if receiver.owed >= self._ack_every:
                self._acknowledge()
            if offset == end:
                self._landing = None
                self._engine.landed_chunk(landing, now_ns)
                return (peek(), left - 1) if left else (None, 0)
        return None, left

    def on_frame(self, header: Header, now_ns: int) -> None:
        """Take one DATA, MESSAGE or ACK frame that the caller has peeked at and checked."""
        self.counters.rx_frames += 1
        self.counters.rx_bytes += self._transport.peeked_bytes
        self._take(header, now_ns)

    def _take(self, header: Header, now_ns: int) -> None:
        counters = self.counters
        if header.epoch != self.epoch or not self.up:
            counters.stale_frames += 1
            self._transport.discard()
            return
        if header.ack != self._sender.base:
            self._acknowledged(header.ack, not header.flags & _DROPPED, now_ns)
        if header.type == _ACK:
            self._transport.discard()
            if header.credit:
                self._sender.window = min(header.credit, WINDOW_FRAMES_MAX)
            if header.flags & _NACK:
                counters.nacks_received += 1
                if header.ack == self._sender.base:
                    self._sender.nacked(now_ns)
                    self.exhausted = self._sender.exhausted
            else:
                counters.acks_received += 1
            return
        receiver = self._receiver
        verdict = receiver.judge(header.sequence)
        if verdict is not Verdict.EXPECTED:
            self._transport.discard()
            if verdict is Verdict.DUPLICATE:
                counters.duplicate_frames += 1
                self._ack_now = True  # ours was lost, or is on its way
                receiver.owed = receiver.owed or 1
            elif verdict is Verdict.GAP:
                counters.missing_frames += receiver.missing
                self._nack_now = True
            return
        arrive = self._land if header.type == _DATA else self._listen
        self._answer(arrive(header, now_ns), header.flags)

    def _answer(self, good: bool, flags: int) -> None:
        """To an expected frame: an acknowledgement, now or later, or a NACK if it came damaged."""
        receiver = self._receiver
        if not good:
            self.counters.crc_errors += 1
            receiver.refuse()
            self._nack_now = True
            return
        if flags & _ACK_NOW:
            self._ack_now = True
        if receiver.owed >= self._ack_every and not self.held:
            self._acknowledge()

    def _acknowledged(self, ack: int, proved: bool, now_ns: int) -> None:
        sender = self._sender
        count = sender.acknowledge(ack, now_ns)
        if count < 0:
            self.counters.malformed_frames += 1  # acknowledges what was never sent
            return
        for _ in range(count):
            cut = sender.take().cut
            if cut is not None:
                cut.in_flight -= 1
                cut.proved &= proved
                if not cut.in_flight and cut.next == cut.end:
                    self._engine.cut_arrived(cut, proved and cut.proved, now_ns)
        self.counters.in_flight_frames = len(sender.records)

    def _land(self, header: Header, now_ns: int) -> bool:
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
                sink.landing(self, stream, offset, length) if sink is not None else None
            )
            if landing is None:
                # Nobody waits for it (cancelled, or here already): take it from the link only.
                if sink is None or not sink.has(offset):
                    self._dropped_at = self._receiver.expected
                self._transport.discard()
                self._receiver.accept(now_ns)
                return True
        return self._store(landing, offset, length, header.payload_crc, now_ns)

    def _store(
        self, landing: Landing, offset: int, length: int, payload_crc: int, now_ns: int
    ) -> bool:
        """Land the peeked frame, of which all but the payload is known to be right."""
        start = landing.base + offset
        place = self._view[start : start + length]
        try:
            self._transport.receive_into((self._head, place))
        except OSError as error:
            self._on_fault(landing, error, now_ns)
            return True
        for bit in self._strike(length):
            place[bit >> 3] ^= 1 << (bit & 7)
        crc = crc32c(place, landing.crc)
        if crc != payload_crc:
            return False
        self._receiver.accept(now_ns)
        landing.crc = crc
        landing.next = offset + length
        self.counters.rx_payload_bytes += length
        if landing.next == landing.end:
            self._landing = None
            self._engine.landed_chunk(landing, now_ns)
        return True

    def _on_fault(self, landing: Landing, error: OSError, now_ns: int) -> None:
        """A page of HBM could not be backed: the transfer fails, the link goes on."""
        if error.errno not in (errno.EFAULT, errno.ENOMEM):
            raise error
        self._landing = None
        self._dropped_at = self._receiver.expected
        self._receiver.accept(now_ns)
        self._engine.memory_fault(landing.sink, now_ns)

    def _listen(self, header: Header, now_ns: int) -> bool:
        """Hear an expected MESSAGE; False if it came damaged."""
        payload = memoryview(bytearray(header.length))
        self._transport.receive_into((self._head, payload))
        for bit in self._strike(header.length):
            payload[bit >> 3] ^= 1 << (bit & 7)
        if crc32c(payload) != header.payload_crc:
            return False
        self._receiver.accept(now_ns)
        try:
            message = decode_message(payload)
        except MalformedFrame:
            self.counters.malformed_frames += 1
        else:
            self._engine.on_message(self, message, now_ns)
        return True

    # ---- time ----

    def next_deadline_ns(self) -> int | None:
        """When `on_deadline` is due: the replay timer, or an acknowledgement held back."""
        if not self.up or self.held:
            return None
        replay_ns = self._sender.deadline_ns()
        ack_ns = self._receiver.deadline_ns()
        if replay_ns is None or (ack_ns is not None and ack_ns < replay_ns):
            return ack_ns
        return replay_ns

    def on_deadline(self, now_ns: int) -> None:
        """Look at the timers; call `pump` after it."""
        if not self.up or self.held:
            return
        if self._sender.expired(now_ns):
            self.counters.replay_timeouts += 1
            self.exhausted = self._sender.exhausted
        if self._receiver.ack_due(now_ns):
            self._ack_now = True
