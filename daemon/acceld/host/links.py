"""Links: switched on and off, trained, watched; and which channel uses which lane."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import structlog

from acceld.errors import InvalidRequest, NotFound, Refusal, WrongState, suggestion
from acceld.host.hardware import Attachment, Hardware
from acceld.host.notice import Notice
from acceld.host.snapshot import CardFacts
from acceld.host.whole import whole
from acceld.store.store import Store
from accelhw.interface.messages import (
    ChannelMapEntry,
    SetChannelMap,
    SetPortAdmin,
    TrainingProgress,
    TrainPort,
)
from accelhw.interface.tables import Tables
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState

log = structlog.get_logger()

# Of each engine: the logical channel of each lane, and its signal line.
Layout = dict[int, tuple[tuple[int, ...], tuple[int, ...]]]

PROGRESS_KEPT = 1000  # steps of training that a slow watcher may lag behind
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A step of training; the last one of a training has `is_last`."""

    state: LinkState
    phase: int
    lane: int | None = None
    text: str = ""
    is_last: bool = False


class Links:
    def __init__(self, hardware: Hardware, store: Store) -> None:
        self._hardware = hardware
        self._store = store
        self._watchers: dict[PortId, set[asyncio.Queue[TrainingProgress]]] = {}
        self.maps: dict[str, tuple[ChannelMapEntry, ...]] = {}
        self._layouts: dict[str, tuple[object, Layout]] = {}
        self._map_lock = asyncio.Lock()
        self.changed = Notice()  # some link or map may differ from before

    def with_fibre(self, port: PortId) -> CardFacts:
        """The card of a port that has a fibre. Raises NotFound."""
        card = self._hardware.port(port)
        info = card.port(port.oe)
        if info is None or info.fibre is None:
            fitted = [f"{card.name}/oe{p.oe}" for p in card.info.ports if p.fibre]
            hint = suggestion(str(port), fitted, "link on this card")
            raise NotFound("NO_FIBRE", f"no fibre is plugged into {port}; {hint}", port=port)
        return card

    @whole
    async def set_admin(self, port: PortId, up: bool) -> None:
        """Kept over restarts of daemon and chassis. Raises Refusal."""
        self.with_fibre(port)
        await self._hardware.command(SetPortAdmin(0, port.card, port.oe, up))
        self._store.set_link_admin(port, up)
        self.changed.ring()

    async def train(self, port: PortId) -> AsyncIterator[TrainingStep]:
        """Train again; steps until it is up or gave up. Raises Refusal."""
        card = self.with_fibre(port)
        info = card.port(port.oe)
        assert info is not None
        before = self._row(info.port_row)
        if not before["admin_up"]:
            raise WrongState(
                "LINK_ADMIN_DOWN",
                f"{port} is switched off; switch it on first: accelctl link up {port}",
                port=port,
            )
        counted = int(before["trainings"]), int(before["training_failures"])
        queue: asyncio.Queue[TrainingProgress] = asyncio.Queue(PROGRESS_KEPT)
        self._watchers.setdefault(port, set()).add(queue)
        try:
            await self._hardware.command(TrainPort(0, port.card, port.oe))
            while True:
                # Progress may be dropped, and its end with it: the counters of the row decide.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        message = await queue.get()
                    yield TrainingStep(
                        LinkState(message.state), message.phase, message.lane, message.text
                    )
                row = self._row(info.port_row)
                now = int(row["trainings"]), int(row["training_failures"])
                if now != counted and queue.empty():
                    state = LinkState(int(row["state"]) or LinkState.DOWN)
                    yield TrainingStep(state, int(row["phase"]), is_last=True)
                    return
        finally:
            self._watchers[port].discard(queue)
            if not self._watchers[port]:
                del self._watchers[port]

    def on_training(self, message: TrainingProgress) -> None:
        for queue in self._watchers.get(PortId(message.card, message.oe), ()):
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait(message)
        self.changed.ring()

    # ---- channel maps ---------------------------------------------------------------------------

    def layout(self, card: CardFacts) -> Layout:
        """Where the lanes of each engine are wired; from any thread."""
        entries = self.maps.get(card.name, ())
        known = self._layouts.get(card.name)
        if known is None or known[0] is not entries:
            known = entries, _layout(card, entries)
            self._layouts[card.name] = known
        return known[1]

    @whole
    async def move_channels(self, card: str, lines: Mapping[int, int]) -> None:
        """Put channels on other signal lines; who sat there takes the place that became free.

        `lines` is the signal line for each channel to move. Raises Refusal.
        """
        self._hardware.card(card)
        async with self._map_lock:
            current = {entry.channel: entry.signal_line for entry in self.maps[card]}
            _check_moves(card, lines, len(current))
            for channel, line in lines.items():
                holder = next(c for c, taken in current.items() if taken == line)
                current[holder], current[channel] = current[channel], line
            if current != {entry.channel: entry.signal_line for entry in self.maps[card]}:
                await self._apply_map(card, current)
            self._store.set_channel_map(card, current)
        self.changed.ring()

    async def _apply_map(self, card: str, lines: Mapping[int, int]) -> None:
        places = {entry.signal_line: entry for entry in self.maps[card]}
        entries = tuple(
            ChannelMapEntry(channel, line, places[line].oe, places[line].lane)
            for channel, line in sorted(lines.items())
        )
        await self._hardware.command(SetChannelMap(0, card, entries))
        self.maps = {**self.maps, card: entries}

    # ---- attaching ------------------------------------------------------------------------------

    def take(self, attachment: Attachment) -> None:
        self.maps = {
            name: tuple(attachment.welcome.channel_maps.get(name, ())) for name in attachment.cards
        }

    async def apply(self, attachment: Attachment) -> None:
        """Apply what was configured to hardware that differs from it."""
        for port, up in self._store.link_admin().items():
            card = attachment.cards.get(port.card)
            info = card.port(port.oe) if card else None
            if info is None or info.fibre is None:
                continue  # The configuration changed; the port may come back.
            if bool(attachment.tables.port["admin_up"][info.port_row]) != up:
                await self._try(SetPortAdmin(0, port.card, port.oe, up))
        for name, lines in self._store.channel_maps().items():
            current = {entry.channel: entry.signal_line for entry in self.maps.get(name, ())}
            if current == lines:
                continue
            if sorted(current) != sorted(lines) or set(current.values()) != set(lines.values()):
                continue  # Of another kind of card.
            try:
                await self._apply_map(name, lines)
            except Refusal as error:
                log.warning("channel_map_not_applied", card=name, error=error.message)
        self.changed.ring()

    async def _try(self, command: SetPortAdmin) -> None:
        try:
            await self._hardware.command(command)
        except Refusal as error:
            log.warning("link_admin_not_applied", card=command.card, error=error.message)

    def _row(self, port_row: int) -> dict[str, int]:
        tables: Tables = self._hardware.now.tables
        row = tables.port[port_row]
        return {
            name: int(row[name])
            for name in ("state", "phase", "admin_up", "trainings", "training_failures")
        }


def _layout(card: CardFacts, entries: tuple[ChannelMapEntry, ...]) -> Layout:
    places = {(entry.oe, entry.lane): entry for entry in entries}
    layout: Layout = {}
    for port in card.info.ports:
        found = [places.get((port.oe, lane)) for lane in range(port.lanes)]
        layout[port.oe] = (
            tuple(entry.channel if entry else 0 for entry in found),
            tuple(entry.signal_line if entry else 0 for entry in found),
        )
    return layout


def _check_moves(card: str, lines: Mapping[int, int], count: int) -> None:
    if not lines:
        raise InvalidRequest("CHANNEL_MAP_INVALID", "name at least one channel to move")
    for channel, line in lines.items():
        if not 0 <= channel < count or not 0 <= line < count:
            raise InvalidRequest(
                "CHANNEL_MAP_INVALID",
                f"channel {channel} on signal line {line}: {card} has 0 to {count - 1} of both",
                card=card,
                channel=channel,
                signal_line=line,
            )
    if len(set(lines.values())) != len(lines):
        raise InvalidRequest(
            "CHANNEL_MAP_INVALID", "two channels cannot share one signal line", card=card
        )
