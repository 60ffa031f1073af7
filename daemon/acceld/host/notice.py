"""A bell that many can wait for: each ring wakes all, and none who was busy misses it."""

from __future__ import annotations

import asyncio


class Notice:
    """Counts its rings. Remember `count`, look at the thing, then wait for a ring past it."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def ring(self) -> None:
        self.count += 1
        self._event.set()
        self._event = asyncio.Event()

    async def past(self, count: int, timeout_s: float | None = None) -> bool:
        """True once it rang after `count`; False when the time passed before."""
        if self.count > count:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
