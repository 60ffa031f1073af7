"""What can go wrong, as exceptions: made from a gRPC status and its google.rpc.ErrorInfo.

Nothing here imports grpc, so a program may name these errors before it connects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DETAILS_KEY = "grpc-status-details-bin"


class AccelError(Exception):
    """Base of all. `message` is one sentence; `reason` is the daemon's UPPER_SNAKE word, if any."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        domain: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.domain = domain
        self.metadata = dict(metadata or {})


class NotFound(AccelError):
    """The named thing does not exist."""


class InvalidRequest(AccelError):
    """The request can never work as it stands: a bad name, size, offset."""


class Denied(AccelError):
    """The caller has no right to do this."""


class WrongState(AccelError):
    """It would work in another state: the region is in use, the link is switched off."""


class Conflict(WrongState):
    """It exists already, or somebody else changed it meanwhile."""


class NoRoom(WrongState):
    """HBM, the host's budget or another limit is used up."""


class TooOld(WrongState):
    """The revision to resume from is not kept any more."""


class Unsupported(WrongState):
    """The daemon does not know this request; it may be of another version."""


class Unreachable(AccelError):
    """No daemon answers, or the daemon has no hardware to manage."""


class TimedOut(AccelError):
    """No answer within the deadline."""


class Cancelled(AccelError):
    """The request was cancelled."""


class DataLoss(AccelError):
    """Bytes are not what they should be."""


class Internal(AccelError):
    """A fault of the daemon or of this SDK."""


class LocalError(AccelError):
    """A file of this machine refused: full disk, missing right. `errno` says which."""

    def __init__(self, message: str, errno: int) -> None:
        super().__init__(message)
        self.errno = errno


class SourceShrank(AccelError):
    """The file ended before the length it had when the copy began."""


class TransferFailed(AccelError):
    """A transfer ended without all bytes. `transfer` is its last state."""

    def __init__(self, message: str, transfer: Any) -> None:
        super().__init__(message, reason=transfer.error)
        self.transfer = transfer


BY_STATUS: dict[str, type[AccelError]] = {
    "NOT_FOUND": NotFound,
    "INVALID_ARGUMENT": InvalidRequest,
    "OUT_OF_RANGE": InvalidRequest,
    "PERMISSION_DENIED": Denied,
    "UNAUTHENTICATED": Denied,
    "FAILED_PRECONDITION": WrongState,
    "ALREADY_EXISTS": Conflict,
    "ABORTED": Conflict,
    "RESOURCE_EXHAUSTED": NoRoom,
    "UNIMPLEMENTED": Unsupported,
    "UNAVAILABLE": Unreachable,
    "DEADLINE_EXCEEDED": TimedOut,
    "CANCELLED": Cancelled,
    "DATA_LOSS": DataLoss,
}
BY_REASON: dict[str, type[AccelError]] = {"REVISION_TOO_OLD": TooOld}


def from_rpc(error: Any) -> AccelError:
    """The exception for a grpc.RpcError that carries code(), details() and trailing metadata."""
    reason, domain, metadata = _error_info(error)
    status = error.code().name
    kind = BY_REASON.get(reason) or BY_STATUS.get(status, Internal)
    message = error.details() or f"the daemon answered {status} and said nothing more"
    if kind is Unsupported and not reason:
        message = "the daemon does not know this request; is it older than this client?"
    return kind(message, reason=reason, domain=domain, metadata=metadata)


def _error_info(error: Any) -> tuple[str, str, dict[str, str]]:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY:
            return _parse_details(value)
    return "", "", {}


def _parse_details(blob: bytes) -> tuple[str, str, dict[str, str]]:
    from google.protobuf.message import DecodeError
    from google.rpc import error_details_pb2, status_pb2

    try:
        status = status_pb2.Status.FromString(blob)
        for detail in status.details:
            if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
                info = error_details_pb2.ErrorInfo()
                detail.Unpack(info)
                return info.reason, info.domain, dict(info.metadata)
    except DecodeError:
        pass  # The plain status says enough.
    return "", "", {}
