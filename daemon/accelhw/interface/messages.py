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
    begun_ns: int = 0  # monotonic clock of the host, at `started_ns`
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

    @property
    def card(self) -> str:
        return self.subject.partition("/")[0]


class LaneErrors(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bit errors of one lane. Bits run at the emulated line rate and their errors are drawn at the
    lane's BER; of these, `sampled_bits` were made, spoilt and checked one by one."""

    lane: int
    bits: float = 0.0
    errors: int = 0
    sampled_bits: int = 0
    sampled_errors: int = 0
    ber_low: float = 0.0  # at the test's confidence
    ber_high: float = 1.0
    verdict: int = 0  # Verdict
    locked: bool = False
    inverted: bool = False
    far_lane: int | None = None
    lock_losses: int = 0


class MarginPoint(msgspec.Struct, frozen=True):
    attenuation_db: float
    bits: float
    errors: int


class LaneMargin(msgspec.Struct, frozen=True, omit_defaults=True):
    lane: int
    points: tuple[MarginPoint, ...] = ()
    margin_db: float | None = None  # attenuation that brings the lane to the wanted BER
    end_db: float | None = None  # attenuation at which the receiver lost its clock
    ber: float | None = None  # extrapolated to no attenuation
    thermal: float | None = None  # the fit: Q^2 = x^2 / (thermal + laser x^2)
    laser: float | None = None
    curve: tuple[tuple[float, float], ...] = ()  # attenuation dB, log10 BER of the fit
    verdict: int = 0


class EyeOpening(msgspec.Struct, frozen=True):
    """One eye; heights as shares of the outer amplitude, at each of the eye's BER levels."""

    threshold: float
    ber: float
    heights: tuple[float, ...]
    widths_ui: tuple[float, ...]


class LaneEye(msgspec.Struct, frozen=True, omit_defaults=True):
    """`density`: rows from the top over `low` to `high`, columns over two unit intervals."""

    lane: int
    lit: bool = False
    q: float = 0.0
    ber: float = 0.0
    symbol_ps: float = 0.0
    levels_uw: tuple[float, ...] = ()
    sigma_uw: float = 0.0
    ber_levels: tuple[float, ...] = ()
    openings: tuple[EyeOpening, ...] = ()
    low_uw: float = 0.0
    high_uw: float = 0.0
    columns: int = 0
    rows: int = 0
    density: bytes = b""
    time_ui: tuple[float, ...] = ()
    bathtub_log10: tuple[float, ...] = ()
    amplitude_uw: tuple[float, ...] = ()
    vertical_log10: tuple[float, ...] = ()


class FecCounts(msgspec.Struct, frozen=True):
    """Codewords by how many symbols were corrected in each."""

    code: str
    codewords: int
    bins: tuple[int, ...]
    uncorrectable: int
    corrected_bits: int


class DiagInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A test of a link as the hardware sees it; results grow while it runs."""

    diag_id: str
    kind: int  # DiagKind
    state: int  # DiagState
    card: str
    oe: int
    lanes: tuple[int, ...]
    pattern: str = ""
    checker: str = ""
    duration_s: float = 0.0
    target_ber: float = 0.0
    confidence: float = 0.0
    started_ns: int = 0
    ended_ns: int = 0
    done_ratio: float = 0.0
    text: str = ""
    verdict: int = 0
    error: str = ""
    error_detail: str = ""
    errors: tuple[LaneErrors, ...] = ()
    margins: tuple[LaneMargin, ...] = ()
    eyes: tuple[LaneEye, ...] = ()
    fec: FecCounts | None = None


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


class ClearFlags(Command, frozen=True):
    """Let the latches of an engine's lanes, or of the card itself, show only what is on now."""

    card: str
    oe: int | None = None  # None: the card's own flags


class StartDiag(Command, frozen=True):
    """Test a port. Refused with LINK_BUSY while it is tested already, or, unless forced, while
    transfers run with its peer and the test takes the link down."""

    diag_id: str
    kind: int  # DiagKind
    card: str
    oe: int
    lanes: tuple[int, ...] = ()  # none: all
    pattern: str = ""  # empty: the usual one of the lane type
    checker: str = "seeded"
    duration_s: float = 2.0  # for MARGIN: at each attenuation
    target_ber: float = 0.0  # 0: the limit of the lane's FEC
    confidence: float = 0.95
    stop_early: bool = False  # as soon as every lane is proven or one refuted
    force: bool = False


class CancelDiag(Command, frozen=True):
    diag_id: str
    card: str


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
    "UNKNOWN_DIAG": "no such test runs",
    "BAD_TEST": "a test that cannot be: its lanes, pattern, time or limits",
    "LINK_BUSY": "transfers or a test use the link",
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


class DiagProgress(Message, frozen=True):
    """At most five a second for each running test, and one at its end."""

    diag: DiagInfo


AnyMessage = (
    Hello | Welcome | Refused | ResetCard | SetPortAdmin | TrainPort | SetChannelMap
    | RegisterWindow | UnregisterWindow | StartTransfer | CancelTransfer | AcknowledgeTransfer
    | AcknowledgeEvents | Completion | Event | TransferProgress | TrainingProgress
    | StartDiag | CancelDiag | DiagProgress
    | InjectFault | ClearFault | FaultChanged | ClearFlags
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def decode(body: bytes | bytearray | memoryview) -> AnyMessage:
    """A message from its body. Raises msgspec.ValidationError or DecodeError on anything else."""
    return _decoder.decode(body)
