"""A card's HBM as the daemon touches it: a descriptor, read and written by offset.

Never through a mapping: a page that the machine cannot back would end the process with SIGBUS,
where pwrite says ENOSPC.
"""

from __future__ import annotations

import ctypes
import os

from accelhw.interface.hugepages import HugePages

_LIBC = ctypes.CDLL(None, use_errno=True)
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2


class Hbm:
    """Owns its descriptor; closed when the last who holds the object lets go, so a thread that
    reads while the chassis goes away reads from what was."""

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._pages = HugePages(self._fd)

    def fileno(self) -> int:
        return self._fd

    def read_into(self, buffer: bytearray | memoryview, address: int) -> None:
        """Fill `buffer` from `address` (bytes). Raises OSError."""
        view = memoryview(buffer)
        while view:
            count = os.preadv(self._fd, [view], address)
            if count == 0:
                raise OSError(f"HBM ends at {address:#x}")
            view = view[count:]
            address += count

    def read(self, address: int, length: int) -> bytes:
        data = os.pread(self._fd, length, address)
        if len(data) == length:
            return data
        buffer = bytearray(length)
        self.read_into(buffer, address)
        return bytes(buffer)

    def write(self, data: bytes | memoryview, address: int) -> None:
        """Raises OSError, ENOSPC when the machine has no memory for it."""
        view = memoryview(data)
        while view:
            count = os.pwrite(self._fd, view, address)
            view = view[count:]
            address += count

    def prepare(self, start: int, end: int, low: int, high: int) -> None:
        """Bytes `start` to `end` are written next, and all of `low` to `high` in the end."""
        self._pages.prepare(start, end, low, high)

    def release(self, address: int, length: int) -> None:
        """Give pages back to the machine; they read as zeros from now on. Raises OSError."""
        result = _LIBC.fallocate(
            ctypes.c_int(self._fd),
            ctypes.c_int(_FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE),
            ctypes.c_long(address),
            ctypes.c_long(length),
        )
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def reopened(self, writable: bool) -> int:
        """A descriptor of the same memory for somebody else; the caller closes it."""
        if writable:
            return os.dup(self._fd)
        return os.open(f"/proc/self/fd/{self._fd}", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def resident_bytes(self) -> int:
        return os.fstat(self._fd).st_blocks * 512

    def __del__(self) -> None:
        os.close(self._fd)
