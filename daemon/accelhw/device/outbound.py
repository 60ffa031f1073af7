"""The sending half of a port: frames cut from HBM, kept until acknowledged, sent again when lost.

A frame's payload is read by the checksum and by the kernel, straight from HBM; the record of a
frame in flight keeps its place and checksum, not its bytes.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from accelhw.device.answers import WINDOW_FRAMES_MAX, Answers
from accelhw.device.bursts import Bursts, Leaving
from accelhw.device.pace import Pace
from accelhw.device.push import Cut
from accelhw.link.retry import SEQUENCE_MASK, RetrySender
from accelhw.transport.base import Transport
from accelhw.transport.direct import no_room
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    HEADER_BYTES,
    NO_LANE,
    FrameFlag,
    FrameType,
    HeaderWriter,
    bare_ack,
    payload_limit,
)

if TYPE_CHECKING:
    from accelhw.device.dataport import DataPort, Engine

FRAME_ALIGNMENT = 64  # bytes; payloads are multiples of this, but for a transfer's last
_ACK, _DATA, _MESSAGE = int(FrameType.ACK), int(FrameType.DATA), int(FrameType.MESSAGE)
_NACK, _ACK_NOW = int(FrameFlag.NACK), int(FrameFlag.ACK_NOW)
_NO_STREAM = 0  # means nothing to the far end, which takes such a frame and forgets it


class Run:
    """Frames in flight that left in one turn: a stretch of a cut, or a message alone.

    It stands for each of them among the records of the retry layer, so that a frame which leaves
    adds its checksum and nothing else.
    """

    __slots__ = ("crc", "crcs", "cut", "first", "left", "payload", "share", "start", "stop")

    def __init__(
        self, cut: Cut | None, first: int, start: int, share: int, crc: int, payload: bytes = b""
    ) -> None:
        self.cut = cut  # None: a message
        self.first = first  # sequence of the first frame
        self.start = self.stop = start  # from where to where in the transfer
        self.share = share  # bytes of each frame but the last
        self.crc = crc  # of the chunk before the first frame
        self.crcs: list[int] = []  # and with each
        self.payload = payload  # of a message
        self.left = 0  # frames that were not acknowledged

    def frame(self, sequence: int) -> tuple[int, int, int, int]:
        """Where in the transfer it begins, its length, and the CRC before it and with it."""
        place = (sequence - self.first) & SEQUENCE_MASK
        start = self.start + place * self.share
        crc = self.crcs[place - 1] if place else self.crc
        return start, min(self.share, self.stop - start), crc, self.crcs[place]


class Outbound:
    """InterfaceDown from the transport passes through whatever sends."""

    __slots__ = (
        "_ahead_frames",
        "_answers",
        "_bursts",
        "_engine",
        "_frame_bytes",
        "_granted_frames",
        "_leaving",
        "_limit",
        "_messages",
        "_opening_frames",
        "_opening_stop",
        "_port",
        "_transport",
        "_view",
        "_waits",
        "_writer",
        "blocked",
        "cut",
        "retry",
        "turn_frames",
    )

    def __init__(
        self, port: DataPort, transport: Transport, writer: HeaderWriter, bursts: Bursts,
        engine: Engine, answers: Answers, pace: Pace,
    ) -> None:  # fmt: skip
        """`bursts` has the same writer."""
        self.retry: RetrySender[Run] = RetrySender()
        self.blocked = False  # a frame found no room: wait until the transport is writable
        self._port = port
        self._transport = transport
        self._engine = engine
        self._answers = answers
        self._view = engine.hbm.view
        self._writer = writer
        self._bursts = bursts
        self._leaving = Leaving(plain=bare_ack(port.channel))
        self._waits = pace.waits
        if pace.waits is not None:
            self._leaving.turns.loop = pace.waits.fileno()
        self._limit = payload_limit(transport.mtu) // FRAME_ALIGNMENT * FRAME_ALIGNMENT
        self.turn_frames = pace.turn_frames(transport.mtu)
        self._ahead_frames = pace.ahead_frames(transport.mtu)
        self._opening_frames = pace.opening_frames(transport.mtu)
        self._granted_frames = 0  # by the far end
        self._messages: deque[bytes] = deque()
        self.cut: Cut | None = None  # the chunk that is being sent
        self._frame_bytes = self._limit  # payload of the frames of the present cut
        self._opening_stop = 0  # up to where in its transfer the present cut opens

    # ---- the link ----

    def start(self, credit_frames: int) -> int:
        """A new epoch; the window in frames."""
        self._granted_frames = credit_frames
        window = max(1, min(credit_frames, WINDOW_FRAMES_MAX))
        self.retry.start(window)
        return window

    def stop(self) -> list[bytes]:
        """Forget all that is in flight; the messages among it, and those that had not left."""
        lost = [run.payload for run in self.retry.records if run.cut is None]
        lost += self._messages
        self.retry.start(0)
        self._messages.clear()
        self.cut = None
        self.blocked = False
        return lost

    def grant(self, credit_frames: int) -> None:
        """The far end's word for how much may be in flight."""
        self._granted_frames = credit_frames
        self.retry.window = min(credit_frames, WINDOW_FRAMES_MAX)

    # ---- what to send ----

    @property
    def idle(self) -> bool:
        """Nothing is to be sent, nor was sent and not acknowledged."""
        return self.cut is None and not self._messages and not self.retry.records

    def say(self, payload: bytes) -> None:
        """Queue a message, ahead of data that has not left."""
        self._messages.append(payload)

    def drop_cut(self, cut: Cut) -> None:
        """Its transfer ended: send no more of it."""
        if self.cut is cut:
            self.cut = None

    # ---- sending ----

    def pump(self, now_ns: int) -> bool:
        """Send what may be sent now, a bounded batch. True: more could leave at once."""
        self.blocked = False
        budget = self.turn_frames
        retry = self.retry
        while budget and retry.replaying:
            budget -= 1
            if not self._replay(*retry.next_replay(), now_ns):
                return False
        while budget > 0 and retry.room > 0:
            if not self._messages and self.cut is None:
                self._begin(now_ns)
            if self._messages:
                payload = self._messages[0]
                run = Run(None, retry.next_sequence, 0, len(payload), 0, payload)
                run.stop, run.left = len(payload), 1
                run.crcs.append(crc32c(payload))
                if not self._transmit(run.first, run):
                    return False
                self._messages.popleft()
                retry.sent(run, now_ns)
                budget -= 1
            elif self.cut is not None:
                count = self._stream(self.cut, budget, now_ns)
                now_ns = self._leaving.turns.now_ns
                budget -= count
                if self.blocked:
                    return False
                if not count:
                    break  # enough is under way
            else:
                break
        if not retry.room and (self.cut is not None or self._messages):
            self._port.counters.tx_stalls += 1
        self._port.counters.in_flight_frames = len(retry.records)
        return budget <= 0 and (retry.replaying or retry.room > 0)

    def _stream(self, cut: Cut, limit: int, now_ns: int) -> int:
        """Send up to `limit` frames of the cut; how many. `blocked`: one found no room.

        The frames themselves are the hot path of sending: see accelhw.device.bursts.
        """
        port, answers, leaving = self._port, self._answers, self._leaving
        share, offset, retry = self._frame_bytes, cut.next, self.retry
        stop = self._pace(min(cut.end, offset + limit * share), offset, now_ns)
        if cut.backed < stop:
            self._use(cut, stop)
            stop = min(stop, offset + -(-(cut.backed - offset) // share) * share)
        self._writer.begin_run(answers.dropped_flag(), share, port.credit_frames, port.epoch)
        run = Run(cut, retry.next_sequence, offset, share, cut.crc)
        leaving.base, leaving.offset, leaving.stop = cut.base, offset, stop
        leaving.share, leaving.sequence, leaving.stream = share, run.first, cut.stream
        leaving.ack, leaving.crc = answers.receiver.expected, cut.crc
        leaving.last_flags = _ACK_NOW if stop == cut.end else 0
        run.crcs.extend(self._bursts.send(leaving))
        if leaving.error:
            no_room(OSError(leaving.error, os.strerror(leaving.error)))
            self._full()
        count = run.left = len(run.crcs)
        run.stop = cut.next = min(stop, offset + count * share)
        payload_bytes = run.stop - offset
        cut.in_flight += count
        if count:
            cut.crc = run.crcs[-1]
            retry.sent_run(run, count, now_ns)
            counters = port.counters
            counters.tx_frames += count
            counters.tx_bytes += count * HEADER_BYTES + payload_bytes
            counters.tx_payload_bytes += payload_bytes
            answers.carried()
        if cut.next == cut.end:
            self.cut = None
            self._engine.cut_left(cut, now_ns)
        if leaving.turns.answers:
            self._heard(leaving)
        return count

    def _pace(self, stop: int, offset: int, now_ns: int) -> int:
        """How much may be under way of a burst from `offset`, and whether it may hear of that by
        itself. Where it stops."""
        port, retry, leaving = self._port, self.retry, self._leaving
        turns = leaving.turns
        turns.now_ns = now_ns
        turns.answers = turns.patience_ms = leaving.round_trip_ns = 0
        leaving.acked, leaving.window = retry.base, retry.window
        leaving.epoch, leaving.credit = port.epoch, self._granted_frames
        if self._waits is None or port.taking:  # which brings acknowledgements with data
            return stop
        turns.patience_ms = self._waits.patience_ms()
        if offset < self._opening_stop:
            leaving.window = min(retry.window, self._opening_frames)
            return min(stop, self._opening_stop)
        leaving.window = min(retry.window, self._ahead_frames)
        return stop

    def _heard(self, leaving: Leaving) -> None:
        """Of acknowledgements, while more left."""
        counters, turns = self._port.counters, leaving.turns
        counters.rx_frames += turns.answers
        counters.rx_bytes += turns.answers * HEADER_BYTES
        counters.acks_received += turns.answers
        self.retry.round_trip(leaving.round_trip_ns)
        self.acknowledged(leaving.acked, True, turns.now_ns)

    def _use(self, cut: Cut, stop: int) -> None:
        """What comes next of it is read, and will be again."""
        base, first = cut.base, cut.base + max(cut.next, cut.backed)
        end = self._engine.hbm.use(first, base + stop, base, base + cut.total_bytes)
        cut.backed = end - base

    def _begin(self, now_ns: int) -> None:
        """Ask for a cut, and deal it evenly: a small last frame would cost as much as any."""
        self.cut = cut = self._engine.next_cut(self._port, now_ns)
        if cut is not None:
            length = cut.end - cut.next
            frames = -(-length // self._limit)
            share = -(-length // frames)
            self._frame_bytes = -(-share // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
            self._opening_stop = cut.next + self._opening_frames * self._frame_bytes

    def _replay(self, sequence: int, run: Run, now_ns: int) -> bool:
        cut = run.cut
        offset, length, crc_before, crc = run.frame(sequence)
        if cut is not None and cut.stream != _NO_STREAM:
            view = self._view[cut.base + offset : cut.base + offset + length]
            if crc32c(view, crc_before) != crc:
                # The source was changed meanwhile: what was promised is gone, and so is the
                # transfer. Its frames keep their place in the sequence, but belong to nobody now.
                for other in self.retry.records:
                    if other.cut is not None and other.cut.push is cut.push:
                        other.cut.stream = _NO_STREAM
                self._engine.source_changed(cut, now_ns)
        if not self._transmit(sequence, run):
            return False
        self.retry.resent()
        self._port.counters.replayed_frames += 1
        if cut is not None:
            cut.push.replayed_frames += 1
        return True

    def _transmit(self, sequence: int, run: Run) -> bool:
        """A frame out of the usual: a message, or anything again. False: no room now."""
        cut = run.cut
        offset, length, _, crc = run.frame(sequence)
        type_, flags, stream, body = _MESSAGE, _ACK_NOW, 0, memoryview(run.payload)
        if cut is not None:
            retry = self.retry
            last = (sequence - retry.base + 1) & SEQUENCE_MASK >= len(retry.records)
            type_, flags, stream = _DATA, _ACK_NOW if last or retry.probing else 0, cut.stream
            body = self._view[cut.base + offset : cut.base + offset + length]
        port, answers = self._port, self._answers
        header = self._writer.write(
            type_, NO_LANE, flags | answers.dropped_flag(), length, port.credit_frames, port.epoch,
            sequence, answers.receiver.expected, stream, offset, crc,
        )  # fmt: skip
        if not self._transport.send((header, body)):
            self._full()
            return False
        answers.carried()
        port.counters.tx_frames += 1
        port.counters.tx_bytes += HEADER_BYTES + length
        return True

    def acknowledge(self) -> None:
        """Say alone what was taken, or what is missing."""
        port, answers = self._port, self._answers
        flags = answers.flags()
        header = self._writer.write(
            _ACK, NO_LANE, flags, 0, port.credit_frames, port.epoch, 0, answers.receiver.expected,
            0, 0, 0,
        )  # fmt: skip
        if not self._transport.send((header,)):
            self._full()
            return
        counters = port.counters
        counters.tx_frames += 1
        counters.tx_bytes += HEADER_BYTES
        if flags & _NACK:
            counters.nacks_sent += 1
        else:
            counters.acks_sent += 1
        answers.said()

    def _full(self) -> None:
        self.blocked = True
        self._port.counters.tx_stalls += 1

    # ---- what the far end says ----

    def acknowledged(self, ack: int, proved: bool, now_ns: int) -> None:
        """All before `ack` is there; `proved`: and surely stored."""
        retry, counters = self.retry, self._port.counters
        count = retry.acknowledge(ack, now_ns)
        if count < 0:
            counters.malformed_frames += 1  # acknowledges what was never sent
            return
        taken = retry.take_run(count)
        while taken:
            run = taken[0]
            frames, cut = min(run.left, len(taken)), run.cut
            run.left -= frames
            del taken[:frames]
            if cut is None:
                continue
            cut.in_flight -= frames
            cut.proved &= proved
            if not cut.in_flight and cut.next == cut.end:
                self._engine.cut_arrived(cut, cut.proved, now_ns)
        counters.in_flight_frames = len(retry.records)
