"""Tests of links: started in the hardware, followed from here. The last results are stored."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet

import msgspec

from acceld.errors import InvalidRequest, NotFound, Refusal, suggestion
from acceld.host.hardware import Hardware
from acceld.host.notice import Notice
from acceld.host.whole import whole
from acceld.store.store import DIAGS_MAX, Store
from accelhw.interface.messages import (
    CancelDiag,
    DiagInfo,
    FecCounts,
    LaneErrors,
    LaneEye,
    LaneMargin,
    StartDiag,
    TrainPort,
)
from accelhw.model.diag import CONFIDENCE, DURATION_S_MAX, DiagKind, DiagState
from accelhw.model.ids import PortId

__all__ = ["DiagInfo", "Diags", "FecCounts", "LaneErrors", "LaneEye", "LaneMargin"]

DURATION_S = 2.0
DWELL_S = 0.05  # of a margin scan, at each attenuation
REFLECT_GRACE_S = 5.0  # a reflector waits so much longer than the test that it serves


class Diags:
    def __init__(self, hardware: Hardware, store: Store) -> None:
        self._hardware = hardware
        self._store = store
        self._known = {info.diag_id: info for info in map(_stored, store.diags())}  # oldest first
        self._notices: dict[str, Notice] = {}
        self._reflectors: dict[str, str] = {}  # by the test that they serve

    # ---- looking --------------------------------------------------------------------------------

    def get(self, diag_id: str) -> DiagInfo:
        """Raises NotFound."""
        info = self._known.get(diag_id)
        if info is None:
            hint = suggestion(diag_id, reversed(self._known), "test")
            raise NotFound("DIAG_NOT_FOUND", f"there is no test {diag_id!r}; {hint}", diag=diag_id)
        return info

    def list(self, port: PortId | None = None) -> list[DiagInfo]:
        """Newest first."""
        return [
            info
            for info in reversed(self._known.values())
            if port is None or PortId(info.card, info.oe) == port
        ]

    async def watch(self, diag_id: str) -> AsyncIterator[DiagInfo]:
        """The test now, at each step, and at its end. Raises NotFound."""
        notice = self._notices.get(diag_id)
        while True:
            seen = notice.count if notice else 0
            info = self.get(diag_id)
            yield info
            if DiagState(info.state).ended or notice is None:
                return
            await notice.past(seen)

    # ---- changing -------------------------------------------------------------------------------

    @whole
    async def start(
        self,
        port: PortId,
        kind: DiagKind,
        lanes: AbstractSet[int] = frozenset(),
        *,
        pattern: str = "",
        checker: str = "seeded",
        duration_s: float | None = None,
        target_ber: float = 0.0,
        confidence: float = CONFIDENCE,
        stop_early: bool = False,
        force: bool = False,
    ) -> DiagInfo:
        """Raises Refusal."""
        self._hardware.port(port)
        if any(not 0 <= lane < 1 << 16 for lane in lanes):
            raise InvalidRequest("TEST_INVALID", "lanes count from 0")
        if duration_s is None:
            duration_s = DWELL_S if kind is DiagKind.MARGIN else DURATION_S
        if not 0.0 < duration_s <= DURATION_S_MAX:
            raise InvalidRequest(
                "TEST_INVALID", f"a test of {duration_s:g} s; use more than 0 and at most a day"
            )
        command = StartDiag(
            0,
            uuid.uuid4().hex[:12],
            int(kind),
            port.card,
            port.oe,
            tuple(sorted(lanes)),
            pattern,
            checker,
            duration_s,
            target_ber,
            confidence,
            stop_early,
            force,
        )
        if kind is DiagKind.LOOPBACK_FAR and (peer := self._own_peer(port)) is not None:
            await self._reflect(command, peer)
        try:
            await self._start(command)
        except Refusal:
            await self._end_reflector(command.diag_id)
            raise
        return self.get(command.diag_id)

    async def _start(self, command: StartDiag) -> None:
        diag_id = command.diag_id
        self._notices[diag_id] = Notice()
        self._known[diag_id] = DiagInfo(
            diag_id, command.kind, int(DiagState.RUNNING), command.card, command.oe,
            command.lanes, command.pattern, command.checker, command.duration_s,
            command.target_ber, command.confidence, time.time_ns(),
        )  # fmt: skip
        try:
            await self._hardware.command(command)
        except Refusal:
            del self._known[diag_id], self._notices[diag_id]
            raise

    @whole
    async def cancel(self, diag_id: str) -> DiagInfo:
        """Returns when it has ended, in whatever way. Raises Refusal."""
        info = self.get(diag_id)
        if DiagState(info.state).ended:
            return info
        notice = self._notices[diag_id]
        with contextlib.suppress(NotFound):  # It has just ended by itself.
            await self._hardware.command(CancelDiag(0, diag_id, info.card))
        while not DiagState(self.get(diag_id).state).ended:
            if not await notice.past(notice.count, timeout_s=2.0):
                break
        return self.get(diag_id)

    # ---- the far loop ---------------------------------------------------------------------------

    def _own_peer(self, port: PortId) -> PortId | None:
        """The far port, if it is of this host: then it can be told to reflect."""
        attachment = self._hardware.now
        info = self._hardware.port(port).port(port.oe)
        assert info is not None
        row = attachment.tables.port[info.port_row]
        card, oe = bytes(row["peer_card"]).decode(), int(row["peer_oe"])
        chassis = bytes(row["peer_chassis"]).decode()
        if oe < 0 or chassis != attachment.welcome.boot_id or card not in attachment.cards:
            return None
        return PortId(card, oe)

    async def _reflect(self, served: StartDiag, peer: PortId) -> None:
        reflector = StartDiag(
            0, uuid.uuid4().hex[:12], int(DiagKind.REFLECT), peer.card, peer.oe,
            duration_s=min(served.duration_s + REFLECT_GRACE_S, DURATION_S_MAX),
            force=served.force,
        )  # fmt: skip
        await self._start(reflector)
        self._reflectors[served.diag_id] = reflector.diag_id

    async def _end_reflector(self, served_id: str) -> None:
        """Its end is not waited for: it comes as any progress does."""
        reflector = self._reflectors.pop(served_id, None)
        if reflector is not None and not DiagState(self.get(reflector).state).ended:
            served = self._known.get(served_id)
            with contextlib.suppress(Refusal):
                await self._hardware.command(CancelDiag(0, reflector, self.get(reflector).card))
                if served is not None:  # It heard itself until now, and need not hold off for it.
                    await self._hardware.command(TrainPort(0, served.card, served.oe))

    # ---- the hardware's side --------------------------------------------------------------------

    async def on_progress(self, info: DiagInfo) -> None:
        self._note(info)
        if DiagState(info.state).ended and info.diag_id in self._reflectors:
            await self._end_reflector(info.diag_id)

    def _note(self, info: DiagInfo) -> None:
        known = self._known.get(info.diag_id)
        if known is not None and DiagState(known.state).ended:
            return
        self._known[info.diag_id] = info  # Also one of a daemon before this one.
        notice = self._notices.setdefault(info.diag_id, Notice())
        if DiagState(info.state).ended:
            self._store.put_diag(info.diag_id, info.ended_ns, msgspec.msgpack.encode(info))
            del self._notices[info.diag_id]
            self._forget_old()
        notice.ring()

    def lost(self, why: str, card: str | None = None) -> None:
        """The hardware, or one card's worker, is gone, and its tests with it."""
        for info in list(self._known.values()):
            if not DiagState(info.state).ended and card in (None, info.card):
                self._note(
                    msgspec.structs.replace(
                        info,
                        state=int(DiagState.FAILED),
                        error="CARD_LOST",
                        error_detail=why,
                        ended_ns=time.time_ns(),
                    )
                )

    def _forget_old(self) -> None:
        ended = [name for name, info in self._known.items() if DiagState(info.state).ended]
        for name in ended[: max(0, len(ended) - DIAGS_MAX)]:
            del self._known[name]


def _stored(body: bytes) -> DiagInfo:
    return msgspec.msgpack.decode(body, type=DiagInfo)
