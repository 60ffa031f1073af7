"""Equaliser training in bytes: what a receiver asks of each far lane, and what became of it.

A request stands in every message until its serial number comes back as done, so it may get lost,
doubled or late and is still carried out once. After the control and status fields of IEEE 802.3
clause 136; the main tap follows from the other two, for their magnitudes add up to one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

SHAPE = struct.Struct("!BBBBbbH")
_SERIALS = range(1 << 8)
_TAPS = range(-100, 101)
SHAPES_REMEMBERED = 1 << 14  # most lanes say in a message what they said in the one before
PENALTY_MAX_MDB = (1 << 16) - 1


class TapRequest(IntEnum):
    HOLD = 0
    PRESET_1 = 1  # (0, 1, 0)
    PRESET_2 = 2  # (0, 0.75, -0.25)
    PRESET_3 = 3  # (-0.25, 0.75, 0)
    PRE_UP = 4  # c(-1) one step
    PRE_DOWN = 5
    POST_UP = 6  # c(1) one step
    POST_DOWN = 7


class TapResult(IntEnum):
    NOT_UPDATED = 0
    UPDATED = 1
    AT_LIMIT = 2


@dataclass(frozen=True, slots=True)
class LaneShape:
    """One own lane, both ways: the request is to the far transmitter whose light arrives on it."""

    ask_serial: int = 0  # of the request; 0: none yet
    ask: TapRequest = TapRequest.HOLD
    done_serial: int = 0  # of the last request that this lane's own transmitter carried out
    result: TapResult = TapResult.NOT_UPDATED
    pre: int = 0  # own taps in hundredths
    post: int = 0
    penalty_mdb: int = 0  # 0.001 dB; what a receiver of this very frame measures of its shape

    def __post_init__(self) -> None:
        if (
            self.ask_serial not in _SERIALS
            or self.done_serial not in _SERIALS
            or self.pre not in _TAPS
            or self.post not in _TAPS
            or not 0 <= self.penalty_mdb <= PENALTY_MAX_MDB
        ):
            raise ValueError(f"{self}")

    def encode(self) -> bytes:
        return SHAPE.pack(
            self.ask_serial, self.ask, self.done_serial, self.result, self.pre, self.post,
            self.penalty_mdb,
        )  # fmt: skip


def decode_shapes(data: bytes) -> tuple[LaneShape, ...]:
    """Raises ValueError on what encode does not make, struct.error on a torn one."""
    size = SHAPE.size
    return tuple(_decode(data[at : at + size]) for at in range(0, len(data), size))


@lru_cache(SHAPES_REMEMBERED)
def _decode(data: bytes) -> LaneShape:
    serial, ask, done, result, pre, post, penalty = SHAPE.unpack(data)
    return LaneShape(serial, TapRequest(ask), done, TapResult(result), pre, post, penalty)
