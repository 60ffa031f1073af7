"""Refusals: what the daemon says no with. The service room maps each class to a gRPC status.

A refusal has a sentence for people (what was wrong, what works), a reason in UPPER_SNAKE for
programs, and metadata with the values that the sentence names.
"""

from __future__ import annotations

from collections.abc import Iterable

from accelhw.model.ids import nearest


class Refusal(Exception):
    """Base of all; never raised itself."""

    def __init__(self, reason: str, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = {key: str(value) for key, value in metadata.items()}


class NotFound(Refusal):
    """No such thing."""


class InvalidRequest(Refusal):
    """Could never work, whatever the state."""


class OutOfRange(Refusal):
    """Beyond the end of what there is."""


class WrongState(Refusal):
    """Not possible now."""


class AlreadyExists(Refusal):
    """The name or the place is taken."""


class Exhausted(Refusal):
    """Not enough left."""


class Denied(Refusal):
    """The caller may not."""


class Unavailable(Refusal):
    """The hardware does not answer; try again later."""


class Incomplete(Refusal):
    """It ended before all of it was there."""


class StartFailure(Exception):
    """The daemon cannot start; `exit_code` says of which kind the cause is."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


EXIT_USAGE = 2
EXIT_DENIED = 4
EXIT_CONFLICT = 6
EXIT_INTERNAL = 70


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """A tail for a sentence: the nearest known name, or a few names that there are."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near}?"
    if not names:
        return f"there is no {what} yet"
    more = ", ..." if len(names) > 4 else ""
    return f"there is {', '.join(names[:4])}{more}"
