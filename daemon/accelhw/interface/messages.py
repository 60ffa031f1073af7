"""Commands, completions and events: every message that crosses the border, as a value."""

from __future__ import annotations

import msgspec

INTERFACE_VERSION = 1


class Message(msgspec.Struct, frozen=True, tag_field="t", tag=True, omit_defaults=True):
    """Base of all messages; the tag is the class name."""


# ---- what the hardware says of itself -----------------------------------------------------------


class FibreInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fibre plugged into a port, as the chassis made it."""

    name: str
    transport: str
    length_m: float
    loss_db: float
    mtu: int
    interface: str | None = None
    netns: str | None = None


class PortInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    oe: int
    port_row: int  # row in the port table
    first_lane_row: int  # first row in the lane table; lanes follow in order
    lanes: int
    fibre: FibreInfo | None = None


class CardInfo(msgspec.Struct, frozen=True):
    name: str
    profile: str
    uid: str  # 16 hex digits, stable for a card name in a chassis
    hbm_bytes: int
    card_row: int
    worker: int
    ports: tuple[PortInfo, ...]


class ChannelMapEntry(msgspec.Struct, frozen=True):
    """One logical channel: the signal line it uses, hence the engine and lane behind that line."""

    channel: int
    signal_line: int
    oe: int
    lane: int


class WindowInfo(msgspec.Struct, frozen=True):
    card: str
    region_id: int
    key: int
    base: int
    length: int


class TransferInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transfer as the hardware sees it; fields as accelhw.model.transfer.TransferStatus."""

    transfer_id: str
    kind: int
    state: int
    local_card: str
    remote_card: str
    total_bytes: int
    good_bytes: int = 0
    first_gap_offset: int = 0
    links: tuple[str, ...] = ()
    started_ns: int = 0
    ended_ns: int = 0
    wall_ns: int = 0
    modelled_ns: int = 0
    modelled_pcie_ns: int = 0
    crc32c: int | None = None
    replayed_frames: int = 0
    error: int = 0
    error_detail: str = ""


class FaultKindInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault that this hardware can be given; accelhw.fault.catalogue as it crosses the border."""

    id: str
    where: str  # "lane", "port" or "card": what it acts on if no lane is named
    summary: str
    near: str  # what is seen at the end where it sits
    far: str  # and at the other
    repair: str
    source: str
    shape: str
    causes: dict[str, float]  # how much of each at full strength
    rise_s: float = 0.0
    on_s: float = 0.0
    off_s: float = 0.0
    crossing: str = ""  # what it does to the cable's lanes
    aims: bool = False  # takes a target BER


class FaultInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An injected fault."""

    fault_id: str
    kind: str
    subject: str  # card0 or card0/oe1
    lanes: tuple[int, ...]
    shape: str
    begun_ns: int  # monotonic clock of the host
    started_ns: int  # wall clock
    seed: int
    duration_s: float = 0.0  # 0: until it is cleared
    ramp_s: float = 0.0
    scale: float = 1.0
    lane_scales: tuple[float, ...] = ()  # for each of `lanes`, when solved for a target BER
    target_ber: float = 0.0
    address: int | None = None  # in HBM
    state: str = "ACTIVE"  # or ENDED, CLEARED


# ---- handshake ----------------------------------------------------------------------------------


class Hello(Message, frozen=True):
    """First message of a driver. `last_event` is the newest sequence it has kept, for this boot."""

    version: int
    boot_id: str = ""  # of the chassis that `last_event` counts in; empty at first contact
    last_event: int = 0


class Welcome(Message, frozen=True):
    """First answer. Comes with descriptors: [tables, hbm of cards[0], hbm of cards[1], ...]."""

    version: int
    boot_id: str  # 16 hex digits, new at each power-on
    chassis_pid: int
    started_ns: int
    hbm_budget_bytes: int
    cards: tuple[CardInfo, ...]
    transfers: tuple[TransferInfo, ...]
    windows: tuple[WindowInfo, ...]
    channel_maps: dict[str, tuple[ChannelMapEntry, ...]]
    newest_event: int
    oldest_kept_event: int
    table_rows: tuple[int, int, int, int]  # worker, card, port, lane rows
    fault_kinds: tuple[FaultKindInfo, ...] = ()
    faults: tuple[FaultInfo, ...] = ()


class Refused(Message, frozen=True):
    reason: str


# ---- commands: driver to hardware; each is answered by one Completion with its id ----------------


class Command(Message, frozen=True, tag=True):
    id: int


class ResetCard(Command, frozen=True):
    card: str


