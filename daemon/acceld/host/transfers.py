"""Transfers: regions resolved to what the hardware moves, progress followed, the end kept."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import structlog

from acceld.errors import (
    AlreadyExists,
    InvalidRequest,
    NotFound,
    OutOfRange,
    Refusal,
    WrongState,
    suggestion,
)
from acceld.host.events import EventLog
from acceld.host.hardware import Hardware
from acceld.host.notice import Notice
from acceld.host.paths import require_path
from acceld.host.regions import Regions, size_text
from acceld.host.whole import whole
from acceld.records import Slice, Transfer
from acceld.store.store import Store
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelTransfer,
    StartTransfer,
    TransferInfo,
)
from accelhw.interface.transferevent import transfer_event
from accelhw.model.transfer import (
    TRANSFER_ENDS,
    TransferError,
    TransferKind,
    TransferState,
    TransferStatus,
)

log = structlog.get_logger()

LINK_DEADLINE_S = 30.0
CANCEL_WAIT_S = 5.0


def status_of(info: TransferInfo) -> TransferStatus:
    """What the hardware says, as the model's value."""
    return TransferStatus(
        info.transfer_id,
        TransferKind(info.kind),
        TransferState(info.state),
        info.local_card,
        info.remote_card,
        info.total_bytes,
        info.good_bytes,
        info.first_gap_offset,
        tuple(info.links),
        info.started_ns,
        info.ended_ns,
        info.wall_ns,
        info.modelled_ns,
        info.modelled_pcie_ns,
        info.crc32c,
        info.replayed_frames,
        TransferError(info.error),
        info.error_detail,
    )


