"""Exit codes, and the one place where an error becomes one."""

from __future__ import annotations

import errno
import json
import sys
from typing import Any

from accel import errors

OK = 0
FALSE = 1  # a condition is false: unhealthy, differs
USAGE = 2
NOT_FOUND = 3
DENIED = 4
UNREACHABLE = 5
CONFLICT = 6
TIMED_OUT = 7
PARTLY = 8
INTERNAL = 70
INTERRUPTED = 130

# The first that fits decides, so a class stands before its base.
BY_ERROR: tuple[tuple[type[errors.AccelError], int], ...] = (
    (errors.NotFound, NOT_FOUND),
    (errors.InvalidRequest, USAGE),
    (errors.Denied, DENIED),
    (errors.Unreachable, UNREACHABLE),
    (errors.TimedOut, TIMED_OUT),
    (errors.WrongState, CONFLICT),
    (errors.SourceShrank, CONFLICT),
    (errors.Cancelled, CONFLICT),
    (errors.DataLoss, FALSE),
)
BY_TRANSFER_ERROR = {"LINK_DEADLINE": TIMED_OUT, "CHECKSUM_DIFFERS": FALSE}
BY_ERRNO = {
    errno.ENOENT: NOT_FOUND,
    errno.ENOTDIR: NOT_FOUND,
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
    errno.EROFS: DENIED,
    errno.EISDIR: USAGE,
    errno.EINVAL: USAGE,
}


class Failed(Exception):
    """Ends the command with a sentence and a code of its own choice."""

    def __init__(self, message: str, code: int, reason: str = "", **metadata: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.metadata = metadata


class Interrupted(Exception):
    """Ctrl-C, or a signal that means the same; an empty message where that is the normal end."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)
        self.message = message


class ReaderGone(Exception):
    """The other end of the pipe has closed it."""


class Partly(Failed):
    """Some of it is done and stays done."""

    def __init__(self, message: str, reason: str = "PARTLY_DONE", **metadata: Any) -> None:
        super().__init__(message, PARTLY, reason, **metadata)


def code_of(error: Exception) -> int:
    if isinstance(error, Failed):
        return error.code
    if isinstance(error, errors.TransferFailed):
        return BY_TRANSFER_ERROR.get(error.reason, CONFLICT)
    if isinstance(error, errors.LocalError):
        return BY_ERRNO.get(error.errno, CONFLICT)
    for kind, code in BY_ERROR:
        if isinstance(error, kind):
            return code
    return INTERNAL


def report(error: Exception, *, as_json: bool) -> int:
    """One line on stderr, with -o json an object after it; gives the exit code."""
    code = code_of(error)
    text = " ".join(str(getattr(error, "message", error)).split()) or type(error).__name__
    print(f"accelctl: {text}", file=sys.stderr)
    if as_json:
        body: dict[str, Any] = {"exit_code": code, "message": text}
        reason = getattr(error, "reason", "")
        if reason:
            body["reason"] = reason
        metadata = getattr(error, "metadata", None)
        if metadata:
            body["metadata"] = metadata
        print(json.dumps({"error": body}), file=sys.stderr)
    return code
