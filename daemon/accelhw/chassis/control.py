"""What chassis and worker say to each other, over a socket pair that the worker inherits.

The chassis starts `python -m accelhw.chassis.worker FD`, where FD is the worker's end, and sends a
`WorkerStart` first. Every descriptor number in it is valid in the worker as it stands (inherited
under the same number) and is the worker's to close. The worker answers with `WorkerReady` once its
cards work, and from then on

- gets the driver's commands for its cards and answers each with one `Completion` of the same id;
- sends `TransferProgress` and `TrainingProgress` as the device interface asks, and `WorkerEvent`
  for CARD_RESET and LINK_* (and CARD_READY after a reset);
- sends a `TransferStep` for each TRANSFER_* event, a transfer's end included: event and state in
  one message, so that a worker that dies leaves both or none;
- sends `FaultChanged` for each fault that begins, ends or is cleared, before the Completion of the
  command that asked for it, and FAULT_* and HBM_* events;
- sends `DiagProgress` for each test of a link, its end included, and DIAG_* events.

The chassis itself reports CHASSIS_STARTED, WORKER_STARTED, WORKER_DIED, FELL_OFF_BUS, CARD_READY
(for a WorkerReady), CHANNEL_MAP_CHANGED, EVENTS_LOST and INTERFACE_REAPED. End of stream is
power-off: the worker leaves with status 0. A worker never outlives its chassis.
"""

from __future__ import annotations

import socket

import msgspec

from accelhw.interface.channel import LoopChannel
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelDiag,
    CancelTransfer,
    ChannelMapEntry,
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
from accelhw.model.config import Fibre
from accelhw.model.ids import PortId
from accelhw.model.profile import Profile
from accelhw.model.region import MemoryWindow

NO_FD = -1


class WorkerPort(msgspec.Struct, frozen=True):
    """A port of one of the worker's cards, and the socket that its fibre ends in."""

    oe: int
    port_row: int
    first_lane_row: int  # lanes follow in order
    lanes: int
    admin_up: bool
    fibre: Fibre | None  # None: nothing plugged
    end: str  # "a" or "b" of the fibre; "" without one
    fd: int  # packet socket, TAP or SEQPACKET socket, by fibre.transport; NO_FD without a fibre
    interface: str | None  # the Linux interface that carries it, for messages
    peer: PortId | None  # the far port, when it is on this chassis
    mtu: int  # largest frame body after the 14-byte Ethernet header; 0 without a fibre


class WorkerCard(msgspec.Struct, frozen=True):
    name: str
    uid: str
    profile: Profile
    hbm_fd: int
    hbm_bytes: int
    card_row: int
    ports: tuple[WorkerPort, ...]  # by oe, all of them
    channel_map: tuple[ChannelMapEntry, ...]
    windows: tuple[MemoryWindow, ...]
    faults: tuple[FaultInfo, ...] = ()  # active, from an earlier life


class ResumedTransfer(msgspec.Struct, frozen=True):
    """A transfer that the worker's last life did not end; go on from `progress`."""

    command: StartTransfer
    progress: TransferInfo


class WorkerStart(Message, frozen=True):
    """First message to a worker: all it needs to know."""

    chassis_id: str  # 16 hex digits: the boot id
    chassis_pid: int
    worker: int  # its row in the worker table
    life: int  # 0 at first, counts restarts
    seed: int
    tables_fd: int
    table_rows: tuple[int, int, int, int]
    cards: tuple[WorkerCard, ...]
    transfers: tuple[ResumedTransfer, ...]
    log_format: str  # "console" or "json"
    cpus: tuple[int, ...] = ()  # where movers may run
    sockets_fd: int = NO_FD  # where the sockets come that SocketsWanted asks for


class WorkerReady(Message, frozen=True):
    """The cards answer: rows are filled, ports run."""


class GivesUp(Message, frozen=True):
    """The worker's last word, if it has one: it ends now, because `why`."""

    why: str


class SocketsWanted(Message, frozen=True):
    """For a port's virtual channels, 1 and up. They come over `sockets_fd` with the port's name as
    bytes; none of them means that it cannot be."""

    card: str
    oe: int
    channels: int


class WorkerEvent(Message, frozen=True, omit_defaults=True):
    """A fact for the journal, which numbers and dates it. Kinds: accelhw.model.event."""

    kind: str
    severity: int
    subject: str
    message: str
    detail: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)


class TransferStep(Message, frozen=True):
    """A transfer came so far. `kind`: one of the TRANSFER_ kinds of accelhw.model.event."""

    kind: str
    transfer: TransferInfo


ToWorker = (
    WorkerStart | ResetCard | SetPortAdmin | TrainPort | SetChannelMap | RegisterWindow
    | UnregisterWindow | StartTransfer | CancelTransfer | AcknowledgeTransfer
    | InjectFault | ClearFault | StartDiag | CancelDiag | ClearFlags
)  # fmt: skip
FromWorker = (
    WorkerReady | WorkerEvent | Completion | TransferProgress | TrainingProgress | FaultChanged
    | DiagProgress | SocketsWanted | TransferStep | GivesUp
)  # fmt: skip

_to_worker = msgspec.msgpack.Decoder(ToWorker)
_from_worker = msgspec.msgpack.Decoder(FromWorker)


def decode_to_worker(body: bytes | bytearray | memoryview) -> ToWorker:
    return _to_worker.decode(body)


def decode_from_worker(body: bytes | bytearray | memoryview) -> FromWorker:
    return _from_worker.decode(body)


def worker_channel(fd: int) -> LoopChannel[ToWorker]:
    """The worker's end, from the number on its command line."""
    return LoopChannel(socket.socket(fileno=fd), decode_to_worker)
