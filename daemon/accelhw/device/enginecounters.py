"""The counters of a card's transfer engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class EngineCounters:
    """Names as in accelhw.interface.tables.CARD."""

    bus_read_bytes: int = 0
    bus_written_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        return self.bus_read_bytes + self.bus_written_bytes
