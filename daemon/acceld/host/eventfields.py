"""What an event is about beside its subject: its reason, what caused it, and the far end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acceld.host.eventkinds import KINDS
from acceld.records import NewEvent
from accelhw.model.ids import BadAddress, PortId

COLLAPSE_NS = 60 * 10**9  # repeats that follow each other so fast are one event with a count
# Names, in the details of events, of what is a reason: why, which fault, what becomes of a row.
REASONS = ("reason", "fault_kind", "remap")


def completed(event: NewEvent, far_end: Callable[[PortId], PortId | None]) -> NewEvent:
    """The event with all that its details and the fibres tell."""
    kind = KINDS.get(event.kind)
    peer = _peer(event, far_end)
    reason = _text(event, *REASONS)
    return replace(
        event,
        reason=reason,
        cause=_cause(event, reason, peer),
        peer=peer,
        collapse_ns=COLLAPSE_NS if kind is not None and kind.collapses else 0,
    )


def _text(event: NewEvent, *names: str) -> str:
    found = (event.detail.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), "")


def _peer(event: NewEvent, far_end: Callable[[PortId], PortId | None]) -> str:
    """What the hardware heard, else where the fibre leads."""
    if told := _text(event, "peer"):
        return told
    try:
        far = far_end(PortId.parse(event.subject))
    except BadAddress:
        return ""
    return str(far) if far is not None else ""


def _cause(event: NewEvent, reason: str, peer: str) -> str:
    """The object to blame, as far as it is known: a lane, the far end, a worker."""
    if told := _text(event, "cause"):
        return told
    if peer and reason.startswith("PEER_"):
        return peer
    if (lane := event.detail.get("lane")) is not None:
        return f"{event.subject}/lane{lane}"
    if (worker := event.detail.get("worker")) is not None:
        return f"worker{worker}"
    return ""
