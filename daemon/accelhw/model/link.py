"""Words for a link: its states, phases of training, and why it is not up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class LinkState(IntEnum):
    DOWN = 1  # lasers off, by command
    SEEKING = 2  # light out, nobody heard yet
    TRAINING = 3
    UP = 4
    DEGRADED = 5  # up with fewer lanes
    FAILED = 6  # gave up for now; tries again after a hold-off

    @property
    def carries_data(self) -> bool:
        return self in (LinkState.UP, LinkState.DEGRADED)


class TrainingPhase(IntEnum):
    """Where inside a state the machine is; finer than LinkState, coarser than a register."""

    OFF = 0
    SEEK = 1  # sending beacons, waiting for light and a peer
    LOCK = 2  # each lane's receiver locks to its training frames
    MAP = 3  # which far lane arrives where, and inverted or not
    BER_CHECK = 4
    ALIGN = 5  # alignment markers through the learned map; round trip measured
    RETRY_START = 6  # sequence numbers and credits agreed
    ACTIVE = 7
    HOLD_OFF = 8
    LASER_ON = 9  # lasers and ring heaters settle; comes before SEEK
    EQ_TRAIN = 10  # receivers ask the far transmitters for better taps; between LOCK and MAP
    RECOVERY = 11  # up, but data waits while lanes are locked and checked again


class DownReason(IntEnum):
    """Why a link is not up. Codes 0 to 15 follow the published link diagnostic lists in spirit."""

    NONE = 0
    ADMIN_DOWN = 1
    NO_SIGNAL = 2
    PEER_SILENT = 3
    PARTIAL_LIGHT = 4
    CDR_NO_LOCK = 5
    LANE_MISSING = 6
    LANE_DUPLICATE = 7
    BER_TOO_HIGH = 8
    ALIGN_FAILED = 9
    RETRY_START_TIMEOUT = 10
    INCOMPATIBLE_PEER = 11
    LOOPED_TO_SELF = 12
    PEER_RESTARTED = 13
    PEER_DOWN = 14
    SIGNAL_LOST = 15
    ALIGN_LOST = 16
    REPLAY_EXHAUSTED = 17
    INTERFACE_DOWN = 18
    CARD_RESET = 19
    RETRAIN_COMMANDED = 20
    TX_FAULT = 21
    EQ_NOT_CONVERGED = 22
    EQ_PARTNER_NOT_READY = 23
    RECOVERY_TIMEOUT = 24
    NO_COMMON_MODE = 25
    FLAPPING = 26
    FEC_LOCK_LOST = 27
    TEST = 40  # a test of the link runs here
    PEER_TEST = 41  # and there


NEXT_ACTION: dict[DownReason, str] = {
    DownReason.NONE: "",
    DownReason.ADMIN_DOWN: "switch it on: accelctl link up {port}",
    DownReason.NO_SIGNAL: "check that the far card is on and its fibre is plugged into this port",
    DownReason.PEER_SILENT: "the far port sends light but no training frames; look at its reason",
    DownReason.PARTIAL_LIGHT: "clean the connector of the dark lanes; accelctl lane list {port}",
    DownReason.CDR_NO_LOCK: "look at the lane's margin; clean or shorten the fibre",
    DownReason.LANE_MISSING: "check the cable: a lane arrives nowhere",
    DownReason.LANE_DUPLICATE: "check the cable: one far lane arrives twice",
    DownReason.BER_TOO_HIGH: "look at the lane's margin and Rx power; clean the connector",
    DownReason.ALIGN_FAILED: "train again: accelctl link train {port}; then suspect the cable",
    DownReason.RETRY_START_TIMEOUT: "frames are lost on the way; see the interface's drop counters",
    DownReason.INCOMPATIBLE_PEER: "both ends need the same lanes, rate and FEC; compare profiles",
    DownReason.LOOPED_TO_SELF: "the fibre returns to its own port; plug the far end elsewhere",
    DownReason.PEER_RESTARTED: "none: it trains again by itself",
    DownReason.PEER_DOWN: (
        "the far end is switched off, or its card is reset; accelctl link up on its port"
    ),
    DownReason.SIGNAL_LOST: "check that the far card is on, then the fibre and its connectors",
    DownReason.ALIGN_LOST: "none: it trains again; if it returns, the cable was changed or is bad",
    DownReason.REPLAY_EXHAUSTED: "frames do not arrive; look at lane BER and interface drops",
    DownReason.INTERFACE_DOWN: "the carrying interface is down: ip link set {interface} up",
    DownReason.CARD_RESET: "none: it trains again when the card is ready",
    DownReason.RETRAIN_COMMANDED: "none: it trains anew and comes back",
    DownReason.TEST: "none: it trains again when the test ends; accelctl diag list",
    DownReason.PEER_TEST: "none: it trains again when the far port's test ends",
    DownReason.TX_FAULT: "a laser of this port failed; replace the engine",
    DownReason.EQ_NOT_CONVERGED: "the trace of that lane is too lossy or damaged; replace the card",
    DownReason.EQ_PARTNER_NOT_READY: "look at the far port's lanes; its receiver does not settle",
    DownReason.RECOVERY_TIMEOUT: "none: it trains again; if it returns, clean the lane's connector",
    DownReason.NO_COMMON_MODE: "the ends share no FEC and rate; compare the cards' profiles",
    DownReason.FEC_LOCK_LOST: "look at the lane's margin and Rx power; clean the connector",
    DownReason.FLAPPING: "find what is loose: accelctl lane list {port}; link train ends the wait",
}


# Where some lanes only are to blame, and that takes another action than all of them at once.
LANE_ACTION: dict[DownReason, str] = {
    DownReason.SIGNAL_LOST: (
        "check {lanes}: clean its connector, look at the far laser; accelctl lane list {port}"
    ),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason with the lanes it names, if any are to blame."""

    code: DownReason = DownReason.NONE
    lane: int | None = None  # the only one, or the first of several; None where it is all of them
    detail: str = ""
    lanes: int = 0  # a mask: all that it is about, where that is more than `lane`
    whole: bool = False  # all lanes of the port: what they share is to blame

    @classmethod
    def on(
        cls, code: DownReason, lanes: int, of: int, detail: str = "", first: int | None = None
    ) -> Reason:
        """About a mask of lanes, out of the mask of the port's; `first` is the one to name first,
        else the lowest."""
        if not lanes:
            return cls(code, None, detail)
        if first is None:
            first = (lanes & -lanes).bit_length() - 1
        several, whole = lanes.bit_count() > 1, lanes == of
        lane = None if several and whole else first
        return cls(code, lane, detail, lanes if several else 0, whole)

    @property
    def blamed(self) -> int:
        """All lanes that it is about, as a mask."""
        return self.lanes or (0 if self.lane is None else 1 << self.lane)

    @property
    def where(self) -> str:
        """ "lane 3", "lanes 0-2, 5", "all 8 lanes"; nothing where no lane is to blame."""
        return lanes_text(self.blamed, self.whole)

    def __str__(self) -> str:
        return f"{self.code.name} on {self.where}" if self.blamed else self.code.name

    def next_action(self, port: str, interface: str = "") -> str:
        texts = NEXT_ACTION
        if self.blamed and not self.whole and self.code in LANE_ACTION:
            texts = LANE_ACTION
        return texts[self.code].format(port=port, interface=interface or "IFACE", lanes=self.where)


