"""Builds a chassis from a configuration, hands each part its needs, and keeps it together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import structlog

from accelhw.chassis import reaper
from accelhw.chassis.control import (
    NO_FD,
    FromWorker,
    SocketsWanted,
    TransferStep,
    WorkerCard,
    WorkerEvent,
    WorkerPort,
    WorkerReady,
    WorkerStart,
)
from accelhw.chassis.device_server import DeviceServer
from accelhw.chassis.fabric import Fabric, FabricError
from accelhw.chassis.faultkinds import fault_kinds
from accelhw.chassis.journal import Detail, Journal
from accelhw.chassis.memory import available_bytes, budget_bytes, make_shared
from accelhw.chassis.plan import CardPlace, make_plan
from accelhw.chassis.plugs import Plugs
from accelhw.chassis.registers import Registers
from accelhw.chassis.router import Router
from accelhw.chassis.status import StatusRows
from accelhw.chassis.supervisor import WORKER_COMMAND, Supervisor
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    CardInfo,
    Command,
    Completion,
    DiagProgress,
    FaultChanged,
    FibreInfo,
    InjectFault,
    PortInfo,
    SetChannelMap,
    TrainingProgress,
    TransferProgress,
    Welcome,
)
from accelhw.interface.tables import table_bytes
from accelhw.interface.transferevent import transfer_event
from accelhw.model.config import Config
from accelhw.model.diag import DiagState
from accelhw.model.event import Severity
from accelhw.model.ids import PortId
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferState

log = structlog.get_logger()


class Chassis:
    """The emulated hardware: `start`, then it runs until `stop`."""

    def __init__(
        self,
        config: Config,
        socket_path: Path,
        *,
        worker_command: Sequence[str] = WORKER_COMMAND,
        worker_backoff_s: Callable[[int], float] | None = None,
        log_format: str = "console",
    ) -> None:
        self.boot_id = secrets.token_hex(8)
        self._config = config
        self._log_format = log_format
        self._started_ns = time.time_ns()
        self._cpus = tuple(sorted(os.sched_getaffinity(0)))
        self.plan = make_plan(config, len(self._cpus))
        self._plugs = Plugs()
        self.journal = Journal(time.time_ns)
        self.registers = Registers.at_power_on(self.plan.cards)
        self._fabric = Fabric(self.boot_id, config.fibres)
        self.supervisor = Supervisor(self, self.plan.workers, worker_command, worker_backoff_s)
        self._router = Router(self.plan, self.registers, self.supervisor.send)
        self._server = DeviceServer(socket_path, self.boot_id, self.journal, self)
        self._budget_bytes = 0
        self._hbm_fds: dict[str, int] = {}
        self._tables_fd = NO_FD
        self._rows: StatusRows | None = None

    async def start(self) -> None:
        """Power on. If it fails, all is undone.

        Raises SocketInUse, NotEnoughMemory, FabricError, OSError.
        """
        try:
            # The socket first: two chassis with one socket must not touch each other's things.
            self._server.claim()
            await self._start()
            self._server.start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._budget_bytes = budget_bytes(self._config.hardware.hbm_budget_bytes, available_bytes())
        self._make_memory()
        self._record(
            "CHASSIS_STARTED",
            Severity.INFO,
            "chassis",
            f"the chassis powered on with {len(self.plan.cards)} cards"
            if len(self.plan.cards) > 1
            else "the chassis powered on with one card",
            {"boot_id": self.boot_id, "pid": os.getpid(), "workers": self.plan.workers},
        )
        for left in await asyncio.to_thread(reaper.reap):
            detail: Detail = {"interface": left.interface, "chassis": left.chassis_id}
            self._record(
                "INTERFACE_REAPED",
                Severity.WARNING,
                "chassis",
                f"removed {left}, left by an earlier life",
                {**detail, **({"netns": left.netns} if left.netns else {})},
            )
        await asyncio.to_thread(self._fabric.build)
        await self.supervisor.start()

    async def run(self) -> None:
        """Until something of the chassis itself breaks; raises what did."""
        await self.supervisor.run()

    async def stop(self) -> None:
        """Power off: nothing of ours stays."""
        await self.supervisor.stop()
        await self._server.stop()  # The driver reads the last counts when it sees us go.
        self._plugs.close_all()
        await asyncio.to_thread(self._fabric.remove)
        if self._rows is not None:
            self._rows.close()
        for fd in (self._tables_fd, *self._hbm_fds.values()):
            if fd != NO_FD:
                os.close(fd)
        self._tables_fd = NO_FD
        self._hbm_fds.clear()

    def _make_memory(self) -> None:
        rows = self.plan.table_rows
        self._tables_fd = make_shared("accel-tables", table_bytes(rows))
        self._rows = StatusRows(self._tables_fd, rows)
        for place in self.plan.cards:
            name = place.card.name
            self._hbm_fds[name] = make_shared(f"accel-hbm-{name}", place.card.hbm_bytes)
            self._rows.place(place)

    # ---- events

    def _record(
        self,
        kind: str,
        severity: Severity,
        subject: str,
        message: str,
        detail: Detail | None = None,
    ) -> None:
        self.journal.record(kind, severity, subject, message, detail)
        write = log.info if severity is Severity.INFO else log.warning
        write(
            kind.lower(), subject=subject, message=message, **{"detail": detail} if detail else {}
        )
        self._server.journal_grew()

    # ---- the hardware behind the device socket

    def welcome(self) -> tuple[Welcome, Sequence[int]]:
        names = [place.card.name for place in self.plan.cards]
        message = Welcome(
            version=INTERFACE_VERSION,
            boot_id=self.boot_id,
            chassis_pid=os.getpid(),
            started_ns=self._started_ns,
            hbm_budget_bytes=self._budget_bytes,
            cards=tuple(self._card_info(place) for place in self.plan.cards),
            transfers=tuple(known.info for known in self.registers.transfers.values()),
            windows=tuple(
                window for card in self.registers.windows.values() for window in card.values()
            ),
            channel_maps=dict(self.registers.channel_maps),
            newest_event=self.journal.newest,
            oldest_kept_event=self.journal.oldest_kept,
            table_rows=self.plan.table_rows,
            fault_kinds=fault_kinds(),
            faults=tuple(self.registers.faults.values()),
        )
        return message, [self._tables_fd, *(self._hbm_fds[name] for name in names)]

    def command(self, command: Command, reply: Callable[[Completion], None]) -> None:
        if isinstance(command, InjectFault):
            command = msgspec.structs.replace(
                command, begun_ns=time.monotonic_ns(), started_ns=time.time_ns()
            )
        self._router.command(command, reply)

    def _card_info(self, place: CardPlace) -> CardInfo:
        return CardInfo(
            name=place.card.name,
            profile=place.card.profile.name,
            uid=place.uid,
            hbm_bytes=place.card.hbm_bytes,
            card_row=place.card_row,
            worker=place.worker,
            ports=tuple(
                PortInfo(
                    oe=port.oe,
                    port_row=place.port_row(port.oe),
                    first_lane_row=place.lane_row(port.oe),
                    lanes=place.card.profile.lanes_per_oe,
                    fibre=self._fibre_info(port),
                )
                for port in place.ports
            ),
        )

    def _fibre_info(self, port: PortId) -> FibreInfo | None:
        at = self._fabric.at(port)
        if at is None:
            return None
        fibre = at.fibre
        return FibreInfo(
            name=fibre.name,
            transport=fibre.transport.value,
            length_m=fibre.length_m,
            loss_db=fibre.loss_db,
            mtu=fibre.mtu,
            interface=at.interface,
            netns=at.netns,
        )

    # ---- the keeper of the workers

    def lasting_fds(self, worker: int) -> tuple[int, ...]:
        hbm = (self._hbm_fds[place.card.name] for place in self.plan.of_worker(worker))
        return (self._tables_fd, *hbm)

    def worker_start(self, worker: int, life: int) -> tuple[WorkerStart, tuple[int, ...]]:
        places = self.plan.of_worker(worker)
        with contextlib.ExitStack() as undo:
            fresh: list[int] = []

            def opened(port: PortId) -> int:
                fd = self._fabric.open(port)
                undo.callback(os.close, fd)
                fresh.append(fd)
                return fd

            sockets_fd = self._plugs.renew(worker)
            undo.callback(os.close, sockets_fd)
            fresh.append(sockets_fd)
            start = WorkerStart(
                chassis_id=self.boot_id,
                chassis_pid=os.getpid(),
                worker=worker,
                life=life,
                seed=self._config.hardware.seed,
                tables_fd=self._tables_fd,
                table_rows=self.plan.table_rows,
                cards=tuple(self._worker_card(place, opened) for place in places),
                transfers=self.registers.resumed_on(place.card.name for place in places),
                log_format=self._log_format,
                cpus=self._cpus,
                sockets_fd=sockets_fd,
            )
            undo.pop_all()
        return start, tuple(fresh)

    def _worker_card(self, place: CardPlace, opened: Callable[[PortId], int]) -> WorkerCard:
        name = place.card.name
        return WorkerCard(
            name=name,
            uid=place.uid,
            profile=place.card.profile,
            hbm_fd=self._hbm_fds[name],
            hbm_bytes=place.card.hbm_bytes,
            card_row=place.card_row,
            ports=tuple(self._worker_port(place, port, opened) for port in place.ports),
            channel_map=self.registers.channel_maps[name],
            windows=tuple(
                MemoryWindow(window.region_id, window.key, window.base, window.length)
                for window in self.registers.windows[name].values()
            ),
            faults=self.registers.faults_on(name),
        )

    def _worker_port(
        self, place: CardPlace, port: PortId, opened: Callable[[PortId], int]
    ) -> WorkerPort:
        at = self._fabric.at(port)
        return WorkerPort(
            oe=port.oe,
            port_row=place.port_row(port.oe),
            first_lane_row=place.lane_row(port.oe),
            lanes=place.card.profile.lanes_per_oe,
            admin_up=self.registers.ports_up[port],
            fibre=at.fibre if at else None,
            end=at.end if at else "",
            fd=opened(port) if at else NO_FD,
            interface=at.interface if at else None,
            peer=at.peer if at else None,
            mtu=at.fibre.mtu if at else 0,
        )

    def worker_started(self, worker: int, pid: int, life: int) -> None:
        assert self._rows is not None
        self._rows.worker_started(worker, pid, life)
        cards = " ".join(place.card.name for place in self.plan.of_worker(worker))
        self._record(
            "WORKER_STARTED",
            Severity.INFO,
            "chassis",
            f"worker {worker} started",
            {"worker": worker, "pid": pid, "life": life, "cards": cards},
        )

    def worker_said(self, worker: int, message: FromWorker) -> None:
        match message:
            case WorkerReady():
                for place in self.plan.of_worker(worker):
                    name = place.card.name
                    self._record("CARD_READY", Severity.INFO, name, f"{name} is up and answers")
            case WorkerEvent():
                severity = Severity(min(max(message.severity, 1), 3))
                self._record(
                    message.kind, severity, message.subject, message.message, message.detail
                )
            case Completion():
                done = self._router.completed(message)
                if isinstance(done, SetChannelMap):
                    self._record(
                        "CHANNEL_MAP_CHANGED",
                        Severity.INFO,
                        done.card,
                        f"the channels of {done.card} were mapped anew",
                    )
            case TransferProgress():
                if self.registers.progress(message.transfer):
                    self._server.tell(message)
            case TransferStep(kind=kind, transfer=transfer):
                if self.registers.progress(transfer):
                    event = transfer_event(kind, transfer)
                    self._record(kind, event.severity, event.subject, event.message, event.detail)
                    ended = TransferState(transfer.state).ended
                    say = self._server.say if ended else self._server.tell
                    say(TransferProgress(transfer))
            case TrainingProgress():
                self._server.tell(message)
            case DiagProgress():
                ended = DiagState(message.diag.state).ended
                (self._server.say if ended else self._server.tell)(message)
            case SocketsWanted():
                self._give_sockets(worker, message)
            case FaultChanged():
                self.registers.fault_changed(message.fault)
                self._server.say(message)

    def _give_sockets(self, worker: int, wanted: SocketsWanted) -> None:
        port = PortId(wanted.card, wanted.oe)
        try:
            fds = self._fabric.open_channels(port, wanted.channels)
        except FabricError as error:  # The link goes on with the channel it has.
            log.warning("no_channels", port=str(port), error=str(error))
            fds = []
        self._plugs.give(worker, port, fds)

    def worker_died(self, worker: int, pid: int, life: int, how: str) -> None:
        assert self._rows is not None
        self._record(
            "WORKER_DIED",
            Severity.ERROR,
            "chassis",
            f"worker {worker} {how}",
            {"worker": worker, "pid": pid, "life": life},
        )
        self._rows.worker_died(worker)
        for place in self.plan.of_worker(worker):
            name = place.card.name
            self._rows.card_lost(place)
            self._record(
                "FELL_OFF_BUS",
                Severity.ERROR,
                name,
                f"{name} does not answer: its worker {how}; it is being started again",
                {"worker": worker},
            )
        for info in self._router.worker_gone(worker):
            self._server.tell(TransferProgress(info))
