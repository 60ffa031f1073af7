"""What a port counts of its frames."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PortCounters:
    """Counts since the port was made; names as in accelhw.interface.tables.PORT."""

    tx_frames: int = 0
    tx_bytes: int = 0
    rx_frames: int = 0
    rx_bytes: int = 0
    tx_payload_bytes: int = 0
    rx_payload_bytes: int = 0
    replayed_frames: int = 0
    acks_sent: int = 0
    acks_received: int = 0
    nacks_sent: int = 0
    nacks_received: int = 0
    crc_errors: int = 0
    malformed_frames: int = 0
    foreign_frames: int = 0
    stale_frames: int = 0
    duplicate_frames: int = 0
    missing_frames: int = 0
    replay_timeouts: int = 0
    tx_stalls: int = 0
    in_flight_frames: int = 0
    credit_frames: int = 0


FIELDS = tuple(PortCounters.__dataclass_fields__)
GAUGES = frozenset({"in_flight_frames", "credit_frames"})
SUM_FIELDS = tuple(name for name in FIELDS if name not in GAUGES)
