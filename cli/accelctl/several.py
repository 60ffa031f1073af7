"""One verb on several things: go on after a refusal, and tell at the end what is not done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from accel.errors import AccelError
from accelctl.exits import Partly

T = TypeVar("T")


@contextmanager
def each(names: Sequence[str]) -> Iterator[Callable[[Callable[[str], T]], list[T]]]:
    """Gives a function that runs an action on each name and returns what succeeded.

    The results are shown inside the `with`. At its end: if all were refused, the first refusal
    is raised as it is; if some were, Partly names them.
    """
    refused: list[tuple[str, AccelError]] = []
    done: list[Any] = []

    def work(action: Callable[[str], T]) -> list[T]:
        for name in names:
            try:
                done.append(action(name))
            except AccelError as error:
                refused.append((name, error))
        return done

    yield work
    if not refused:
        return
    if not done:
        raise refused[0][1]
    raise Partly(
        f"{len(done)} of {len(names)} done; "
        + "; ".join(f"{name}: {error.message}" for name, error in refused),
        refused=[name for name, _ in refused],
    )