def lanes_text(lanes: int, whole: bool = False) -> str:
    """A mask of lanes in few words: "lane 3", "lanes 0-2, 5", "all 8 lanes" where it is `whole`."""
    count = lanes.bit_count()
    if count < 2:
        return f"lane {lanes.bit_length() - 1}" if count else ""
    return f"all {count} lanes" if whole else f"lanes {ranges(lanes)}"


def ranges(lanes: int) -> str:
    """A mask as "0-2, 5"; no more than two in a row stand for themselves."""
    runs: list[list[int]] = []
    for lane in range(lanes.bit_length()):
        if not lanes >> lane & 1:
            continue
        if runs and runs[-1][-1] == lane - 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


FECS = ("none", "kr4", "kp4")  # weakest first
SLOWDOWNS = (1, 2)


@dataclass(frozen=True, slots=True)
class LinkMode:
    """How lanes signal: their FEC, and their symbol rate as a fraction of the lane type's own."""

    fec: str
    slowdown: int = 1

    def __str__(self) -> str:
        return self.fec if self.slowdown == 1 else f"{self.fec}/{self.slowdown}"

    @property
    def words(self) -> str:
        """For people: "no FEC", "FEC kr4 at half the rate"."""
        code = "no FEC" if self.fec == "none" else f"FEC {self.fec}"
        return code if self.slowdown == 1 else f"{code} at half the rate"

    @classmethod
    def parse(cls, text: str) -> LinkMode:
        """ "kr4", or "kr4/2" at half the symbol rate. Raises ValueError."""
        for mode in MODES:
            if str(mode) == text:
                return mode
        raise ValueError(f"{text!r} is no mode; try {', '.join(map(str, MODES))}")

    @property
    def number(self) -> int:
        """Place among all modes, best first; how masks and messages name it."""
        return _NUMBERS[self.fec, self.slowdown]


# Best first: a stronger FEC costs some latency, a lower symbol rate half of the capacity.
MODES = tuple(LinkMode(fec, slowdown) for slowdown in SLOWDOWNS for fec in FECS)
_NUMBERS = {(mode.fec, mode.slowdown): number for number, mode in enumerate(MODES)}


@dataclass(frozen=True, slots=True)
class PeerId:
    """Who is at the far end, as it said itself over the fibre."""

    chassis: str  # 16 hex digits, drawn at each power-on
    card: str
    oe: int

    def __str__(self) -> str:
        return f"{self.card}/oe{self.oe}"
