"""What one end of a link owes the other: acknowledgements, and what goes with them."""

from __future__ import annotations

from accelhw.link.retry import ACK_EVERY_FRAMES, SEQUENCE_MASK, RetryReceiver
from accelhw.wire.frame import FrameFlag

WINDOW_FRAMES_MAX = 512  # a bound for what DROPPED must be repeated, whatever the far end grants
_NACK, _DROPPED = int(FrameFlag.NACK), int(FrameFlag.DROPPED)


class Answers:
    """Which frame is expected, how many wait for an acknowledgement, and what it must say.

    An acknowledgement rides on every frame that leaves; with none leaving, it goes alone.
    """

    __slots__ = ("_dropped_at", "_every", "ask", "now", "receiver")

    def __init__(self, credit_frames: int) -> None:
        self.receiver = RetryReceiver()
        self._every = max(1, min(ACK_EVERY_FRAMES, (credit_frames + 1) // 2))
        self.start()

    def start(self) -> None:
        """A new epoch."""
        self.receiver.start()
        self.now = False  # the next acknowledgement must not wait
        self.ask = False  # a frame is missing, or came damaged
        self._dropped_at: int | None = None  # the last sequence that was taken and not stored

    @property
    def frames_until_due(self) -> int:
        return max(1, self._every - self.receiver.owed)

    @property
    def many(self) -> bool:
        """So many frames wait that the far end should hear of it at once."""
        return self.receiver.owed >= self._every

    def due(self, now_ns: int) -> bool:
        receiver = self.receiver
        return self.ask or (receiver.owed > 0 and (self.now or receiver.ack_due(now_ns)))

    @property
    def plain(self) -> bool:
        """An acknowledgement says what was taken, and nothing beside."""
        return not self.ask and not self.dropped_flag()

    def again(self) -> None:
        """The far end may not have heard the last one."""
        self.now = True
        self.receiver.owed = self.receiver.owed or 1

    def refuse(self) -> None:
        """The expected frame came damaged."""
        self.receiver.refuse()
        self.ask = True

    def drop(self, now_ns: int) -> None:
        """The expected frame is good, and was stored nowhere."""
        self._dropped_at = self.receiver.expected
        self.receiver.accept(now_ns)

    def dropped_flag(self) -> int:
        """DROPPED, until the far end must have heard it with whichever ack first covered it."""
        if self._dropped_at is None:
            return 0
        if (self.receiver.expected - self._dropped_at) & SEQUENCE_MASK > WINDOW_FRAMES_MAX:
            self._dropped_at = None
            return 0
        return _DROPPED

    def flags(self) -> int:
        """Of an acknowledgement that goes alone."""
        return self.dropped_flag() | (_NACK if self.ask else 0)

    def carried(self) -> None:
        """A frame of ours left, with the acknowledgement on it."""
        self.receiver.acknowledged()
        self.now = False

    def said(self) -> None:
        """It left alone."""
        self.carried()
        self.ask = False
