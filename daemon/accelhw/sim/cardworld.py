"""Two whole cards joined by fibres in one process, on a hand-turned clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

from accelhw.device.card import Card
from accelhw.device.dma import TransferEngine
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.interface.messages import (
    ChannelMapEntry,
    FaultInfo,
    InjectFault,
    StartTransfer,
    TransferInfo,
)
from accelhw.interface.tables import Tables, table_bytes
from accelhw.link.events import Report
from accelhw.model.config import Fibre, FibreEnd, TransportKind
from accelhw.model.event import Severity
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState
from accelhw.model.profile import load_profile
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferKind
from accelhw.optics.bank import LaneBank
from accelhw.transport.base import Transport
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.faulty import FaultyTransport
from accelhw.transport.memory import InProcessPair
from accelhw.transport.unplugged import Unplugged

HBM_BYTES = 16 << 20
MTU = 9000
BEAT_NS = 500_000_000
SECOND_NS = 1_000_000_000
TURN_NS = 1_000  # a turn in which frames cross
KEY = 77
REGION = 1
CHASSIS = "0123456789abcdef"


class CardWorld:
    """card0/oe0 and card1/oe0 share a fibre; other ports are unplugged."""

    def __init__(
        self,
        profile: str = "dr8",
        *,
        seed: int = 1,
        lane_map: Sequence[int] | None = None,
        inverted_lanes: Collection[int] = (),
        length_m: float = 10.0,
        extra_loss_db: float = 0.0,
        **faults: float,
    ) -> None:
        self.now_ns = SECOND_NS
        self.seed = seed
        self.profile = load_profile(profile)
        self.fibre = Fibre(
            "fibre0",
            FibreEnd(PortId("card0", 0)),
            FibreEnd(PortId("card1", 0)),
            TransportKind.MEMORY,
            MTU,
            length_m=length_m,
            extra_loss_db=extra_loss_db,
            lane_map=None if lane_map is None else tuple(lane_map),
            inverted_lanes=frozenset(inverted_lanes),
        )
        self.events: list[tuple[str, str]] = []
        self.faults: dict[str, FaultInfo] = {}  # active, as a chassis would keep them
        self.steps: list[tuple[str, Report]] = []
        pair = InProcessPair(MTU, receive_frames=48)
        self.faulty = [
            FaultyTransport(end, seed * 2 + i, clock=lambda: self.now_ns, **faults)  # type: ignore[arg-type]
            for i, end in enumerate((pair.a, pair.b))
        ]
        ports, lanes = self.profile.oes, self.profile.signal_lines
        rows = (1, 2, 2 * ports, 2 * lanes)
        self._fds = [os.memfd_create("tables")]
        os.ftruncate(self._fds[0], table_bytes(rows))
        self.tables = Tables.attach(self._fds[0], rows, writable=True)
        self.hbms = [self._hbm(), self._hbm()]
        self.banks: dict[int, LaneBank] = {}
        self.cards = [self._card(index) for index in (0, 1)]
        self._next_beat_ns = self.now_ns

    def _hbm(self) -> Hbm:
        fd = os.memfd_create("hbm")
        self._fds.append(fd)
        os.ftruncate(fd, HBM_BYTES)
        return Hbm(fd, HBM_BYTES)

    def _card(self, index: int) -> Card:
        profile, name = self.profile, f"card{index}"
        per_oe = profile.lanes_per_oe
        bank = self.banks[index] = LaneBank(profile, self.seed, ports=profile.oes)
        first = index * profile.signal_lines

        def build_port(oe: int, memory: TransferEngine) -> Port:
            return Port(
                PortId(name, oe),
                chassis=CHASSIS,
                profile=profile,
                fibre=self.fibre if oe == 0 else None,
                interface="",
                transport=self._transport(index) if oe == 0 else Unplugged(),
                memory=memory,
                around=self,
                seed=self.seed,
                bank=bank,
            )

        card = Card(
            name,
            profile,
            self.hbms[index],
            card_row=index,
            port_rows=[
                (index * profile.oes + oe, slice(first + oe * per_oe, first + (oe + 1) * per_oe))
                for oe in range(profile.oes)
            ],
            build_port=build_port,
            channel_map=[
                ChannelMapEntry(line, line, *divmod(line, per_oe))
                for line in range(profile.signal_lines)
            ],
            tables=self.tables,
            seed=self.seed,
            around=self,
        )
        card.memory.windows.register(MemoryWindow(REGION, KEY, 0, HBM_BYTES))
        return card

    def _transport(self, index: int) -> Transport:
        cable_map = CableMap.of(self.fibre, "ab"[index], self.profile.lanes_per_oe)
        return Cable(self.faulty[index], cable_map)

    # ---- what ports say ----

    def tell(
        self, port: Port, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        self.events.append((kind, str(port.id)))

    def show_step(self, port: Port, step: Report) -> None:
        self.steps.append((str(port.id), step))

    def changed(self, port: Port) -> None: ...

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None:
        self.events.append((kind, subject))

    def fault_changed(self, info: FaultInfo) -> None:
        self.faults.pop(info.fault_id, None)
        if info.state == "ACTIVE":
            self.faults[info.fault_id] = info

    # ---- faults ----

    def inject(self, kind: str, subject: str = "card0/oe0", **how: object) -> str:
        """As an operator does; gives the fault's id. Raises EngineRefusal."""
        name = f"f{len(self.events)}"
        command = InjectFault(1, name, kind, subject, begun_ns=self.now_ns, **how)  # type: ignore[arg-type]
        self._card_of(subject).faults.inject(command, self.now_ns)
        return name

    def clear(self, *names: str) -> None:
        for name in names or tuple(self.faults):
            self._card_of(self.faults[name].subject).faults.clear(name, self.now_ns)

    def _card_of(self, subject: str) -> Card:
        return next(card for card in self.cards if card.name == subject.partition("/")[0])

    # ---- the hand on the clock ----

    @property
    def ports(self) -> list[Port]:
        return [card.ports[0] for card in self.cards]

    @property
    def states(self) -> set[LinkState]:
        return {port.trainer.state for port in self.ports}

    def power_on(self, *indices: int) -> None:
        for index in indices or (0, 1):
            self.cards[index].power_on(self.now_ns)

    def replace(self, index: int) -> None:
        """The worker of a card died: a new life over the same HBM and tables."""
        self.cards[index] = self._card(index)
        for info in list(self.faults.values()):
            if info.card == f"card{index}":
                self.cards[index].faults.resume(info)
        self.cards[index].faults.advance(self.now_ns)
        self.cards[index].power_on(self.now_ns)

    def run(self, seconds: float = 60.0, until: Callable[[], bool] | None = None) -> bool:
        """Turn the clock. True when `until` came true (or there was none)."""
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        while self.now_ns < end_ns:
            if until is not None and until():
                return True
            if self._turn():
                self.now_ns += TURN_NS
                continue
            deadlines = [self._next_beat_ns]
            for card in self.cards:
                deadlines += [d for port in card.ports if (d := port.next_deadline_ns())]
                for part in (card.memory, card.faults):
                    if (d := part.next_deadline_ns()) is not None:
                        deadlines.append(d)
            self.now_ns = min(max(min(deadlines), self.now_ns + TURN_NS), end_ns)
            self._wake()
        return until is None or until()

    def _wake(self) -> None:
        for card in self.cards:
            for port in card.ports:
                port.on_deadline(self.now_ns)
            card.memory.on_deadline(self.now_ns)
            card.faults.advance(self.now_ns)
        if self.now_ns >= self._next_beat_ns:
            self._next_beat_ns = self.now_ns + BEAT_NS
            for bank in self.banks.values():
                bank.advance(self.now_ns)
                bank.sense()
            for card in self.cards:
                card.beat(self.now_ns)
                card.write_rows()

    def _turn(self) -> bool:
        """Let each end take what came and send what it may. True: frames moved."""
        moved = False
        for card, faulty in zip(self.cards, self.faulty, strict=True):
            moved |= card.memory.pump(self.now_ns)
            card.memory.ready.clear()
            port = card.ports[0]
            before = port.counters.rx_frames, port.counters.tx_frames
            faulty.flush()
            port.on_readable(self.now_ns)
            port.pump(self.now_ns)
            moved |= before != (port.counters.rx_frames, port.counters.tx_frames)
        return moved

    # ---- transfers ----

    def store(self, index: int, data: bytes, at: int = 0) -> None:
        os.pwrite(self.hbms[index].fd, data, at)

    def load(self, index: int, length: int, at: int = 0) -> bytes:
        return os.pread(self.hbms[index].fd, length, at)

    def start(
        self,
        name: str,
        length: int,
        *,
        kind: TransferKind = TransferKind.WRITE,
        at: int = 0,
        to: int = 0,
        key: int = KEY,
        deadline_s: float = 30.0,
    ) -> None:
        """A transfer commanded at card0, with card1 as the far card."""
        command = StartTransfer(
            1, name, kind, "card0", REGION, at, length, "card1", REGION, key, to, deadline_s
        )
        self.cards[0].memory.start(command, self.now_ns)

    def info(self, name: str) -> TransferInfo:
        return self.cards[0].memory.jobs.info(name, self.now_ns)

    def ended(self, name: str) -> bool:
        return bool(self.info(name).ended_ns)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
