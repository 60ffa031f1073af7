"""A port's data path: frames between the fibre and HBM, in order, checked, sent again when lost.

`Outbound` sends, `Inbound` takes, `Answers` is what one owes the other; here they are one link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from accelhw.device.answers import Answers
from accelhw.device.hbm import Hbm
from accelhw.device.inbound import Clear, Inbound, Light
from accelhw.device.native import bursts
from accelhw.device.outbound import Outbound
from accelhw.device.pace import PLAIN, Pace
from accelhw.device.portcounters import PortCounters
from accelhw.device.push import Cut
from accelhw.device.sink import Landing, Sink
from accelhw.device.way import BULK_BYTES, Way
from accelhw.link.retry import Verdict
from accelhw.model.link import PeerId
from accelhw.transport.base import Transport
from accelhw.transport.direct import direct_of
from accelhw.wire.frame import (
    ChecksumDiffers,
    ForeignFrame,
    FrameFlag,
    FrameType,
    Header,
    HeaderWriter,
    MalformedFrame,
    decode_header,
    source_address,
)
from accelhw.wire.message import TransferMessage, Widen, encode_message

_ACK, _DATA = int(FrameType.ACK), int(FrameType.DATA)
_NACK, _ACK_NOW = int(FrameFlag.NACK), int(FrameFlag.ACK_NOW)
_DROPPED = int(FrameFlag.DROPPED)


class Engine(Protocol):
    """What a port asks of its card's transfer engine."""

    hbm: Hbm

    def port_up(self, port: Way, now_ns: int) -> None: ...
    def port_down(self, port: Way, lost: list[bytes], now_ns: int) -> None: ...
    def next_cut(self, port: Way, now_ns: int) -> Cut | None: ...
    def cut_left(self, cut: Cut, now_ns: int) -> None: ...
    def cut_arrived(self, cut: Cut, proved: bool, now_ns: int) -> None: ...
    def landed_chunk(self, landing: Landing, now_ns: int) -> None: ...
    def memory_fault(self, landing: Landing, now_ns: int) -> None: ...
    def source_changed(self, cut: Cut, now_ns: int) -> None: ...
    def on_message(self, port: Way, message: TransferMessage, now_ns: int) -> None: ...


def _alone() -> None:
    """No virtual channels here that could help."""


def _unheard(message: Widen, now_ns: int) -> None:
    pass