class SetPortAdmin(Command, frozen=True):
    card: str
    oe: int
    up: bool


class TrainPort(Command, frozen=True):
    card: str
    oe: int


class SetChannelMap(Command, frozen=True):
    """Replace a card's whole map; a permutation of all its channels."""

    card: str
    entries: tuple[ChannelMapEntry, ...]


class RegisterWindow(Command, frozen=True):
    card: str
    region_id: int
    key: int
    base: int
    length: int


class UnregisterWindow(Command, frozen=True):
    """Refused with BUSY while a transfer uses the window."""

    card: str
    region_id: int


class StartTransfer(Command, frozen=True):
    """Posted to the local card. For LOCAL, the remote region lies on the same card."""

    transfer_id: str
    kind: int  # TransferKind
    local_card: str
    local_region_id: int
    local_offset: int
    length: int
    remote_card: str
    remote_region_id: int
    remote_key: int
    remote_offset: int
    deadline_s: float = 30.0  # the longest time without a usable link before it fails


class CancelTransfer(Command, frozen=True):
    transfer_id: str


class AcknowledgeTransfer(Command, frozen=True):
    """The driver has stored the end of this transfer; the hardware may forget it."""

    transfer_id: str


class InjectFault(Command, frozen=True):
    """Change causes, as accelhw.fault.request has it; 0 and "" stand for the kind's own."""

    fault_id: str
    kind: str
    subject: str  # card0, card0/oe1, card0/oe1/lane3
    lanes: tuple[int, ...] = ()
    shape: str = ""
    duration_s: float = 0.0
    ramp_s: float = 0.0
    scale: float = 1.0
    target_ber: float = 0.0
    seed: int | None = None  # None: drawn from its id
    address: int | None = None  # in HBM, for faults of a row
    begun_ns: int = 0  # set by the chassis: monotonic clock
    started_ns: int = 0  # set by the chassis: wall clock

    @property
    def card(self) -> str:
        return self.subject.partition("/")[0]


class ClearFault(Command, frozen=True):
    """Repair it: its causes go, at once and exactly. What it has done stays done."""

    fault_id: str


class AcknowledgeEvents(Command, frozen=True):
    """The driver has stored all events up to and including this one."""

    sequence: int


class Completion(Message, frozen=True):
    id: int
    error: str = ""  # UPPER_SNAKE; empty is success
    detail: str = ""


COMPLETION_ERRORS = {
    "UNKNOWN_CARD": "no such card",
    "UNKNOWN_PORT": "no such port",
    "UNKNOWN_REGION": "no such window on that card",
    "UNKNOWN_TRANSFER": "no such transfer",
    "EXISTS": "already there",
    "OUT_OF_RANGE": "outside the card's HBM or the window",
    "BUSY": "in use by a transfer",
    "BAD_MAP": "not a permutation of the card's channels",
    "UNKNOWN_FAULT": "no such kind of fault, or none with that id",
    "UNKNOWN_LANE": "no such lane on that port",
    "BAD_FAULT": "there is no such fault in this world",
    "CARD_LOST": "the card does not answer: its worker is gone",
    "BAD_STATE": "not possible in this state",
}


# ---- unasked: hardware to driver ----------------------------------------------------------------


class Event(Message, frozen=True, omit_defaults=True):
    """Fields as accelhw.model.event.HardwareEvent. Sent again after a Hello until acknowledged."""

    sequence: int
    time_ns: int
    severity: int
    kind: str
    subject: str
    message: str
    detail: dict[str, str | int | float | bool] = {}


class TransferProgress(Message, frozen=True):
    """At most ten a second for each running transfer, and one at its end."""

    transfer: TransferInfo


class FaultChanged(Message, frozen=True):
    """A fault began, ended by itself, or was cleared."""

    fault: FaultInfo


class TrainingProgress(Message, frozen=True, omit_defaults=True):
    """A step of a link's training, for people who watch: at each phase and per-lane result."""

    card: str
    oe: int
    state: int
    phase: int
    lane: int | None = None
    text: str = ""


AnyMessage = (
    Hello | Welcome | Refused | ResetCard | SetPortAdmin | TrainPort | SetChannelMap
    | RegisterWindow | UnregisterWindow | StartTransfer | CancelTransfer | AcknowledgeTransfer
    | AcknowledgeEvents | Completion | Event | TransferProgress | TrainingProgress
    | InjectFault | ClearFault | FaultChanged
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def decode(body: bytes | bytearray | memoryview) -> AnyMessage:
    """A message from its body. Raises msgspec.ValidationError or DecodeError on anything else."""
    return _decoder.decode(body)
