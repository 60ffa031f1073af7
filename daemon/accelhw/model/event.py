"""What happened: the hardware's numbered events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Severity(IntEnum):
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class HardwareEvent:
    """One fact. `sequence` counts from 1 in a chassis life and has no holes."""

    sequence: int
    time_ns: int  # wall clock, since the epoch
    severity: Severity
    kind: str  # UPPER_SNAKE, e.g. LINK_UP
    subject: str  # an address: card0, card0/oe1, or "chassis"
    message: str  # one sentence for people
    detail: dict[str, str | int | float | bool] = field(default_factory=dict)


EVENT_KINDS: dict[str, str] = {
    "CHASSIS_STARTED": "The emulated hardware was powered on.",
    "WORKER_STARTED": "A worker that carries cards started.",
    "WORKER_DIED": "A worker ended without being asked; its cards fell off the bus.",
    "CARD_READY": "A card came up and answers.",
    "CARD_RESET": "A card was reset by command.",
    "FELL_OFF_BUS": "A card does not answer any more; its worker died.",
    "LINK_TRAINING": "A port heard its peer and began training.",
    "LINK_UP": "A link trained and carries data.",
    "LINK_DOWN": "A link stopped carrying data.",
    "LINK_RECOVERED": "A link in trouble recovered without going down.",
    "LINK_WIDTH_CHANGED": "A link goes on with fewer or more lanes, without going down.",
    "LINK_MODE_CHANGED": "A link came up with another FEC or symbol rate than it had.",
    "LINK_DAMPED": "A link that went down too often is held down until it is quiet.",
    "LINK_FAILED": "Training gave up; it tries again after a hold-off.",
    "CHANNEL_MAP_CHANGED": "Logical channels were moved to other lanes.",
    "TRANSFER_STARTED": "A transfer began.",
    "TRANSFER_WAITING": "A transfer waits for a link.",
    "TRANSFER_RESUMED": "A transfer found a link again.",
    "TRANSFER_DONE": "A transfer ended with every byte checked.",
    "TRANSFER_FAILED": "A transfer ended without all bytes, and nobody cancelled it.",
    "TRANSFER_CANCELLED": "A transfer was cancelled.",
    "DIAG_STARTED": "A test of a link began.",
    "DIAG_ENDED": "A test of a link ended; its result is with the daemon.",
    "FAULT_INJECTED": "A fault was injected by command.",
    "FAULT_CLEARED": "An injected fault was taken away by command.",
    "FAULT_ENDED": "The time of an injected fault is over.",
    "HBM_ROW_BAD": "A row of HBM had an uncorrectable error and is out of use.",
    "HBM_ROWS_REMAPPED": "Spare rows of HBM stand in for bad ones.",
    "EVENTS_LOST": "More events happened than could be kept for the daemon.",
    "INTERFACE_REAPED": "An interface left by an earlier life was removed.",
}
