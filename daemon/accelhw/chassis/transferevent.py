"""What the journal says of a transfer's step."""

from __future__ import annotations

from accelhw.chassis.control import WorkerEvent
from accelhw.interface.messages import TransferInfo
from accelhw.model.event import Severity
from accelhw.model.transfer import TransferError, TransferKind

SEVERITIES = {
    "TRANSFER_WAITING": Severity.WARNING,
    "TRANSFER_FAILED": Severity.ERROR,
}


def transfer_event(card: str, kind: str, transfer: TransferInfo) -> WorkerEvent:
    """Of a transfer that the driver of `card` commanded."""
    severity = SEVERITIES.get(kind, Severity.INFO)
    detail: dict[str, str | int | float | bool] = {
        "transfer": transfer.transfer_id,
        "bytes": transfer.total_bytes,
    }
    return WorkerEvent(kind, severity, card, transfer_text(kind, transfer), detail)


def transfer_text(kind: str, transfer: TransferInfo) -> str:
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
