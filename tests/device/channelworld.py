"""Two cards with virtual channels on their links, movers beside them, on a hand-turned clock.

What a worker and a mover say to each other waits in a queue, as in a socket, and goes through the
same codec. Who runs when follows the seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from accelhw.device.channelengine import ChannelEngine
from accelhw.device.channelport import ChannelPort
from accelhw.device.channels import Channels, NoChannels
from accelhw.device.channelwords import (
    Aims,
    Down,
    Drop,
    FromMover,
    Give,
    Gone,
    Hold,
    Lands,
    Nowhere,
    Plug,
    Release,
    Say,
    Spent,
    Taken,
    ToMover,
    Up,
    Void,
    Word,
)
from accelhw.device.dataport import DataPort
from accelhw.device.hbm import Hbm
from accelhw.device.pace import PLAIN
from accelhw.model.link import PeerId
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.optics.strikes import Strikes
from accelhw.transport.base import Transport
from accelhw.transport.faulty import FaultyTransport
from accelhw.transport.memory import InProcessPair
from accelhw.wire.checksum import crc32c

from .gateway import Gateway
from .world import HBM_BYTES, Card, World

CHANNELS = 2
WRITE, READ = TransferKind.WRITE, TransferKind.READ
KIB = 1 << 10
BULK = 64 * KIB  # in these worlds
CHUNK = 16 * KIB
BAD_FIBRE = {
    "loss_ratio": 0.03, "duplicate_ratio": 0.03, "reorder_ratio": 0.03, "corrupt_ratio": 0.03,
}  # fmt: skip
_to_mover = msgspec.msgpack.Decoder(ToMover)
_from_mover = msgspec.msgpack.Decoder(FromMover)


class CountedStrikes(Strikes):
    """Also knows all that was ever flipped."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.Generator(np.random.PCG64(seed)))
        self.struck_bytes = 0
        self.struck_bits = 0

    def strike(self, nbytes: int) -> Sequence[int]:
        flipped = super().strike(nbytes)
        self.struck_bytes += nbytes
        self.struck_bits += len(flipped)
        return flipped


class Line:
    """A worker's line to one mover, both ends, and the mover's channels."""

    def __init__(self, world: ChannelWorld, hbm: Hbm) -> None:
        self.world = world
        self.hbm = hbm
        self.ports: dict[int, ChannelPort] = {}
        self.engines: dict[int, ChannelEngine] = {}
        self.strikes: dict[int, CountedStrikes] = {}
        self.gateways: dict[int, Gateway] = {}  # of channels that need a descriptor
        self.to_mover: deque[ToMover] = deque()
        self.to_worker: deque[FromMover] = deque()
        self.said: list[FromMover] = []
        self.told: list[ToMover] = []
        self.deaf = False  # what is told waits

    # ---- the worker's end: MoverLine

    def tell(self, word: Word) -> None:
        decoded = _to_mover.decode(msgspec.msgpack.encode(word))
        assert decoded == word
        self.told.append(decoded)
        self.to_mover.append(decoded)

    def ask(self, word: Word) -> Gone:
        self.tell(word)
        while self.to_mover:
            self.obey_next()
        answer = self.to_worker.pop()
        assert isinstance(answer, Gone)
        return answer

    def plug(self, word: Plug, fd: int) -> None:
        raise AssertionError("no sockets here")

    def hear_next(self) -> FromMover:
        word = self.to_worker.popleft()
        self.ports[word.way].hear(word, self.world.now_ns)
        return word

    def hear(self, words: int | None = None) -> None:
        while self.to_worker and (words is None or words > 0):
            self.hear_next()
            words = None if words is None else words - 1

    # ---- the mover's end

    def obey_next(self) -> None:
        word = self.to_mover.popleft()
        engine, now_ns = self.engines[word.way], self.world.now_ns
        end = MoverEnd(self)
        match word:
            case Up(epoch=epoch, credit_frames=credit_frames):
                engine.up(epoch, credit_frames, now_ns)
            case Down():
                lost = engine.down(now_ns)
                self.engines[word.way].tell_count()
                end.tell(Gone(word.way, lost))
            case Hold():
                engine.port.hold()
            case Release():
                engine.port.release(now_ns)
            case Say(payload=payload):
                engine.say(payload)
            case Aims(at=at):
                self.strikes[word.way].aim(at)
            case Give():
                engine.give(word)
            case Drop(cut=cut):
                engine.drop(cut)
                end.tell(Gone(word.way))
            case Void(landing=landing):
                engine.void(landing)
                end.tell(Gone(word.way))
            case _:
                raise AssertionError(f"an answer that nobody waits for: {word}")

    def turn(self) -> None:
        """One turn of the mover's loop."""
        world = self.world
        if not self.deaf:
            for _ in range(world.random.randrange(len(self.to_mover) + 1)):
                if self.to_mover:
                    self.obey_next()
        for way, engine in self.engines.items():
            port = engine.port
            self._pass_on(way)
            if way in self.gateways and world.random.random() < 0.5:
                port.pump(world.now_ns)  # which may hear of what left before
            while port.receive(world.now_ns) is not None:
                raise AssertionError("only the data path is on this channel")
            deadline_ns = port.next_deadline_ns()
            if deadline_ns is not None and deadline_ns <= world.now_ns:
                port.on_deadline(world.now_ns)
            port.pump(world.now_ns)
            self._pass_on(way)
            if port.exhausted and way not in world.spent:
                world.spent.add(way)
                MoverEnd(self).tell(Spent(way))
            elif not port.exhausted:
                world.spent.discard(way)
            if world.random.random() < 0.01:
                self.engines[way].tell_count()

    def _pass_on(self, way: int) -> None:
        if way in self.gateways:
            self.gateways[way].pass_on()


