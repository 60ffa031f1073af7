"""A bad fibre: one more transport, wrapped round any other. What it does wrong follows its seed."""

from __future__ import annotations

import errno
import heapq
import os
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accelhw.transport.base import InterfaceDown, Transport

if TYPE_CHECKING:
    from typing_extensions import Buffer


class FaultyTransport:
    """Loses, doubles, reorders, corrupts and delays the frames that are sent into it.

    Ratios are chances per frame; that of outages, which are over at once, per call of any kind.
    A reordered frame waits until the next few have passed it, a delayed one until `clock` (ns) has
    moved on: call `flush` to let it out.
    """

    def __init__(
        self,
        inner: Transport,
        seed: int,
        *,
        loss_ratio: float = 0.0,
        duplicate_ratio: float = 0.0,
        reorder_ratio: float = 0.0,
        corrupt_ratio: float = 0.0,
        outage_ratio: float = 0.0,
        delay_ns: int = 0,
        jitter_ns: int = 0,
        clock: Callable[[], int] = lambda: 0,
    ) -> None:
        self._inner = inner
        self._random = random.Random(seed)
        self.loss_ratio = loss_ratio
        self.duplicate_ratio = duplicate_ratio
        self.reorder_ratio = reorder_ratio
        self.corrupt_ratio = corrupt_ratio
        self.outage_ratio = outage_ratio
        self.delay_ns = delay_ns
        self.jitter_ns = jitter_ns
        self._clock = clock
        self._count = 0
        self._held: list[tuple[int, int, bytes]] = []  # due ns, order, frame
        self._passed_by: list[tuple[int, bytes]] = []  # frames to let pass, frame

    @property
    def mtu(self) -> int:
        return self._inner.mtu

    @property
    def receive_frames(self) -> int:
        return self._inner.receive_frames

    @property
    def peeked_bytes(self) -> int:
        return self._inner.peeked_bytes

    def fileno(self) -> int:
        return self._inner.fileno()

    def send(self, parts: Sequence[Buffer]) -> bool:
        self._may_fail()
        self.flush()
        draw = self._random.random
        if draw() < self.loss_ratio:
            return True
        frame = b"".join(parts)
        if draw() < self.corrupt_ratio:
            bit = self._random.randrange(8 * len(frame))
            spoilt = bytearray(frame)
            spoilt[bit >> 3] ^= 1 << (bit & 7)
            frame = bytes(spoilt)
        copies = 2 if draw() < self.duplicate_ratio else 1
        for _ in range(copies):
            if draw() < self.reorder_ratio:
                self._passed_by.append((self._random.randint(1, 5), frame))
            else:
                self._hold(frame)
                self._let_pass()
        self.flush()
        return True

    def _hold(self, frame: bytes) -> None:
        due_ns = self._clock() + self.delay_ns
        if self.jitter_ns:
            due_ns += self._random.randrange(self.jitter_ns)
        self._count += 1
        heapq.heappush(self._held, (due_ns, self._count, frame))

    def _let_pass(self) -> None:
        waiting = [(left - 1, frame) for left, frame in self._passed_by]
        self._passed_by = [(left, frame) for left, frame in waiting if left > 0]
        for left, frame in waiting:
            if left == 0:
                self._hold(frame)

    @property
    def next_due_ns(self) -> int | None:
        return self._held[0][0] if self._held else None

    def flush(self) -> None:
        """Let out what is due. A full inner transport loses it, as a fibre would."""
        now_ns = self._clock()
        while self._held and self._held[0][0] <= now_ns:
            self._inner.send([heapq.heappop(self._held)[2]])

    def _may_fail(self) -> None:
        if self.outage_ratio and self._random.random() < self.outage_ratio:
            raise InterfaceDown(errno.ENETDOWN, os.strerror(errno.ENETDOWN))

    def peek(self) -> memoryview | None:
        self._may_fail()
        return self._inner.peek()

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        self._may_fail_to_take()
        return self._inner.receive_into(parts)

    def discard(self) -> None:
        self._may_fail_to_take()
        self._inner.discard()

    def _may_fail_to_take(self) -> None:
        try:
            self._may_fail()
        except InterfaceDown:
            self._inner.discard()
            raise

    def close(self) -> None:
        self._inner.close()
