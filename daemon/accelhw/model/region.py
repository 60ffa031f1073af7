"""A region as the hardware knows it: an address range of a card's HBM behind a key."""

from __future__ import annotations

from dataclasses import dataclass

HBM_ALIGNMENT = 4096  # bytes; allocations start and end on this


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """A registered range that the far end may address as (region id, key, offset)."""

    region_id: int  # unique on its card, 32 bit
    key: int  # 32 bit; who has it may read and write
    base: int  # byte address in HBM
    length: int  # bytes
