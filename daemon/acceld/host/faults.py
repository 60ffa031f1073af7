"""Faults of the hardware: what it can be given, what it has, and giving and taking them."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence

import msgspec

from acceld.errors import AlreadyExists, InvalidRequest, NotFound, Unavailable, suggestion
from acceld.host.hardware import Attachment, Hardware
from acceld.host.whole import whole
from accelhw.interface.messages import ClearFault, FaultInfo, FaultKindInfo, InjectFault

__all__ = ["FaultInfo", "FaultKindInfo", "Faults", "InjectFault"]

FAULT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
ID_BYTES = 3
HEARD_S = 5.0  # the hardware tells of a fault before it completes the command


class Faults:
    """Follows the hardware's word; keeps nothing of its own."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._active: dict[str, FaultInfo] = {}
        self._awaited: dict[str, asyncio.Future[FaultInfo]] = {}

    def kinds(self) -> Sequence[FaultKindInfo]:
        """The catalogue. Raises Unavailable."""
        return self._hardware.now.welcome.fault_kinds

    def active(self) -> tuple[FaultInfo, ...]:
        """From any thread."""
        return tuple(self._active.values()) if self._hardware.attachment else ()

    def of(self, card: str | None) -> list[FaultInfo]:
        """Of one card, or of all. Raises NotFound, Unavailable."""
        if card is not None:
            self._hardware.card(card)
        assert self._hardware.now
        return [info for info in self._active.values() if card in (None, info.card)]

    def get(self, fault_id: str) -> FaultInfo:
        """Raises NotFound, Unavailable."""
        assert self._hardware.now
        info = self._active.get(fault_id)
        if info is None:
            hint = suggestion(fault_id, self._active, "active fault")
            raise NotFound(
                "FAULT_NOT_FOUND", f"there is no active fault {fault_id!r}; {hint}", fault=fault_id
            )
        return info

    @whole
    async def inject(self, wanted: InjectFault) -> FaultInfo:
        """Gives the fault as the hardware took it; it makes up an id for one without.

        Raises Refusal.
        """
        fault_id = wanted.fault_id or self._new_id()
        if not FAULT_ID.fullmatch(fault_id):
            raise InvalidRequest(
                "FAULT_INVALID",
                f"{fault_id!r} is no fault id; use 1 to 32 of a-z, 0-9 and -",
                fault=fault_id,
            )
        if fault_id in self._active or fault_id in self._awaited:
            raise AlreadyExists("FAULT_EXISTS", f"there is a fault {fault_id!r}", fault=fault_id)
        heard: asyncio.Future[FaultInfo] = asyncio.get_running_loop().create_future()
        self._awaited[fault_id] = heard
        try:
            await self._hardware.command(msgspec.structs.replace(wanted, fault_id=fault_id))
            async with asyncio.timeout(HEARD_S):
                return await heard
        except TimeoutError:
            raise Unavailable(
                "CHASSIS_GONE", "the hardware took the fault and did not tell of it"
            ) from None
        finally:
            del self._awaited[fault_id]

    @whole
    async def clear(self, fault_id: str) -> None:
        """Raises Refusal."""
        self.get(fault_id)
        await self._hardware.command(ClearFault(0, fault_id))
        self._active.pop(fault_id, None)

    def _new_id(self) -> str:
        while True:
            fault_id = secrets.token_hex(ID_BYTES)
            if fault_id not in self._active:
                return fault_id

    # ---- what the hardware says -----------------------------------------------------------------

    def take(self, attachment: Attachment) -> None:
        self._active = {info.fault_id: info for info in attachment.welcome.faults}

    def on_change(self, info: FaultInfo) -> None:
        active = dict(self._active)
        active.pop(info.fault_id, None)
        if info.state == "ACTIVE":
            active[info.fault_id] = info
        self._active = active  # A new one each time: the scrape thread may read the old.
        awaited = self._awaited.get(info.fault_id)
        if awaited is not None and not awaited.done():
            awaited.set_result(info)
