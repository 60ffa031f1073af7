"""Changes that are carried to their end, though the caller hangs up in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_running: set[asyncio.Task[Any]] = set()  # asyncio itself holds tasks weakly


def whole(change: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Hardware and store agree on a change only when all its steps were done: a cancelled caller
    stops waiting, the change does not stop."""

    @wraps(change)
    async def run(*arguments: P.args, **named: P.kwargs) -> T:
        task = asyncio.create_task(change(*arguments, **named))
        _running.add(task)
        task.add_done_callback(_ended)
        return await asyncio.shield(task)

    return run


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # Seen, though nobody may wait for it any more.
