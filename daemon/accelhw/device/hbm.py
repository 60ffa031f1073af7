"""A card's HBM as its hardware sees it: one memory file, mapped over its full address range."""

from __future__ import annotations

import os

from accelhw.interface.hugepages import HugePages, mapped
from accelhw.wire.checksum import crc32c

COPY_BYTES = 1 << 20  # one turn of a copy inside the card


class Hbm:
    """The whole memory behind `fd`, which stays the caller's.

    Store into `view` only by the kernel's hand (readv, preadv), or where a page is known to be
    backed: a page that the machine cannot back then answers EFAULT instead of ending the process.
    """

    __slots__ = ("_pages", "_scratch", "fd", "size_bytes", "view")

    def __init__(self, fd: int, size_bytes: int) -> None:
        self.fd = fd
        self.size_bytes = size_bytes
        self.view = mapped(fd, size_bytes)
        self._pages = HugePages(fd, size_bytes)
        self._scratch: memoryview | None = None

    def prepare(self, start: int, end: int, low: int, high: int) -> int:
        """Bytes `start` to `end` are written next, and all of `low` to `high` in the end.

        Returns as `use`.
        """
        return self._pages.prepare(start, end, low, high)

    def use(self, start: int, end: int, low: int, high: int) -> int:
        """Bytes `start` to `end` are read or written next; all of `low` to `high` is. Returns up to
        where: the rest is to be asked again, for this took time enough."""
        return self._pages.use(start, end, low, high)

    def copy(self, source: int, target: int, length: int) -> int:
        """Copy up to COPY_BYTES inside the memory; CRC-32C of them. Raises OSError."""
        if self._scratch is None:
            self._scratch = memoryview(bytearray(COPY_BYTES))
        piece = self._scratch[:length]
        self._all(os.preadv(self.fd, [piece], source), length)
        self._all(os.pwrite(self.fd, piece, target), length)
        return crc32c(piece)

    def lose(self, offset: int, length: int) -> None:
        """What stood there is gone: zeros in its place. Raises OSError."""
        self._all(os.pwrite(self.fd, bytes(length), offset), length)

    def crc(self, offset: int, length: int) -> int:
        """CRC-32C of the bytes that stand there."""
        return crc32c(self.view[offset : offset + length])

    @staticmethod
    def _all(moved: int, length: int) -> None:
        if moved != length:
            raise OSError(f"moved {moved} of {length} bytes")
