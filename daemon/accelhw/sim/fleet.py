"""A whole fleet under a hand-turned clock: cards, optics, trainers and faults, without a data path.

Everything is the real thing: cards, ports, engines, and training frames that cross from one port
to the other. What a port in a worker does each half second, a port here does only while something
happens to it; for the rest it sleeps, and only the arrays of its lanes move on.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelhw.device.card import RESET_NS, Card
from accelhw.device.dma import TransferEngine
from accelhw.device.engine import CARRIER_BEAT_NS as BEAT_NS
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.interface.messages import ChannelMapEntry, FaultInfo, InjectFault
from accelhw.interface.tables import Tables, table_bytes
from accelhw.link import patience
from accelhw.link.events import Report
from accelhw.link.moves import Phase
from accelhw.model.config import Config, Fibre
from accelhw.model.event import Severity
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState
from accelhw.optics.bank import LaneBank
from accelhw.optics.counters import FECS
from accelhw.sim.fleetcolumns import FleetColumns
from accelhw.sim.fleetwire import FleetWire
from accelhw.transport.base import Transport
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.unplugged import Unplugged

SECOND_NS = 1_000_000_000
BORN_NS = SECOND_NS  # what the clock shows at the start: 0 stands for never
OPENING_NS = 10 * SECOND_NS  # how long the first trainings may take
FLIGHT_NS = 20_000
BER_LIMITS = np.array([patience.BER_LIMIT_ACTIVE[name] for name in FECS])
RESTLESS_C_A_S = 0.01  # a case that warms up or cools down so fast is looked at often
LASER_STEPS_A_K = 4  # of a laser's temperature, before its colour is told anew
ALARM_GAP_NS = 1_000_000
TEND_NS = 600 * SECOND_NS  # how often HBM is asked for its errors
AWAKE_NS = 3 * SECOND_NS  # how long a port stays awake after something happened to it
CHASSIS = "f1ee70000000000f"


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the fleet. `time_ns` counts from the start of the run."""

    time_ns: int
    severity: Severity
    kind: str
    subject: str
    message: str
    detail: Mapping[str, object]


@dataclass(slots=True, eq=False)
class Seat:
    """A port in the fleet: asleep, or awake with a beat each half second."""

    port: Port
    wire: FleetWire | None
    peer: Seat | None = None
    state: LinkState = LinkState.DOWN
    awake_until_ns: int = 0
    beat_ns: int | None = None  # the next one; None: asleep
    alarm_ns: int | None = None
    reading: bool = False  # frames lie there, and somebody will come for them


