"""Regions: allocated ranges of HBM, each known to the hardware as a window with a key."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from acceld.errors import (
    AlreadyExists,
    Exhausted,
    InvalidRequest,
    NotFound,
    OutOfRange,
    Refusal,
    WrongState,
    suggestion,
)
from acceld.host.allocator import Allocator, NoRoom, Overlaps, rounded_up
from acceld.host.hardware import Attachment, Hardware
from acceld.host.whole import whole
from acceld.records import Region
from acceld.store.store import Store
from accelhw.interface.hugepages import EXTENT_BYTES
from accelhw.interface.messages import RegisterWindow, UnregisterWindow, WindowInfo
from accelhw.model.ids import NAME
from accelhw.model.region import HBM_ALIGNMENT

log = structlog.get_logger()

_MADE_UP = re.compile(r"region-([0-9]+)")


def size_text(size: int) -> str:
    """Bytes for people: `1.5 GiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.10g} {unit}" if value == int(value) else f"{value:.2f} {unit}"
        value /= 1024
    raise AssertionError


class Regions:
    """All regions of all cards. Changes happen on the event loop; `allocated_bytes` may be read
    from any thread."""

    def __init__(self, hardware: Hardware, store: Store) -> None:
        self._hardware = hardware
        self._store = store
        self._regions: dict[tuple[str, str], Region] = {
            (region.card, region.name): region for region in store.regions()
        }
        self._allocators: dict[str, Allocator] = {}
        self._reserved: set[tuple[str, str]] = set()  # names on their way in
        self._leaving: set[tuple[str, str]] = set()  # and out
        self._pins: Counter[tuple[str, str]] = Counter()
        self._users: Counter[tuple[str, str]] = Counter()  # running transfers
        self.allocated_bytes: dict[str, int] = {}
        self._count()

    # ---- looking --------------------------------------------------------------------------------

    def all(self, card: str | None = None) -> list[Region]:
        return sorted(
            (r for r in self._regions.values() if card is None or r.card == card),
            key=lambda region: (region.card, region.name),
        )

    def get(self, card: str, name: str) -> Region:
        """Raises NotFound."""
        region = self._regions.get((card, name))
        if region is None:
            if self._hardware.attachment is not None:
                self._hardware.card(card)
            known = [f"{card}:{r.name}" for r in self.all(card)]
            hint = suggestion(f"{card}:{name}", known, f"region on {card}")
            raise NotFound(
                "REGION_NOT_FOUND",
                f"there is no region {name!r} on {card}; {hint}",
                card=card,
                region=name,
            )
        return region

    def by_id(self, card: str, region_id: int) -> Region | None:
        return next((r for r in self.all(card) if r.region_id == region_id), None)

    def transfers_running(self, region: Region) -> int:
        return self._users[(region.card, region.name)]

    @property
    def total_allocated_bytes(self) -> int:
        return sum(self.allocated_bytes.values())

    # ---- changing -------------------------------------------------------------------------------

    @whole
    async def create(
        self,
        card: str,
        name: str,
        size: int,
        alignment: int = HBM_ALIGNMENT,
        address: int | None = None,
    ) -> Region:
        """Allocate, tell the hardware, keep. Raises Refusal."""
        facts = self._hardware.card(card)
        name = name or self._made_up_name(card)
        self._check_new(card, name, size, alignment, address, facts.info.hbm_bytes)
        self._check_budget(rounded_up(size))
        base = self._place(card, size, alignment, address)
        place = (card, name)
        self._reserved.add(place)
        region = Region(
            card, name, self._next_id(card), secrets.randbits(32), base, size, time.time_ns()
        )
        # Kept first: a daemon that dies in between registers the window at its next start.
        self._regions[place] = region
        self._store.put_region(region)
        self._count()
        try:
            await self._register(region)
        except BaseException:
            self._forget(region)
            raise
        finally:
            self._reserved.discard(place)
        return region

    @whole
    async def delete(self, card: str, name: str) -> None:
        """Raises Refusal: NotFound, or WrongState while somebody uses it."""
        region = self._usable(card, name)
        place = (card, name)
        if self._users[place] or self._pins[place]:
            users = self._users[place]
            who = f"{users} running transfer(s)" if users else "a read or write of this host"
            raise WrongState(
                "REGION_BUSY",
                f"{region} is used by {who}; wait for the end or cancel",
                region=region,
            )
        self._leaving.add(place)
        try:
            await self._hardware.command(UnregisterWindow(0, card, region.region_id))
            hbm = self._hardware.hbm(card)
            # Before the range is free for others: what comes next there starts as zeros.
            await asyncio.to_thread(hbm.release, region.address, rounded_up(region.size))
        except OSError as error:
            log.warning("hbm_not_released", region=str(region), error=str(error))
        finally:
            self._leaving.discard(place)
        self._forget(region)

    @contextmanager
    def pinned(self, card: str, name: str) -> Iterator[Region]:
        """A region that stays where it is inside the block. Raises NotFound, WrongState."""
        region = self._usable(card, name)
        place = (card, name)
        self._pins[place] += 1
        try:
            yield region
        finally:
            self._pins[place] -= 1

    def in_transfer(self, card: str, name: str, change: int) -> None:
        """Count a running transfer of a region in (+1) or out (-1)."""
        self._users[(card, name)] += change

    def usable(self, card: str, name: str) -> Region:
        """A region that is neither coming nor going. Raises NotFound, WrongState."""
        return self._usable(card, name)

    # ---- attaching ------------------------------------------------------------------------------

    def take(self, attachment: Attachment, same_boot: bool) -> tuple[list[Region], list[Region]]:
        """Agree with the hardware about what is allocated.

        Returns the regions that are lost, and those whose window the hardware does not have.
        """
        lost: list[Region] = []
        if not same_boot:
            lost = self.all()
            self._regions.clear()
            self._store.remove_all_regions()
        self._allocators = {
            name: Allocator(card.info.hbm_bytes) for name, card in attachment.cards.items()
        }
        for region in self.all():
            try:
                self._allocators[region.card].allocate_at(region.address, region.size)
            except (KeyError, ValueError, Overlaps):
                lost.append(region)
                self._regions.pop((region.card, region.name))
                self._store.remove_region(region)
        for window in attachment.welcome.windows:
            if self.by_id(window.card, window.region_id) is None:
                self._adopt(window)
        self._count()
        known = {(w.card, w.region_id) for w in attachment.welcome.windows}
        return lost, [r for r in self.all() if (r.card, r.region_id) not in known]

    async def register(self, regions: list[Region]) -> None:
        for region in regions:
            try:
                await self._register(region)
            except Refusal as error:
                log.warning("region_not_registered", region=str(region), error=error.message)

    def _adopt(self, window: WindowInfo) -> None:
        """A window that somebody registered and we do not know: its content may be in use."""
        region = Region(
            window.card,
            f"adopted-{window.region_id}",
            window.region_id,
            window.key,
            window.base,
            window.length,
            time.time_ns(),
        )
        try:
            self._allocators[window.card].allocate_at(region.address, region.size)
        except (KeyError, ValueError, Overlaps) as error:
            log.warning("window_not_adopted", card=window.card, error=str(error))
            return
        self._regions[(region.card, region.name)] = region
        self._store.put_region(region)
        log.info("window_adopted", region=str(region), address=region.address, size=region.size)

    # ---- pieces ---------------------------------------------------------------------------------

    def _usable(self, card: str, name: str) -> Region:
        region = self.get(card, name)
        if (card, name) in self._leaving or (card, name) in self._reserved:
            raise WrongState(
                "REGION_BUSY", f"{region} is just being made or freed; try again", region=region
            )
        return region

    async def _register(self, region: Region) -> None:
        await self._hardware.command(
            RegisterWindow(
                0, region.card, region.region_id, region.key, region.address, region.size
            )
        )

    def _forget(self, region: Region) -> None:
        place = (region.card, region.name)
        if self._regions.get(place) is not region:
            return  # The chassis was power-cycled meanwhile: it is gone already.
        del self._regions[place]
        self._allocators[region.card].free(region.address)
        self._store.remove_region(region)
        self._count()

    def _count(self) -> None:
        totals: Counter[str] = Counter()
        for region in self._regions.values():
            totals[region.card] += rounded_up(region.size)
        self.allocated_bytes = dict(totals)

    def counts(self) -> dict[str, int]:
        return dict(Counter(card for card, _ in tuple(self._regions)))

    def _made_up_name(self, card: str) -> str:
        used = {int(m.group(1)) for r in self.all(card) if (m := _MADE_UP.fullmatch(r.name))}
        return f"region-{max(used, default=0) + 1}"

    def _next_id(self, card: str) -> int:
        return max((r.region_id for r in self.all(card)), default=0) + 1

    def _check_new(
        self, card: str, name: str, size: int, alignment: int, address: int | None, total: int
    ) -> None:
        if not NAME.fullmatch(name):
            raise InvalidRequest(
                "REGION_NAME_INVALID",
                f"{name!r} is not a region name; use 1 to 31 of a-z, 0-9 and -, a letter first",
                region=name,
            )
        if (card, name) in self._regions:
            raise AlreadyExists(
                "REGION_EXISTS",
                f"{card}:{name} exists already ({size_text(self._regions[card, name].size)});"
                " free it first or take another name",
                region=f"{card}:{name}",
            )
        if size <= 0:
            raise InvalidRequest("SIZE_INVALID", "a region needs at least 1 byte", size=size)
        if alignment < HBM_ALIGNMENT or alignment & (alignment - 1):
            raise InvalidRequest(
                "ALIGNMENT_INVALID",
                f"{alignment} is not an alignment; use a power of two of at least {HBM_ALIGNMENT}",
                alignment_bytes=alignment,
            )
        if address is not None and address % alignment:
            raise InvalidRequest(
                "ADDRESS_UNALIGNED",
                f"address {address:#x} is not a multiple of {alignment}",
                address=address,
                alignment_bytes=alignment,
            )
        if size > total or (address is not None and address + size > total):
            where = "" if address is None else f" at {address:#x}"
            raise OutOfRange(
                "BEYOND_HBM",
                f"{size_text(size)}{where} do not fit: {card} has {size_text(total)} of HBM",
                card=card,
                size_bytes=size,
                hbm_total_bytes=total,
            )

    def _check_budget(self, size: int) -> None:
        budget = self._hardware.now.welcome.hbm_budget_bytes
        free = budget - self.total_allocated_bytes
        if size > free:
            raise Exhausted(
                "HBM_BUDGET_EXCEEDED",
                f"{size_text(size)} are more than this machine may back: {size_text(max(free, 0))}"
                f" of the budget of {size_text(budget)} are free. Take at most that, free a"
                " region, or raise hbm_budget_gib under [hardware] in the configuration",
                size_bytes=size,
                budget_bytes=budget,
                free_bytes=max(free, 0),
            )

    def _place(self, card: str, size: int, alignment: int, address: int | None) -> int:
        allocator = self._allocators[card]
        try:
            if address is None:
                if size >= EXTENT_BYTES:  # on whole huge pages, where there is room for that
                    with suppress(NoRoom):
                        return allocator.allocate(size, max(alignment, EXTENT_BYTES))
                return allocator.allocate(size, alignment)
            allocator.allocate_at(address, size)
            return address
        except NoRoom as error:
            raise Exhausted(
                "HBM_EXHAUSTED",
                f"no free range of {size_text(size)} on {card}: the largest is"
                f" {size_text(max(error.largest, 0))}; free a region or take less",
                card=card,
                size_bytes=size,
                largest_free_bytes=max(error.largest, 0),
            ) from error
        except Overlaps as error:
            owner = next((r for r in self.all(card) if r.address == error.start), None)
            who = f" by {owner}" if owner else ""
            raise AlreadyExists(
                "REGION_OVERLAPS",
                f"{address:#x} is taken{who}, which holds {error.start:#x} to {error.end:#x};"
                " leave the address out, or choose one outside",
                card=card,
                taken_address=error.start,
                taken_end=error.end,
            ) from error
