"""The host as a whole: what is attached, what is kept, and one snapshot of everything."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from acceld.host.diag import Diags
from acceld.host.events import EventLog
from acceld.host.faults import Faults
from acceld.host.hardware import Attachment, Hardware
from acceld.host.health import HealthWatch
from acceld.host.ledger import CardRows, Ledger
from acceld.host.links import Links
from acceld.host.memory_broker import MemoryBroker
from acceld.host.operations import Operations
from acceld.host.regions import Regions
from acceld.host.snapshot import (
    CardFacts,
    CardSnapshot,
    Counts,
    HostSnapshot,
    PortSnapshot,
    Scrapes,
    WorkerSnapshot,
)
from acceld.host.transfers import Transfers
from acceld.records import StoredEvent
from acceld.store.store import Store
from accelhw.interface.client import DeviceClient
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    ClearFlags,
    DiagProgress,
    Event,
    FaultChanged,
    Hello,
    PortInfo,
    ResetCard,
    TrainingProgress,
    TransferProgress,
)
from accelhw.model.event import Severity
from accelhw.model.ids import PortId
from accelhw.model.profile import UnknownProfile

log = structlog.get_logger()

CHECKPOINT_S = 30.0
_MOVES_LINKS = ("LINK_", "CARD_", "CHANNEL_", "FELL_", "WORKER_")


class UnfitChassis(Exception):
    """What answers as a chassis is none that this daemon can drive."""


class Host:
    """`says_events` off: the hardware's events are logged by somebody else on the same terminal."""

    def __init__(
        self, store: Store, memory_socket: Path, version: str, says_events: bool = True
    ) -> None:
        self.store = store
        self.version = version
        self.started_ns = time.time_ns()
        self.metrics_address = ""
        self.scrapes: Callable[[], Scrapes] = Scrapes  # what they have cost; set by who scrapes
        self.hardware = Hardware()
        self.regions = Regions(self.hardware, store)
        self.operations = Operations(self.hardware, self.regions)
        self.links = Links(self.hardware, store)
        self.diags = Diags(self.hardware, store)
        self.faults = Faults(self.hardware)
        self.ledger = Ledger(store)
        self.events = EventLog(self.hardware, store, says_events)
        self.transfers = Transfers(self.hardware, store, self.regions, self.events)
        self.health = HealthWatch(self.snapshot, self.hardware, self.events)
        self.broker = MemoryBroker(memory_socket)
        self.events.listeners.append(self._on_event)

    # ---- attaching ------------------------------------------------------------------------------

    async def attach(self, path: Path) -> DeviceClient:
        """Attach, and agree with the hardware about regions, links and transfers.

        Raises ChassisUnreachable, ChassisRefused, UnfitChassis.
        """
        await self.events.settled()
        boot = self.store.boot()
        client = await DeviceClient.connect(
            str(path), Hello(INTERFACE_VERSION, boot.boot_id, boot.last_event)
        )
        welcome = client.welcome
        try:
            attachment = Attachment.over(client)
        except (UnknownProfile, ValueError) as error:
            await client.close()
            raise UnfitChassis(f"the chassis at {path}: {error}") from error
        same_boot = welcome.boot_id == boot.boot_id
        if not same_boot:
            # Told before the new life is: a daemon that dies in between tells the rest.
            await self.transfers.life_is_over()
            self.store.begin_life(welcome.boot_id)
        # All that can be agreed on without asking comes first, so nobody sees half of it.
        lost, to_register = self.regions.take(attachment, same_boot)
        self.links.take(attachment)
        self.faults.take(attachment)
        self.ledger.take()
        self.hardware.attachment = attachment
        if not same_boot and boot.boot_id:
            self.events.report(
                Severity.WARNING,
                "CHASSIS_POWER_CYCLED",
                "The emulated hardware was powered off and on; HBM content is gone.",
                "chassis",
                boot_id=welcome.boot_id,
                regions_lost=len(lost),
            )
        for region in lost:
            self.events.report(
                Severity.WARNING,
                "REGION_LOST",
                f"{region} is gone: its content did not outlive the power-off.",
                str(region),
                size_bytes=region.size,
            )
        self.events.report(
            Severity.INFO,
            "CHASSIS_ATTACHED",
            f"Attached to a chassis with {len(welcome.cards)} cards.",
            "chassis",
            boot_id=welcome.boot_id,
            pid=welcome.chassis_pid,
            same_life=same_boot,
        )
        await self.regions.register(to_register)
        self.transfers.reconcile(welcome.transfers)
        return client

    async def follow(self, client: DeviceClient) -> None:
        """Apply what is configured, and take what the hardware says, until it is lost."""
        # Beside each other: a card that still boots answers late, and its events must not wait.
        applying = asyncio.create_task(self.links.apply(self.hardware.now))
        try:
            async for message in client:
                match message:
                    case Event():
                        self.events.take(message)
                    case TransferProgress(transfer=info):
                        self.transfers.on_progress(info)
                    case DiagProgress(diag=diag):
                        await self.diags.on_progress(diag)
                    case TrainingProgress():
                        self.links.on_training(message)
                    case FaultChanged(fault=fault):
                        self.faults.on_change(fault)
        finally:
            applying.cancel()
            await asyncio.wait([applying])
            if not applying.cancelled():
                applying.result()

    async def detach(self, client: DeviceClient, report: bool = True) -> None:
        self.checkpoint()
        self.hardware.why_gone = client.why_lost or "detached"
        self.hardware.attachment = None
        self.broker.forget_all()
        self.diags.lost("the emulated hardware was gone before it ended")
        if report:
            self.events.report(
                Severity.ERROR,
                "CHASSIS_GONE",
                f"The emulated hardware does not answer: {self.hardware.why_gone}.",
                "chassis",
            )
        self.links.changed.ring()
        await client.close()

    def _on_event(self, event: StoredEvent) -> None:
        if event.kind.startswith(_MOVES_LINKS):
            self.links.changed.ring()
        if event.kind == "FELL_OFF_BUS":
            self.diags.lost("the card's worker died before it ended", event.subject)

    async def reset_card(self, name: str) -> None:
        """Links go down and train again, its transfers fail, HBM stays. Raises Refusal."""
        self.hardware.card(name)
        await self.hardware.command(ResetCard(0, name))
        self.links.changed.ring()

    async def clear_flags(self, card: str, oe: int | None) -> None:
        """Latches of an engine's lanes, or of the card itself, show only what is on now; those of
        earlier lives too. Raises Refusal."""
        facts = self.hardware.card(card) if oe is None else self.hardware.port(PortId(card, oe))
        await self.hardware.command(ClearFlags(0, card, oe))
        info = None if oe is None else facts.port(oe)
        if info is None:
            self.ledger.unlatch(facts.kept_as, "card_flag")
        else:
            first = info.first_lane_row - facts.lane_rows.start
            self.ledger.unlatch(facts.kept_as, "lane_flag", slice(first, first + info.lanes))
        self.checkpoint()

    # ---- counting over lives --------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Store what has been counted so far."""
        if (attachment := self.hardware.attachment) is not None:
            cards = {c.kept_as: self._rows(attachment, c) for c in attachment.cards.values()}
            self.ledger.keep(cards, self._worker_rows(attachment))

    async def keep_totals(self) -> None:
        """A checkpoint now and then, for a machine that loses its power; until cancelled."""
        while True:
            await asyncio.sleep(CHECKPOINT_S)
            self.checkpoint()

    # ---- looking --------------------------------------------------------------------------------

    def card(self, name: str) -> CardSnapshot:
        """Raises NotFound, Unavailable."""
        return self._card_snapshot(self.hardware.now, self.hardware.card(name))

    def cards(self) -> list[CardSnapshot]:
        """Raises Unavailable."""
        attachment = self.hardware.now
        return [self._card_snapshot(attachment, card) for card in attachment.cards.values()]

    def port(self, port: PortId) -> PortSnapshot:
        """Raises NotFound, Unavailable."""
        card = self.hardware.port(port)
        info = card.port(port.oe)
        assert info is not None
        rows = self._rows(self.hardware.now, card, info)
        return self._port_snapshot(card, info, rows.port[0], rows.lane, rows.lane_flag)

    def snapshot(self) -> HostSnapshot:
        """Everything, from any thread."""
        attachment = self.hardware.attachment
        if attachment is None:
            return self._snapshot(None, ())
        cards = attachment.cards.values()
        return self._snapshot(attachment, tuple(self._card_snapshot(attachment, c) for c in cards))

    def overview(self) -> HostSnapshot:
        """As `snapshot`, without the cards: quick, however many there are."""
        return self._snapshot(self.hardware.attachment, ())

    def _snapshot(
        self, attachment: Attachment | None, cards: tuple[CardSnapshot, ...]
    ) -> HostSnapshot:
        welcome = attachment.welcome if attachment else None
        return HostSnapshot(
            version=self.version,
            daemon_pid=os.getpid(),
            daemon_started_ns=self.started_ns,
            attached=welcome is not None,
            boot_id=welcome.boot_id if welcome else "",
            chassis_pid=welcome.chassis_pid if welcome else 0,
            chassis_started_ns=welcome.started_ns if welcome else 0,
            hbm_budget_bytes=welcome.hbm_budget_bytes if welcome else 0,
            hbm_allocated_bytes=self.regions.total_allocated_bytes,
            cards=cards,
            workers=_workers(attachment, self._worker_rows(attachment)) if attachment else (),
            regions=self.regions.counts(),
            transfers_running=self.transfers.running,
            newest_revision=self.store.newest_revision,
            store_durable=self.store.is_durable,
            metrics_address=self.metrics_address,
            faults=self.faults.active(),
            store_bytes=self.store.size_bytes,
            scrapes=self.scrapes(),
            health=self.health.samples,
            counts=attachment.counts if attachment else Counts(),
        )

    def _rows(
        self, attachment: Attachment, card: CardFacts, port: PortInfo | None = None
    ) -> CardRows:
        """Of a card and all its ports, or of one; with what earlier lives have counted."""
        port_rows, lane_rows = card.port_rows, card.lane_rows
        if port is not None:
            port_rows = slice(port.port_row, port.port_row + 1)
            lane_rows = slice(port.first_lane_row, port.first_lane_row + port.lanes)
        tables, row = attachment.tables, card.info.card_row
        card_row, ports, lanes = tables.copy_card(row, port_rows, lane_rows)
        rows = CardRows(card_row, ports, lanes, *tables.copy_flags(row, lane_rows))
        first_port, first_lane = card.port_rows.start, card.lane_rows.start
        self.ledger.add_to(
            card.kept_as, rows, _moved(port_rows, first_port), _moved(lane_rows, first_lane)
        )
        return rows

    def _worker_rows(self, attachment: Attachment) -> NDArray[np.void]:
        rows = attachment.tables.worker.copy()
        self.ledger.add_to_workers(rows)
        return rows

    def _card_snapshot(self, attachment: Attachment, card: CardFacts) -> CardSnapshot:
        rows = self._rows(attachment, card)
        found = []
        for info in card.info.ports:
            start = info.first_lane_row - card.lane_rows.start
            its_lanes = slice(start, start + info.lanes)
            found.append(
                self._port_snapshot(
                    card,
                    info,
                    rows.port[info.port_row - card.port_rows.start],
                    rows.lane[its_lanes],
                    rows.lane_flag[its_lanes],
                )
            )
        return CardSnapshot(
            card,
            rows.card[0],
            tuple(found),
            self.regions.allocated_bytes.get(card.name, 0),
            attachment.hbm[card.name].resident_bytes,
            rows.card_flag,
            self.regions.counts().get(card.name, 0),
            self.store.transfer_ends(card.name),
        )

    def _port_snapshot(
        self,
        card: CardFacts,
        info: PortInfo,
        row: Any,
        lanes: NDArray[np.void],
        flags: NDArray[np.void],
    ) -> PortSnapshot:
        channels, signal_lines = self.links.layout(card)[info.oe]
        port = card.port_ids[info.oe]
        return PortSnapshot(port, info, card, row, lanes, channels, signal_lines, flags)

    def close(self) -> None:
        self.operations.close()
        self.broker.close()
        self.events.flush()
        self.store.close()


def _moved(rows: slice, by: int) -> slice:
    return slice(rows.start - by, rows.stop - by)


def _workers(attachment: Attachment, rows: NDArray[np.void]) -> tuple[WorkerSnapshot, ...]:
    now_ns = time.monotonic_ns()
    return tuple(
        WorkerSnapshot(
            index,
            int(row["pid"]),
            bool(row["alive"]),
            int(row["restarts"]),
            int(row["tick_overruns"]),
            tuple(c.name for c in attachment.cards.values() if c.info.worker == index),
            int(row["beat_ns"]),
            now_ns,
        )
        for index, row in enumerate(rows)
    )
