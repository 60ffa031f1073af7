"""The counters of a card's transfer engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class EngineCounters:
    """Names as in accelhw.interface.tables.CARD."""

    bus_read_bytes: int = 0
    bus_written_bytes: int = 0
