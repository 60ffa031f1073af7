"""A transfer: one-sided WRITE or READ between regions, its progress and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class TransferKind(IntEnum):
    WRITE = 1  # local HBM to remote HBM
    READ = 2  # remote HBM to local HBM
    LOCAL = 3  # inside one card, over its internal bus


class TransferState(IntEnum):
    QUEUED = 1
    RUNNING = 2
    WAITING = 3  # no usable link now; runs on after retraining
    DONE = 4
    FAILED = 5
    CANCELLED = 6

    @property
    def ended(self) -> bool:
        return self >= TransferState.DONE


TRANSFER_STARTED = "TRANSFER_STARTED"  # kinds of events
# A transfer that began comes to exactly one of these.
TRANSFER_ENDS = {
    TransferState.DONE: "TRANSFER_DONE",
    TransferState.FAILED: "TRANSFER_FAILED",
    TransferState.CANCELLED: "TRANSFER_CANCELLED",
}


class TransferError(IntEnum):
    NONE = 0
    NO_PATH = 1  # no fibre joins the two cards
    LINK_DEADLINE = 2  # no usable link for longer than allowed
    REMOTE_NO_REGION = 3
    REMOTE_BAD_KEY = 4
    REMOTE_OUT_OF_RANGE = 5
    CHECKSUM_DIFFERS = 6
    CARD_RESET = 7
    REMOTE_RESET = 8
    MEMORY_FAULT = 9  # the machine could not back a page
    CANCELLED = 10
    TOO_MANY = 11
    CARD_LOST = 12
    HBM_ERROR = 13  # an uncorrectable error in what was to be read


@dataclass(frozen=True, slots=True)
class TransferStatus:
    """Progress and end of a transfer. Byte counts are bytes proved good in the target HBM."""

    transfer_id: str
    kind: TransferKind
    state: TransferState
    local_card: str
    remote_card: str
    total_bytes: int
    good_bytes: int = 0
    first_gap_offset: int = 0  # every byte below this is good
    links: tuple[str, ...] = ()  # local ports that carried it
    started_ns: int = 0  # wall clock
    ended_ns: int = 0
    wall_ns: int = 0  # from the start until now or the end here, outages included
    modelled_ns: int = 0  # what the card would need
    modelled_pcie_ns: int = 0  # the same bytes over PCIe 5.0 x16
    crc32c: int | None = None  # of all bytes, equal at both ends
    replayed_frames: int = 0
    error: TransferError = TransferError.NONE
    error_detail: str = ""


@dataclass(frozen=True, slots=True)
class TransferEnds:
    """How many transfers that were posted to a card came to which end."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0


NO_ENDS = TransferEnds()
