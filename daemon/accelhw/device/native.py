"""The loops of bursts.py as native.c has them, where set-up found a compiler and the CPU can."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from accelhw.device.bursts import (
    BURST_FRAMES_MAX,
    SPILL_BYTES,
    Arriving,
    Bursts,
    Leaving,
    Outcome,
    PlainBursts,
    joined,
)
from accelhw.transport.direct import Direct
from accelhw.wire.frame import HeaderWriter

LIBRARY = Path(__file__).with_name("_native.so")
SWITCH = "ACCEL_NATIVE"  # in the environment; "0": the loops in Python, to compare or to exclude
_LAYOUT = 2 << 24 | ctypes.sizeof(Leaving) << 12 | ctypes.sizeof(Arriving)
_OUTCOMES = tuple(Outcome)
_Crcs = ctypes.c_uint32 * BURST_FRAMES_MAX


class Unusable(Exception):
    """The message says why the loops in C cannot be had here."""


@lru_cache(1)
def library() -> ctypes.CDLL:
    """Raises Unusable."""
    if os.environ.get(SWITCH) == "0":
        raise Unusable(f"{SWITCH}=0")
    if not LIBRARY.exists():
        raise Unusable("no C compiler that works was there when it was installed")
    try:
        found = ctypes.CDLL(str(LIBRARY))
        found.accel_layout.restype = ctypes.c_uint32
        if found.accel_layout() != _LAYOUT:
            raise Unusable(f"{LIBRARY.name} is of another version; install again")
    except (OSError, AttributeError) as error:
        raise Unusable(f"{LIBRARY.name}: {error}") from None
    if not found.accel_usable():
        raise Unusable("the CPU is no x86-64 with SSE 4.2 and PCLMUL")
    pointer, descriptor = ctypes.c_void_p, ctypes.c_int
    found.accel_crc32c.argtypes = (pointer, ctypes.c_size_t, ctypes.c_uint32)
    found.accel_crc32c.restype = ctypes.c_uint32
    found.accel_send.argtypes = (descriptor, pointer, pointer, pointer, pointer)
    found.accel_send.restype = ctypes.c_uint32
    found.accel_take.argtypes = (descriptor, pointer, pointer, pointer, pointer, pointer)
    found.accel_take.restype = ctypes.c_int
    return found


def told() -> str:
    """For people: which loops move frames between HBM and an interface here, and why."""
    try:
        library()
    except Unusable as why:
        return f"Python: {why}"
    return "C"


def bursts(direct: Direct, memory: memoryview, writer: HeaderWriter) -> Bursts:
    """The faster one of those that this transport and this machine have."""
    if direct.descriptor is not None and direct.put_back is not None:
        try:
            return NativeBursts(library(), direct, memory, writer)
        except Unusable:
            pass
    return PlainBursts(direct, memory, writer)


class NativeBursts:
    """Only for a descriptor whose frames readv and writev move, and that takes frames back."""

    blind = takes_turns = True

    def __init__(
        self, native: ctypes.CDLL, direct: Direct, memory: memoryview, writer: HeaderWriter
    ) -> None:
        assert direct.descriptor is not None
        assert direct.put_back is not None
        self._send, self._take = native.accel_send, native.accel_take
        self._descriptor = direct.descriptor
        self._put_back = direct.put_back
        self._head = direct.head
        self._spill = memoryview(bytearray(SPILL_BYTES))
        self._memory = memory
        self._crcs = _Crcs()
        # Each kept by what is kept above, but the writer's.
        self._writer = writer
        self.answer = writer.beside()
        self._memory_at = _address(memory)
        self._out_at, self._answer_at = _address(writer.buffer), _address(self.answer.buffer)
        self._head_at, self._spill_at = _address(self._head), _address(self._spill)
        self._crcs_at = ctypes.addressof(self._crcs)

    def send(self, leaving: Leaving) -> Sequence[int]:
        frames = self._send(
            self._descriptor, self._memory_at, self._out_at, ctypes.addressof(leaving),
            self._crcs_at,
        )  # fmt: skip
        return self._crcs[:frames]

    def take(self, arriving: Arriving) -> Outcome:
        outcome: int = self._take(
            self._descriptor, self._memory_at, self._head_at, self._spill_at, self._answer_at,
            ctypes.addressof(arriving),
        )  # fmt: skip
        return _OUTCOMES[outcome]

    def give_back(self, arriving: Arriving) -> None:
        if arriving.frame_bytes:
            start = arriving.base + arriving.offset
            place = self._memory[start : start + arriving.share]
            self._put_back(joined(arriving.frame_bytes, self._head, place, self._spill))


def _address(buffer: memoryview | bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
