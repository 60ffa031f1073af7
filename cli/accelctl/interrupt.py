"""Ctrl-C held back for a moment, where it would leave something half done and unknown."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# The last is one of the others that comes again: see root.interrupt_again.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@contextmanager
def held() -> Iterator[None]:
    """A signal that comes inside is answered at the end, as KeyboardInterrupt.

    For a short call whose answer must not get lost: what was allocated must be known to be freed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Signals meet the main thread alone.
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {
        number: signal.signal(number, note)
        for number in STOPS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
