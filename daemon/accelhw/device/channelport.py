"""A virtual channel as its worker sees it: the engine's way to the far card, moved by another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from accelhw.device.channelwords import (
    Aims,
    Arrived,
    AsksHearing,
    AsksLanding,
    Changed,
    Count,
    Down,
    Drop,
    FromMover,
    Give,
    Gone,
    Hold,
    Landed,
    Lands,
    Left,
    MoverLine,
    NoPage,
    Nowhere,
    Release,
    Say,
    Spent,
    Taken,
    Up,
    Void,
    Wants,
)
from accelhw.device.dataport import Engine
from accelhw.device.portcounters import FIELDS, GAUGES, PortCounters
from accelhw.device.push import Cut, Push
from accelhw.device.sink import Landing, Sink
from accelhw.device.way import BULK_BYTES
from accelhw.model.link import PeerId
from accelhw.optics.strikes import Aim
from accelhw.wire.frame import MalformedFrame
from accelhw.wire.message import TransferMessage, decode_message, encode_message

CUTS_AHEAD = 2  # chunks a mover may have: one that leaves, and the next
# Exposure, lost words and flips by lane that real frames met; see `Strikes.take`.
Met = Callable[[float, int, dict[int, int]], None]


class ChannelPort:
    """`counters` are the port's, into which this channel's frames are counted."""

    def __init__(
        self, name: str, way: int, line: MoverLine, engine: Engine, counters: PortCounters, met: Met
    ) -> None:
        self.name = name
        self.way = way
        self.peer: PeerId | None = None
        self.streams: dict[int, Sink] = {}
        self.up = False
        self.exhausted = False
        self.rtt_ns = 0
        self.gauges = dict.fromkeys(sorted(GAUGES), 0)
        self._line = line
        self._engine = engine
        self._counters = counters
        self._met = met
        self._listening = False  # the mover takes frames; the engine may not know this way yet
        self._epoch = 0  # of the link, since it listens
        self._numbers = count(1)
        self._ahead: set[int] = set()  # chunks that the mover has and that have not left
        self._cuts: dict[int, Cut] = {}
        self._landings: dict[int, Landing] = {}
        self._pushes: dict[Push, int] = {}

    # ---- the link ----

    def listen(self, epoch: int, peer: PeerId, credit_frames: int) -> None:
        """Take frames of this epoch, before the far end may send any."""
        if not self._listening:
            self._listening = True
            self._epoch = epoch
            self.peer = peer
            self._line.tell(Up(self.way, epoch, credit_frames))

    def link_up(self, now_ns: int) -> None:
        """The far end listens, too."""
        if self._listening and not self.up:
            self.up = True
            self._engine.port_up(self, now_ns)

    def link_down(self, now_ns: int) -> None:
        if not self._listening:
            return
        self._listening = self.exhausted = False
        lost = list(self._line.ask(Down(self.way)).lost)
        self.streams.clear()
        self.gauges = dict.fromkeys(self.gauges, 0)
        was_up, self.up = self.up, False
        if was_up:
            self._engine.port_down(self, lost, now_ns)
        self._ahead.clear()
        self._cuts.clear()
        self._landings.clear()
        self._pushes.clear()

    def hold(self) -> None:
        if self._listening:
            self._line.tell(Hold(self.way))

    def release(self) -> None:
        if self._listening:
            self.exhausted = False
            self._line.tell(Release(self.way))

    def aim(self, at: Aim) -> None:
        """How often errors reach a frame from now on."""
        self._line.tell(Aims(self.way, at))

    # ---- for the engine ----

    def carries(self, total_bytes: int) -> bool:
        return total_bytes >= BULK_BYTES

    def burdened(self) -> None:
        """It is the help itself."""

    def say(self, message: TransferMessage) -> None:
        if self.up:
            self._line.tell(Say(self.way, encode_message(message)))

    def work(self, now_ns: int) -> bool:
        """Give the mover what it can use. False: nothing is left over for another turn."""
        while self.up and len(self._ahead) < CUTS_AHEAD:
            cut = self._engine.next_cut(self, now_ns)
            if cut is None:
                break
            number = next(self._numbers)
            self._ahead.add(number)
            self._cuts[number] = cut
            cut.in_flight = 1  # until the last of it was acknowledged
            push = self._pushes.setdefault(cut.push, number)
            self._line.tell(
                Give(
                    self.way, number, push, cut.stream, cut.base, cut.next, cut.end,
                    cut.total_bytes,
                )
            )  # fmt: skip
        return False

    def drop_cut(self, cut: Cut) -> None:
        for number, known in list(self._cuts.items()):
            if known is cut:
                del self._cuts[number]
                self._forget_push(cut.push)
                if self._listening:
                    self._line.ask(Drop(self.way, number))

    def _forget_push(self, push: Push) -> None:
        """Unless the mover has more of it."""
        if not any(cut.push is push for cut in self._cuts.values()):
            self._pushes.pop(push, None)

    def void(self, landing: Landing) -> None:
        for number, known in list(self._landings.items()):
            if known is landing:
                del self._landings[number]
                if self._listening:
                    self._line.ask(Void(self.way, number))

    # ---- from the mover ----

    def hear(self, word: FromMover, now_ns: int) -> None:
        engine = self._engine
        match word:
            case Count():
                self._count(word)
            case AsksHearing(epoch=epoch, payload=payload):
                if self._listening and epoch == self._epoch:
                    self.link_up(now_ns)  # the far end sends, so it listens, whatever comes first
                    self._hear_message(payload, now_ns)
                self._line.tell(Taken(self.way))
            case AsksLanding():
                self._place(word)
            case Wants(cut=number):
                self._ahead.discard(number)
                self.work(now_ns)
            case Left(cut=number, crc=crc):
                self._ahead.discard(number)
                if (cut := self._cuts.get(number)) is not None:
                    cut.next, cut.crc = cut.end, crc
                    engine.cut_left(cut, now_ns)
                self.work(now_ns)
            case Arrived(cut=number):
                if (cut := self._cuts.pop(number, None)) is not None:
                    cut.in_flight = 0
                    cut.push.replayed_frames += word.replayed_frames
                    self._forget_push(cut.push)
                    engine.cut_arrived(cut, word.proved, now_ns)
            case Landed(landing=number, crc=crc):
                if (landing := self._landings.pop(number, None)) is not None:
                    landing.next, landing.crc = landing.end, crc
                    engine.landed_chunk(landing, now_ns)
            case NoPage(landing=number):
                if (landing := self._landings.pop(number, None)) is not None:
                    engine.memory_fault(landing, now_ns)
            case Changed(cut=number):
                if (cut := self._cuts.get(number)) is not None:
                    engine.source_changed(cut, now_ns)
            case Spent():
                self.exhausted = self._listening
            case Gone():
                pass  # what asked for it has it

    def _hear_message(self, payload: bytes, now_ns: int) -> None:
        try:
            message = decode_message(payload)
        except MalformedFrame:
            self._counters.malformed_frames += 1
            return
        self._engine.on_message(self, message, now_ns)

    def _place(self, word: AsksLanding) -> None:
        sink = self.streams.get(word.stream)
        landing = (
            sink.landing(self, word.stream, word.offset, word.length) if sink is not None else None
        )
        if landing is None:
            self._line.tell(Nowhere(self.way, sink is not None and sink.has(word.offset)))
            return
        number = next(self._numbers)
        self._landings[number] = landing
        total_bytes = landing.sink.total_bytes
        self._line.tell(
            Lands(self.way, number, landing.base, landing.next, landing.end, total_bytes)
        )

    def _count(self, word: Count) -> None:
        counters = self._counters
        for name, moved in zip(FIELDS, word.moved, strict=True):
            if name in GAUGES:
                self.gauges[name] = moved
            elif moved:
                setattr(counters, name, getattr(counters, name) + moved)
        self.rtt_ns = word.rtt_ns
        self._met(word.exposure, word.lost_words, word.flips)
