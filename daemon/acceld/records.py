"""What the daemon keeps of its own: regions, stored events, transfers. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferStatus


@dataclass(frozen=True, slots=True)
class Region:
    """An allocated range of a card's HBM, in bytes.

    `address` is a multiple of 4096; what is left of the last page after `size` is nobody's.
    """

    card: str
    name: str
    region_id: int  # unique on its card, 32 bit
    key: int  # 32 bit
    address: int
    size: int
    created_ns: int  # wall clock

    def __str__(self) -> str:
        return f"{self.card}:{self.name}"

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def window(self) -> MemoryWindow:
        return MemoryWindow(self.region_id, self.key, self.address, self.size)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that has no revision yet. `sequence` is the hardware's number, 0 for our own.

    Repeats (same kind, subject, reason and severity) within `collapse_ns` of each other are one.
    """

    time_ns: int
    severity: int
    kind: str
    subject: str
    message: str
    detail: dict[str, str | int | float | bool] = field(default_factory=dict)
    sequence: int = 0
    reason: str = ""  # UPPER_SNAKE
    cause: str = ""  # the address of what is to blame, as far as it is known
    peer: str = ""  # the far end
    collapse_ns: int = 0  # 0: each stands for itself


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the log. Revisions count from 1 over the life of the store, and none is given
    twice. One that is repeated gets a new revision and leaves the place of its old one."""

    revision: int
    time_ns: int
    severity: int
    kind: str
    subject: str
    message: str
    detail: dict[str, str | int | float | bool]
    reason: str = ""
    cause: str = ""
    peer: str = ""
    count: int = 1
    first_time_ns: int = 0  # of the first of them; `time_ns` is of the last


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events somebody wants; by default all."""

    subject: str = ""  # of this object and what is inside it
    min_severity: int = 0
    kinds: tuple[str, ...] = ()
    since_ns: int = 0  # wall clock; not older than this


ALL_EVENTS = EventFilter()


@dataclass(frozen=True, slots=True)
class Slice:
    """One end of a transfer: a region that we know (by name), or a far address with its key."""

    card: str
    region: str = ""
    region_id: int = 0
    key: int = 0
    offset: int = 0

    def __str__(self) -> str:
        name = self.region or f"#{self.region_id}"
        return f"{self.card}:{name}" + (f"+{self.offset}" if self.offset else "")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer as asked for, and how it stands."""

    source: Slice
    target: Slice
    status: TransferStatus
    created_ns: int

    @property
    def id(self) -> str:
        return self.status.transfer_id


@dataclass(frozen=True, slots=True)
class Boot:
    """Which chassis life the store has followed, and the newest of its events that it holds."""

    boot_id: str = ""
    last_event: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """A column of counters over the rows of one card, as they lie in memory."""

    card: str  # with its profile
    part: str  # of the status tables: "port", "lane_flag", ...
    column: str
    figures: bytes
