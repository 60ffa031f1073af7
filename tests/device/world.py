"""Two cards' data paths joined by in-process fibres on a hand-turned clock, for tests."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from accelhw.device.dataport import DataPort
from accelhw.device.dma import TransferEngine
from accelhw.device.hbm import Hbm
from accelhw.device.inbound import Asked
from accelhw.interface.messages import StartTransfer, TransferInfo
from accelhw.model.link import PeerId
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferKind
from accelhw.transport.faulty import FaultyTransport
from accelhw.transport.memory import InProcessPair

HBM_BYTES = 16 << 20
REGION = 1
REGION_BASE = 1 << 20
REGION_BYTES = 8 << 20
KEY = 0xBEEF
STEP_NS = 100_000


class Card:
    """One card: HBM, engine, and one end of each fibre."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.fd = os.memfd_create(name)
        os.ftruncate(self.fd, HBM_BYTES)
        self.start()

    def start(self) -> None:
        """As after a worker's death: HBM stays, all else is new."""
        self.hbm = Hbm(self.fd, HBM_BYTES)
        self.engine = TransferEngine(self.name, self.hbm, wall_ns=lambda: self.world.now_ns)
        self.engine.windows.register(MemoryWindow(REGION, KEY, REGION_BASE, REGION_BYTES))
        self.ports: list[DataPort] = []
        self.events: list[str] = []
        self.told: list[TransferInfo] = []  # of each of these

    def fill(self, seed: int, length: int = REGION_BYTES, offset: int = 0) -> bytes:
        data = random.Random(seed).randbytes(length)
        os.pwrite(self.fd, data, REGION_BASE + offset)
        return data

    def read(self, length: int, offset: int = 0) -> bytes:
        return os.pread(self.fd, length, REGION_BASE + offset)

    def whole(self) -> bytes:
        return os.pread(self.fd, HBM_BYTES, 0)


class World:
    """card0 and card1 with `links` fibres. `faults` go to each direction's FaultyTransport."""

    def __init__(
        self, seed: int = 0, links: int = 1, mtu: int = 9000, credits_: int = 16, **faults: float
    ) -> None:
        self.now_ns = 1_000_000_000
        self.seed = seed
        self.random = random.Random(seed)
        self.links = links
        self.mtu = mtu
        self.credits = credits_
        self.faults = faults
        self.epoch = 0
        self.strike: Callable[[int], list[int]] = lambda n: []
        self.a = Card(self, "card0")
        self.b = Card(self, "card1")
        self.fibres: list[tuple[FaultyTransport, FaultyTransport]] = []
        self.pairs: list[InProcessPair] = []
        for number in range(links):
            self._lay(number)
        self.plug(self.a, 0)
        self.plug(self.b, 1)

    def _lay(self, number: int) -> None:
        pair = InProcessPair(self.mtu, self.credits)
        ends = [
            FaultyTransport(
                end,
                self.seed * 1000 + number * 2 + side,
                clock=lambda: self.now_ns,
                **self.faults,  # type: ignore[arg-type]
            )
            for side, end in enumerate((pair.a, pair.b))
        ]
        self.pairs.append(pair)
        self.fibres.append((ends[0], ends[1]))

    def plug(self, card: Card, side: int) -> None:
        card.ports = [
            DataPort(
                f"{card.name}/oe{n}",
                fibre[side],
                card.engine,
                Asked(lambda size: self.strike(size)),
            )
            for n, fibre in enumerate(self.fibres)
        ]

    def up(self, link: int | None = None) -> None:
        """As training does: a new epoch at both ends; frames of the old one may be in flight."""
        for n in range(self.links) if link is None else [link]:
            self.epoch += 1
            for card, other in ((self.a, self.b), (self.b, self.a)):
                peer = PeerId("c" * 16, other.name, n)
                card.ports[n].link_up(self.epoch, peer, self.credits, self.now_ns)

    def down(self, link: int | None = None) -> None:
        for n in range(self.links) if link is None else [link]:
            for card in (self.a, self.b):
                card.ports[n].link_down(self.now_ns)

    def turn(self) -> None:
        """One turn of both cards' loops, then the clock moves on."""
        for card in (self.a, self.b):
            for port in card.ports:
                while port.receive(self.now_ns) is not None:
                    raise AssertionError("only the data path is on this fibre")
                deadline_ns = port.next_deadline_ns()
                if deadline_ns is not None and deadline_ns <= self.now_ns:
                    port.on_deadline(self.now_ns)
                port.pump(self.now_ns)
            card.engine.pump(self.now_ns)
            deadline_ns = card.engine.next_deadline_ns()
            if deadline_ns is not None and deadline_ns <= self.now_ns:
                card.engine.on_deadline(self.now_ns)
            for event in card.engine.jobs.take_events():
                card.events.append(event.kind)
                card.told.append(event.transfer)
        for fibre in self.fibres:
            for end in fibre:
                end.flush()
        self.now_ns += STEP_NS

    def run(self, until: Callable[[], bool], turns: int = 20_000) -> None:
        for _ in range(turns):
            if until():
                return
            self.turn()
            for n in range(self.links):
                if self.a.ports[n].exhausted or self.b.ports[n].exhausted:
                    self.down(n)
                    self.up(n)
        raise AssertionError(f"still not there after {turns} turns")

    def start(
        self, name: str, length: int, *, kind: TransferKind = TransferKind.WRITE,
        card: Card | None = None, local_offset: int = 0, remote_offset: int = 0,
        region: int = REGION, key: int = KEY, deadline_s: float = 30.0,
    ) -> None:  # fmt: skip
        card = card or self.a
        command = self.command(
            name, length, kind=kind, card=card, local_offset=local_offset,
            remote_offset=remote_offset, region=region, key=key, deadline_s=deadline_s,
        )  # fmt: skip
        card.engine.start(command, self.now_ns)

    def command(
        self, name: str, length: int, *, kind: TransferKind, card: Card, local_offset: int = 0,
        remote_offset: int = 0, region: int = REGION, key: int = KEY, deadline_s: float = 30.0,
    ) -> StartTransfer:  # fmt: skip
        remote = {"card0": "card1", "card1": "card0"}[card.name]
        if kind is TransferKind.LOCAL:
            remote = card.name
        return StartTransfer(
            id=1, transfer_id=name, kind=kind, local_card=card.name, local_region_id=REGION,
            local_offset=local_offset, length=length, remote_card=remote,
            remote_region_id=region, remote_key=key, remote_offset=remote_offset,
            deadline_s=deadline_s,
        )  # fmt: skip

    def resume(self, earlier: TransferInfo) -> None:
        """The chassis posts again to card0 what was running there, and says how far it was."""
        kind = TransferKind(earlier.kind)
        command = self.command(earlier.transfer_id, earlier.total_bytes, kind=kind, card=self.a)
        self.a.engine.resume(command, earlier, self.now_ns)

    def info(self, name: str, card: Card | None = None) -> TransferInfo:
        return (card or self.a).engine.jobs.info(name, self.now_ns)

    def finish(self, name: str, card: Card | None = None, turns: int = 20_000) -> TransferInfo:
        self.run(lambda: self.info(name, card).ended_ns > 0, turns)
        return self.info(name, card)
