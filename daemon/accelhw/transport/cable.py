"""A cable that crosses lanes: a transport round another, applied where the light arrives.

Frames that belong to one lane (training) or speak of each (carrier) are changed as a crossed or
polarity-swapped cable would; all others pass untouched and unread. A plug that is put in wrongly
at this end crosses what leaves, too, so that the far end sees the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accelhw.model.config import Fibre
from accelhw.transport.base import Transport
from accelhw.transport.direct import Direct, OffersDirect
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    HEADER_BYTES,
    FrameType,
    MalformedFrame,
    decode_frame,
    decode_header,
    rewrite_lane,
    rewrite_payload_crc,
)
from accelhw.wire.training import complement

if TYPE_CHECKING:
    from typing_extensions import Buffer

_TYPE_AT = 17
_LANE_FRAMES = frozenset({FrameType.CARRIER, FrameType.TRAINING})
_CALLS = ("send", "peek", "receive_into", "discard")


@dataclass(frozen=True, slots=True)
class CableMap:
    """How lanes arrive at one end."""

    arrival: tuple[int, ...]  # for each far Tx lane, the lane it arrives on
    inverted: frozenset[int]  # arrival lanes of swapped polarity

    @classmethod
    def of(cls, fibre: Fibre, end: str, lanes: int) -> CableMap:
        """As seen by end "a" or "b". Lanes are duplex: what crosses one way crosses back."""
        forward = fibre.lane_map or tuple(range(lanes))
        if end == "b":
            return cls(forward, frozenset(forward[lane] for lane in fibre.inverted_lanes))
        backward = [0] * len(forward)
        for here, there in enumerate(forward):
            backward[there] = here
        return cls(tuple(backward), fibre.inverted_lanes)

    @classmethod
    def straight_of(cls, lanes: int) -> CableMap:
        return cls(tuple(range(lanes)), frozenset())

    def then(self, plug: CableMap) -> CableMap:
        """This map, and behind it a plug that crosses what arrives."""
        arrival = tuple(plug.arrives(lane) for lane in self.arrival)
        inverted = frozenset(plug.arrives(lane) for lane in self.inverted)
        return CableMap(arrival, inverted ^ plug.inverted)

    @property
    def straight(self) -> bool:
        return not self.inverted and self.arrival == tuple(range(len(self.arrival)))

    def arrives(self, lane: int) -> int:
        return self.arrival[lane] if lane < len(self.arrival) else lane

    def carrier(self, message: CarrierMessage) -> CarrierMessage:
        """The far light, in the order in which it arrives."""
        lights: list[LaneLight] = list(message.lanes)
        for tx_lane, light in enumerate(message.lanes):
            lane = self.arrives(tx_lane)
            if lane < len(lights):
                swapped = lane in self.inverted
                lights[lane] = light.through_swapped_polarity() if swapped else light
        return replace(message, lanes=tuple(lights))


class Cable:
    """A transport whose frames arrive through a cable of this map."""

    def __init__(self, inner: Transport, cable_map: CableMap) -> None:
        self._inner = inner
        self._map = cable_map
        self._plug = CableMap.straight_of(len(cable_map.arrival))
        self._arriving = cable_map  # through the cable and the plug
        self._frame: bytearray | None = None  # the next frame, if it was changed
        self._bind()

    @property
    def map(self) -> CableMap:
        return self._map

    @map.setter
    def map(self, cable_map: CableMap) -> None:
        """While running: someone put another cable in."""
        self._map = cable_map
        self.plug(self._plug)

    def plug(self, crossing: CableMap) -> None:
        """The plug at this end crosses lanes from now on, both ways."""
        self._plug = crossing
        self._arriving = self._map.then(crossing)
        self._bind()

    def cross(self, arrival: tuple[int, ...], inverted: frozenset[int]) -> None:
        """As `plug`, for whoever knows no cable maps."""
        self.plug(CableMap(arrival, inverted))

    def _bind(self) -> None:
        """A straight cable costs nothing: calls go to the transport itself."""
        for name in _CALLS:
            self.__dict__.pop(name, None)
        if self._plug.straight:
            self.__dict__["send"] = self._inner.send
            if self._arriving.straight and self._frame is None:
                for name in _CALLS:
                    self.__dict__[name] = getattr(self._inner, name)

    @property
    def mtu(self) -> int:
        return self._inner.mtu

    @property
    def receive_frames(self) -> int:
        return self._inner.receive_frames

    @property
    def peeked_bytes(self) -> int:
        return self._inner.peeked_bytes if self._frame is None else len(self._frame)

    def fileno(self) -> int:
        return self._inner.fileno()

    def direct(self) -> Direct | None:
        """As the transport's own, for data has no lane to be crossed; what was taken by mistake is
        crossed when it is put back."""
        direct = self._inner.direct() if isinstance(self._inner, OffersDirect) else None
        return None if direct is None else replace(direct, put_back=self._put_back)

    def _put_back(self, frame: bytearray) -> None:
        crosses = not self._arriving.straight and len(frame) >= HEADER_BYTES
        if crosses and frame[_TYPE_AT] in _LANE_FRAMES and self._is_sound(frame, len(frame)):
            frame = self._crossed(frame, self._arriving)
        self._frame = frame
        self._bind()

    def send(self, parts: Sequence[Buffer]) -> bool:
        head = memoryview(parts[0])
        if len(parts) == 1 and len(head) >= HEADER_BYTES and head[_TYPE_AT] in _LANE_FRAMES:
            return self._inner.send((self._crossed(bytearray(head), self._plug),))
        return self._inner.send(parts)

    def peek(self) -> memoryview | None:
        if self._frame is not None:
            return memoryview(self._frame)[:HEADER_BYTES]
        view = self._inner.peek()
        if view is None or len(view) < HEADER_BYTES or view[_TYPE_AT] not in _LANE_FRAMES:
            return view
        if self._arriving.straight or not self._is_sound(view, self._inner.peeked_bytes):
            return view
        frame = bytearray(self._inner.peeked_bytes)
        self._inner.receive_into([memoryview(frame)])
        self._frame = self._crossed(frame, self._arriving)
        return memoryview(self._frame)[:HEADER_BYTES]

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        if self._frame is None:
            return self._inner.receive_into(parts)
        frame = self._taken()
        at = 0
        for part in parts:
            piece = frame[at : at + len(part)]
            part[: len(piece)] = piece
            at += len(piece)
        return len(frame)

    def discard(self) -> None:
        if self._frame is None:
            self._inner.discard()
        else:
            self._taken()

    def _taken(self) -> bytearray:
        frame, self._frame = self._frame, None
        assert frame is not None
        self._bind()
        return frame

    def close(self) -> None:
        self._inner.close()

    @staticmethod
    def _is_sound(view: Buffer, frame_bytes: int) -> bool:
        try:
            decode_header(view, frame_bytes)
        except MalformedFrame:
            return False  # The port counts it; there is nothing to cross in noise.
        return True

    @staticmethod
    def _crossed(frame: bytearray, by: CableMap) -> bytearray:
        try:
            header, payload = decode_frame(frame)
            if header.type == FrameType.CARRIER:
                crossed = by.carrier(CarrierMessage.decode(payload)).encode()
            else:
                lane = by.arrives(header.lane)
                crossed = complement(payload) if lane in by.inverted else bytes(payload)
        except MalformedFrame:
            return frame  # damaged on the way; the port counts it
        payload.release()
        frame[HEADER_BYTES : HEADER_BYTES + len(crossed)] = crossed
        rewrite_payload_crc(frame, crc32c(crossed))
        if header.type == FrameType.TRAINING:
            rewrite_lane(frame, lane)
        return frame
