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
from accelhw.transport.direct import direct_of, no_room
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    BARE_DATA,
    BARE_WORD,
    CHECKSUM_AT,
    HEADER_BYTES,
    NO_LANE,
    PLACE_AT,
    ChecksumDiffers,
    ForeignFrame,
    FrameFlag,
    FrameType,
    Header,
    HeaderWriter,
    MalformedFrame,
    covered,
    decode_header,
    pack_checksum,
    pack_place,
    payload_limit,
    source_address,
    unpack_bare,
)
from accelhw.wire.message import TransferMessage, decode_message, encode_message

TURN_BYTES = 2 << 20  # sent or taken in one turn, before the loop looks at other ports
TURN_FRAMES_MAX = 256
WINDOW_FRAMES_MAX = 512  # a bound for what DROPPED must be repeated, whatever the far end grants
FRAME_ALIGNMENT = 64  # bytes; payloads are multiples of this, but for a transfer's last
_ACK, _DATA, _MESSAGE = int(FrameType.ACK), int(FrameType.DATA), int(FrameType.MESSAGE)
_NACK, _ACK_NOW = int(FrameFlag.NACK), int(FrameFlag.ACK_NOW)
_DROPPED = int(FrameFlag.DROPPED)
_UNBACKED = (errno.EFAULT, errno.ENOMEM)  # HBM has no page there, and the machine gives none
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