class MoverEnd:
    """WorkerLine: where the mover tells and asks."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def tell(self, word: Word, *, later: bool = False) -> None:
        decoded = _from_mover.decode(msgspec.msgpack.encode(word))
        assert decoded == word
        self._line.said.append(decoded)
        self._line.to_worker.append(decoded)

    def answer(self, word: Word) -> None:
        self.tell(word)

    def ask(self, word: Word) -> Lands | Nowhere | Taken:
        line = self._line
        self.tell(word)
        asked = line.to_worker[-1]
        line.world.meanwhile()
        while asked is not (heard := line.hear_next() if line.to_worker else None):
            assert heard is not None, "the question was never heard"
        while True:
            each = line.to_mover[0]
            if isinstance(each, Lands | Nowhere | Taken):
                line.to_mover.popleft()
                return each
            line.obey_next()


class Host:
    """Opens a port's channels a few turns after it was asked."""

    def __init__(self, world: ChannelWorld, channels_max: int) -> None:
        self.channels_max = channels_max
        self.due: int | None = None
        self._world = world

    def open_channels(self) -> None:
        self.due = self._world.random.randrange(4)


class ChannelWorld(World):
    """Each card has a mover for each channel number. `hosts`: how many channels each card wants,
    None for one that knows of none; `can_open`: how many it then gets."""

    pace = PLAIN  # of movers

    def __init__(
        self,
        seed: int = 0,
        links: int = 1,
        mtu: int = 2000,
        credits_: int = 16,
        hosts: tuple[int | None, int | None] = (CHANNELS, CHANNELS),
        can_open: tuple[int, int] = (CHANNELS, CHANNELS),
        **faults: float,
    ) -> None:
        self.meanwhile: Callable[[], None] = lambda: None  # while a mover waits for an answer
        self.after_turn: Callable[[], None] = lambda: None
        self.spent: set[int] = set()
        self.lines: dict[Card, list[Line]] = {}
        self.channels: dict[Card, list[Channels]] = {}
        self.met: dict[Card, Strikes] = {}
        self.lanes: dict[tuple[int, int], tuple[FaultyTransport, FaultyTransport]] = {}
        self.cables: dict[tuple[int, int], InProcessPair] = {}
        self._ways = 0
        super().__init__(seed, links, mtu, credits_, **faults)
        self.can_open = dict(zip((self.a, self.b), can_open, strict=True))
        self._hosts = dict(zip((self.a, self.b), hosts, strict=True))
        for card in (self.a, self.b):
            self._power_on(card)

    def _power_on(self, card: Card) -> None:
        most = self._hosts[card]
        card.engine.catch_up = lambda now_ns: self.hear_all(card)
        self.lines[card] = [Line(self, card.hbm) for _ in range(CHANNELS)]
        self.met[card] = Strikes(np.random.Generator(np.random.PCG64(1)))
        self.channels[card] = [
            Channels(port, NoChannels() if most is None else Host(self, most))
            for port in card.ports
        ]

    def restart(self, card: Card) -> None:
        """Its worker dies, and its movers with it; the far end sees the links go."""
        far = self.far(card)
        for channels, port in zip(self.channels[far], far.ports, strict=True):
            channels.link_down(self.now_ns)
            port.link_down(self.now_ns)
        card.start()
        self.plug(card, self.side(card))
        self._power_on(card)

    def _lay(self, number: int) -> None:
        super()._lay(number)
        for channel in range(1, CHANNELS + 1):
            pair = InProcessPair(self.mtu, self.credits)
            one, other = (
                FaultyTransport(
                    end,
                    self.seed * 1000 + number * 20 + channel * 4 + side,
                    clock=lambda: self.now_ns,
                    **self.faults,  # type: ignore[arg-type]
                )
                for side, end in enumerate((pair.a, pair.b))
            )
            self.cables[number, channel] = pair
            self.lanes[number, channel] = one, other

    def far(self, card: Card) -> Card:
        return self.b if card is self.a else self.a

    def side(self, card: Card) -> int:
        return 0 if card is self.a else 1

    # ---- the link

    def up(self, link: int | None = None) -> None:
        for n in range(self.links) if link is None else [link]:
            self.epoch += 1
            for card in (self.a, self.b):
                self.channels[card][n].link_down(self.now_ns)
                peer = PeerId("c" * 16, self.far(card).name, n)
                card.ports[n].link_up(self.epoch, peer, self.credits, self.now_ns)

    def down(self, link: int | None = None) -> None:
        for n in range(self.links) if link is None else [link]:
            for card in (self.a, self.b):
                self.channels[card][n].link_down(self.now_ns)
                card.ports[n].link_down(self.now_ns)

    def _open(self, card: Card, link: int) -> None:
        """What the chassis' answer brings about."""
        ports = []
        for number in range(1, self.can_open[card] + 1):
            line = self.lines[card][number - 1]
            self._ways += 1
            way, name = self._ways, f"{card.name}/oe{link}"
            strikes = line.strikes[way] = CountedStrikes(self.seed + way)
            transport = self._end_of(line, way, self.lanes[link, number][self.side(card)])
            line.engines[way] = ChannelEngine(
                way, name, number, MoverEnd(line), Hbm(card.fd, HBM_BYTES), transport, strikes,
                self.pace,
            )  # fmt: skip
            line.ports[way] = ChannelPort(
                name, way, line, card.engine, card.ports[link].counters, self.met[card].met
            )
            ports.append(line.ports[way])
        self.channels[card][link].opened(ports, self.now_ns)

    def _end_of(self, line: Line, way: int, lane: FaultyTransport) -> Transport:
        return lane

    # ---- turns

    def hear_all(self, card: Card) -> None:
        for line in self.lines[card]:
            line.hear()

    def _worker_turn(self, card: Card) -> None:
        for line in self.lines[card]:
            line.hear(self.random.randrange(len(line.to_worker) + 1))
        for link, channels in enumerate(self.channels[card]):
            host = channels._host
            if isinstance(host, Host) and host.due is not None:
                host.due -= 1
                if host.due < 0:
                    host.due = None
                    self._open(card, link)
        for port in card.ports:
            while port.receive(self.now_ns) is not None:
                raise AssertionError("only the data path is on this fibre")
            deadline_ns = port.next_deadline_ns()
            if deadline_ns is not None and deadline_ns <= self.now_ns:
                port.on_deadline(self.now_ns)
            port.pump(self.now_ns)
        engine = card.engine
        engine.pump(self.now_ns)
        deadline_ns = engine.next_deadline_ns()
        if deadline_ns is not None and deadline_ns <= self.now_ns:
            engine.on_deadline(self.now_ns)
        ready = sorted(engine.ready, key=lambda way: (way.name, getattr(way, "way", 0)))
        engine.ready.clear()
        for way in ready:  # in an order that follows the seed alone
            if isinstance(way, ChannelPort):
                way.work(self.now_ns)
            elif isinstance(way, DataPort):
                way.pump(self.now_ns)
        card.events += [event.kind for event in engine.jobs.take_events()]

    def turn(self) -> None:
        actors: list[Callable[[], None]] = []
        for card in (self.a, self.b):
            actors.append(lambda card=card: self._worker_turn(card))  # type: ignore[misc]
            actors += [line.turn for line in self.lines[card]]
        self.random.shuffle(actors)
        for act in actors:
            if self.random.random() < 0.9:
                act()
        for ends in (*self.fibres, *self.lanes.values()):
            for end in ends:
                end.flush()
        self.now_ns += 100_000
        self.after_turn()

    def run(self, until: Callable[[], bool], turns: int = 20_000) -> None:
        for _ in range(turns):
            if until():
                return
            self.turn()
            for n in range(self.links):
                if any(
                    card.ports[n].exhausted or self.channels[card][n].exhausted
                    for card in (self.a, self.b)
                ):
                    self.down(n)
                    self.up(n)
        raise AssertionError(f"still not there after {turns} turns")

    def settle(self) -> None:
        """Until no transfer is known anywhere and everything that was said was heard."""
        self.run(lambda: not self.a.engine.transfers.active and not self.b.engine.transfers.active)
        for _ in range(50):
            self.turn()
        for card, lines in self.lines.items():
            for line in lines:
                while line.to_mover:
                    line.obey_next()
                for way in line.engines:
                    line.engines[way].tell_count()
            self.hear_all(card)

    # ---- looking

    def ways(self, card: Card, link: int = 0) -> Sequence[ChannelPort]:
        return self.channels[card][link].ports

    def engine_of(self, port: ChannelPort) -> ChannelEngine:
        return next(
            line.engines[port.way]
            for lines in self.lines.values()
            for line in lines
            if line.ports.get(port.way) is port
        )

    def relieved(self, link: int = 0) -> bool:
        return all(card.ports[link].relieved for card in (self.a, self.b))

    def sent_bytes(self, card: Card, link: int = 0) -> tuple[int, int]:
        """Payload that left channel 0 and the others."""
        others = sum(
            self.engine_of(p).port.counters.tx_payload_bytes for p in self.ways(card, link)
        )
        return card.ports[link].counters.tx_payload_bytes - sum(
            self.shown(p) for p in self.ways(card, link)
        ), others

    def shown(self, port: ChannelPort) -> int:
        """Of what the channel sent: what the worker has been told."""
        engine = self.engine_of(port)
        told = dict(
            zip(type(engine.port.counters).__dataclass_fields__, engine._shown, strict=True)
        )
        return int(told["tx_payload_bytes"])


MakeWorld = Callable[..., ChannelWorld]


def ends(world: ChannelWorld, kind: TransferKind) -> tuple[Card, Card]:
    """Who sends, and who takes, when card0 commands."""
    return (world.a, world.b) if kind is WRITE else (world.b, world.a)


def opened(world: ChannelWorld) -> None:
    """Both ends have their channels up, for a first bulk transfer asked for them."""
    world.up()
    world.start("first", BULK)
    assert world.finish("first").state == TransferState.DONE
    world.run(world.relieved)
    world.settle()


def assert_moved(world: ChannelWorld, data: bytes, target: Card, offset: int, name: str) -> None:
    info = world.info(name)
    assert (info.state, info.error) == (TransferState.DONE, TransferError.NONE)
    assert info.crc32c == crc32c(data)
    assert target.read(len(data), offset) == data
