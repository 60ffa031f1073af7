"""How long a port goes on by itself: its loop has others, and the far end must have its turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from accelhw.device.answers import WINDOW_FRAMES_MAX
from accelhw.device.bursts import BURST_FRAMES_MAX
from accelhw.link.retry import ACK_EVERY_FRAMES
from accelhw.wire.frame import payload_limit

# Of a new chunk, so many times as much leaves at first: the far end must ask where it belongs, and
# the CPU that both share would have nothing to do meanwhile.
OPENING = 4


class Waits(Protocol):
    """A loop that may be kept waiting for a port's next frame, and by an epoll of which."""

    def fileno(self) -> int:
        """The epoll. It tells as soon as a descriptor of the loop is ready, by its number."""

    def patience_ms(self) -> int:
        """How long nothing is to be done that the epoll does not tell of."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`waits` is for loops in C, which take turns with the far end by themselves: then a frame
    costs no Python, and what is under way can be little enough for the cache of a CPU."""

    turn_bytes: int = 2 << 20  # sent or taken, before the loop looks at other ports
    ahead_bytes: int = 0  # under way before the far end has its turn; 0: all that it grants
    waits: Waits | None = None

    def turn_frames(self, mtu: int) -> int:
        return max(1, min(self.turn_bytes // payload_limit(mtu), BURST_FRAMES_MAX))

    def ahead_frames(self, mtu: int) -> int:
        if not self.ahead_bytes:
            return WINDOW_FRAMES_MAX
        return max(2, min(self.ahead_bytes // payload_limit(mtu), WINDOW_FRAMES_MAX))

    def opening_frames(self, mtu: int) -> int:
        return OPENING * self.ahead_frames(mtu)

    def ack_every_frames(self, mtu: int, credit_frames: int) -> int:
        """By halves of what is under way, of what was granted at most: on another CPU, the far end
        takes one meanwhile."""
        every = self.ahead_frames(mtu) // 2 if self.ahead_bytes else ACK_EVERY_FRAMES
        return max(1, min(every, credit_frames // 2))


PLAIN = Pace()
