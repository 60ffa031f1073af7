"""HBM as a transfer may read it: an uncorrectable error in its range stops the transfer."""

from __future__ import annotations

from collections.abc import Callable

# The first address of a range of HBM that cannot be read, None if all of it can.
BadAddress = Callable[[int, int], int | None]


class UnreadableError(Exception):
    """HBM that cannot be read; the message says where and what helps."""


def _no_bad_address(start: int, length: int) -> int | None:
    return None


class Readable:
    """Of one card."""

    def __init__(self, card: str) -> None:
        self.bad_address: BadAddress = _no_bad_address
        self._card = card

    def check(self, start: int, length: int) -> None:
        """Raises UnreadableError."""
        bad = self.bad_address(start, length)
        if bad is not None:
            raise UnreadableError(
                f"an uncorrectable error in the HBM of {self._card} at 0x{bad:x};"
                f" accelctl card reset {self._card} puts a spare row there"
            )
