"""A worker's voice towards its chassis."""

from __future__ import annotations

from accelhw.chassis.control import ToWorker
from accelhw.chassis.loop import Loop
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.interface.messages import Message

UNSENT_MAX = 1 << 20  # bytes; a chassis that lags so far gets no more progress, only facts


class Voice:
    """Sends once a turn of the loop what was said in it. The loop stops when nobody listens."""

    def __init__(self, loop: Loop, channel: LoopChannel[ToWorker]) -> None:
        self._loop = loop
        self._channel = channel

    def send(self, message: Message) -> None:
        """At the end of this turn of the loop, with what else is said until then."""
        self._channel.keep(message)
        self._loop.soon(self._flush)

    def send_if_room(self, message: Message) -> None:
        """For what the next one of its kind replaces."""
        if self._channel.unsent_bytes < UNSENT_MAX:
            self.send(message)

    def flush(self) -> None:
        """Send what was said until now."""
        self._on_writable(0)

    def _flush(self, now_ns: int) -> bool:
        self.flush()
        return False

    def _on_writable(self, now_ns: int) -> None:
        try:
            self._channel.flush()
        except ChannelClosed:
            self._loop.stop()
            return
        if self._channel.wants_write:
            self._loop.when_writable(self._channel.fileno(), self._on_writable)
