"""The hardware behind the fake daemon, which outlives its restarts, and how it should misbehave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accel.v1 import (
    health_pb2,
    memory_pb2,
)

from .fake_canned import (
    MIB,
    canned_cards,
    canned_channels,
    canned_engines,
    canned_events,
    canned_lanes,
    canned_links,
    canned_transfers,
    stamp,
)
from .fake_faults import canned_faults
from .fake_health import canned_health

PATTERN = bytes(range(256))


@dataclass
class State:
    """What the hardware keeps, and how this fake should misbehave."""

    cards: list[Any] = field(default_factory=canned_cards)
    links: list[Any] = field(default_factory=canned_links)
    engines: list[Any] = field(default_factory=canned_engines)
    lanes: list[Any] = field(default_factory=canned_lanes)
    channels: list[Any] = field(default_factory=canned_channels)
    transfers: list[Any] = field(default_factory=canned_transfers)
    events: list[Any] = field(default_factory=canned_events)
    health: health_pb2.Health = field(default_factory=canned_health)
    faults: list[Any] = field(default_factory=lambda: canned_faults(stamp(60), stamp(90)))
    regions: dict[str, Any] = field(default_factory=dict)
    metrics_address: str = "127.0.0.1:9437"
    memory: dict[str, bytearray] = field(default_factory=dict)

    refuse: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # method: status, ...
    mappable: bool = False
    transfer_end: str = "DONE"  # DONE, FAILED, HANG
    transfer_error: str = "LINK_DEADLINE"
    training_end: str = "UP"
    attached: bool = True
    diags: list[Any] = field(default_factory=list)
    started: Any = None  # the newest StartDiagRequest
    on_diag: Any = None  # called with a test's result before it is given
    on_watch: Any = None  # called in the middle of WatchTransfer
    busy_answers: int = 0  # so many refusals to free a region
    on_answer: dict[str, Any] = field(default_factory=dict)  # method: called before it answers
    calls: list[str] = field(default_factory=list)
    page_size_max: int = 3  # small, so that every list has pages

    def __post_init__(self) -> None:
        self.add_region("card0", "weights", PATTERN * (MIB // 256), 0x100000)
        self.add_region("card0", "scratchpad", bytes(8192), 0x200000)

    def add_region(self, card: str, name: str, content: bytes, address: int) -> Any:
        full = f"cards/{card}/regions/{name}"
        self.memory[full] = bytearray(content)
        self.regions[full] = memory_pb2.Region(
            name=full,
            card=f"cards/{card}",
            region_id=len(self.regions) + 1,
            key=0x5EED0001 + len(self.regions),
            address=address,
            size_bytes=len(content),
            create_time=stamp(5),
        )
        return self.regions[full]

    def transfer(self, name: str) -> Any:
        return next((t for t in self.transfers if t.name == name), None)
