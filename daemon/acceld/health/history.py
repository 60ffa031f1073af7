"""What health remembers between two looks: since when things are so, and counts of a while ago."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from acceld.health.reasons import PLANNED, PLANNED_ELSEWHERE
from acceld.host.snapshot import CARD_STATES, CardSnapshot, HostSnapshot, PortSnapshot
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState

S = 10**9
START_NS = 30 * S  # a link has so long to come up after power-on, reset, admin-up or a retrain
RETRAIN_NS = 5 * S  # and so long to come back by itself after it went down
CHASSIS_NS = 10 * S  # a chassis may be away so long: it is being restarted
RESET_NS = 30 * S  # a card may take so long for a reset
SAMPLE_NS = 30 * S  # between two samples of counts
RECENT_NS = 300 * S  # "lately": how old the sample is that counts are compared with
RESETTING = CARD_STATES[2]


@dataclass(frozen=True, slots=True)
class Now:
    """Two clocks: the wall's for what the hardware dates, a monotonic one for all that lasts."""

    wall_ns: int
    mono_ns: int


@dataclass(frozen=True, slots=True)
class PortPast:
    carries: bool
    since_ns: int  # when `carries` last changed; monotonic
    planned_until_ns: int  # grace for what somebody wanted; monotonic
    admin_up: bool
    ready_ns: int  # when its card came up; wall
    reason: int  # why it is down: as it says now, or said last; a link that tries again forgets it
    flaps: int  # as counted by the hardware
    flapped: tuple[tuple[int, int], ...] = ()  # when, and how often; lately, and not planned

    def in_grace(self, mono_ns: int) -> bool:
        back_ns = 0 if self.carries else self.since_ns + RETRAIN_NS
        return mono_ns < max(self.planned_until_ns, back_ns)

    def grace_left_s(self, mono_ns: int) -> float:
        back_ns = 0 if self.carries else self.since_ns + RETRAIN_NS
        return max(0, max(self.planned_until_ns, back_ns) - mono_ns) / S


