"""A small chassis without light: speaks the device interface, moves bytes, does as it is told.

By hand: `python tests/acceld/fake_hardware.py SOCKET`, then
`acceld serve --chassis attach --hardware-socket SOCKET`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

import crc32c
import msgspec

from accelhw.interface import tables
from accelhw.interface.channel import (
    Channel,
    ChannelClosed,
    MalformedMessage,
    receive_bare,
    send_bare,
)
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    AcknowledgeEvents,
    AcknowledgeTransfer,
    AnyMessage,
    CancelDiag,
    CancelTransfer,
    CardInfo,
    ChannelMapEntry,
    ClearFault,
    ClearFlags,
    Completion,
    DiagInfo,
    DiagProgress,
    Event,
    FaultChanged,
    FaultInfo,
    FaultKindInfo,
    FibreInfo,
    Hello,
    InjectFault,
    PortInfo,
    Refused,
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
    Welcome,
    WindowInfo,
    decode,
)
from accelhw.interface.tables import Tables
from accelhw.model.diag import DiagState
from accelhw.model.link import DownReason, LinkState, TrainingPhase
from accelhw.model.transfer import TransferError, TransferKind, TransferState

EPOCH_NS = 1_700_000_000_000_000_000  # all times of this hardware are made up, for golden files
GIB = 1 << 30
FAULT_KINDS = (
    FaultKindInfo(
        "bent_fibre", "port", "A bend.", "less light", "the same", "straighten it", "a choice",
        "step", {"rx_path_loss_db": 6.0, "tx_path_loss_db": 6.0}, aims=True,
    ),
    FaultKindInfo(
        "hbm_dbe", "card", "A bad row.", "an error", "nothing", "reset", "a choice", "poisson",
        {"hbm_bad_rows": 1.0}, on_s=0.5, off_s=60.0,
    ),
)  # fmt: skip


@dataclass
class FakeHardware:
    """`hold_transfers` and `hold_training` leave them to the test; otherwise all ends well."""

    path: Path
    cards: int = 2
    oes: int = 2
    lanes: int = 8
    hbm_bytes: int = 80 * GIB
    budget_bytes: int = 8 * GIB
    hold_transfers: bool = False
    first_boot: int = 0
    refuse_hellos: int = 0  # so many drivers hear that another one is attached
    gate: asyncio.Event | None = None  # while it is there and not set, no command is carried out
    training: str = "up"  # or "failed", "hold"
    refuse: dict[type, Completion] = field(default_factory=dict)  # next command of a type
    commands: list[AnyMessage] = field(default_factory=list)
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self._boots = 0
        self._server: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self._channel: Channel[AnyMessage] | None = None
        self._hbm = [os.memfd_create(f"hbm{n}") for n in range(self.cards)]
        for fd in self._hbm:
            os.ftruncate(fd, self.hbm_bytes)
        self.infos = tuple(self._card_info(n) for n in range(self.cards))
        self.rows = (1, self.cards, self.cards * self.oes, self.cards * self.oes * self.lanes)
        self._tables_fd = os.memfd_create("tables")
        os.ftruncate(self._tables_fd, tables.table_bytes(self.rows))
        self.tables = Tables.attach(self._tables_fd, self.rows, writable=True)
        self._power_on()

    # ---- what a test does to it -----------------------------------------------------------------

    async def start(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._listener.setblocking(False)
        self._server = asyncio.create_task(self._accept())

    async def stop(self) -> None:
        """Gone, with its socket; the memory stays for a later `start`."""
        if self._server is not None:
            self._server.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._server
        if self._listener is not None:
            self._listener.close()
            self.path.unlink(missing_ok=True)
        self.hang_up()

    def close(self) -> None:
        for fd in (*self._hbm, self._tables_fd):
            os.close(fd)

    def hang_up(self) -> None:
        if self._channel is not None:
            self._channel.abort()

    def power_cycle(self) -> None:
        self._power_on()
        self.hang_up()

    def emit(self, kind: str, subject: str, severity: int = 1, **detail: str | int) -> Event:
        event = Event(
            len(self.journal) + 1, EPOCH_NS, severity, kind, subject, f"{kind} {subject}.", detail
        )
        self.journal.append(event)
        self._send(event)
        return event

    def progress(self, transfer_id: str, good_bytes: int) -> None:
        self._update(transfer_id, state=TransferState.RUNNING, good_bytes=good_bytes)

    def finish(self, transfer_id: str) -> None:
        """Move the bytes for real."""
        command = self._started[transfer_id]
        local = self._address(command.local_card, command.local_region_id, command.local_offset)
        far = self._address(command.remote_card, command.remote_region_id, command.remote_offset)
        source, target = (far, local) if command.kind == TransferKind.READ else (local, far)
        data = os.pread(source[0], command.length, source[1])
        os.pwrite(target[0], data, target[1])
        self._update(
            transfer_id,
            state=TransferState.DONE,
            good_bytes=command.length,
            first_gap_offset=command.length,
            links=(f"{command.local_card}/oe0",),
            ended_ns=EPOCH_NS + 2_000_000,
            wall_ns=1_500_000,
            modelled_ns=2_000,
            modelled_pcie_ns=16_000,
            crc32c=crc32c.crc32c(data),
        )

    def fail(self, transfer_id: str, error: TransferError, detail: str) -> None:
        self._update(
            transfer_id, state=TransferState.FAILED, error=int(error), error_detail=detail,
            ended_ns=EPOCH_NS + 3_000_000,
        )  # fmt: skip

    def measure(self, diag_id: str, **changes: object) -> None:
        """A step of a test, or its end."""
        self.diags[diag_id] = msgspec.structs.replace(self.diags[diag_id], **changes)
        self._send(DiagProgress(self.diags[diag_id]))

    def train_step(self, card: str, oe: int, phase: TrainingPhase, text: str) -> None:
        self._send(TrainingProgress(card, oe, LinkState.TRAINING, phase, None, text))

    def set_link(self, card: str, oe: int, state: LinkState, reason: DownReason) -> None:
        """Rows of the port and its lanes as they would be in this state."""
        info = next(c for c in self.infos if c.name == card)
        port = self.tables.port[info.ports[oe].port_row : info.ports[oe].port_row + 1]
        first = info.ports[oe].first_lane_row
        lanes = self.tables.lane[first : first + self.lanes]
        is_up = state.carries_data
        with self.tables.writing(info.card_row):
            port["state"] = state
            port["phase"] = TrainingPhase.ACTIVE if is_up else TrainingPhase.SEEK
            port["reason"] = reason
            port["reason_lane"] = -1
            port["peer_reason_lane"] = -1
            port["width"] = self.lanes if is_up else 0
            port["up_since_ns"] = EPOCH_NS if is_up else 0
            port["peer_oe"] = oe if is_up else -1
            port["peer_card"] = b"card1" if is_up and card == "card0" else b"card0" * is_up
            port["peer_chassis"] = self.boot_id.encode() if is_up else b""
            if is_up:
                port["trainings"] += 1
                port["epoch"] += 1
                port["training_ns"] = 12_500_000
                port["rtt_ns"] = 48_000
                port["credit_frames"] = 64
            elif state is LinkState.FAILED:
                port["training_failures"] += 1
            for index in range(self.lanes):
                lanes["rx_power_dbm"][index] = 1.5 - index / 10 if is_up else -40.0
                lanes["margin_db"][index] = 4.0 - index / 10
                lanes["q"][index] = 6.0
                lanes["pre_fec_ber"][index] = 1e-9 * (index + 1)
                lanes["peer_lane"][index] = index if is_up else -1
            for column, value in (("fitted_margin", is_up), ("used", is_up), ("los", not is_up)):
                lanes[column] = value

    # ---- inside ---------------------------------------------------------------------------------

    def _power_on(self) -> None:
        self._boots += 1
        self.boot_id = f"{self.first_boot + self._boots:016x}"
        self.journal: list[Event] = []
        self.windows: dict[tuple[str, int], WindowInfo] = {}
        self.transfers: dict[str, TransferInfo] = {}
        self.diags: dict[str, DiagInfo] = {}
        self.faults: dict[str, FaultInfo] = {}
        self._started: dict[str, StartTransfer] = {}
        self.maps = {
            info.name: tuple(
                ChannelMapEntry(n, n, n // self.lanes, n % self.lanes)
                for n in range(self.oes * self.lanes)
            )
            for info in self.infos
        }
        self.tables.worker["pid"] = 4242
        self.tables.worker["alive"] = 1
        for info in self.infos:
            with self.tables.writing(info.card_row):
                self.tables.card["state"][info.card_row] = tables.CARD_READY
                self.tables.card["ready_since_ns"][info.card_row] = EPOCH_NS
            for port in info.ports:
                with self.tables.writing(info.card_row):
                    self.tables.port["admin_up"][port.port_row] = 1
                    for lane in range(port.first_lane_row, port.first_lane_row + port.lanes):
                        self.tables.lane["tx_power_dbm"][lane] = 2.0
                        self.tables.lane["tx_bias_ma"][lane] = 47.0
                        self.tables.lane["tx_on"][lane] = 1
                self.set_link(info.name, port.oe, LinkState.SEEKING, DownReason.NO_SIGNAL)

    def _card_info(self, n: int) -> CardInfo:
        ports = tuple(
            PortInfo(
                oe,
                n * self.oes + oe,
                (n * self.oes + oe) * self.lanes,
                self.lanes,
                # The last engine of each card has no fibre.
                FibreInfo(f"fibre{oe}", "veth", 10.0, 0.5, 65535, f"card{n}-oe{oe}")
                if oe < self.oes - 1
                else None,
            )
            for oe in range(self.oes)
        )
        return CardInfo(f"card{n}", "dr8", f"{n:016x}", self.hbm_bytes, n, 0, ports)

    async def _accept(self) -> None:
        assert self._listener is not None
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            sock.setblocking(False)
            with contextlib.suppress(ChannelClosed, MalformedMessage):
                await self._serve(sock)
            self._channel = None

    async def _serve(self, sock: socket.socket) -> None:
        hello, _ = await receive_bare(sock, decode)
        if not isinstance(hello, Hello):
            await send_bare(sock, Refused("say Hello first"))
            return
        if self.refuse_hellos:
            self.refuse_hellos -= 1
            await send_bare(sock, Refused("another driver is attached"))
            return
        welcome = Welcome(
            INTERFACE_VERSION, self.boot_id, os.getpid(), EPOCH_NS, self.budget_bytes, self.infos,
            tuple(self.transfers.values()), tuple(self.windows.values()), self.maps,
            len(self.journal), 1, self.rows, FAULT_KINDS, tuple(self.faults.values()),
        )  # fmt: skip
        await send_bare(sock, welcome, (self._tables_fd, *self._hbm))
        self._channel = await Channel.over(sock, decode)
        last = hello.last_event if hello.boot_id == self.boot_id else 0
        for event in self.journal[last:]:
            self._send(event)
        while True:
            await self._obey(await self._channel.receive())

    async def _obey(self, command: AnyMessage) -> None:
        self.commands.append(command)
        if self.gate is not None:
            await self.gate.wait()
        number: int = getattr(command, "id", 0)
        if (refusal := self.refuse.pop(type(command), None)) is not None:
            self._send(msgspec.structs.replace(refusal, id=number))
            return
        error = self._carry_out(command)
        self._send(Completion(number, error))
        match command:
            case StartTransfer() if not error and not self.hold_transfers:
                self.progress(command.transfer_id, command.length // 2)
                self.finish(command.transfer_id)
            case TrainPort() if not error:
                self._train(command)

    def _carry_out(self, command: AnyMessage) -> str:
        match command:
            case RegisterWindow(_, card, region_id, key, base, length):
                if (card, region_id) in self.windows:
                    return "EXISTS"
                self.windows[card, region_id] = WindowInfo(card, region_id, key, base, length)
            case UnregisterWindow(_, card, region_id):
                if self.windows.pop((card, region_id), None) is None:
                    return "UNKNOWN_REGION"
            case StartTransfer():
                self._started[command.transfer_id] = command
                self.transfers[command.transfer_id] = TransferInfo(
                    command.transfer_id, command.kind, TransferState.RUNNING, command.local_card,
                    command.remote_card, command.length, started_ns=EPOCH_NS,
                )  # fmt: skip
            case CancelTransfer(_, transfer_id):
                if transfer_id not in self.transfers:
                    return "UNKNOWN_TRANSFER"
                self._update(
                    transfer_id, state=TransferState.CANCELLED, error=int(TransferError.CANCELLED)
                )
            case AcknowledgeTransfer(_, transfer_id):
                self.transfers.pop(transfer_id, None)
            case AcknowledgeEvents(_, sequence):
                self.acknowledged = max(self.acknowledged, sequence)
            case SetPortAdmin(_, card, oe, up):
                row = next(c for c in self.infos if c.name == card).ports[oe].port_row
                self.tables.port["admin_up"][row] = up
                if not up:
                    self.set_link(card, oe, LinkState.DOWN, DownReason.ADMIN_DOWN)
            case ClearFlags(_, card, oe):
                info = next(c for c in self.infos if c.name == card)
                if oe is None:
                    flags = self.tables.card_flag[info.card_row]
                else:
                    first = info.ports[oe].first_lane_row
                    flags = self.tables.lane_flag[first : first + self.lanes]
                flags["latched"] = flags["active"]
            case StartDiag():
                self.diags[command.diag_id] = DiagInfo(
                    command.diag_id, command.kind, int(DiagState.RUNNING), command.card,
                    command.oe, command.lanes, duration_s=command.duration_s, started_ns=EPOCH_NS,
                )  # fmt: skip
            case CancelDiag(_, diag_id):
                if diag_id not in self.diags:
                    return "UNKNOWN_DIAG"
                state = int(DiagState.CANCELLED)
                self.measure(diag_id, state=state, ended_ns=EPOCH_NS + 1)
            case SetChannelMap(_, card, entries):
                self.maps[card] = entries
            case InjectFault():
                if command.kind not in [kind.id for kind in FAULT_KINDS]:
                    return "UNKNOWN_FAULT"
                self._begin_fault(command)
            case ClearFault(_, fault_id):
                if fault_id not in self.faults:
                    return "UNKNOWN_FAULT"
                self.end_fault(fault_id, "CLEARED")
            case ResetCard(_, card):
                row = next(c for c in self.infos if c.name == card).card_row
                self.tables.card["resets"][row] += 1
                self.emit("CARD_RESET", card)
        return ""

    def _begin_fault(self, command: InjectFault) -> None:
        on_card = "/" not in command.subject
        info = FaultInfo(
            command.fault_id, command.kind, command.subject,
            () if on_card else command.lanes or tuple(range(self.lanes)),
            command.shape or "step", 0, EPOCH_NS + len(self.faults) * 10**9, command.seed or 0,
            command.duration_s, command.ramp_s, command.scale, (), command.target_ber,
            command.address,
        )  # fmt: skip
        self.faults[info.fault_id] = info
        self._send(FaultChanged(info))

    def end_fault(self, fault_id: str, state: str = "ENDED") -> None:
        info = self.faults.pop(fault_id)
        self._send(FaultChanged(msgspec.structs.replace(info, state=state)))

    def _train(self, command: TrainPort) -> None:
        for phase in (TrainingPhase.SEEK, TrainingPhase.LOCK, TrainingPhase.MAP):
            self.train_step(command.card, command.oe, phase, phase.name.lower())
        if self.training == "hold":
            return
        is_up = self.training == "up"
        state = LinkState.UP if is_up else LinkState.FAILED
        reason = DownReason.NONE if is_up else DownReason.CDR_NO_LOCK
        self.set_link(command.card, command.oe, state, reason)
        self._send(
            TrainingProgress(command.card, command.oe, state, TrainingPhase.ACTIVE, None, "end")
        )
        self.emit("LINK_UP" if is_up else "LINK_FAILED", f"{command.card}/oe{command.oe}")

    def _update(self, transfer_id: str, **changes: object) -> None:
        info = msgspec.structs.replace(self.transfers[transfer_id], **changes)
        self.transfers[transfer_id] = info
        self._send(TransferProgress(info))

    def _address(self, card: str, region_id: int, offset: int) -> tuple[int, int]:
        number = next(i for i, info in enumerate(self.infos) if info.name == card)
        return self._hbm[number], self.windows[card, region_id].base + offset

    def _send(self, message: msgspec.Struct) -> None:
        if self._channel is not None:
            self._channel.post(message)


async def main(path: Path) -> None:
    path.unlink(missing_ok=True)
    hardware = FakeHardware(path, first_boot=os.getpid() << 16)
    hardware.set_link("card0", 0, LinkState.UP, DownReason.NONE)
    hardware.set_link("card1", 0, LinkState.UP, DownReason.NONE)
    hardware.emit("CHASSIS_STARTED", "chassis")
    await hardware.start()
    print(f"acceld serve --chassis attach --hardware-socket {path}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await hardware.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1])))
