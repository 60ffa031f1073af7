"""The worker's event loop: descriptors, deadlines and ports that have more to send.

A selector loop of our own instead of asyncio: a port's readiness is handled by a plain call, so a
frame costs its system calls and little else.
"""

from __future__ import annotations

import heapq
import select
from collections.abc import Callable
from itertools import count
from time import monotonic_ns, sleep

MAX_SLEEP_NS = 500_000_000  # the loop turns at least this often, which is its heartbeat
PATIENCE_MS = 10
NAP_S = 30e-6  # between batches of a stream: as a NIC's interrupt moderation

Callback = Callable[[int], None]  # given the monotonic time in ns


class Loop:
    """Calls back when a descriptor is ready, a deadline has passed, or work was left over."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callback] = {}
        self._writers: dict[int, Callback] = {}
        self._alarms: list[tuple[int, int, Callback]] = []
        self._order = count()
        self._again: dict[Callable[[int], bool], None] = {}
        self._nap = False
        self._running = False
        self._left = 0  # to be called yet in this part of the turn

    def fileno(self) -> int:
        """The epoll of all descriptors, by their numbers."""
        return self._epoll.fileno()

    def patience_ms(self) -> int:
        """How long whoever is called now may wait on the epoll by himself: nothing else of this
        turn is left, and no deadline passes, but by a part of a millisecond."""
        if self._left or self._again:
            return 0
        if not self._alarms:
            return PATIENCE_MS
        until_ms = -(-(self._alarms[0][0] - monotonic_ns()) // 1_000_000)
        return max(0, min(PATIENCE_MS, until_ms))

    def add_reader(self, fd: int, on_readable: Callback) -> None:
        self._readers[fd] = on_readable
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        self._epoll.unregister(fd)
        self._readers.pop(fd, None)
        self._writers.pop(fd, None)

    def when_writable(self, fd: int, on_writable: Callback) -> None:
        """Call once when `fd` takes data again."""
        if fd not in self._writers:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
        self._writers[fd] = on_writable

    def call_at(self, deadline_ns: int, callback: Callback) -> None:
        heapq.heappush(self._alarms, (deadline_ns, next(self._order), callback))

    def soon(self, work: Callable[[int], bool]) -> None:
        """Call `work` in the next turn, and again each turn for as long as it returns True."""
        self._again[work] = None

    def moderate(self) -> None:
        """A stream is running: nap before the next look, so that more frames wait by then.

        Being woken for a frame costs both CPUs more than handling it: 1.5 to 2 times the speed of
        a stream. A lone frame must not wait, so this is for those who have just handled many.
        """
        self._nap = True

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        self._running = True
        while self._running:
            self.turn(MAX_SLEEP_NS)

    def turn(self, max_sleep_ns: int) -> None:
        """One pass: what is ready, what is due, what was left over."""
        now_ns = monotonic_ns()
        sleep_ns = max_sleep_ns
        if self._again:
            sleep_ns = 0
        elif self._alarms:
            sleep_ns = min(sleep_ns, max(0, self._alarms[0][0] - now_ns))
        if self._nap:
            self._nap = False
            if sleep_ns:
                sleep(NAP_S)
        ready = self._epoll.poll(sleep_ns / 1e9)
        now_ns = monotonic_ns()
        self._left = len(ready)
        for fd, mask in ready:
            self._left -= 1
            if mask & select.EPOLLOUT:
                writer = self._writers.pop(fd, None)
                if fd in self._readers:
                    self._epoll.modify(fd, select.EPOLLIN)
                if writer is not None:
                    writer(now_ns)
            if mask & ~select.EPOLLOUT:
                reader = self._readers.get(fd)
                if reader is not None:
                    reader(now_ns)
        # What these set for a time that is past waits for the next turn: others get theirs.
        due: list[Callback] = []
        while self._alarms and self._alarms[0][0] <= now_ns:
            due.append(heapq.heappop(self._alarms)[2])
        self._left = len(due)
        for callback in due:
            self._left -= 1
            callback(now_ns)
        if self._again:
            again = self._again
            self._again = {}
            self._left = len(again)
            for work in again:
                self._left -= 1
                if work(now_ns):
                    self._again[work] = None


class Soonest:
    """One alarm for a deadline that keeps moving: only the first of all that were set rings."""

    def __init__(self, loop: Loop, ring: Callback) -> None:
        self._loop = loop
        self._ring = ring
        self._set_ns: int | None = None

    def set(self, deadline_ns: int | None) -> None:
        """None sets nothing. A later deadline than the one that is set is forgotten."""
        if deadline_ns is not None and (self._set_ns is None or deadline_ns < self._set_ns):
            self._set_ns = deadline_ns
            self._loop.call_at(deadline_ns, self._on_alarm)

    def _on_alarm(self, now_ns: int) -> None:
        if self._set_ns is not None and now_ns >= self._set_ns:  # else one rang since
            self._set_ns = None
            self._ring(now_ns)