class Transfers:
    def __init__(
        self, hardware: Hardware, store: Store, regions: Regions, events: EventLog
    ) -> None:
        self._hardware = hardware
        self._events = events
        self._store = store
        self._regions = regions
        self._active: dict[str, Transfer] = {}
        self._notices: dict[str, Notice] = {}
        self._unacknowledged: list[str] = []
        for transfer in store.transfers(active_only=True):
            self._follow(transfer)

    @property
    def running(self) -> int:
        return len(self._active)

    # ---- looking --------------------------------------------------------------------------------

    def get(self, transfer_id: str) -> Transfer:
        """Raises NotFound."""
        transfer = self._active.get(transfer_id) or self._store.transfer(transfer_id)
        if transfer is None:
            hint = suggestion(transfer_id, self._active, "running transfer")
            raise NotFound(
                "TRANSFER_NOT_FOUND",
                f"there is no transfer {transfer_id!r}; {hint}",
                transfer=transfer_id,
            )
        return transfer

    def list(self, active_only: bool = False) -> list[Transfer]:
        """Newest first."""
        found = {t.id: t for t in self._store.transfers(active_only)} if not active_only else {}
        found.update(self._active)
        return sorted(found.values(), key=lambda t: (-t.created_ns, t.id))

    async def watch(self, transfer_id: str) -> AsyncIterator[Transfer]:
        """The transfer now, at each step, and at its end. Raises NotFound."""
        notice = self._notices.get(transfer_id)
        while True:
            seen = notice.count if notice else 0
            transfer = self.get(transfer_id)
            yield transfer
            if transfer.status.state.ended or notice is None:
                return
            await notice.past(seen)

    # ---- changing -------------------------------------------------------------------------------

    @whole
    async def start(
        self,
        source: Slice,
        target: Slice,
        length: int = 0,
        kind: TransferKind | None = None,
        link_deadline_s: float = LINK_DEADLINE_S,
        transfer_id: str = "",
    ) -> Transfer:
        """Returns when the hardware has taken it. Raises Refusal.

        `length` in bytes; 0 for as much as both slices hold. `transfer_id`: of the caller's choice;
        the same call again gives the transfer that the first one started.
        """
        if not 0 < link_deadline_s <= 86_400:
            raise InvalidRequest(
                "DEADLINE_INVALID",
                f"a link deadline of {link_deadline_s:g} s; use more than 0 and at most a day",
                link_deadline_s=link_deadline_s,
            )
        kind = self._kind(source, target, kind)
        source, source_room = self._resolve(source)
        target, target_room = self._resolve(target)
        length = self._length(source, source_room, target, target_room, length)
        if known := self._known(transfer_id, source, target, length):
            return known
        local, remote = (target, source) if kind is TransferKind.READ else (source, target)
        if kind is not TransferKind.LOCAL:
            require_path(self._hardware.now.welcome.cards, local.card, remote.card)
        transfer = Transfer(
            source,
            target,
            TransferStatus(
                transfer_id or uuid.uuid4().hex,
                kind,
                TransferState.QUEUED,
                local.card,
                remote.card,
                length,
            ),
            time.time_ns(),
        )
        # Kept and followed before the hardware hears of it: no end can be missed.
        self._store.put_transfer(transfer)
        self._follow(transfer)
        try:
            await self._hardware.command(
                StartTransfer(
                    0, transfer.id, kind, local.card, local.region_id, local.offset, length,
                    remote.card, remote.region_id, remote.key, remote.offset, link_deadline_s,
                )
            )  # fmt: skip
        except Refusal as refusal:
            if refusal.reason != "CHASSIS_GONE":  # Then nobody knows; attaching again will tell.
                self._unfollow(transfer)
                self._store.remove_transfer(transfer.id)
            raise
        return self.get(transfer.id)

    async def settled(self, transfer_id: str, wait_s: float) -> Transfer:
        """At its end, or as it is after so long. Raises NotFound."""
        deadline_s = time.monotonic() + wait_s
        while True:
            notice = self._notices.get(transfer_id)
            seen = notice.count if notice else 0
            transfer = self.get(transfer_id)
            left_s = deadline_s - time.monotonic()
            if transfer.status.state.ended or notice is None or left_s <= 0:
                return transfer
            await notice.past(seen, left_s)

    async def cancel(self, transfer_id: str) -> Transfer:
        """Returns at its end, or as it is when that takes long. Raises NotFound, WrongState."""
        transfer = self.get(transfer_id)
        if transfer.status.state.ended:
            raise WrongState(
                "TRANSFER_ENDED",
                f"transfer {transfer_id} has ended already: {transfer.status.state.name}",
                transfer=transfer_id,
                state=transfer.status.state.name,
            )
        notice = self._notices[transfer_id]
        with contextlib.suppress(NotFound):  # It ended in this moment; its end is on the way.
            await self._hardware.command(CancelTransfer(0, transfer_id))
        seen = notice.count
        while not self.get(transfer_id).status.state.ended:
            if not await notice.past(seen, CANCEL_WAIT_S):
                break
            seen = notice.count
        return self.get(transfer_id)

    # ---- the hardware's side --------------------------------------------------------------------

    def on_progress(self, info: TransferInfo) -> None:
        status = status_of(info)
        before = self._active.get(status.transfer_id)
        if before is None:
            known = self._store.transfer(status.transfer_id)
            if known is None:
                known = self._adopted(status)
            if known.status.state.ended:
                self._acknowledge(status)
                return
            before = known
            self._follow(before)
        self._take(before, status)
        if status.state.ended:
            self._acknowledge(status)

    def _take(self, before: Transfer, status: TransferStatus) -> None:
        """How it stands now."""
        transfer = Transfer(before.source, before.target, status, before.created_ns)
        self._active[transfer.id] = transfer
        ended = status.state.ended
        if ended or before.status.state is not status.state:
            self._store.put_transfer(transfer)
        if ended:
            self._unfollow(transfer)
        if notice := self._notices.get(transfer.id):
            notice.ring()
            if ended:
                del self._notices[transfer.id]

    def reconcile(self, infos: Iterable[TransferInfo]) -> None:
        """Follow what the hardware moves and take the ends; what it does not know is over."""
        known = set()
        for info in infos:
            known.add(info.transfer_id)
            self.on_progress(info)
        for transfer in [t for t in self._active.values() if t.id not in known]:
            self._lost(transfer, "the emulated hardware was never told of it")

    def powered_off(self) -> None:
        """The hardware was powered off: what it moved is over, whenever it comes back."""
        for transfer in list(self._active.values()):
            self._lost(transfer, "the emulated hardware was powered off meanwhile")

    async def life_is_over(self) -> None:
        """As `powered_off`; and where the hardware told an end that the log had no time to keep,
        it is told from the record. Returns when all is in the log."""
        self.powered_off()
        await self._events.settled()
        for transfer_id in self._store.transfers_without_end():
            transfer = self._store.transfer(transfer_id)
            if transfer is not None and transfer.status.state.ended:
                self._tell_end(transfer.status)
        await self._events.settled()

    def _lost(self, transfer: Transfer, why: str) -> None:
        """The daemon itself found out, so it tells."""
        now_ns, status = time.time_ns(), transfer.status
        began_ns = status.started_ns or transfer.created_ns
        self._take(
            transfer,
            replace(
                status,
                state=TransferState.FAILED,
                started_ns=began_ns,
                ended_ns=now_ns,
                wall_ns=max(0, now_ns - began_ns),
                error=TransferError.CARD_LOST,
                error_detail=why,
            ),
        )
        self._tell_end(self.get(transfer.id).status)

    def _tell_end(self, status: TransferStatus) -> None:
        event = transfer_event(TRANSFER_ENDS[status.state], status)
        self._events.report(
            event.severity, event.kind, event.message, event.subject, **event.detail
        )

    def _known(
        self, transfer_id: str, source: Slice, target: Slice, length: int
    ) -> Transfer | None:
        """Of an earlier call with this id. Raises AlreadyExists where that was another copy."""
        known = self._active.get(transfer_id) or self._store.transfer(transfer_id)
        if not transfer_id or known is None:
            return None
        if (known.source, known.target, known.status.total_bytes) != (source, target, length):
            raise AlreadyExists(
                "REQUEST_ID_USED",
                f"{transfer_id} was another transfer, of {known.source} to {known.target}; use a"
                " new id for each",
                transfer=transfer_id,
            )
        return known

    # ---- pieces ---------------------------------------------------------------------------------

    def _follow(self, transfer: Transfer) -> None:
        self._active[transfer.id] = transfer
        self._notices.setdefault(transfer.id, Notice())
        for end in _named(transfer):
            self._regions.in_transfer(*end, +1)

    def _unfollow(self, transfer: Transfer) -> None:
        if self._active.pop(transfer.id, None) is not None:
            for end in _named(transfer):
                self._regions.in_transfer(*end, -1)

    def _adopted(self, status: TransferStatus) -> Transfer:
        """A transfer that another daemon's life started and our store does not know."""
        local, remote = Slice(status.local_card), Slice(status.remote_card)
        source, target = (remote, local) if status.kind is TransferKind.READ else (local, remote)
        log.info("transfer_adopted", transfer=status.transfer_id)
        return Transfer(
            source,
            target,
            TransferStatus(
                status.transfer_id, status.kind, TransferState.QUEUED,
                status.local_card, status.remote_card, status.total_bytes,
            ),
            status.started_ns or time.time_ns(),
        )  # fmt: skip

    def _acknowledge(self, status: TransferStatus) -> None:
        """Whether it was forgotten already or not: it is in our store, and nobody waits."""
        if status.state.ended and self._store.is_durable:
            self._hardware.tell(AcknowledgeTransfer(0, status.transfer_id))

    def _kind(self, source: Slice, target: Slice, kind: TransferKind | None) -> TransferKind:
        if not source.region and not target.region:
            raise InvalidRequest(
                "NO_LOCAL_REGION", "one end must be a region of this host, named by its region"
            )
        is_same_card = source.card == target.card and bool(source.region and target.region)
        if is_same_card and kind in (None, TransferKind.LOCAL):
            return TransferKind.LOCAL
        if is_same_card or kind is TransferKind.LOCAL:
            raise InvalidRequest(
                "KIND_INVALID",
                "LOCAL is for two regions of one card, WRITE and READ for two cards; leave the"
                " kind out and the right one is taken",
            )
        fixed = TransferKind.READ if not source.region else None
        fixed = TransferKind.WRITE if not target.region else fixed
        if fixed and kind and kind is not fixed:
            raise InvalidRequest(
                "KIND_INVALID",
                f"only {fixed.name} is possible here: the region of this host is at the other end",
            )
        return fixed or kind or TransferKind.WRITE

    def _resolve(self, end: Slice) -> tuple[Slice, int | None]:
        """With id and key, and the bytes from its offset to the region's end (None: not known)."""
        if not end.region:
            if not end.region_id:
                raise InvalidRequest(
                    "REGION_MISSING", "a far region needs its card, region_id and key"
                )
            return end, None
        region = self._regions.usable(end.card, end.region)
        if end.offset >= region.size:
            raise OutOfRange(
                "BEYOND_REGION",
                f"offset {end.offset} lies outside {region}, which holds {region.size} bytes",
                region=region,
                size_bytes=region.size,
            )
        resolved = Slice(end.card, end.region, region.region_id, region.key, end.offset)
        return resolved, region.size - end.offset

    def _length(
        self,
        source: Slice,
        source_room: int | None,
        target: Slice,
        target_room: int | None,
        length: int,
    ) -> int:
        rooms = [room for room in (source_room, target_room) if room is not None]
        if length == 0:
            if len(set(rooms)) > 1:
                raise InvalidRequest(
                    "LENGTH_AMBIGUOUS",
                    f"{source} holds {source_room} bytes and {target} {target_room}; say how many"
                    " to move",
                    source_bytes=source_room,
                    target_bytes=target_room,
                )
            length = rooms[0]
        for end, room in ((source, source_room), (target, target_room)):
            if room is not None and length > room:
                raise OutOfRange(
                    "BEYOND_REGION",
                    f"{size_text(length)} do not fit into {end}: {size_text(room)} are there",
                    region=end,
                    length=length,
                    available_bytes=room,
                )
        if (
            source.region
            and (source.card, source.region) == (target.card, target.region)
            and abs(source.offset - target.offset) < length
        ):
            raise InvalidRequest(
                "SLICES_OVERLAP", f"{source} and {target} overlap over {length} bytes"
            )
        return length


def _named(transfer: Transfer) -> list[tuple[str, str]]:
    return [(end.card, end.region) for end in (transfer.source, transfer.target) if end.region]
