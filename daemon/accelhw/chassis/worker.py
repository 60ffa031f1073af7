"""A worker: the insides of some cards, run by one loop. Started by the chassis, ends with it."""

from __future__ import annotations

import gc
import select
import signal
import socket
import sys
from collections.abc import Sequence
from time import monotonic_ns, time_ns

import msgspec

from accelhw.chassis.control import (
    NO_FD,
    ResumedTransfer,
    SocketsWanted,
    ToWorker,
    WorkerCard,
    WorkerEvent,
    WorkerPort,
    WorkerReady,
    WorkerStart,
    worker_channel,
)
from accelhw.chassis.loop import Loop, Soonest
from accelhw.chassis.movers import Movers
from accelhw.chassis.process import die_with_parent, sleep_exactly
from accelhw.device.card import RESET_NS, Card
from accelhw.device.channelport import ChannelPort
from accelhw.device.diag import LinkTest
from accelhw.device.dma import TransferEngine
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelDiag,
    CancelTransfer,
    ClearFault,
    ClearFlags,
    Completion,
    DiagProgress,
    FaultChanged,
    FaultInfo,
    InjectFault,
    Message,
    RegisterWindow,
    ResetCard,
    SetChannelMap,
    SetPortAdmin,
    StartDiag,
    StartTransfer,
    TrainingProgress,
    TrainPort,
    TransferInfo,
    TransferProgress,
    UnregisterWindow,
)
from accelhw.interface.tables import Tables
from accelhw.link.events import Report
from accelhw.link.moves import STATE
from accelhw.model.config import TransportKind
from accelhw.model.diag import DiagState, Verdict
from accelhw.model.event import Severity
from accelhw.model.ids import PortId
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.optics.banks import Banks
from accelhw.transport.base import Transport
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.memory import MemoryTransport
from accelhw.transport.packet import PacketTransport
from accelhw.transport.tap import TapTransport
from accelhw.transport.unplugged import Unplugged
from accelhw.wire.frame import CHANNELS_MAX

BEAT_NS = 500_000_000  # of a card's ports: carriers
TICK_NS = 1_000_000_000  # of the worker: optics, heat and counters of all its lanes
BEATS_PER_SHOW = 2  # with nothing new, a card's rows are written at every second beat
SHOW_NS = 20_000_000  # the shortest time between two writes of a card's rows
PROGRESS_NS = 100_000_000
PORT_NAME_BYTES = 256
STREAM_BYTES = 1 << 17  # landed at once: a stream, of which more is sure to come
PACKETS = (TransportKind.VETH, TransportKind.NETDEV)
UNSENT_MAX = 1 << 20  # bytes; a chassis that lags so far gets no more progress, only facts

SEVERITIES = {
    "TRANSFER_WAITING": Severity.WARNING,
    "TRANSFER_FAILED": Severity.ERROR,
}


class PortChannels:
    """A port's share of the worker's movers."""

    def __init__(self, movers: Movers, port: Port) -> None:
        self._movers = movers
        self._port = port

    @property
    def channels_max(self) -> int:
        return self._movers.channels_max

    def open_channels(self) -> None:
        self._movers.want(self._port)


class PortRunner:
    """A port in the loop: its readiness, its deadlines, its left-over work."""

    def __init__(self, loop: Loop, port: Port, card: CardRunner) -> None:
        self.port = port
        self._loop = loop
        self._card = card
        self._alarm = Soonest(loop, self._on_alarm)
        self._fd = port.transport.fileno()
        if self._fd >= 0:
            loop.add_reader(self._fd, self.on_readable)

    def on_readable(self, now_ns: int) -> None:
        counters = self.port.counters
        before = counters.rx_payload_bytes
        self.port.on_readable(now_ns)
        self._pump(now_ns)
        if counters.rx_payload_bytes - before >= STREAM_BYTES:
            self._loop.moderate()
        self._card.settle(now_ns, self)

    def on_writable(self, now_ns: int) -> None:
        self._pump(now_ns)
        self._card.settle(now_ns, self)

    def work(self, now_ns: int) -> bool:
        """A turn of sending, asked for with Loop.soon."""
        more = self.port.pump(now_ns)
        self._after_pump()
        self._card.settle(now_ns, self)
        return more

    def _pump(self, now_ns: int) -> None:
        if self.port.pump(now_ns):
            self._loop.soon(self.work)
        self._after_pump()

    def _after_pump(self) -> None:
        if self.port.data.wants_write and self._fd >= 0:
            self._loop.when_writable(self._fd, self.on_writable)

    def arm(self) -> None:
        self._alarm.set(self.port.next_deadline_ns())

    def _on_alarm(self, now_ns: int) -> None:
        deadline_ns = self.port.next_deadline_ns()
        if deadline_ns is not None and deadline_ns <= now_ns:
            self.port.on_deadline(now_ns)
            self._pump(now_ns)
        self._card.settle(now_ns, self)


