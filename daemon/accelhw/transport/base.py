"""What carries frames: one end of a fibre."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import Buffer


class InterfaceDown(OSError):
    """The interface that carries the frames is down or gone."""


class Transport(Protocol):
    """Whole Ethernet frames out and in. Never blocks; one reader and one writer.

    A reader looks before it takes: `peek`, then exactly one of `receive_into` and `discard`.
    """

    @property
    def mtu(self) -> int:
        """Largest frame body after the 14-byte Ethernet header."""

    @property
    def receive_frames(self) -> int:
        """How many frames of full size the receive queue holds before it drops one."""

    @property
    def peeked_bytes(self) -> int:
        """True length of the frame that `peek` showed last."""

    def fileno(self) -> int:
        """For select; -1 when there is none (in-process)."""

    def send(self, parts: Sequence[Buffer]) -> bool:
        """Send the parts as one frame. False: no room now, wait for write. Raises InterfaceDown."""

    def peek(self) -> memoryview | None:
        """First bytes of the next frame (a whole header if it has one), None when nothing waits.

        Valid until the next call. Raises InterfaceDown.
        """

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        """Take the peeked frame: fill the parts in order, return the frame's true length.

        Raises OSError with EFAULT when a part's memory cannot be backed, and InterfaceDown when
        there was an outage since `peek`; the frame is gone then.
        """

    def discard(self) -> None:
        """Take the peeked frame and forget it. Raises InterfaceDown as `receive_into` does."""

    def close(self) -> None: ...


@runtime_checkable
class Pluggable(Protocol):
    """A transport with a plug at this end, which may sit the wrong way."""

    def cross(self, arrival: tuple[int, ...], inverted: frozenset[int]) -> None:
        """From now on lanes arrive (and leave) crossed by the plug: for each lane behind it, the
        lane it arrives on, and those whose polarity is swapped."""
