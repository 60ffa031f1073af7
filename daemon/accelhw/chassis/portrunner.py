"""A port in its worker's loop."""

from __future__ import annotations

from collections.abc import Callable

from accelhw.chassis.loop import Loop, Soonest
from accelhw.device.port import Port

STREAM_BYTES = 1 << 17  # landed at once: a stream, of which more is sure to come


class PortRunner:
    """Its readiness, its deadlines, its left-over work."""

    def __init__(self, loop: Loop, port: Port, settle: Callable[[int, PortRunner], None]) -> None:
        """`settle` is called after anything happened on the port."""
        self.port = port
        self._loop = loop
        self._settle = settle
        self._alarm = Soonest(loop, self._on_alarm)
        self._fd = port.transport.fileno()
        if self._fd >= 0:
            loop.add_reader(self._fd, self.on_readable)

    def on_readable(self, now_ns: int) -> None:
        counters = self.port.counters
        before = counters.rx_payload_bytes
        self.port.on_readable(now_ns)
        self._pump(now_ns)
        if counters.rx_payload_bytes - before >= STREAM_BYTES:
            self._loop.moderate()
        self._settle(now_ns, self)

    def on_writable(self, now_ns: int) -> None:
        self._pump(now_ns)
        self._settle(now_ns, self)

    def work(self, now_ns: int) -> bool:
        """A turn of sending, asked for with Loop.soon."""
        more = self.port.pump(now_ns)
        self._after_pump()
        self._settle(now_ns, self)
        return more

    def _pump(self, now_ns: int) -> None:
        if self.port.pump(now_ns):
            self._loop.soon(self.work)
        self._after_pump()

    def _after_pump(self) -> None:
        if self.port.data.wants_write and self._fd >= 0:
            self._loop.when_writable(self._fd, self.on_writable)

    def arm(self) -> None:
        self._alarm.set(self.port.next_deadline_ns())

    def _on_alarm(self, now_ns: int) -> None:
        deadline_ns = self.port.next_deadline_ns()
        if deadline_ns is not None and deadline_ns <= now_ns:
            self.port.on_deadline(now_ns)
            self._pump(now_ns)
        self._settle(now_ns, self)
