"""From the configuration to rows and workers: who sits where. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from accelhw.interface.messages import ChannelMapEntry
from accelhw.model.config import Card, Config, Fibre
from accelhw.model.ids import PortId
from accelhw.model.profile import Profile


@dataclass(frozen=True, slots=True)
class CardPlace:
    """A card with its rows in the status tables and the worker that carries it."""

    card: Card
    uid: str  # 16 hex digits, stable for a card name in a chassis
    card_row: int
    first_port_row: int
    first_lane_row: int
    worker: int

    def port_row(self, oe: int) -> int:
        return self.first_port_row + oe

    def lane_row(self, oe: int) -> int:
        return self.first_lane_row + oe * self.card.profile.lanes_per_oe

    @property
    def ports(self) -> tuple[PortId, ...]:
        return tuple(PortId(self.card.name, oe) for oe in range(self.card.profile.oes))

    @property
    def port_rows(self) -> slice:
        return slice(self.first_port_row, self.first_port_row + self.card.profile.oes)

    @property
    def lane_rows(self) -> slice:
        return slice(self.first_lane_row, self.first_lane_row + self.card.profile.signal_lines)


@dataclass(frozen=True, slots=True)
class Plan:
    cards: tuple[CardPlace, ...]
    workers: int

    @property
    def table_rows(self) -> tuple[int, int, int, int]:
        """Worker, card, port and lane rows."""
        ports = sum(place.card.profile.oes for place in self.cards)
        lanes = sum(place.card.profile.signal_lines for place in self.cards)
        return self.workers, len(self.cards), ports, lanes

    def of_worker(self, worker: int) -> tuple[CardPlace, ...]:
        return tuple(place for place in self.cards if place.worker == worker)

    def find(self, card: str) -> CardPlace | None:
        return next((place for place in self.cards if place.card.name == card), None)


def make_plan(config: Config, cpus: int) -> Plan:
    workers = min(config.hardware.workers or cpus, len(config.cards))
    worker_of = distribute([card.name for card in config.cards], config.fibres, workers)
    places: list[CardPlace] = []
    port_row = lane_row = 0
    for row, card in enumerate(config.cards):
        uid = sha256(f"{config.hardware.seed}/{card.name}".encode()).hexdigest()[:16]
        places.append(CardPlace(card, uid, row, port_row, lane_row, worker_of[card.name]))
        port_row += card.profile.oes
        lane_row += card.profile.signal_lines
    return Plan(tuple(places), workers)


def distribute(cards: Sequence[str], fibres: Iterable[Fibre], workers: int) -> Mapping[str, int]:
    """A worker for each card: as even as it goes, and the ends of a fibre apart where they can be.

    Apart, because a pair that moves data keeps one CPU busy at each end.
    """
    neighbours: dict[str, set[str]] = {card: set() for card in cards}
    for fibre in fibres:
        if fibre.b is not None and fibre.a.port.card != fibre.b.port.card:
            neighbours[fibre.a.port.card].add(fibre.b.port.card)
            neighbours[fibre.b.port.card].add(fibre.a.port.card)
    room = -(-len(cards) // workers)
    placed: dict[str, int] = {}
    loads = [0] * workers
    for card in cards:
        near = [placed[other] for other in neighbours[card] if other in placed]
        worker = min(
            (w for w in range(workers) if loads[w] < room),
            key=lambda w: (near.count(w), loads[w], w),
        )
        placed[card] = worker
        loads[worker] += 1
    return placed


def straight_map(profile: Profile) -> tuple[ChannelMapEntry, ...]:
    """The channel map of a new card: logical channel n uses signal line n."""
    return tuple(map_entry(profile, line, line) for line in range(profile.signal_lines))


def map_entry(profile: Profile, channel: int, signal_line: int) -> ChannelMapEntry:
    """A signal line is wired to one lane of one engine, line by line."""
    oe, lane = divmod(signal_line, profile.lanes_per_oe)
    return ChannelMapEntry(channel, signal_line, oe, lane)


def map_mistake(profile: Profile, entries: Sequence[ChannelMapEntry]) -> str:
    """Why a channel map is no permutation of the card's channels; empty if it is one."""
    lines = profile.signal_lines
    if len(entries) != lines:
        return f"{len(entries)} entries for {lines} channels; name each channel once"
    for what, numbers in (
        ("channel", [entry.channel for entry in entries]),
        ("signal line", [entry.signal_line for entry in entries]),
    ):
        seen: set[int] = set()
        for number in numbers:
            if not 0 <= number < lines:
                return f"there is no {what} {number}; use 0 to {lines - 1}"
            if number in seen:
                return f"{what} {number} is used twice; use each once"
            seen.add(number)
    for entry in entries:
        wired = map_entry(profile, entry.channel, entry.signal_line)
        if entry != wired:
            return (
                f"signal line {entry.signal_line} is wired to oe{wired.oe}/lane{wired.lane},"
                f" not to oe{entry.oe}/lane{entry.lane}"
            )
    return ""
