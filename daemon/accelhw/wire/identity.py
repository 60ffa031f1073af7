"""A peer's identity in bytes, shared by light and training."""

from __future__ import annotations

import struct
from functools import lru_cache

from accelhw.model.ids import NAME
from accelhw.model.link import DownReason, PeerId
from accelhw.wire.frame import MalformedFrame

IDENTITY = struct.Struct("!8sH31s")
NO_LANE = 0xFF
LANES_MAX = 64  # lane sets travel as 64-bit masks
OE_MAX = 0xFFFF
PEERS_REMEMBERED = 512  # few talk, and each says its name in every frame


@lru_cache(PEERS_REMEMBERED)
def check_peer(peer: PeerId) -> None:
    """Raises ValueError for an identity that cannot be sent."""
    chassis = peer.chassis
    if len(chassis) != 16 or chassis.strip("0123456789abcdef"):
        raise ValueError(f"{chassis=} is not 16 lower-case hex digits")
    if not NAME.fullmatch(peer.card) or not 0 <= peer.oe <= OE_MAX:
        raise ValueError(f"{peer.card=} {peer.oe=}")


def pack_peer(peer: PeerId) -> bytes:
    return IDENTITY.pack(bytes.fromhex(peer.chassis), peer.oe, peer.card.encode())


@lru_cache(PEERS_REMEMBERED)
def unpack_peer(data: bytes) -> PeerId:
    """Raises MalformedFrame on a card that is no name."""
    chassis, oe, card = IDENTITY.unpack(data)
    try:
        peer = PeerId(chassis.hex(), card.rstrip(b"\0").decode("ascii"), oe)
        check_peer(peer)
    except ValueError as error:
        raise MalformedFrame(f"no identity: {error}") from None
    return peer


def pack_lane(lane: int | None) -> int:
    return NO_LANE if lane is None else lane


def unpack_lane(value: int) -> int | None:
    """Raises MalformedFrame on a lane that no engine has."""
    if value == NO_LANE:
        return None
    if value >= LANES_MAX:
        raise MalformedFrame(f"lane {value}")
    return value


def unpack_reason(value: int) -> DownReason:
    try:
        return DownReason(value)
    except ValueError:
        raise MalformedFrame(f"reason {value}") from None
