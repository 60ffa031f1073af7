"""A virtual channel as its mover sees it: a `DataPort` whose transfer engine is elsewhere."""

from __future__ import annotations

from collections import deque
from typing import cast

from accelhw.device.channelport import CUTS_AHEAD
from accelhw.device.channelwords import (
    Arrived,
    AsksHearing,
    AsksLanding,
    Changed,
    Count,
    Give,
    Landed,
    Lands,
    Left,
    NoPage,
    Nowhere,
    Wants,
    WorkerLine,
)
from accelhw.device.dataport import DataPort
from accelhw.device.hbm import Hbm
from accelhw.device.pace import PLAIN, Pace
from accelhw.device.portcounters import FIELDS, GAUGES
from accelhw.device.push import Cut, Push
from accelhw.device.sink import Landing, Sink
from accelhw.device.way import Way
from accelhw.model.link import PeerId
from accelhw.optics.strikes import Strikes
from accelhw.transport.base import Transport
from accelhw.wire.frame import channel_epoch
from accelhw.wire.message import TransferMessage, decode_message, encode_message

_FAR = PeerId("", "", 0)  # who it is, the worker knows


class _FarPush:
    """What its chunks here have in common."""

    __slots__ = ("replayed_frames",)

    def __init__(self) -> None:
        self.replayed_frames = 0


class _FarCut(Cut):
    __slots__ = ("number",)

    def __init__(self, word: Give, push: _FarPush) -> None:
        self.number = word.cut
        self.push = cast(Push, push)
        self.chunk = 0
        self.stream = word.stream
        self.base = word.base
        self.next = word.start
        self.end = word.end
        self.total_bytes = word.total_bytes
        self.backed = 0
        self.crc = 0
        self.in_flight = 0
        self.proved = True


class _FarLanding(Landing):
    __slots__ = ("number",)

    def __init__(self, word: Lands, sink: Sink, stream: int) -> None:
        self.number = word.landing
        self.sink = sink
        self.stream = stream
        self.base = word.base
        self.next = word.start
        self.end = word.end
        self.crc = 0
        self.backed = 0
        self.share = 0


class _FarSink(Sink):
    """Where the frames of a stream land: the worker knows."""

    __slots__ = ("_channel",)

    def __init__(self, channel: ChannelEngine) -> None:
        self._channel = channel

    def landing(self, port: Way, stream: int, offset: int, length: int) -> Landing | None:
        return self._channel.landing(self, stream, offset, length)

    def has(self, offset: int) -> bool:
        return self._channel.told_here


class _Streams(dict[int, Sink]):
    """Every number may mean something."""

    def __init__(self, channel: ChannelEngine) -> None:
        super().__init__()
        self._channel = channel

    def get(self, stream: int, default: object = None) -> Sink:
        return _FarSink(self._channel)


