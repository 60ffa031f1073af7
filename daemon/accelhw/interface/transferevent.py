"""What the event log says of a transfer's step, whoever found out: the chassis or the daemon."""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.interface.messages import TransferInfo
from accelhw.model.event import Severity
from accelhw.model.transfer import TransferError, TransferKind, TransferStatus

SEVERITIES = {
    "TRANSFER_WAITING": Severity.WARNING,
    "TRANSFER_FAILED": Severity.ERROR,
}


@dataclass(frozen=True, slots=True)
class TransferEvent:
    kind: str
    severity: Severity
    subject: str  # the card whose driver commanded it
    message: str
    detail: dict[str, str | int | float | bool]


def transfer_event(kind: str, transfer: TransferInfo | TransferStatus) -> TransferEvent:
    """`kind` is one of the TRANSFER_ kinds of accelhw.model.event."""
    return TransferEvent(
        kind,
        SEVERITIES.get(kind, Severity.INFO),
        transfer.local_card,
        transfer_text(kind, transfer),
        {"transfer": transfer.transfer_id, "bytes": transfer.total_bytes},
    )


def transfer_text(kind: str, transfer: TransferInfo | TransferStatus) -> str:
    """One sentence for people about a transfer's step."""
    what = f"{TransferKind(transfer.kind).name} of {transfer.total_bytes} bytes"
    ends = [transfer.local_card, transfer.remote_card]
    if transfer.kind == TransferKind.READ:
        ends.reverse()
    way = " to ".join(ends)
    match kind:
        case "TRANSFER_DONE":
            return f"{what}, {way}: done in {transfer.wall_ns / 1e6:.1f} ms, every byte checked"
        case "TRANSFER_FAILED":
            error = TransferError(transfer.error).name
            return f"{what}, {way}: {error}: {transfer.error_detail}"
        case "TRANSFER_WAITING":
            return f"{what}, {way}: waits for a link at {transfer.good_bytes} good bytes"
    return f"{what}, {way}: {kind.removeprefix('TRANSFER_').lower()}"
