"""A copy inside a card: over its internal bus, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.device.hbm import COPY_BYTES, Hbm
from accelhw.wire.checksum import crc32c_combine


@dataclass(slots=True)
class LocalCopy:
    """An overlap is copied from the end that is not overwritten first."""

    source: int
    target: int
    length: int
    moved: int = 0
    crc: int = 0  # of what has moved

    @property
    def done(self) -> bool:
        return self.moved == self.length

    @property
    def good_bytes(self) -> int:
        return self.moved

    @property
    def backwards(self) -> bool:
        return self.target > self.source

    @property
    def first_gap_offset(self) -> int:
        return 0 if self.backwards else self.moved

    @property
    def next_slice(self) -> tuple[int, int]:
        """Offset and length of what `step` copies."""
        length = min(COPY_BYTES, self.length - self.moved)
        return (self.length - self.moved - length if self.backwards else self.moved), length

    def step(self, hbm: Hbm) -> int:
        """Copy one slice; its bytes. Raises OSError where a page cannot be backed."""
        start, length = self.next_slice
        first = self.target + start
        ready = first
        while ready < first + length:
            ready = hbm.prepare(ready, first + length, self.target, self.target + self.length)
        crc = hbm.copy(self.source + start, self.target + start, length)
        if self.backwards:
            self.crc = crc32c_combine(crc, self.crc, self.moved)
        else:
            self.crc = crc32c_combine(self.crc, crc, length)
        self.moved += length
        return length
