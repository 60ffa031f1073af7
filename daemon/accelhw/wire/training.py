"""The training message: all that one end knows, said again on every lane at every beat.

Because each message carries the sender's whole state, a lost one costs a beat and nothing else.
Payload of a TRAINING frame: marker byte, Tx lane, body. A lane of swapped polarity delivers the
complement of all three, which the marker tells.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelhw.model.link import MODES, DownReason, LinkMode, PeerId, TrainingPhase
from accelhw.wire.frame import MalformedFrame
from accelhw.wire.identity import (
    IDENTITY,
    LANES_MAX,
    check_peer,
    pack_lane,
    pack_peer,
    unpack_lane,
    unpack_peer,
    unpack_reason,
)
from accelhw.wire.shape import SHAPE, LaneShape, decode_shapes

if TYPE_CHECKING:
    from typing_extensions import Buffer

MARKER = 0xA5
MARKER_INVERTED = 0x5A
_COMPLEMENT = bytes(range(255, -1, -1))
_BODY = struct.Struct("!QQIBBBBBIBHHBIQQQQQQQHBB")
_PREFIX = struct.Struct("!BB")

MODULATIONS = ("nrz", "pam4")
_MODE_SETS = range(1 << len(MODES))
_U16 = range(1 << 16)
_U32 = range(1 << 32)
_U64 = range(1 << 64)


@dataclass(frozen=True, slots=True)
class TrainingMessage:
    """One end's state. Lane sets are masks; bit i is the sender's own lane i.

    Times are of the sender's monotonic clock, except `echo_sent_ns`, which returns the receiver's.
    """

    sender: PeerId
    session: int  # grows with each attempt of one sender
    echo_session: int  # the receiver's session as heard last; 0: none
    sequence: int  # grows with each beat of a session
    phase: TrainingPhase
    reason: DownReason
    reason_lane: int | None
    lanes: int
    spare_lanes: int  # of these, needed only when others fail
    line_rate_mbit_per_s: int  # of one lane, in its own mode
    modulation: str
    modes: int  # a mask of mode numbers: what the sender can do
    tried: int  # modes in which it failed to train
    mode: LinkMode  # of this attempt
    credit_frames: int  # frames the sender's receiver can hold
    sent_ns: int
    echo_sent_ns: int  # `sent_ns` of the newest message heard; 0: none
    echo_held_ns: int  # how long ago that was
    lit: int
    locked: int
    good: int  # lanes that passed all checks up to `phase`
    inverted: int
    lane_map: tuple[int | None, ...]  # for each own lane, the far Tx lane that arrives on it
    recovery: int = 0  # how many recoveries of this link there were; the present one counts
    ready: bool = False  # for the end of that recovery: `good` is final
    shapes: tuple[LaneShape, ...] = ()  # per own lane while equalisers train

    def __post_init__(self) -> None:
        check_peer(self.sender)
        if not 1 <= self.lanes <= LANES_MAX or len(self.lane_map) != self.lanes:
            raise ValueError(f"{self.lanes=} {len(self.lane_map)=}")
        if not 0 <= self.spare_lanes < self.lanes or len(self.shapes) not in (0, self.lanes):
            raise ValueError(f"{self.spare_lanes=} {len(self.shapes)=}")
        if (
            self.modulation not in MODULATIONS
            or self.mode not in MODES
            or self.modes not in _MODE_SETS
            or self.tried not in _MODE_SETS
        ):
            raise ValueError(f"{self.modulation=} {self.mode=} {self.modes=:#x} {self.tried=:#x}")
        for lane in (self.reason_lane, *self.lane_map):
            if lane is not None and not 0 <= lane < LANES_MAX:
                raise ValueError(f"{lane=}")
        for mask in (self.lit, self.locked, self.good, self.inverted):
            if not 0 <= mask < 1 << self.lanes:
                raise ValueError(f"{mask=:#x} of {self.lanes} lanes")
        if (
            self.sequence not in _U32
            or self.line_rate_mbit_per_s not in _U32
            or self.credit_frames not in _U32
            or self.recovery not in _U16
        ):
            raise ValueError(
                f"{self.sequence=} {self.line_rate_mbit_per_s=} {self.credit_frames=}"
                f" {self.recovery=}"
            )
        for value in (
            self.session, self.echo_session, self.sent_ns, self.echo_sent_ns, self.echo_held_ns
        ):  # fmt: skip
            if value not in _U64:
                raise ValueError(f"{value=}")

    def encode_body(self) -> bytes:
        """The part that is the same on all lanes."""
        fixed = _BODY.pack(
            self.session, self.echo_session, self.sequence, self.phase, self.reason,
            pack_lane(self.reason_lane), self.lanes, self.spare_lanes, self.line_rate_mbit_per_s,
            MODULATIONS.index(self.modulation), self.modes, self.tried, self.mode.number,
            self.credit_frames, self.sent_ns, self.echo_sent_ns, self.echo_held_ns,
            self.lit, self.locked, self.good, self.inverted, self.recovery, self.ready,
            bool(self.shapes),
        )  # fmt: skip
        lane_map = bytes(pack_lane(lane) for lane in self.lane_map)
        shapes = b"".join(shape.encode() for shape in self.shapes)
        return pack_peer(self.sender) + fixed + lane_map + shapes

    def encode(self, tx_lane: int) -> bytes:
        """The payload for one physical lane."""
        return lane_payload(tx_lane, self.encode_body())

    @classmethod
    def decode_body(cls, body: bytes) -> TrainingMessage:
        """Raises MalformedFrame on anything that encode_body does not make."""
        fixed_end = IDENTITY.size + _BODY.size
        if len(body) < fixed_end:
            raise MalformedFrame(f"a training message of {len(body)} bytes")
        (
            session, echo_session, sequence, phase, reason, reason_lane, lanes, spare, line_rate,
            modulation, modes, tried, mode, credit_frames, sent_ns, echo_sent_ns, echo_held_ns,
            lit, locked, good, inverted, recovery, ready, shaped,
        ) = _BODY.unpack_from(body, IDENTITY.size)  # fmt: skip
        if ready > 1 or shaped > 1:
            raise MalformedFrame(f"flags {ready} {shaped}")
        shapes_at = fixed_end + lanes
        if len(body) != shapes_at + shaped * lanes * SHAPE.size:
            raise MalformedFrame(f"a training message of {len(body)} bytes for {lanes} lanes")
        try:
            return cls(
                unpack_peer(body[: IDENTITY.size]),
                session, echo_session, sequence, TrainingPhase(phase), unpack_reason(reason),
                unpack_lane(reason_lane), lanes, spare, line_rate, MODULATIONS[modulation],
                modes, tried, MODES[mode], credit_frames, sent_ns, echo_sent_ns, echo_held_ns,
                lit, locked, good, inverted,
                tuple(unpack_lane(lane) for lane in body[fixed_end:shapes_at]),
                recovery, bool(ready), decode_shapes(body[shapes_at:]),
            )  # fmt: skip
        except (ValueError, IndexError) as error:
            raise MalformedFrame(f"no training message: {error}") from None


@dataclass(frozen=True, slots=True)
class LaneTraining:
    """A training message as it arrived on one lane."""

    message: TrainingMessage
    tx_lane: int  # the sender's physical lane
    inverted: bool  # the lane's polarity is swapped on the way


def lane_payload(tx_lane: int, body: bytes) -> bytes:
    if not 0 <= tx_lane < LANES_MAX:
        raise ValueError(f"{tx_lane=}")
    return _PREFIX.pack(MARKER, tx_lane) + body


def complement(payload: Buffer) -> bytes:
    """What a lane of swapped polarity makes of a payload."""
    return bytes(payload).translate(_COMPLEMENT)


class TrainingDecoder:
    """Decodes payloads; the lanes of one beat share a body, so it is read once."""

    __slots__ = ("_body", "_message")

    def __init__(self) -> None:
        self._body = b""
        self._message: TrainingMessage | None = None

    def decode(self, payload: Buffer) -> LaneTraining:
        """Raises MalformedFrame."""
        data = bytes(payload)
        inverted = data[:1] == bytes([MARKER_INVERTED])
        if inverted:
            data = complement(data)
        if len(data) < _PREFIX.size or data[0] != MARKER or data[1] >= LANES_MAX:
            raise MalformedFrame("no training marker or lane")
        body = data[_PREFIX.size :]
        message = self._message
        if message is None or body != self._body:
            message = TrainingMessage.decode_body(body)
            self._body, self._message = body, message
        return LaneTraining(message, data[1], inverted)