@dataclass(frozen=True, slots=True)
class CardPast:
    state: str
    since_ns: int  # monotonic


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts at one moment."""

    mono_ns: int
    uncorrectable: Mapping[PortId, int]
    bins: Mapping[PortId, NDArray[np.uint64]]
    corrected: Mapping[str, int]  # errors of HBM, per card
    restarts: Mapping[int, int]  # per worker


@dataclass(frozen=True, slots=True)
class History:
    """`samples` are at most RECENT_NS old, the oldest first."""

    boot_id: str = ""
    attached: bool = False
    since_ns: int | None = None  # when `attached` last changed; monotonic
    ports: Mapping[PortId, PortPast] = field(default_factory=dict)
    cards: Mapping[str, CardPast] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()

    @property
    def before(self) -> Sample | None:
        """The counts that those of now are compared with."""
        return self.samples[0] if self.samples else None


def advance(history: History, snapshot: HostSnapshot, now: Now) -> History:
    """The history with this look taken in."""
    if history.since_ns is None or history.attached != snapshot.attached:
        history = replace(history, attached=snapshot.attached, since_ns=now.mono_ns)
    if not snapshot.attached:
        return history
    if history.boot_id != snapshot.boot_id:  # Other hardware: it counts from zero.
        history = History(snapshot.boot_id, True, history.since_ns)
    ends = far_ends(snapshot)
    ports = {
        port.id: _port(history.ports.get(port.id), port, card, now, port.id in ends)
        for card in snapshot.cards
        for port in card.ports
    }
    cards = history.cards
    return replace(
        history,
        ports={id: _with_far_end(past, ports.get(ends.get(id, id))) for id, past in ports.items()},
        cards={card.name: _card(cards.get(card.name), card, now) for card in snapshot.cards},
        samples=_samples(history.samples, snapshot, now),
    )


def far_ends(snapshot: HostSnapshot) -> dict[PortId, PortId]:
    """The other end of each fibre that has both of its ends on this host."""
    by_fibre: dict[str, list[PortId]] = {}
    for card in snapshot.cards:
        for port in card.ports:
            if port.info.fibre is not None:
                by_fibre.setdefault(port.info.fibre.name, []).append(port.id)
    pairs = [ends for ends in by_fibre.values() if len(ends) == 2]
    return {a: b for pair in pairs for a, b in (pair, pair[::-1])}


def _port(
    before: PortPast | None, port: PortSnapshot, card: CardSnapshot, now: Now, far_is_here: bool
) -> PortPast:
    row = port.row
    reason, admin_up = int(row["reason"]), bool(row["admin_up"])
    ready_ns, flaps = int(card.row["ready_since_ns"]), int(row["flaps"])
    carries = port.state.carries_data
    if before is None:
        up_for_ns = now.wall_ns - ready_ns if ready_ns else 0
        grace_ns = max(0, START_NS - max(0, up_for_ns))
        planned_ns = now.mono_ns + grace_ns
        return PortPast(carries, now.mono_ns, planned_ns, admin_up, ready_ns, reason, flaps)
    if not carries and not reason:
        reason = before.reason
    since_ns = before.since_ns if before.carries == carries else now.mono_ns
    planned = PLANNED if far_is_here else PLANNED_ELSEWHERE
    planned_ns = before.planned_until_ns
    if carries and now.mono_ns - since_ns >= RETRAIN_NS and port.state is LinkState.UP:
        planned_ns = min(planned_ns, now.mono_ns)  # It came up, and needs no more time.
    if (
        (admin_up and not before.admin_up)
        or ready_ns != before.ready_ns
        or card.state == RESETTING
        or (not carries and reason in planned and (before.carries or reason != before.reason))
    ):
        planned_ns = now.mono_ns + START_NS
    flapped = tuple(one for one in before.flapped if one[0] > now.mono_ns - RECENT_NS)
    if flaps > before.flaps:
        flapped += ((now.mono_ns, flaps - before.flaps),)
    if now.mono_ns < planned_ns:
        flapped = _unplanned(flapped, planned_ns)
    return PortPast(carries, since_ns, planned_ns, admin_up, ready_ns, reason, flaps, flapped)


def _unplanned(
    flapped: tuple[tuple[int, int], ...], planned_until_ns: int
) -> tuple[tuple[int, int], ...]:
    """Without falls that a plan explains; the light may be gone before the plan is known."""
    begun_ns = planned_until_ns - START_NS - RETRAIN_NS
    return tuple(one for one in flapped if one[0] < begun_ns)


def _with_far_end(past: PortPast, far: PortPast | None) -> PortPast:
    """What was planned at one end was planned for the link."""
    if far is None or far.planned_until_ns <= past.planned_until_ns:
        return past
    flapped = _unplanned(past.flapped, far.planned_until_ns)
    return replace(past, planned_until_ns=far.planned_until_ns, flapped=flapped)


def _card(before: CardPast | None, card: CardSnapshot, now: Now) -> CardPast:
    if before is not None and before.state == card.state:
        return before
    return CardPast(card.state, now.mono_ns)


def _samples(samples: tuple[Sample, ...], snapshot: HostSnapshot, now: Now) -> tuple[Sample, ...]:
    if samples and now.mono_ns - samples[-1].mono_ns < SAMPLE_NS:
        return samples
    ports = list(_ports(snapshot))
    fresh = Sample(
        now.mono_ns,
        {port.id: int(port.row["fec_uncorrectable"]) for port in ports},
        {port.id: port.row["fec_bins"].copy() for port in ports},
        {card.name: int(card.row["ecc_sbe"]) for card in snapshot.cards},
        {worker.index: worker.restarts for worker in snapshot.workers},
    )
    kept = tuple(one for one in samples if one.mono_ns > now.mono_ns - RECENT_NS)
    return (*kept, fresh)


def _ports(snapshot: HostSnapshot) -> Iterator[PortSnapshot]:
    for card in snapshot.cards:
        yield from card.ports
