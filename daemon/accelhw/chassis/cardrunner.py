"""A card in its worker's loop, and its voice towards the chassis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic_ns, time_ns

import msgspec

from accelhw.chassis.control import (
    ResumedTransfer,
    TransferStep,
    WorkerCard,
    WorkerEvent,
)
from accelhw.chassis.linktests import LinkTests
from accelhw.chassis.loop import Soonest
from accelhw.chassis.portbuilder import build_port
from accelhw.chassis.portrunner import PortRunner
from accelhw.chassis.shared import Shared
from accelhw.device.card import RESET_NS, Card
from accelhw.device.channelport import ChannelPort
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelDiag,
    CancelTransfer,
    ClearFault,
    ClearFlags,
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
    TransferProgress,
    UnregisterWindow,
)
from accelhw.link.events import Report
from accelhw.link.moves import STATE
from accelhw.model.event import Severity
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TRANSFER_ENDS, TransferError, TransferState

BEAT_NS = 500_000_000  # of a card's ports: carriers
BEATS_PER_SHOW = 2  # with nothing new, a card's rows are written at every second beat
ENDS = frozenset(TRANSFER_ENDS.values())
SHOW_NS = 20_000_000  # the shortest time between two writes of a card's rows, or of its counts


class CardRunner:
    """A card in the loop, and its voice towards the chassis."""

    def __init__(
        self,
        shared: Shared,
        start: WorkerCard,
        index: int,
        watch_progress: Callable[[int], None],
    ) -> None:
        """`watch_progress`: something runs here from now on, so `send_progress` is wanted."""
        self._shared = shared
        self._loop = shared.loop
        self._voice = shared.voice
        self._watch_progress = watch_progress
        self._dirty = True
        self._shown_ns = 0
        self._counted_ns = self._counted_bytes = 0
        self._show_armed = False
        self._beats = 0
        self._alarm = Soonest(self._loop, self._on_alarm)
        self._fault_alarm = Soonest(self._loop, self._on_fault)
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
            build_port=lambda oe, memory: build_port(start, oe, memory, self, shared),
            channel_map=start.channel_map,
            tables=shared.tables,
            seed=shared.seed,
            around=self,
        )
        self._runners = [PortRunner(self._loop, port, self.settle) for port in self.card.ports]
        self._by_data = {id(runner.port.data): runner for runner in self._runners}
        self._tests = LinkTests(
            shared,
            self.card.memory,
            [port.port_row for port in start.ports],
            changed=self._on_changed,
            settle=self.settle,
        )
        self.card.memory.catch_up = shared.movers.catch_up
        self.card.memory.transfers.show_counts = lambda: self._show_counts(monotonic_ns())
        for window in start.windows:
            self.card.memory.windows.register(window)
        for fault in start.faults:
            self.card.faults.resume(fault)
        beat_ns = monotonic_ns() + index * BEAT_NS // 16 % BEAT_NS
        self._loop.call_at(beat_ns, self._beat)

    # ---- what ports say ----

    def tell(
        self, port: Port, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        self._voice.send(WorkerEvent(kind, severity, str(port.id), message, dict(detail)))

    def show_step(self, port: Port, step: Report) -> None:
        state = int(STATE[step.phase])
        at = port.id
        self._voice.send_if_room(
            TrainingProgress(at.card, at.oe, state, int(step.phase), step.lane, step.text)
        )

    def changed(self, port: Port) -> None:
        self._dirty = True

    def _on_changed(self) -> None:
        self._dirty = True

    # ---- what the card says ----

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None:
        self._voice.send(WorkerEvent(kind, severity, subject, message, dict(detail)))
        # At once: the far end, in another worker, will tell of what comes of it.
        self._voice.flush()

    def fault_changed(self, info: FaultInfo) -> None:
        self._dirty = True
        self._voice.send(FaultChanged(info))

    # ---- the loop ----

    def settle(self, now_ns: int, runner: PortRunner | None = None) -> None:
        """After anything happened on this card, or on the port alone: send, report, show, and set
        the clock."""
        memory = self.card.memory
        while memory.ready:
            way = memory.ready.pop()
            work = way.work if isinstance(way, ChannelPort) else self._by_data[id(way)].work
            self._loop.soon(work)
        events = memory.jobs.take_events()
        # Whoever hears of an end will look; and a worker that is killed should leave what it did.
        moved = memory.counters.moved_bytes != self._counted_bytes
        ends = any(event.kind in ENDS for event in events)
        if ends or (moved and now_ns >= self._counted_ns + SHOW_NS):
            self._show_counts(now_ns)
        for event in events:
            self._voice.send(TransferStep(event.kind, event.transfer))
            self._dirty = True
        if self._dirty and not self._show_armed:
            self._show_armed = True
            self._loop.call_at(max(now_ns, self._shown_ns + SHOW_NS), self._show)
        for each in self._runners if runner is None else (runner,):
            each.arm()
        if self.has_progress:
            self._watch_progress(now_ns)
        if memory.busy:
            self._loop.soon(self.work)
        if memory.transfers.active:
            self._alarm.set(memory.next_deadline_ns())
        if runner is None:
            self._fault_alarm.set(self.card.faults.next_deadline_ns())

    def _on_fault(self, now_ns: int) -> None:
        self.card.faults.advance(now_ns)
        self.settle(now_ns)

    def _on_alarm(self, now_ns: int) -> None:
        self.card.memory.on_deadline(now_ns)
        self.settle(now_ns)

    def _show(self, now_ns: int) -> None:
        self._show_armed = False
        self._dirty = False
        self._shown_ns = now_ns
        self.card.write_rows()

    def _show_counts(self, now_ns: int) -> None:
        self._counted_ns, self._counted_bytes = now_ns, self.card.memory.counters.moved_bytes
        self.card.write_counts()

    def part(self, now_ns: int) -> None:
        """The chassis is powered off: what the movers of this card counted is shown, too."""
        for port in self.card.ports:
            port.channels.link_down(now_ns)
        self._shared.movers.catch_up(now_ns)
        self.card.write_counts()

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
        return self.card.memory.transfers.active or bool(self._tests.running)

    def send_progress(self, now_ns: int) -> None:
        self._progress_turn ^= True
        if self._progress_turn:
            self._tests.send_progress()
        memory = self.card.memory
        if memory.transfers.active:
            for info in memory.jobs.infos(now_ns):
                if not info.ended_ns:
                    self._voice.send_if_room(TransferProgress(info))

    # ---- commands ----

    def power_on(self, now_ns: int) -> None:
        self.card.faults.advance(now_ns)
        self.card.power_on(now_ns)
        self._show(now_ns)
        self.settle(now_ns)

    def reset(self, now_ns: int) -> None:
        self._tests.end_all(None, "the card was reset", now_ns)
        self.card.reset(now_ns)
        self._voice.send(
            WorkerEvent("CARD_RESET", Severity.INFO, self.card.name, "reset by command")
        )
        self._loop.call_at(now_ns + RESET_NS, self._after_reset)

    def _after_reset(self, now_ns: int) -> None:
        self.power_on(now_ns)
        self._voice.send(
            WorkerEvent("CARD_READY", Severity.INFO, self.card.name, "answers after its reset")
        )

    def resume_transfer(self, resumed: ResumedTransfer, now_ns: int) -> None:
        """Go on with a transfer of the worker's last life, or end it where that cannot be."""
        try:
            self.card.memory.resume(resumed.command, resumed.progress, now_ns)
        except EngineRefusal as refusal:
            progress = resumed.progress
            wall_ns = now_ns - progress.begun_ns if progress.started_ns else 0
            ended = msgspec.structs.replace(
                progress,
                state=int(TransferState.FAILED),
                error=int(TransferError.CARD_LOST),
                error_detail=f"cannot go on after the card's restart: {refusal}",
                ended_ns=progress.started_ns + wall_ns if progress.started_ns else time_ns(),
                wall_ns=wall_ns,
            )
            self._voice.send(TransferStep(TRANSFER_ENDS[TransferState.FAILED], ended))

    def obey(self, command: Message, now_ns: int) -> None:
        """Carry out a command of this card. Raises EngineRefusal."""
        card, memory = self.card, self.card.memory
        match command:
            case ResetCard():
                self.reset(now_ns)
            case SetPortAdmin():
                if not command.up:
                    why = "the port was switched off"
                    self._tests.end_all(self._port(command.oe), why, now_ns)
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
                self._tests.start(self._port(command.oe), command, now_ns)
            case CancelDiag():
                self._tests.cancel(command.diag_id, now_ns)
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
        self._shared.movers.opened(
            runner.port, lambda now_ns: self.settle(now_ns, runner), fds, now_ns
        )

    def _port(self, oe: int) -> Port:
        if not 0 <= oe < len(self.card.ports):
            raise EngineRefusal("UNKNOWN_PORT", f"{self.card.name} has no oe{oe}")
        return self.card.ports[oe]
