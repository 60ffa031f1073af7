"""What a link's machine is told, and what it asks for in return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accelhw.model.link import DownReason, LinkMode, PeerId, Reason, TrainingPhase
from accelhw.wire.carrier import CarrierMessage
from accelhw.wire.training import LaneTraining, TrainingMessage, lane_payload

# ---- events in ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Enabled:
    """The port was switched on, or its card is ready again."""


@dataclass(frozen=True, slots=True)
class Disabled:
    reason: DownReason = DownReason.ADMIN_DOWN


@dataclass(frozen=True, slots=True)
class RetrainAsked:
    """By an operator. Starts over from any state but switched off."""


@dataclass(frozen=True, slots=True)
class Woke:
    """The time of the last WakeAt came. Early or needless ones do no harm."""


@dataclass(frozen=True, slots=True)
class FrameHeard:
    """A training frame; the lane is the one it arrived on."""

    arrival_lane: int
    training: LaneTraining


@dataclass(frozen=True, slots=True)
class PeerCarrier:
    """A carrier message, as the cable delivered it: far state, and the markers of all lanes."""

    message: CarrierMessage


@dataclass(frozen=True, slots=True)
class LightChanged:
    """Receiver status as masks over own lanes: light above the threshold, clock recovered."""

    lit: int
    locked: int


@dataclass(frozen=True, slots=True)
class TransmitterChanged:
    """Transmitter status as masks over own lanes. A lane that is neither may still settle."""

    ready: int  # power in its window, ring locked
    broken: int


@dataclass(frozen=True, slots=True)
class LaneQuality:
    """Per own lane. Told at each tick and with each LightChanged; dark lanes have BER 0.5."""

    margin_db: tuple[float, ...]
    ber: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FecLockLost:
    """Three uncorrectable codewords in a row; the lane is the worst one."""

    lane: int


@dataclass(frozen=True, slots=True)
class DataHeard:
    """A sequenced frame of this epoch arrived: the far end is active."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Whether data flows, in either direction; told on a change."""

    flows: bool


@dataclass(frozen=True, slots=True)
class RetryExhausted:
    """The data port gave up replaying."""


@dataclass(frozen=True, slots=True)
class InterfaceDown:
    """The interface that carries the frames is down or gone."""


@dataclass(frozen=True, slots=True)
class InterfaceUp:
    """It is back."""


Event = (
    Enabled | Disabled | RetrainAsked | Woke | FrameHeard | PeerCarrier | TransmitterChanged
    | LightChanged | LaneQuality | FecLockLost | DataHeard | Traffic | RetryExhausted
    | InterfaceDown | InterfaceUp
)  # fmt: skip

# ---- actions out --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendTraining:
    """Send the message once on each of these physical lanes."""

    lanes: tuple[int, ...]
    message: TrainingMessage

    def payloads(self) -> Iterator[tuple[int, bytes]]:
        """Lane and payload of each TRAINING frame."""
        body = self.message.encode_body()
        for lane in self.lanes:
            yield lane, lane_payload(lane, body)


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Feed Woke at this time. Replaces the earlier one."""

    deadline_ns: int


@dataclass(frozen=True, slots=True)
class SetTransmit:
    """Lasers on or off. Send a carrier message at once."""

    on: bool


@dataclass(frozen=True, slots=True)
class ShapeLight:
    """The transmit taps changed: what they leave, per own lane. Send a carrier message at once."""

    penalty_db: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SetMode:
    """Signal in this mode from now on. Tell light and quality again."""

    mode: LinkMode


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Data may flow. Lane sets are masks over own lanes."""

    epoch: int
    peer: PeerId
    width: int
    rx_lanes: int  # arrival lanes that carry data
    tx_lanes: int  # own transmit lanes that carry data
    lane_map: tuple[int | None, ...]  # for each arrival lane, the far Tx lane
    inverted: int  # arrival lanes of swapped polarity
    credit_frames: int  # what the far receiver can hold
    rtt_ns: int
    degraded: bool


@dataclass(frozen=True, slots=True)
class LinkHeld:
    """A link that is up is in trouble: no data may leave; what is in flight is kept."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class LinkResumed:
    """The held link is good again. Same epoch: sequence numbers and data in flight go on."""

    link: LinkUp  # its lanes may be others than before
    held_ns: int


@dataclass(frozen=True, slots=True)
class LinkDown:
    """Data must stop. Comes once after each LinkUp."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Report:
    """A step of training, for people who watch."""

    text: str
    lane: int | None = None
    phase: TrainingPhase = TrainingPhase.OFF  # in which it happened; the machine may be further


Action = (
    SendTraining | WakeAt | SetTransmit | ShapeLight | SetMode | LinkUp | LinkHeld | LinkResumed
    | LinkDown | Report
)  # fmt: skip