class ChannelEngine:
    """The `Engine` of one channel's `DataPort`; `port` is that."""

    def __init__(
        self,
        way: int,
        name: str,
        number: int,
        line: WorkerLine,
        hbm: Hbm,
        transport: Transport,
        strikes: Strikes,
        pace: Pace = PLAIN,
    ) -> None:
        self.hbm = hbm
        self.told_here = False  # of the chunk that was asked for last
        self._way = way
        self._number = number
        self._line = line
        self._strikes = strikes
        self._cuts: deque[_FarCut] = deque()
        self._pushes: dict[int, _FarPush] = {}
        self._landings: list[_FarLanding] = []  # that have begun
        self._shown: tuple[int, ...] = (0,) * len(FIELDS)
        self._lost: list[bytes] = []
        self._epoch = 0  # of the link
        self.port = DataPort(
            name, transport, self, strikes, channel=number, streams=_Streams(self), pace=pace
        )

    # ---- for the worker ----

    def up(self, epoch: int, credit_frames: int, now_ns: int) -> None:
        self._epoch = epoch
        credit_frames = min(credit_frames, self.port.credit_frames)  # the far buffer may be as ours
        self.port.link_up(channel_epoch(epoch, self._number), _FAR, credit_frames, now_ns)

    def down(self, now_ns: int) -> tuple[bytes, ...]:
        """What messages may not have arrived."""
        self._lost = []
        self.port.link_down(now_ns)
        self._cuts.clear()
        self._pushes.clear()
        self._landings.clear()
        return tuple(self._lost)

    def say(self, payload: bytes) -> None:
        self.port.say(decode_message(payload))

    def give(self, word: Give) -> None:
        push = self._pushes.setdefault(word.push, _FarPush())
        self._cuts.append(_FarCut(word, push))
        del self._pushes[word.push]
        self._pushes[word.push] = push
        while len(self._pushes) > 4 * CUTS_AHEAD:
            del self._pushes[next(iter(self._pushes))]  # long since left

    def drop(self, number: int) -> None:
        cut = self.port.cut_in_hand
        if isinstance(cut, _FarCut) and cut.number == number:
            self.port.drop_cut(cut)
            self._line.tell(Wants(self._way, number))
        for waiting in [cut for cut in self._cuts if cut.number == number]:
            self._cuts.remove(waiting)
            self._line.tell(Wants(self._way, number))

    def void(self, number: int) -> None:
        for landing in [landing for landing in self._landings if landing.number == number]:
            landing.end = -1
            self._landings.remove(landing)

    def tell_count(self, *, later: bool = False) -> None:
        """What happened since the last time, if anything did."""
        counters = self.port.counters
        now = tuple(getattr(counters, name) for name in FIELDS)
        moved = tuple(
            value if name in GAUGES else value - before
            for name, value, before in zip(FIELDS, now, self._shown, strict=True)
        )
        exposure, lost_words, flips = self._strikes.take()
        if now != self._shown or exposure:
            self._shown = now
            rtt_ns = self.port.rtt_ns
            count = Count(self._way, moved, rtt_ns, exposure, lost_words, flips)
            self._line.tell(count, later=later)

    # ---- the engine of the port ----

    def port_up(self, port: Way, now_ns: int) -> None:
        pass

    def port_down(self, port: Way, lost: list[bytes], now_ns: int) -> None:
        self._lost = lost

    def next_cut(self, port: Way, now_ns: int) -> Cut | None:
        return self._cuts.popleft() if self._cuts else None

    def cut_left(self, cut: Cut, now_ns: int) -> None:
        assert isinstance(cut, _FarCut)
        self.tell_count()  # The transfer may be done before anything else is told.
        self._line.tell(Left(self._way, cut.number, cut.crc))

    def cut_arrived(self, cut: Cut, proved: bool, now_ns: int) -> None:
        assert isinstance(cut, _FarCut)
        # While more of it leaves, this waits for when that has left: nobody needs it before.
        leaving = self.port.cut_in_hand
        later = leaving is not None and leaving.push is cut.push
        self.tell_count(later=later)
        replayed, cut.push.replayed_frames = cut.push.replayed_frames, 0
        self._line.tell(Arrived(self._way, cut.number, proved, replayed), later=later)

    def landing(self, sink: Sink, stream: int, offset: int, length: int) -> Landing | None:
        for begun in self._landings:
            if begun.stream == stream and begun.next == offset and offset + length <= begun.end:
                return begun
        answer = self._line.ask(AsksLanding(self._way, stream, offset, length))
        self.told_here = isinstance(answer, Nowhere) and answer.here
        if not isinstance(answer, Lands) or not self.port.up:
            return None
        sink.total_bytes = answer.total_bytes
        landing = _FarLanding(answer, sink, stream)
        self._landings.append(landing)
        return landing

    def landed_chunk(self, landing: Landing, now_ns: int) -> None:
        assert isinstance(landing, _FarLanding)
        self._landings.remove(landing)
        self.tell_count()
        # Before its acknowledgement leaves: the far end may ask at once, by another way, whether
        # all is here, and would send again what we did not tell of.
        self._line.answer(Landed(self._way, landing.number, landing.crc))

    def memory_fault(self, landing: Landing, now_ns: int) -> None:
        assert isinstance(landing, _FarLanding)
        self._landings.remove(landing)
        self._line.tell(NoPage(self._way, landing.number))

    def source_changed(self, cut: Cut, now_ns: int) -> None:
        assert isinstance(cut, _FarCut)
        self._line.tell(Changed(self._way, cut.number))

    def on_message(self, port: Way, message: TransferMessage, now_ns: int) -> None:
        self._line.ask(AsksHearing(self._way, self._epoch, encode_message(message)))
