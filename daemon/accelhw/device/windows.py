"""The ranges of a card's HBM that transfers may use, each with its key, and who uses them now."""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.device.refusal import EngineRefusal
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferError


@dataclass(slots=True)
class _Known:
    window: MemoryWindow
    users: int = 0


class Windows:
    """Of one card, by region id."""

    def __init__(self, card: str, size_bytes: int) -> None:
        self._card = card
        self._size_bytes = size_bytes  # of the HBM
        self._known: dict[int, _Known] = {}
        self._used: dict[str, list[_Known]] = {}  # by transfer

    def register(self, window: MemoryWindow) -> None:
        """Raises EngineRefusal EXISTS or OUT_OF_RANGE. The same window again is fine."""
        known = self._known.get(window.region_id)
        if known is not None:
            if known.window == window:
                return
            raise EngineRefusal("EXISTS", f"window {window.region_id} is another range")
        end = window.base + window.length
        if window.base < 0 or window.length <= 0 or end > self._size_bytes:
            raise EngineRefusal("OUT_OF_RANGE", f"HBM has {self._size_bytes} bytes")
        self._known[window.region_id] = _Known(window)

    def unregister(self, region_id: int) -> None:
        """Raises EngineRefusal UNKNOWN_REGION or BUSY."""
        known = self._known.get(region_id)
        if known is None:
            raise EngineRefusal("UNKNOWN_REGION", f"no window {region_id} on {self._card}")
        if known.users:
            raise EngineRefusal("BUSY", f"window {region_id} is used by {known.users} transfer(s)")
        del self._known[region_id]

    def all(self) -> tuple[MemoryWindow, ...]:
        return tuple(known.window for known in self._known.values())

    def clear(self) -> None:
        self._known.clear()

    def __getitem__(self, region_id: int) -> MemoryWindow:
        """Raises KeyError."""
        return self._known[region_id].window

    def local(self, region_id: int, offset: int, length: int) -> MemoryWindow:
        """For this card's driver. Raises EngineRefusal UNKNOWN_REGION or OUT_OF_RANGE."""
        known = self._known.get(region_id)
        if known is None:
            raise EngineRefusal("UNKNOWN_REGION", f"no window {region_id} on {self._card}")
        if length <= 0 or offset < 0 or offset + length > known.window.length:
            raise EngineRefusal(
                "OUT_OF_RANGE",
                f"bytes {offset} to {offset + length} of a region of {known.window.length}",
            )
        return known.window

    def remote_fault(
        self, region_id: int, key: int, offset: int, length: int
    ) -> tuple[TransferError, str] | None:
        """Why a far card may not use this range; None if it may."""
        known = self._known.get(region_id)
        if known is None:
            return TransferError.REMOTE_NO_REGION, f"{self._card} has no region {region_id}"
        if known.window.key != key:
            return TransferError.REMOTE_BAD_KEY, f"wrong key for region {region_id} of {self._card}"
        if length <= 0 or offset + length > known.window.length:
            return (
                TransferError.REMOTE_OUT_OF_RANGE,
                f"bytes {offset} to {offset + length} of a region of {known.window.length}",
            )
        return None

    def hold(self, transfer_id: str, region_id: int) -> None:
        """The transfer uses it, until `release`."""
        known = self._known[region_id]
        known.users += 1
        self._used.setdefault(transfer_id, []).append(known)

    def release(self, transfer_id: str) -> None:
        for known in self._used.pop(transfer_id, ()):
            known.users -= 1