class Fleet:
    """Feed it commands between calls of `run_until`; hear of it by `tell` and `on_state`.

    Times of its methods are ns since the start; inside, a clock runs that never shows 0.
    """

    def __init__(
        self,
        config: Config,
        seed: int,
        tell: Callable[[Told], None],
        on_state: Callable[[int, PortId, LinkState], None] = lambda at, port, state: None,
        on_fault: Callable[[FaultInfo], None] = lambda info: None,
        start_ns: int = 0,
    ) -> None:
        """`start_ns`: the wall clock at the start."""
        self._clock_ns = BORN_NS
        self._seed = seed
        self._tell_out = tell
        self._on_state = on_state
        self._on_fault = on_fault
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._resetting: set[str] = set()
        self._tended_ns = self._opening_ns = 0
        self.restless = False  # temperatures are on their way: `step` in small steps
        self._fault_ns: dict[str, int] = {}  # per card: when its faults change next
        self._hbms: dict[int, Hbm] = {}
        self._fds: list[int] = []
        self.config = config
        self._banks = _make_banks(config, seed, start_ns - BORN_NS)
        self._fibres = dict(_ends(config))
        self._wires = _wires(config)
        self.tables = self._make_tables()
        self.seats: dict[PortId, Seat] = {}
        self.cards = dict(self._make_cards())
        for port_id, far in _peers(config):
            self.seats[port_id].peer = self.seats[far]
        self.columns = FleetColumns(list(self.cards.values()), list(self._banks.values()))
        self._watch = [_BankWatch(bank) for bank in self._banks.values()]
        self._by_row = {
            (id(seat.port.optics.bank), seat.port.optics.port): seat for seat in self.seats.values()
        }
        for bank in self._banks.values():
            bank.unwatch()

    # ---- making --------------------------------------------------------------------------------

    def _make_tables(self) -> Tables:
        cards = self.config.cards
        ports = sum(card.profile.oes for card in cards)
        lanes = sum(card.profile.signal_lines for card in cards)
        rows = (1, len(cards), ports, lanes)
        fd = self._memory("tables", table_bytes(rows))
        return Tables.attach(fd, rows, writable=True)

    def _memory(self, name: str, size: int) -> int:
        fd = os.memfd_create(name)
        self._fds.append(fd)
        os.ftruncate(fd, size)
        return fd

    def _make_cards(self) -> Iterator[tuple[str, Card]]:
        port_row = lane_row = 0
        for card_row, planned in enumerate(self.config.cards):
            profile, name = planned.profile, planned.name
            per_oe = profile.lanes_per_oe
            port_rows = []
            for _ in range(profile.oes):
                port_rows.append((port_row, slice(lane_row, lane_row + per_oe)))
                port_row, lane_row = port_row + 1, lane_row + per_oe
            yield (
                name,
                Card(
                    name,
                    profile,
                    self._hbm(planned.hbm_bytes),
                    card_row=card_row,
                    port_rows=port_rows,
                    build_port=lambda oe, memory, name=name: self._make_port(  # type: ignore[misc]
                        PortId(name, oe), memory
                    ),
                    channel_map=[
                        ChannelMapEntry(line, line, *divmod(line, per_oe))
                        for line in range(profile.signal_lines)
                    ],
                    tables=self.tables,
                    seed=self._seed,
                    around=self,
                ),
            )

    def _hbm(self, size: int) -> Hbm:
        """Nothing is ever stored in it, so all cards may share one."""
        if size not in self._hbms:
            self._hbms[size] = Hbm(self._memory("hbm", size), size)
        return self._hbms[size]

    def _make_port(self, port_id: PortId, memory: TransferEngine) -> Port:
        profile = next(c.profile for c in self.config.cards if c.name == port_id.card)
        wire = self._wires.get(port_id)
        fibre, end = self._fibres.get(port_id, (None, ""))
        transport: Transport = Unplugged()
        if wire is not None and fibre is not None:
            transport = Cable(wire, CableMap.of(fibre, end, profile.lanes_per_oe))
        port = Port(
            port_id,
            chassis=CHASSIS,
            profile=profile,
            fibre=fibre,
            interface="",
            transport=transport,
            memory=memory,
            around=self,
            seed=self._seed,
            bank=self._banks[profile.name],
        )
        if wire is not None:
            seat = self.seats[port_id] = Seat(port, wire)
            wire.arrived = lambda: self._on_arrival(seat)
        return port

    # ---- commands ------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        return self._clock_ns - BORN_NS

    @property
    def is_quiet(self) -> bool:
        """Nothing is due: all ports sleep, and no fault moves."""
        return not self._due

    def power_on(self, cold: bool = False) -> None:
        """Found running long since: links train, but equalisers stand where an earlier training
        left them. `cold`: there was none, and each climbs by requests over the fibre."""
        self.restless = True
        if not cold:
            self._opening_ns = self._clock_ns + OPENING_NS
            for seat in self.seats.values():
                seat.port.trainer.lanes.equaliser.recall_taps()
        for card in self.cards.values():
            card.power_on(self._clock_ns)
        for seat in self.seats.values():
            self._rouse(seat)

    def set_admin(self, port_id: PortId, up: bool) -> None:
        self._act(port_id, lambda port: port.set_admin(up, self._clock_ns))

    def retrain(self, port_id: PortId) -> None:
        self._act(port_id, lambda port: port.retrain(self._clock_ns))

    def reset(self, name: str) -> None:
        """The card, as by command; it answers again after a while."""
        if name in self._resetting:
            return
        self._resetting.add(name)
        card = self.cards[name]
        self._attend(card)
        card.reset(self._clock_ns)
        self.report("CARD_RESET", Severity.INFO, name, "reset by command")
        self._rouse_card(card)
        self._at(self._clock_ns + RESET_NS, lambda: self._after_reset(card))

    def _after_reset(self, card: Card) -> None:
        self._resetting.discard(card.name)
        self._attend(card)
        card.power_on(self._clock_ns)
        self.report("CARD_READY", Severity.INFO, card.name, "answers after its reset")
        self._rouse_card(card)

    def inject(self, command: InjectFault) -> None:
        """`begun_ns` is set here. Raises EngineRefusal."""
        import msgspec

        card = self.cards[command.card]
        self._attend(card)
        card.faults.inject(
            msgspec.structs.replace(command, begun_ns=self._clock_ns), self._clock_ns
        )
        self._rouse_card(card)
        self.restless = True

    def clear(self, card_name: str, fault_id: str) -> None:
        """Raises EngineRefusal."""
        card = self.cards[card_name]
        self._attend(card)
        card.faults.clear(fault_id, self._clock_ns)
        self._rouse_card(card)
        self.restless = True

    def _act(self, port_id: PortId, do: Callable[[Port], None]) -> None:
        seat = self.seats[port_id]
        seat.port.optics.heard(self._clock_ns)
        do(seat.port)
        self._rouse(seat)

    # ---- what ports and cards say --------------------------------------------------------------

    def tell(
        self, port: Port, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        self.report(kind, severity, str(port.id), message, **detail)

    def show_step(self, port: Port, step: Report) -> None: ...

    def changed(self, port: Port) -> None:
        seat = self.seats.get(port.id)
        if seat is None:
            return
        state = port.trainer.state
        if state is not seat.state:
            if state is LinkState.TRAINING and self._clock_ns < self._opening_ns:
                port.trainer.lanes.equaliser.recall_climbs()
            seat.state = state
            self._on_state(self.now_ns, port.id, state)
            self._rouse(seat)
        else:
            self._nudge(seat)

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None:
        self._tell_out(Told(self.now_ns, severity, kind, subject, message, detail))

    def fault_changed(self, info: FaultInfo) -> None:
        self._on_fault(info)

    # ---- the hand on the clock -----------------------------------------------------------------

    def run_until(self, time_ns: int) -> None:
        """All that happens up to this time, and at it."""
        end_ns = time_ns + BORN_NS
        due = self._due
        while due and due[0][0] <= end_ns:
            at_ns, _, act = heapq.heappop(due)
            self._clock_ns = max(self._clock_ns, at_ns)
            act()
        self._clock_ns = max(self._clock_ns, end_ns)

    def _at(self, time_ns: int, act: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._due, (time_ns, self._order, act))

    # ---- a port's life -------------------------------------------------------------------------

    def _attend(self, card: Card) -> None:
        """Its fibres were not silent while it slept: the far ends had nothing new to say."""
        for port in card.ports:
            port.optics.heard(self._clock_ns)

    def _rouse_card(self, card: Card) -> None:
        for port in card.ports:
            if port.id in self.seats:
                self._rouse(self.seats[port.id])
        self._arm_faults(card)

    def _rouse(self, seat: Seat) -> None:
        """Something happened to it: awake for a while, and its peer."""
        for each in (seat, seat.peer):
            if each is not None:
                each.awake_until_ns = self._clock_ns + AWAKE_NS
                self._nudge(each)

    def _nudge(self, seat: Seat) -> None:
        """Its light may be another: one beat, if it sleeps."""
        if seat.beat_ns is None:
            seat.beat_ns = self._clock_ns + BEAT_NS
            self._at(seat.beat_ns, lambda: self._beat(seat))
        self._arm(seat)

    def _arm(self, seat: Seat, after_ns: int = 0) -> None:
        """An alarm at the port's next deadline, and not before `after_ns`."""
        deadline_ns = seat.port.next_deadline_ns()
        if deadline_ns is None or _is_parked(seat):
            return
        deadline_ns = max(deadline_ns, after_ns)
        if seat.alarm_ns is not None and seat.alarm_ns <= deadline_ns:
            return
        seat.alarm_ns = deadline_ns
        self._at(deadline_ns, lambda: self._on_alarm(seat, deadline_ns))

    def _on_alarm(self, seat: Seat, armed_ns: int) -> None:
        if seat.alarm_ns != armed_ns:
            return
        seat.alarm_ns = None
        if _is_parked(seat):
            return
        seat.port.optics.heard(self._clock_ns)
        seat.port.on_deadline(self._clock_ns)
        # Light that loses a lock every few codewords is looked at a thousand times a second.
        self._send(seat, self._clock_ns + ALARM_GAP_NS)

    def _send(self, seat: Seat, after_ns: int = 0) -> None:
        """What the port wants to send: acknowledgements, where there is no data."""
        while seat.port.pump(self._clock_ns):
            pass
        self._arm(seat, after_ns)

    def _beat(self, seat: Seat) -> None:
        seat.port.optics.heard(self._clock_ns)
        seat.port.beat(self._clock_ns)
        if self._is_failing(seat):
            seat.awake_until_ns = self._clock_ns + AWAKE_NS  # it will act on that, after a while
        if self._clock_ns >= seat.awake_until_ns:
            seat.beat_ns = None
        else:
            seat.beat_ns = self._clock_ns + BEAT_NS
            self._at(seat.beat_ns, lambda: self._beat(seat))
        self._arm(seat)

    def _is_failing(self, seat: Seat) -> bool:
        """Whether a lane in use has too many errors to stay in use."""
        optics = seat.port.optics
        counters = optics.bank.counters
        limit = BER_LIMITS[counters.fec[optics.port]]
        return bool((counters.used[optics.port] & (optics.ber > limit)).any())

    def _on_arrival(self, seat: Seat) -> None:
        if not seat.reading:
            seat.reading = True
            self._at(self._clock_ns + FLIGHT_NS, lambda: self._read(seat))

    def _read(self, seat: Seat) -> None:
        seat.reading = False
        wire = seat.wire
        assert wire is not None
        optics = seat.port.optics
        optics.heard(self._clock_ns)
        before = optics.ber.tobytes()
        while wire.waiting:
            seat.port.on_readable(self._clock_ns)
        if optics.ber.tobytes() != before:
            self._nudge(seat)
        self._send(seat)

    # ---- faults --------------------------------------------------------------------------------

    def _arm_faults(self, card: Card) -> None:
        due_ns = card.faults.next_deadline_ns()
        if due_ns is None or self._fault_ns.get(card.name) == due_ns:
            return
        self._fault_ns[card.name] = due_ns
        self._at(due_ns, lambda: self._on_faults(card, due_ns))

    def _on_faults(self, card: Card, due_ns: int) -> None:
        if self._fault_ns.get(card.name) != due_ns:
            return
        del self._fault_ns[card.name]
        self._attend(card)
        card.faults.advance(self._clock_ns)
        self._arm_faults(card)

    # ---- physics -------------------------------------------------------------------------------

    def step(self) -> None:
        """Let time pass for all lanes, up to now: counters, heat, wear; ports look where it shows.

        `run_until` moves only those to whom something happens.
        """
        now_ns = self._clock_ns
        self.restless = False
        for watch in self._watch:
            for row in watch.advance(now_ns).tolist():
                if (seat := self._by_row.get((id(watch.bank), row))) is not None:
                    self._look(seat)
            for row in watch.failing().tolist():
                if (seat := self._by_row.get((id(watch.bank), row))) is not None:
                    self._rouse(seat)
            self.restless |= watch.warming
        if now_ns - self._tended_ns >= TEND_NS:
            self._tended_ns = now_ns
            for card in self.cards.values():
                card.tend_memory(now_ns)

    def _look(self, seat: Seat) -> None:
        """A single beat for a port that goes on sleeping, or is awake anyway."""
        seat.port.optics.heard(self._clock_ns)
        seat.port.beat(self._clock_ns)
        self._send(seat)

    def sense(self) -> None:
        """Let the monitors wander on, for who reads `columns` now."""
        for bank in self._banks.values():
            bank.sense()

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


def _is_parked(seat: Seat) -> bool:
    """It seeks, and nothing happened for a while: nobody can hear it. It goes on when it is roused,
    and until then its beacons, one a second for days, are left out."""
    return seat.beat_ns is None and seat.port.trainer.phase is Phase.SEEK


class _BankWatch:
    """A bank, and the light that its ports have told of."""

    def __init__(self, bank: LaneBank) -> None:
        self.bank = bank
        self._sent = self._sending()
        self._case_c = bank.heat.case_c.copy()
        self._stepped_ns = 0
        self.warming = False

    def _sending(self) -> list[NDArray[np.generic]]:
        tx = self.bank.tx
        shift = np.rint(tx.laser_c * LASER_STEPS_A_K)
        return [tx.lit.copy(), tx.sent_dbm.copy(), tx.sent_extinction_db.copy(),
                tx.sent_penalty_db.copy(), shift]  # fmt: skip

    def advance(self, now_ns: int) -> NDArray[np.intp]:
        """Ports that hear or send another light than before."""
        heard = self.bank.advance(now_ns)
        elapsed_s = max(now_ns - self._stepped_ns, 1) / SECOND_NS
        self._stepped_ns = now_ns
        case_c = self.bank.heat.case_c.copy()
        self.warming = bool((np.abs(case_c - self._case_c) > RESTLESS_C_A_S * elapsed_s).any())
        self._case_c = case_c
        sent = self._sending()
        moved = np.zeros(len(self.bank.tx.lit), bool)
        for before, now in zip(self._sent, sent, strict=True):
            moved |= (before != now).any(axis=1)
        self._sent = sent
        return np.union1d(heard, np.flatnonzero(moved))

    def failing(self) -> NDArray[np.intp]:
        """Ports with a lane in use that has too many errors to stay in use."""
        counters = self.bank.counters
        limit = BER_LIMITS[counters.fec][:, np.newaxis]
        return np.flatnonzero((counters.used & (self.bank.rx.ber > limit)).any(axis=1))


def _make_banks(config: Config, seed: int, wall_offset_ns: int) -> dict[str, LaneBank]:
    profiles = {card.profile.name: card.profile for card in config.cards}
    count = Counter(card.profile.name for card in config.cards)
    banks = {
        name: LaneBank(profile, seed, ports=count[name] * profile.oes, cards=count[name])
        for name, profile in profiles.items()
    }
    for bank in banks.values():
        bank.wall_offset_ns = wall_offset_ns
    return banks


def _ends(config: Config) -> Iterator[tuple[PortId, tuple[Fibre, str]]]:
    for fibre in config.fibres:
        yield fibre.a.port, (fibre, "a")
        if fibre.b is not None:
            yield fibre.b.port, (fibre, "b")


def _peers(config: Config) -> Iterator[tuple[PortId, PortId]]:
    for fibre in config.fibres:
        if fibre.b is not None:
            yield fibre.a.port, fibre.b.port
            yield fibre.b.port, fibre.a.port


def _wires(config: Config) -> dict[PortId, FleetWire]:
    wires: dict[PortId, FleetWire] = {}
    for fibre in config.fibres:
        wires[fibre.a.port], far = FleetWire.pair()
        if fibre.b is not None:
            wires[fibre.b.port] = far
    return wires
