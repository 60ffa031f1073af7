"""HBM on huge pages, where the kernel gives them: a copy then misses the TLB far less.

`madvise(MADV_COLLAPSE)` (Linux 6.1) needs neither rights nor settings, but a mapping whose address
lies like its offset in the file, modulo the size of a huge page, and a page that is there already.
Where anything is missing (an old kernel, a filter of system calls, free huge pages), the memory
stays on small pages: nothing here raises for that, and nothing here changes a byte.

Extents that hold nothing yet are backed before they are written, as long as that is cheap: the file
itself remembers, so it does not matter which process writes first. What is used a second time gets
its huge page whatever it costs, for it will be used again.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
import weakref
from collections.abc import Callable, Iterator

EXTENT_BYTES = 2 << 20  # a huge page where small ones have 4 KiB
# At once. Each call of madvise first lets every CPU empty its lists of new pages, at times for
# milliseconds on a busy machine, so less would cost more; a loop that waits should not wait longer.
STEP_BYTES = 8 << 20
# For an extent: more than small pages would cost. So it is in a virtual machine whose host takes
# free memory back (free page reporting) and finds it again 4 KiB at a time; it seldom takes small
# pages. After a slow extent, one is tried again in that many times what it took: 3 % of the time.
SLOW_NS = 2_000_000
PAUSE = 32

_PROT_NONE = 0
_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000  # asm-generic/mman-common.h
_MADV_POPULATE_READ, _MADV_COLLAPSE = 22, 25  # the same; since 5.14 and 6.1
_MAP_FAILED = ctypes.c_void_p(-1).value

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

Advise = Callable[[int, int, int], int]  # address, bytes, what: 0, or not


def mapped(fd: int, size_bytes: int) -> memoryview:
    """The whole file, shared and writable, where huge pages can be mapped as such.

    It lasts as long as the view or a slice of it does. Raises OSError.
    """
    address = _map(fd, 0, size_bytes)
    array = (ctypes.c_char * size_bytes).from_address(address)
    weakref.finalize(array, _LIBC.munmap, address, size_bytes).atexit = False
    return memoryview(array).cast("B")


_FRESH, _USED, _HUGE = range(3)  # of an extent


class HugePages:
    """Of one file, which stays the caller's. Threads may share it, and processes by fork."""

    __slots__ = ("_advise", "_at_once", "_fd", "_now_ns", "_resume_ns", "_sized", "_used")

    def __init__(
        self,
        fd: int,
        size_bytes: int = 0,  # of the file; only for `use`
        *,
        advise: Advise = _LIBC.madvise,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._fd = fd
        self._advise = advise
        self._now_ns = now_ns
        self._at_once = EXTENT_BYTES  # bytes; doubles as long as that is fast
        self._resume_ns = 0
        # Of each extent, shared with children: they take turns at the same regions.
        self._used = mmap.mmap(-1, size_bytes // EXTENT_BYTES + 1)
        self._sized = size_bytes > 0

    def prepare(self, start: int, end: int, low: int, high: int) -> int:
        """Bytes `start` to `end` are written next, and all of `low` to `high` in the end.

        Backs empty extents that lie wholly in `low` to `high`, of the first step that has some.
        Returns its end, or, if there was none, at least `end`: from there on, ask again. Costs a
        system call for each step where all is done already.
        """
        low, high = -(-low // EXTENT_BYTES) * EXTENT_BYTES, high // EXTENT_BYTES * EXTENT_BYTES
        for step in range(start // STEP_BYTES * STEP_BYTES, end, STEP_BYTES):
            first, last = max(step, low), min(step + STEP_BYTES, high)
            look = max(first, start // EXTENT_BYTES * EXTENT_BYTES)
            if look < last and self._next_data(look, last) > look:
                for run in self._empty(first, last):
                    self._back_run(*run)
                return step + STEP_BYTES
        return -(-end // EXTENT_BYTES) * EXTENT_BYTES

    def use(self, start: int, end: int, low: int, high: int) -> int:
        """Bytes `start` to `end` are read or written next; they may be again.

        Of extents that lie wholly in `low` to `high`, the first that was used before is made huge
        now, which takes a copy: 1.4 ms, or 7 where a host takes memory back. Returns its end, or,
        if there was none, at least `end`: from there on, ask again.
        """
        first = max(start, low) // EXTENT_BYTES * EXTENT_BYTES
        for extent in range(first if first >= low else first + EXTENT_BYTES, end, EXTENT_BYTES):
            if extent + EXTENT_BYTES > high:
                break
            number = extent // EXTENT_BYTES
            if self._used[number] == _HUGE:
                continue
            if self._used[number] == _USED and self._next_data(extent, extent + 1) == extent:
                self._used[number] = _HUGE
                self._back(extent, EXTENT_BYTES)
                return extent + EXTENT_BYTES
            self._used[number] = _USED  # for the first time, or since it was freed
        return -(-end // EXTENT_BYTES) * EXTENT_BYTES

    def _back_run(self, start: int, end: int) -> None:
        """Piece by piece, until one was slow."""
        began_ns = self._now_ns()
        while start < end and began_ns >= self._resume_ns:
            length = min(end - start, self._at_once)
            if self._back(start, length):
                self._mark(_HUGE, start, start + length)
            now_ns = self._now_ns()
            took_ns = now_ns - began_ns
            if took_ns > length // EXTENT_BYTES * SLOW_NS:
                self._at_once = EXTENT_BYTES
                self._resume_ns = now_ns + PAUSE * took_ns
            else:
                self._at_once = min(2 * self._at_once, STEP_BYTES)
            start, began_ns = start + length, now_ns

    def _mark(self, as_what: int, start: int, end: int) -> None:
        if self._sized:
            first, behind = start // EXTENT_BYTES, end // EXTENT_BYTES
            self._used[first:behind] = bytes([as_what]) * (behind - first)

    def _empty(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Runs of extents of the range that have no page at all."""
        while start < end:
            data = self._next_data(start, end)
            run_end = data // EXTENT_BYTES * EXTENT_BYTES
            if run_end > start:
                self._mark(_USED, start, run_end)  # now, for the first time in this life
                yield start, run_end
            start = run_end + EXTENT_BYTES

    def _next_data(self, start: int, end: int) -> int:
        """Where the first page from `start` on begins, `end` if none does before it."""
        try:
            return min(os.lseek(self._fd, start, os.SEEK_DATA), end)
        except OSError:
            return end  # ENXIO: none follows

    def _back(self, start: int, length: int) -> bool:
        """By a mapping of a moment: no process is charged for bytes that it does not use."""
        try:
            address = _map(self._fd, start, length)
        except OSError:
            return False
        try:
            for extent in range(address, address + length, EXTENT_BYTES):
                # One page to begin with. A read, for others may be writing; and not by our own
                # hand, for a page that cannot be had would end the process.
                if self._advise(extent, mmap.PAGESIZE, _MADV_POPULATE_READ):
                    return False
            return self._advise(address, length, _MADV_COLLAPSE) == 0
        finally:
            _LIBC.munmap(address, length)


def _map(fd: int, offset: int, length: int) -> int:
    """Address of a new shared mapping, aligned as its offset (of whole extents). Raises OSError."""
    around = length + EXTENT_BYTES
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    reserved = _checked(_LIBC.mmap(None, around, _PROT_NONE, private, -1, 0))
    address = -(-reserved // EXTENT_BYTES) * EXTENT_BYTES
    end = address + -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        _checked(
            _LIBC.mmap(
                address, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED,
                fd, offset,
            )
        )  # fmt: skip
    except OSError:
        _LIBC.munmap(reserved, around)
        raise
    if address > reserved:
        _LIBC.munmap(reserved, address - reserved)
    if reserved + around > end:
        _LIBC.munmap(end, reserved + around - end)
    return address


def _checked(address: int | None) -> int:
    if address is None or address == _MAP_FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return address