# A frame in flight: what it was cut from (None: a message), where in the transfer it begins, its
# length, the chunk's CRC before it and with it, and a message's payload. A tuple, since one is made
# for each frame that leaves; the bytes of DATA stay where they are, in the source.
Outgoing = tuple[Cut | None, int, int, int, int, bytes]


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
        "_ack_every",
        "_ack_now",
        "_cut",
        "_direct",
        "_dropped_at",
        "_engine",
        "_frame_bytes",
        "_head",
        "_landing",
        "_limit",
        "_messages",
        "_nack_now",
        "_receiver",
        "_sender",
        "_strike",
        "_transport",
        "_turn_frames",
        "_view",
        "_writer",
        "counters",
        "credit_frames",
        "epoch",
        "exhausted",
        "held",
        "name",
        "peer",
        "streams",
        "up",
        "wants_write",
    )

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
        self._direct = direct_of(transport)
        self._engine = engine
        self._strike = strike
        self._view = engine.hbm.view
        self._writer = HeaderWriter(source_address(name))
        self._limit = payload_limit(transport.mtu) // FRAME_ALIGNMENT * FRAME_ALIGNMENT
        self._turn_frames = max(1, min(TURN_BYTES // self._limit, TURN_FRAMES_MAX))
        self._head = memoryview(bytearray(HEADER_BYTES))
        self._sender: RetrySender[Outgoing] = RetrySender()
        self._receiver = RetryReceiver()
        self._ack_every = max(1, min(ACK_EVERY_FRAMES, self.credit_frames // 4))
        self._ack_now = False
        self._nack_now = False
        self._messages: deque[bytes] = deque()
        self._cut: Cut | None = None
        self._frame_bytes = self._limit  # payload of the frames of the present cut
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
        lost = [payload for cut, *_, payload in self._sender.records if cut is None]
        lost += self._messages
        self.up = False
        self.wants_write = False
        self._sender.start(0)
        self._messages.clear()
        self._cut = self._landing = None
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
        budget = self._turn_frames
        sender = self._sender
        while budget and sender.replaying:
            budget -= 1
            sequence, record = sender.next_replay()
            if not self._replay(sequence, record, now_ns):
                return False
        while budget > 0 and (room := sender.room) > 0:
            if not self._messages and self._cut is None:
                self._begin(now_ns)
            if self._messages:
                payload = self._messages[0]
                fresh = (None, 0, len(payload), 0, crc32c(payload), payload)
                if not self._transmit(sender.next_sequence, fresh):
                    return False
                self._messages.popleft()
                sender.sent(fresh, now_ns)
                budget -= 1
            elif self._cut is not None:
                budget -= self._stream(self._cut, min(room, budget), room, now_ns)
                if self.wants_write:
                    return False
            else:
                break
        if not sender.room and (self._cut is not None or self._messages):
            self.counters.tx_stalls += 1
        self.counters.in_flight_frames = len(sender.records)
        receiver = self._receiver
        if self._nack_now or (receiver.owed and (self._ack_now or receiver.ack_due(now_ns))):
            self._acknowledge()
        return budget <= 0 and (sender.replaying or sender.room > 0)

    def _stream(self, cut: Cut, limit: int, room: int, now_ns: int) -> int:
        """Send up to `limit` frames of the cut; how many. `wants_write`: one found no room.

        This is the hot path of sending: a chunk's frames one after the other, no call of ours and
        no object but a tuple per frame.
        """
        memory, put, writer = self._view, self._direct.put, self._writer
        buffer, covered_part = writer.buffer, writer.covered
        share, base, stream, ack = self._frame_bytes, cut.base, cut.stream, self._receiver.expected
        offset, crc, sequence = cut.next, cut.crc, self._sender.next_sequence
        stop = min(cut.end, offset + limit * share)
        flags = _ACK_NOW if stop == cut.end or limit == room else 0  # of the last frame
        dropped = self._dropped_flag()
        writer.begin_run(dropped, share, self.credit_frames, self.epoch)
        run: list[Outgoing] = []
        add = run.append
        try:
            for start in range(base + offset, base + stop, share):
                length = share
                if offset + share >= stop:
                    length = stop - offset
                    writer.end_run(flags | dropped, length)
                view = memory[start : start + length]
                crc_with = crc32c(view, crc)
                pack_place(buffer, PLACE_AT, sequence, ack, stream, offset, crc_with)
                pack_checksum(buffer, CHECKSUM_AT, crc32c(covered_part))
                put((buffer, view))
                add((cut, offset, length, crc, crc_with, b""))
                offset += length
                crc = crc_with
                sequence = (sequence + 1) & SEQUENCE_MASK
        except OSError as error:
            no_room(error)
            self._full()
        count = len(run)
        payload_bytes = offset - cut.next
        cut.next, cut.crc = offset, crc
        cut.in_flight += count
        if count:
            self._sender.sent_run(run, now_ns)
            counters = self.counters
            counters.tx_frames += count
            counters.tx_bytes += count * HEADER_BYTES + payload_bytes
            counters.tx_payload_bytes += payload_bytes
            self._receiver.owed = 0
            self._ack_now = False
        if offset == cut.end:
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
        cut, offset, length, crc_before, crc, _ = record
        if cut is not None and cut.stream != _NO_STREAM:
            view = self._view[cut.base + offset : cut.base + offset + length]
            if crc32c(view, crc_before) != crc:
                # The source was changed meanwhile: what was promised is gone, and so is the
                # transfer. Its frames keep their place in the sequence, but belong to nobody now.
                for other, *_ in self._sender.records:
                    if other is not None and other.push is cut.push:
                        other.stream = _NO_STREAM
                self._engine.source_changed(cut, now_ns)
        if not self._transmit(sequence, record):
            return False
        self._sender.resent()
        self.counters.replayed_frames += 1
        if cut is not None:
            cut.push.replayed_frames += 1
        return True

    def _transmit(self, sequence: int, record: Outgoing) -> bool:
        """A frame out of the usual run: a message, or anything again. False: no room now."""
        cut, offset, length, _, crc, payload = record
        type_, flags, stream, body = _MESSAGE, _ACK_NOW, 0, memoryview(payload)
        if cut is not None:
            last = (sequence - self._sender.base + 1) & SEQUENCE_MASK >= len(self._sender.records)
            type_, flags, stream = _DATA, _ACK_NOW if last else 0, cut.stream
            body = self._view[cut.base + offset : cut.base + offset + length]
        receiver = self._receiver
        header = self._writer.write(
            type_, NO_LANE, flags | self._dropped_flag(), length, self.credit_frames, self.epoch,
            sequence, receiver.expected, stream, offset, crc,
        )  # fmt: skip
        if not self._transport.send((header, body)):
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

    def receive(self, now_ns: int, limit: int | None = None) -> Header | None:
        """Take up to `limit` frames (None: a turn's) that belong to the data path or to nobody.

        Stops at a CARRIER or TRAINING frame and returns its header; it is counted, and the caller
        takes the frame from the transport and calls again. None: nothing waits, or the limit.
        """
        transport = self._transport
        counters = self.counters
        left = self._turn_frames if limit is None else limit
        while left > 0:
            if self._landing is not None:
                left = self._land_run(self._landing, left, now_ns)
                if not left:
                    return None
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

    def _land_run(self, landing: Landing, left: int, now_ns: int) -> int:
        """Take the frames of the chunk that comes in, one behind the other, for as long as they do.

        Returns what is left of the limit: 0 when nothing waits.
        """
        receiver = self._receiver
        while left:
            limit = min(left, max(1, self._ack_every - receiver.owed))
            taken, empty = self._land_frames(landing, limit, now_ns)
            left -= taken
            if receiver.owed >= self._ack_every and not self.held:
                self._acknowledge()
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
        direct, strike, sender = self._direct, self._strike, self._sender
        look, take, head, scratch = direct.look, direct.take, direct.head, self._head
        head_covered = head[covered]
        memory, epoch, base = self._view, self.epoch, landing.base
        end, stream = landing.end, landing.stream
        offset, crc, expected = landing.next, landing.crc, self._receiver.expected
        first, frames, length, answer_now = offset, 0, 0, 0
        empty = damaged = False
        fault: OSError | None = None
        try:
            while frames < limit and offset < end:
                frame_bytes = look()
                (
                    word, kind, _, flags, length, _, frame_epoch, sequence, ack, frame_stream,
                    frame_offset, payload_crc, header_crc,
                ) = unpack_bare(head)  # fmt: skip
                if (
                    sequence != expected
                    or frame_offset != offset
                    or frame_stream != stream
                    or frame_epoch != epoch
                    or word != BARE_WORD
                    or kind != BARE_DATA
                    or frame_bytes != HEADER_BYTES + length
                    or offset + length > end
                    or not length
                    or crc32c(head_covered) != header_crc
                ):
                    break
                if ack != sender.base:
                    self._acknowledged(ack, not flags & _DROPPED, now_ns)
                    if landing.end != end:
                        break  # what it acknowledged ended this transfer
                start = base + offset
                place = memory[start : start + length]
                take((scratch, place))
                for bit in strike(length):
                    place[bit >> 3] ^= 1 << (bit & 7)
                crc_with = crc32c(place, crc)
                if crc_with != payload_crc:
                    damaged = True
                    break
                crc = crc_with
                offset += length
                expected = (expected + 1) & SEQUENCE_MASK
                frames += 1
                answer_now |= flags
        except BlockingIOError:
            empty = True
        except OSError as error:
            fault = error
        landing.next, landing.crc = offset, crc
        self._receiver.accept_run(frames, now_ns)
        if answer_now & _ACK_NOW:
            self._ack_now = True
        counters = self.counters
        counters.rx_payload_bytes += offset - first
        taken, arrived_bytes = frames, offset - first
        if damaged or (fault is not None and fault.errno in _UNBACKED):
            taken, arrived_bytes = taken + 1, arrived_bytes + length
        counters.rx_frames += taken
        counters.rx_bytes += arrived_bytes + taken * HEADER_BYTES
        if damaged:
            self._answer(False, 0)
        elif fault is not None:
            self._on_fault(landing, fault, now_ns)
        elif offset == end:
            self._landing = None
            self._engine.landed_chunk(landing, now_ns)
        return taken, empty

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
        for record in sender.take_run(count):
            cut = record[0]
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
        if error.errno not in _UNBACKED:
            no_room(error)
            return
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
