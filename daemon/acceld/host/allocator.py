"""First-fit allocation of a card's HBM range. Pure: numbers in, numbers out, all in bytes."""

from __future__ import annotations

from bisect import bisect_left, insort

from accelhw.model.region import HBM_ALIGNMENT


class NoRoom(Exception):
    """No gap is large enough; `largest` is what would fit at the asked alignment."""

    def __init__(self, largest: int) -> None:
        super().__init__(f"the largest gap holds {largest} bytes")
        self.largest = largest


class Overlaps(Exception):
    """The fixed range meets an allocated one, which is [start, end)."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__(f"{start:#x} to {end:#x} is taken")
        self.start = start
        self.end = end


def rounded_up(value: int, alignment: int = HBM_ALIGNMENT) -> int:
    return -(-value // alignment) * alignment


class Allocator:
    """The allocated ranges of one card, sorted; what lies between them is free, so freeing
    coalesces by itself."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._ranges: list[tuple[int, int]] = []  # [start, end), sorted, disjoint

    @property
    def allocated(self) -> int:
        return sum(end - start for start, end in self._ranges)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._ranges)

    def allocate(self, size: int, alignment: int = HBM_ALIGNMENT) -> int:
        """The lowest address where `size` bytes fit. Raises NoRoom."""
        size = rounded_up(size)
        largest = 0
        for start, end in self._gaps():
            base = rounded_up(start, alignment)
            if base + size <= end:
                insort(self._ranges, (base, base + size))
                return base
            largest = max(largest, end - base)
        raise NoRoom(largest)

    def allocate_at(self, address: int, size: int) -> None:
        """Take a fixed range. Raises Overlaps, or ValueError beyond the card."""
        end = address + rounded_up(size)
        if address < 0 or end > self.total or address % HBM_ALIGNMENT:
            raise ValueError(f"{address:#x} to {end:#x} is no aligned range of {self.total} bytes")
        at = bisect_left(self._ranges, (address, 0))
        for taken_start, taken_end in self._ranges[max(0, at - 1) : at + 1]:
            if taken_start < end and address < taken_end:
                raise Overlaps(taken_start, taken_end)
        self._ranges.insert(at, (address, end))

    def free(self, address: int) -> None:
        """Give back what was allocated at `address`. Raises KeyError."""
        at = bisect_left(self._ranges, (address, 0))
        if at == len(self._ranges) or self._ranges[at][0] != address:
            raise KeyError(address)
        del self._ranges[at]

    def _gaps(self) -> list[tuple[int, int]]:
        starts = [0, *(end for _, end in self._ranges)]
        ends = [*(start for start, _ in self._ranges), self.total]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
