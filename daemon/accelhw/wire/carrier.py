"""The carrier message: the light that a port sends, lane by lane, and who sends it.

It stands for the light itself: the receiver knows the far transmitter only by what this brings
through the fibre. Sent at a slow beat, and at once on a change.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from accelhw.model.link import MODES, DownReason, LinkState, PeerId
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

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BODY = struct.Struct("!QQBBBBB")
_LANE = struct.Struct("!BBhHHI")
_I16 = range(-(1 << 15), 1 << 15)
_U16 = range(1 << 16)
_MODE_SETS = range(1 << len(MODES))


@dataclass(frozen=True, slots=True)
class LaneLight:
    """One lane's light at the transmitter. Powers and penalties in 0.01 dB steps."""

    on: bool
    marker: int  # Tx lane id; its complement when the polarity was swapped on the way
    power_cdbm: int  # average launch power
    extinction_cdb: int
    penalty_cdb: int  # TDECQ: what this transmitter costs the receiver
    wavelength_pm: int

    def __post_init__(self) -> None:
        if (
            not 0 <= self.marker <= 0xFF
            or self.power_cdbm not in _I16
            or self.extinction_cdb not in _U16
            or self.penalty_cdb not in _U16
            or not 0 <= self.wavelength_pm < 1 << 32
        ):
            raise ValueError(f"{self}")

    @property
    def tx_lane(self) -> int:
        return self.marker if self.marker < LANES_MAX else self.marker ^ 0xFF

    @property
    def inverted(self) -> bool:
        return self.marker >= LANES_MAX

    def through_swapped_polarity(self) -> LaneLight:
        return replace(self, marker=self.marker ^ 0xFF)


@dataclass(frozen=True, slots=True)
class CarrierMessage:
    """`lanes` are in the order of the sender's lanes, after the cable in the receiver's."""

    sender: PeerId
    session: int  # of its training; 0: never trained
    sent_ns: int  # sender's monotonic clock; an older message than the newest heard is stale
    state: LinkState
    reason: DownReason
    reason_lane: int | None
    lanes: tuple[LaneLight, ...]
    offers: int = 0  # while up: a mask of better modes that the sender would bear

    def __post_init__(self) -> None:
        check_peer(self.sender)
        if not 0 <= len(self.lanes) <= LANES_MAX:
            raise ValueError(f"{len(self.lanes)} lanes")
        if not 0 <= self.session < 1 << 64 or not 0 <= self.sent_ns < 1 << 64:
            raise ValueError(f"{self.session=} {self.sent_ns=}")
        if self.offers not in _MODE_SETS:
            raise ValueError(f"{self.offers=:#x}")
        if self.reason_lane is not None and not 0 <= self.reason_lane < LANES_MAX:
            raise ValueError(f"{self.reason_lane=}")

    def encode(self) -> bytes:
        fixed = _BODY.pack(
            self.session, self.sent_ns, self.state, self.reason, pack_lane(self.reason_lane),
            self.offers, len(self.lanes),
        )  # fmt: skip
        lanes = (
            _LANE.pack(
                lane.on, lane.marker, lane.power_cdbm, lane.extinction_cdb, lane.penalty_cdb,
                lane.wavelength_pm,
            )
            for lane in self.lanes
        )  # fmt: skip
        return pack_peer(self.sender) + fixed + b"".join(lanes)

    @classmethod
    def decode(cls, payload: Buffer) -> CarrierMessage:
        """Raises MalformedFrame on anything that encode does not make."""
        data = bytes(payload)
        fixed_end = IDENTITY.size + _BODY.size
        if len(data) < fixed_end:
            raise MalformedFrame(f"a carrier message of {len(data)} bytes")
        session, sent_ns, state, reason, reason_lane, offers, lanes = _BODY.unpack_from(
            data, IDENTITY.size
        )
        if len(data) != fixed_end + lanes * _LANE.size:
            raise MalformedFrame(f"a carrier message of {len(data)} bytes for {lanes} lanes")
        try:
            return cls(
                unpack_peer(data[: IDENTITY.size]),
                session,
                sent_ns,
                LinkState(state),
                unpack_reason(reason),
                unpack_lane(reason_lane),
                _decode_lanes(data[fixed_end:]),
                offers,
            )
        except ValueError as error:
            raise MalformedFrame(f"no carrier message: {error}") from None


@lru_cache(256)
def _decode_lanes(data: bytes) -> tuple[LaneLight, ...]:
    """Light seldom changes from beat to beat: then the same values as before serve again."""
    return tuple(
        LaneLight(_flag(on), marker, power, extinction, penalty, wavelength)
        for on, marker, power, extinction, penalty, wavelength in _LANE.iter_unpack(data)
    )


def _flag(value: int) -> bool:
    if value > 1:
        raise MalformedFrame(f"on/off is {value}")
    return bool(value)