class CardRunner:
    """A card in the loop, and its voice towards the chassis."""

    def __init__(self, worker: Worker, start: WorkerCard, index: int) -> None:
        self._worker = worker
        self._loop = worker.loop
        self._start = start
        self._dirty = True
        self._shown_ns = 0
        self._show_armed = False
        self._beats = 0
        self._alarm = Soonest(self._loop, self._on_alarm)
        self._fault_alarm = Soonest(self._loop, self._on_fault)
        self._tests: dict[str, LinkTest] = {}  # running, by id
        self._progress_turn = False
        hbm = Hbm(start.hbm_fd, start.hbm_bytes)
        rows = [
            (port.port_row, slice(port.first_lane_row, port.first_lane_row + port.lanes))
            for port in start.ports
        ]
        self.card = Card(
            start.name,
            start.profile,
            hbm,
            card_row=start.card_row,
            port_rows=rows,
            build_port=self._build_port,
            channel_map=start.channel_map,
            tables=worker.tables,
            seed=worker.seed,
            around=self,
        )
        self._runners = [PortRunner(self._loop, port, self) for port in self.card.ports]
        self._by_data = {id(runner.port.data): runner for runner in self._runners}
        self.card.memory.catch_up = worker.movers.catch_up
        for window in start.windows:
            self.card.memory.windows.register(window)
        for fault in start.faults:
            self.card.faults.resume(fault)
        beat_ns = monotonic_ns() + index * BEAT_NS // 16 % BEAT_NS
        self._loop.call_at(beat_ns, self._beat)

    def _build_port(self, oe: int, memory: TransferEngine) -> Port:
        plugged = self._start.ports[oe]
        port = Port(
            PortId(self._start.name, oe),
            chassis=self._worker.chassis_id,
            profile=self._start.profile,
            fibre=plugged.fibre,
            interface=plugged.interface or "",
            transport=make_transport(plugged),
            memory=memory,
            around=self,
            seed=self._worker.seed,
            bank=self._worker.banks.of(self._start.profile),
        )
        port.admin_up = plugged.admin_up
        if plugged.fibre is not None and plugged.fibre.transport in PACKETS:
            port.use_channels(PortChannels(self._worker.movers, port))
        return port

    # ---- what ports say ----

    def tell(
        self, port: Port, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        self._worker.send(WorkerEvent(kind, severity, str(port.id), message, dict(detail)))

    def show_step(self, port: Port, step: Report) -> None:
        state = int(STATE[step.phase])
        at = port.id
        self._worker.send_if_room(
            TrainingProgress(at.card, at.oe, state, int(step.phase), step.lane, step.text)
        )

    def changed(self, port: Port) -> None:
        self._dirty = True

    # ---- what the card says ----

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None:
        self._worker.send(WorkerEvent(kind, severity, subject, message, dict(detail)))
        # At once: the far end, in another worker, will tell of what comes of it.
        self._worker.flush()

    def fault_changed(self, info: FaultInfo) -> None:
        self._dirty = True
        self._worker.send(FaultChanged(info))

    # ---- the loop ----

    def settle(self, now_ns: int, runner: PortRunner | None = None) -> None:
        """After anything happened on this card, or on the port alone: send, report, show, and set
        the clock."""
        memory = self.card.memory
        while memory.ready:
            way = memory.ready.pop()
            work = way.work if isinstance(way, ChannelPort) else self._by_data[id(way)].work
            self._loop.soon(work)
        for event in memory.jobs.take_events():
            self._tell_transfer(event.kind, event.transfer)
            self._worker.send(TransferProgress(event.transfer))
            self._dirty = True
        if self._dirty and not self._show_armed:
            self._show_armed = True
            self._loop.call_at(max(now_ns, self._shown_ns + SHOW_NS), self._show)
        for each in self._runners if runner is None else (runner,):
            each.arm()
        if self.has_progress:
            self._worker.watch_progress(now_ns)
        if memory.busy:
            self._loop.soon(self.work)
        if memory.transfers.active:
            self._alarm.set(memory.next_deadline_ns())
        if runner is None:
            self._fault_alarm.set(self.card.faults.next_deadline_ns())

    def _on_fault(self, now_ns: int) -> None:
        self.card.faults.advance(now_ns)
        self.settle(now_ns)

    def _tell_transfer(self, kind: str, transfer: TransferInfo) -> None:
        severity = SEVERITIES.get(kind, Severity.INFO)
        detail: dict[str, str | int | float | bool] = {
            "transfer": transfer.transfer_id,
            "bytes": transfer.total_bytes,
        }
        text = transfer_text(kind, transfer)
        self._worker.send(WorkerEvent(kind, severity, self.card.name, text, detail))

    def _on_alarm(self, now_ns: int) -> None:
        self.card.memory.on_deadline(now_ns)
        self.settle(now_ns)

    def _show(self, now_ns: int) -> None:
        self._show_armed = False
        self._dirty = False
        self._shown_ns = now_ns
        self.card.write_rows()

    def _beat(self, now_ns: int) -> None:
        self._loop.call_at(now_ns + BEAT_NS, self._beat)
        self.card.beat(now_ns)
        self._beats += 1
        if self._beats % BEATS_PER_SHOW == 0:
            self._show(now_ns)
        self.settle(now_ns)

    def work(self, now_ns: int) -> bool:
        """A turn of copies and checksums inside the card."""
        more = self.card.memory.pump(now_ns)
        self.settle(now_ns)
        return more

    @property
    def has_progress(self) -> bool:
        """Something runs here that somebody may watch."""
        return self.card.memory.transfers.active or bool(self._tests)

    def send_progress(self, now_ns: int) -> None:
        self._progress_turn ^= True
        if self._progress_turn:
            for test in self._tests.values():
                self._worker.send_if_room(DiagProgress(test.info()))
        memory = self.card.memory
        if memory.transfers.active:
            for info in memory.jobs.infos(now_ns):
                if not info.ended_ns:
                    self._worker.send_if_room(TransferProgress(info))

    # ---- tests of links ----

    def start_test(self, command: StartDiag, now_ns: int) -> None:
        port = self._port(command.oe)
        if any(test.port is port for test in self._tests.values()):
            raise EngineRefusal("LINK_BUSY", f"{port.id} is being tested already")
        test = LinkTest(
            port,
            command,
            seed=self._worker.seed,
            wall_ns=time_ns,
            read_row=lambda: self._worker.tables.port[self._start.ports[command.oe].port_row],
        )
        peer = port.data.peer
        if test.kind.takes_link_down and not command.force and peer is not None:
            running = self.card.memory.transfers.moving_with(peer.card)
            if running:
                raise EngineRefusal(
                    "LINK_BUSY",
                    f"{running} transfer{'s' if running > 1 else ''} between {self.card.name} and"
                    f" {peer.card} would have to wait; wait for their end, or force the test",
                )
        self._tests[test.id] = test
        test.start(now_ns)
        self._tell_test("DIAG_STARTED", test, f"a {test.kind.name} test began")
        self._arm_test(test, now_ns)

    def cancel_test(self, diag_id: str, now_ns: int) -> None:
        test = self._tests.get(diag_id)
        if test is None:
            raise EngineRefusal("UNKNOWN_DIAG", f"no test {diag_id} runs on {self.card.name}")
        test.cancel(now_ns)
        self._after_test(test)

    def _end_tests(self, port: Port | None, why: str, now_ns: int) -> None:
        """Of one port, or all: something stronger takes it away."""
        for test in list(self._tests.values()):
            if port is None or test.port is port:
                test.fail("INTERRUPTED", why, now_ns)
                self._after_test(test)

    def _arm_test(self, test: LinkTest, now_ns: int) -> None:
        deadline_ns = test.next_deadline_ns()
        if deadline_ns is not None:
            self._loop.call_at(deadline_ns, lambda now_ns: self._on_test(test, now_ns))

    def _on_test(self, test: LinkTest, now_ns: int) -> None:
        if test.ended:
            return
        test.on_deadline(now_ns)
        if test.ended:
            self._after_test(test)
        self._arm_test(test, now_ns)
        self.settle(now_ns)

    def _after_test(self, test: LinkTest) -> None:
        self._tests.pop(test.id, None)
        info = test.info()
        self._worker.send(DiagProgress(info))
        result = Verdict(info.verdict).name if info.verdict else test.state.name
        text = f"the {test.kind.name} test ended: {result}"
        self._tell_test("DIAG_ENDED", test, f"{text}, {info.text}" if info.text else text)
        self._dirty = True

    def _tell_test(self, kind: str, test: LinkTest, text: str) -> None:
        detail: dict[str, str | int | float | bool] = {"diag": test.id, "kind": test.kind.name}
        failed = test.state is DiagState.FAILED
        severity = Severity.WARNING if failed else Severity.INFO
        self._worker.send(WorkerEvent(kind, severity, str(test.port.id), text, detail))

    # ---- commands ----

    def power_on(self, now_ns: int) -> None:
        self.card.faults.advance(now_ns)
        self.card.power_on(now_ns)
        self._show(now_ns)
        self.settle(now_ns)

    def reset(self, now_ns: int) -> None:
        self._end_tests(None, "the card was reset", now_ns)
        self.card.reset(now_ns)
        self._worker.send(
            WorkerEvent("CARD_RESET", Severity.INFO, self.card.name, "reset by command")
        )
        self._loop.call_at(now_ns + RESET_NS, self._after_reset)

    def _after_reset(self, now_ns: int) -> None:
        self.power_on(now_ns)
        self._worker.send(
            WorkerEvent("CARD_READY", Severity.INFO, self.card.name, "answers after its reset")
        )

    def resume_transfer(self, resumed: ResumedTransfer, now_ns: int) -> None:
        """Go on with a transfer of the worker's last life, or end it where that cannot be."""
        try:
            self.card.memory.resume(resumed.command, now_ns)
        except EngineRefusal as refusal:
            ended = msgspec.structs.replace(
                resumed.progress,
                state=int(TransferState.FAILED),
                error=int(TransferError.CARD_LOST),
                error_detail=f"cannot go on after the card's restart: {refusal}",
                ended_ns=time_ns(),
            )
            self._worker.send(TransferProgress(ended))
            self._tell_transfer("TRANSFER_FAILED", ended)

    def obey(self, command: Message, now_ns: int) -> None:
        """Carry out a command of this card. Raises EngineRefusal."""
        card, memory = self.card, self.card.memory
        match command:
            case ResetCard():
                self.reset(now_ns)
            case SetPortAdmin():
                if not command.up:
                    why = "the port was switched off"
                    self._end_tests(self._port(command.oe), why, now_ns)
                self._port(command.oe).set_admin(command.up, now_ns)
            case TrainPort():
                port = self._port(command.oe)
                if not port.admin_up:
                    raise EngineRefusal("BAD_STATE", f"{port.id} is switched off")
                if port.testing:
                    raise EngineRefusal("LINK_BUSY", f"{port.id} is being tested")
                port.retrain(now_ns)
            case SetChannelMap():
                card.set_channel_map(command.entries, now_ns)
            case RegisterWindow():
                memory.windows.register(
                    MemoryWindow(command.region_id, command.key, command.base, command.length)
                )
            case UnregisterWindow():
                memory.windows.unregister(command.region_id)
            case StartTransfer():
                memory.start(command, now_ns)
            case CancelTransfer():
                memory.cancel(command.transfer_id, now_ns)
            case AcknowledgeTransfer():
                memory.jobs.acknowledge(command.transfer_id)
            case StartDiag():
                self.start_test(command, now_ns)
            case CancelDiag():
                self.cancel_test(command.diag_id, now_ns)
            case InjectFault():
                card.faults.inject(command, now_ns)
            case ClearFault():
                card.faults.clear(command.fault_id, now_ns)
            case ClearFlags():
                self.clear_flags(command.oe)
            case _:
                raise EngineRefusal("BAD_STATE", f"{type(command).__name__} is not for a card")
        self._dirty = True

    def clear_flags(self, oe: int | None) -> None:
        """Latches of an engine's lanes, or of the card itself."""
        optics = self._port(oe or 0).optics
        if oe is None:
            optics.bank.card_flags.unlatch(optics.card)
        else:
            optics.bank.flags.unlatch(optics.port)
        self.card.write_rows()

    def sockets_came(self, oe: int, fds: Sequence[int], now_ns: int) -> None:
        """For the virtual channels of a port."""
        runner = self._runners[oe]
        self._worker.movers.opened(
            runner.port, lambda now_ns: self.settle(now_ns, runner), fds, now_ns
        )

    def _port(self, oe: int) -> Port:
        if not 0 <= oe < len(self.card.ports):
            raise EngineRefusal("UNKNOWN_PORT", f"{self.card.name} has no oe{oe}")
        return self.card.ports[oe]


def transfer_text(kind: str, transfer: TransferInfo) -> str:
    """One sentence for people about a transfer's step."""
    what = f"{TransferKind(transfer.kind).name} of {transfer.total_bytes} bytes"
    ends = [transfer.local_card, transfer.remote_card]
    if transfer.kind == TransferKind.READ:
        ends.reverse()
    way = " to ".join(ends)
    match kind:
        case "TRANSFER_DONE":
            return f"{what}, {way}: done in {transfer.wall_ns / 1e6:.1f} ms, every byte checked"
        case "TRANSFER_FAILED":
            error = TransferError(transfer.error).name
            return f"{what}, {way}: {error}: {transfer.error_detail}"
        case "TRANSFER_WAITING":
            return f"{what}, {way}: waits for a link at {transfer.good_bytes} good bytes"
    return f"{what}, {way}: {kind.removeprefix('TRANSFER_').lower()}"


def make_transport(port: WorkerPort) -> Transport:
    """The transport behind an inherited descriptor, through its cable."""
    if port.fibre is None or port.fd == NO_FD:
        return Unplugged()
    transport: Transport
    match port.fibre.transport:
        case TransportKind.VETH | TransportKind.NETDEV:
            transport = PacketTransport(port.fd, port.mtu)
        case TransportKind.TAP:
            transport = TapTransport(port.fd, port.mtu)
        case TransportKind.MEMORY:
            transport = MemoryTransport(port.fd, port.mtu)
    return Cable(transport, CableMap.of(port.fibre, port.end, port.lanes))


class Worker:
    """All cards of this process."""

    def __init__(self, start: WorkerStart, channel: LoopChannel[ToWorker]) -> None:
        self.loop = Loop()
        self.chassis_id = start.chassis_id
        self.seed = start.seed
        self.tables = Tables.attach(start.tables_fd, start.table_rows, writable=True)
        self._row = self.tables.worker[start.worker]
        self._channel = channel
        self.movers = Movers(self.loop, start.cpus, start.seed, self._want_sockets)
        self._sockets: socket.socket | None = None
        if start.sockets_fd != NO_FD:
            self._sockets = socket.socket(fileno=start.sockets_fd)
            self.loop.add_reader(start.sockets_fd, self._on_sockets)
        self.banks = Banks(
            (card.profile for card in start.cards), start.seed, time_ns() - monotonic_ns()
        )
        self._cards = {
            card.name: CardRunner(self, card, index) for index, card in enumerate(start.cards)
        }
        self.movers.know({name: runner.card.memory.hbm for name, runner in self._cards.items()})
        self._transfers: dict[str, CardRunner] = {}
        self._progress_armed = False
        self._ticked = False
        self.loop.add_reader(channel.fileno(), self._on_control)
        now_ns = monotonic_ns()
        for resumed in start.transfers:
            runner = self._cards.get(resumed.command.local_card)
            if runner is not None:
                self._transfers[resumed.command.transfer_id] = runner
                runner.resume_transfer(resumed, now_ns)
        for runner in self._cards.values():
            runner.power_on(now_ns)
        self._tick(now_ns)
        self.send(WorkerReady())

    def run(self) -> None:
        """Until the chassis closes the control socket."""
        self.loop.run()

    # ---- virtual channels ----

    def _want_sockets(self, port: Port, channels: int) -> None:
        self.send(SocketsWanted(port.id.card, port.id.oe, channels))

    def _on_sockets(self, now_ns: int) -> None:
        assert self._sockets is not None
        name, fds, _, _ = socket.recv_fds(self._sockets, PORT_NAME_BYTES, CHANNELS_MAX)
        if not name:
            self.loop.remove(self._sockets.fileno())  # The control socket says so, too.
            return
        port = PortId.parse(name.decode())
        self._cards[port.card].sockets_came(port.oe, fds, now_ns)

    # ---- towards the chassis ----

    def send(self, message: Message) -> None:
        """At the end of this turn of the loop, with what else is said until then."""
        self._channel.keep(message)
        self.loop.soon(self._flush)

    def _flush(self, now_ns: int) -> bool:
        self.flush()
        return False

    def flush(self) -> None:
        """Send what was said until now."""
        self._on_control_writable(0)

    def send_if_room(self, message: Message) -> None:
        """For what the next one of its kind replaces."""
        if self._channel.unsent_bytes < UNSENT_MAX:
            self.send(message)

    def _on_control_writable(self, now_ns: int) -> None:
        try:
            self._channel.flush()
        except ChannelClosed:
            self.loop.stop()
            return
        if self._channel.wants_write:
            self.loop.when_writable(self._channel.fileno(), self._on_control_writable)

    def _on_control(self, now_ns: int) -> None:
        try:
            commands = self._channel.receive()
        except ChannelClosed:
            self.loop.stop()
            return
        for command in commands:
            self._obey(command, now_ns)

    def _obey(self, command: ToWorker, now_ns: int) -> None:
        if isinstance(command, WorkerStart):
            return
        try:
            runner = self._runner(command)
            runner.obey(command, now_ns)
        except EngineRefusal as refusal:
            self.send(Completion(command.id, refusal.code, refusal.detail))
            return
        if isinstance(command, StartTransfer):
            self._transfers[command.transfer_id] = runner
        elif isinstance(command, AcknowledgeTransfer):
            self._transfers.pop(command.transfer_id, None)
        self.send(Completion(command.id))
        runner.settle(now_ns)

    def _runner(self, command: Message) -> CardRunner:
        """The card that a command is for. Raises EngineRefusal."""
        if isinstance(command, CancelTransfer | AcknowledgeTransfer):
            runner = self._transfers.get(command.transfer_id)
            if runner is None:
                raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {command.transfer_id}")
            return runner
        if isinstance(command, ClearFault):
            return self._runner_with(command.fault_id)
        name = (
            command.local_card
            if isinstance(command, StartTransfer)
            else getattr(command, "card", "")
        )
        runner = self._cards.get(name)
        if runner is None:
            raise EngineRefusal("UNKNOWN_CARD", f"no card {name} in this worker")
        return runner

    def _runner_with(self, fault_id: str) -> CardRunner:
        for runner in self._cards.values():
            if fault_id in runner.card.faults:
                return runner
        raise EngineRefusal("UNKNOWN_FAULT", f"no fault {fault_id}")

    # ---- time ----

    def _tick(self, now_ns: int) -> None:
        self.loop.call_at(now_ns + TICK_NS, self._tick)
        late_ns = now_ns - int(self._row["beat_ns"]) - TICK_NS
        if self._row["beat_ns"] and late_ns > TICK_NS:
            self._row["tick_overruns"] += 1
        self._row["beat_ns"] = now_ns
        self.banks.advance(now_ns, max(late_ns, 0) if self._ticked else 0)
        self._ticked = True

    def watch_progress(self, now_ns: int) -> None:
        """Tell of transfers and tests from now on, for as long as some run."""
        if not self._progress_armed:
            self._progress_armed = True
            self.loop.call_at(now_ns + PROGRESS_NS, self._progress)

    def _progress(self, now_ns: int) -> None:
        self._progress_armed = False
        for runner in self._cards.values():
            runner.send_progress(now_ns)
            if runner.has_progress:
                self.watch_progress(now_ns)


def receive_start(channel: LoopChannel[ToWorker]) -> tuple[WorkerStart, Sequence[ToWorker]]:
    """Wait for the first message. Raises ChannelClosed when the chassis is gone already."""
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    while True:
        poll.poll()
        messages = channel.receive()
        if messages:
            first = messages[0]
            if not isinstance(first, WorkerStart):
                raise ChannelClosed(f"the first message was {type(first).__name__}")
            return first, messages[1:]


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print("a worker is started by the chassis: python -m accelhw.chassis", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = worker_channel(int(sys.argv[1]))
    try:
        start, early = receive_start(channel)
        die_with_parent(start.chassis_pid)
        sleep_exactly()
        worker = Worker(start, channel)
    except ChannelClosed:
        return 0
    for command in early:
        worker._obey(command, monotonic_ns())
    gc.collect()
    gc.freeze()  # what start-up made stays; the collector need not look at it again
    try:
        worker.run()
    except ChannelClosed as closed:
        print(
            f"a mover of this worker is gone ({closed}); so it ends, to begin anew", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