class DataPort:
    """A port's way for frames, or one virtual channel of it.

    The loop calls `receive` when the transport is readable, then `pump`.
    `light` flips bits of the payloads that land.
    InterfaceDown from the transport passes through `receive`, `pump` and `on_deadline`.
    """

    __slots__ = (
        "_answers",
        "_engine",
        "_inbound",
        "_outbound",
        "_transport",
        "channel",
        "counters",
        "credit_frames",
        "epoch",
        "exhausted",
        "held",
        "name",
        "on_burden",
        "on_widen",
        "peer",
        "relieved",
        "up",
    )

    def __init__(
        self,
        name: str,
        transport: Transport,
        engine: Engine,
        light: Light | None = None,
        counters: PortCounters | None = None,
        channel: int = 0,
        streams: dict[int, Sink] | None = None,
        pace: Pace = PLAIN,
    ) -> None:
        self.name = name  # card0/oe1
        self.channel = channel
        self.counters = counters or PortCounters()
        self.credit_frames = max(1, min(transport.receive_frames, 0xFFFF))  # what we grant
        self.epoch = 0
        self.exhausted = False  # the replay limit was reached: the port must train again
        self.held = False  # the link is in trouble: nothing is sent, all in flight is kept
        self.peer: PeerId | None = None
        self.up = False
        self.relieved = False  # other channels are up, and carry what is large
        self.on_burden: Callable[[], None] = _alone
        self.on_widen: Callable[[Widen, int], None] = _unheard
        self._transport = transport
        self._engine = engine
        direct = direct_of(transport)
        self._answers = Answers(self.credit_frames)
        writer = HeaderWriter(source_address(name), channel)
        frames = bursts(direct, engine.hbm.view, writer)
        if not frames.takes_turns:
            pace = PLAIN
        self._outbound = Outbound(self, transport, writer, frames, engine, self._answers, pace)
        self._inbound = Inbound(
            self, transport, frames, direct.head, engine, self._answers, self._outbound,
            light or Clear(),
            {} if streams is None else streams,
            pace,
        )  # fmt: skip

    # ---- the link ----

    def link_up(self, epoch: int, peer: PeerId, credit_frames: int, now_ns: int) -> None:
        """Training succeeded: `peer` grants `credit_frames`; frames of other epochs are stale."""
        if self.up:
            self.link_down(now_ns)
        self.epoch = epoch
        self.peer = peer
        self.exhausted = False
        self.held = False
        self.counters.credit_frames = self._outbound.start(credit_frames)
        self._answers.start()
        self.up = True
        self._engine.port_up(self, now_ns)

    def link_down(self, now_ns: int) -> None:
        """What is unacknowledged counts as not sent; the engine sends it over another epoch."""
        if not self.up:
            return
        self.up = False
        lost = self._outbound.stop()
        self._inbound.stop()
        self.counters.in_flight_frames = self.counters.credit_frames = 0
        self._engine.port_down(self, lost, now_ns)

    def hold(self) -> None:
        """Send nothing until `release`. What comes meanwhile is still taken."""
        self.held = self.up

    def release(self, now_ns: int) -> None:
        """The link is good again: go on where it was, and send again what may have been lost."""
        if self.held:
            self.held = self.exhausted = False
            self._outbound.retry.resume(now_ns)
            self._answers.again()  # the far end's view of us may be old

    @property
    def rtt_ns(self) -> int:
        """Smoothed round trip of frame and acknowledgement, 0 before the first."""
        return self._outbound.retry.rtt_ns

    @property
    def taking(self) -> bool:
        """A chunk is coming in."""
        return self._inbound.landing is not None

    @property
    def streams(self) -> dict[int, Sink]:
        """What the far end's stream numbers mean here."""
        return self._inbound.streams

    def carries(self, total_bytes: int) -> bool:
        return not self.relieved or total_bytes < BULK_BYTES

    def burdened(self) -> None:
        self.on_burden()

    def void(self, landing: Landing) -> None:
        """Its end tells; nothing of ours keeps another."""

    # ---- out ----

    @property
    def wants_write(self) -> bool:
        """Something found no room: call `pump` when the transport is writable."""
        return self._outbound.blocked

    def say(self, message: TransferMessage) -> None:
        """Queue a message, ahead of data that has not left. Dropped when the link is down."""
        if self.up:
            self._outbound.say(encode_message(message))

    @property
    def cut_in_hand(self) -> Cut | None:
        """The chunk that is being sent."""
        return self._outbound.cut

    def drop_cut(self, cut: Cut) -> None:
        """Its transfer ended: send no more of it."""
        self._outbound.drop_cut(cut)

    def pump(self, now_ns: int) -> bool:
        """Send what may be sent now, a bounded batch. True: more could leave at once."""
        outbound = self._outbound
        if not self.up or self.exhausted or self.held:
            outbound.blocked = False
            return False
        more = outbound.pump(now_ns)
        if not outbound.blocked and self._answers.due(now_ns):
            outbound.acknowledge()
        return more

    # ---- in ----

    def receive(self, now_ns: int, limit: int | None = None) -> Header | None:
        """Take up to `limit` frames (None: a turn's) that belong to the data path or to nobody.

        Stops at a CARRIER or TRAINING frame and returns its header; it is counted, and the caller
        takes the frame from the transport and calls again. None: nothing waits, or the limit.
        """
        transport, inbound = self._transport, self._inbound
        counters = self.counters
        left = self._outbound.turn_frames if limit is None else limit
        while left > 0:
            left = inbound.run(left, now_ns)
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

    def _take(self, header: Header, now_ns: int) -> None:
        counters, outbound, answers = self.counters, self._outbound, self._answers
        if header.epoch != self.epoch or not self.up:
            counters.stale_frames += 1
            self._transport.discard()
            return
        if header.ack != outbound.retry.base:
            outbound.acknowledged(header.ack, not header.flags & _DROPPED, now_ns)
        if header.type == _ACK:
            self._transport.discard()
            self._heard_answer(header, now_ns)
            return
        verdict = answers.receiver.judge(header.sequence)
        if verdict is not Verdict.EXPECTED:
            self._transport.discard()
            if verdict is Verdict.DUPLICATE:
                counters.duplicate_frames += 1
                answers.again()  # ours was lost, or is on its way
            elif verdict is Verdict.GAP:
                counters.missing_frames += answers.receiver.missing
                answers.ask = True
            return
        arrive = self._inbound.land if header.type == _DATA else self._inbound.listen
        if not arrive(header, now_ns):
            counters.crc_errors += 1
            answers.refuse()
            return
        if header.flags & _ACK_NOW:
            answers.now = True
        if answers.many and not self.held:
            outbound.acknowledge()

    def _heard_answer(self, header: Header, now_ns: int) -> None:
        """An acknowledgement that came alone, taken already; what else it says."""
        retry = self._outbound.retry
        if header.credit:
            self._outbound.grant(header.credit)
        if header.flags & _NACK:
            self.counters.nacks_received += 1
            if header.ack == retry.base:
                retry.nacked(now_ns)
                self.exhausted = retry.exhausted
        else:
            self.counters.acks_received += 1

    # ---- time ----

    def next_deadline_ns(self) -> int | None:
        """When `on_deadline` is due: the replay timer, or an acknowledgement held back."""
        if not self.up or self.held:
            return None
        replay_ns = self._outbound.retry.deadline_ns()
        ack_ns = self._answers.receiver.deadline_ns()
        if replay_ns is None or (ack_ns is not None and ack_ns < replay_ns):
            return ack_ns
        return replay_ns

    def on_deadline(self, now_ns: int) -> None:
        """Look at the timers; call `pump` after it."""
        if not self.up or self.held:
            return
        retry = self._outbound.retry
        if retry.expired(now_ns):
            self.counters.replay_timeouts += 1
            self.exhausted = retry.exhausted
        if self._answers.receiver.ack_due(now_ns):
            self._answers.now = True
