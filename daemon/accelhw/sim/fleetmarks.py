"""What a fleet's metrics say with labels: identities, levels, flags that are on, reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from accelhw.chassis.plan import make_plan
from accelhw.device.card import Card
from accelhw.device.port import Port
from accelhw.interface.tables import CARD_STATES
from accelhw.model.config import Config
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS, LEVELS
from accelhw.model.link import DownReason
from accelhw.optics.flags import FlagBank
from accelhw.sim import metricfamilies as names
from accelhw.sim.metricfamilies import Family, Mark, port_labels
from accelhw.sim.samples import Things


class FleetMarks:
    """Of the cards and ports that are watched."""

    def __init__(self, config: Config, cards: Mapping[str, Card], things: Things) -> None:
        self._cards = [cards[name] for name in things.cards]
        self._ports = [cards[port.card].ports[port.oe] for port in things.ports]
        self._fixed = [*self._identities(config, things), *self._levels()]
        self._channels = {
            port.id: _channels(cards[port.id.card], port.id.oe, port.optics.lanes)
            for port in self._ports
        }

    def marks(self) -> Iterator[Mark]:
        """As they are now."""
        yield from self._fixed
        for card in self._cards:
            yield from self._of_card(card)
        for port in self._ports:
            yield from self._of_link(port)
            yield from self._of_lanes(port)

    # ---- what never changes ----

    def _identities(self, config: Config, things: Things) -> Iterator[Mark]:
        for place in make_plan(config, 1).cards:
            if (name := place.card.name) in things.cards:
                facts = f'profile="{place.card.profile.name}",uid="{place.uid}"'
                yield names.CARD_INFO, f'card="{name}",{facts},worker="{place.worker}"', 1.0
        for port in self._ports:
            profile = port.optics.profile
            kind = f'lane_type="{profile.lane.name}",modulation="{profile.lane.modulation}"'
            at = f'{port_labels(port.id)},{kind},connector="{profile.connector}"'
            yield names.OE_INFO, at, 1.0

    def _levels(self) -> Iterator[Mark]:
        for card in self._cards:
            yield from _levels(f'card="{card.name}"', names.CARD_LEVELS, card.profile.thresholds)
        for port in self._ports:
            thresholds = port.optics.profile.thresholds
            yield from _levels(port_labels(port.id), names.LANE_LEVELS, thresholds)

    # ---- what is so now ----

    def _of_card(self, card: Card) -> Iterator[Mark]:
        at = f'card="{card.name}"'
        for number, state in enumerate(CARD_STATES[1:], 1):
            yield names.CARD_STATE, f'{at},state="{state}"', float(card.state == number)
        optics = card.ports[0].optics
        flags: FlagBank = optics.bank.card_flags
        for number, flag in enumerate(CARD_FLAGS):
            place = f'{at},flag="{flag}"'
            yield names.CARD_FLAG, place, float(flags.active[number, optics.card])
            yield names.CARD_LATCH, place, float(flags.latched[number, optics.card])

    def _of_link(self, port: Port) -> Iterator[Mark]:
        at, trainer, fibre = port_labels(port.id), port.trainer, port.fibre
        lane, peer = port.optics.profile.lane, trainer.peer
        if fibre is not None:
            far = f'peer_card="{peer.card}",peer_oe="oe{peer.oe}"' if peer else _NO_PEER
            kind = f'modulation="{lane.modulation}",fec="{lane.fec}"'
            way = f'fibre="{fibre.name}",transport="{fibre.transport.value}"'
            yield names.LINK_INFO, f"{at},{way},{far},{kind}", 1.0
        yield names.MODE_INFO, f'{at},mode="{trainer.mode}"', 1.0
        if not trainer.state.carries_data:
            for family, reason in (
                (names.REASON, trainer.reason), (names.PEER_REASON, trainer.peer_reason),
            ):  # fmt: skip
                if reason.code is not DownReason.NONE:
                    yield family, f'{at},reason="{reason.code.name}"', 1.0

    def _of_lanes(self, port: Port) -> Iterator[Mark]:
        optics, at = port.optics, port_labels(port.id)
        light = optics.profile.lane
        for labels in _lane_infos(
            at, self._channels[port.id], optics.peer_lanes, light.wavelength_nm,
            light.wavelength_step_nm,
        ):  # fmt: skip
            yield names.LANE_INFO, labels, 1.0
        flags = optics.bank.flags
        for family, raised in ((names.LANE_FLAG, flags.active), (names.LANE_LATCH, flags.latched)):
            on = raised[:, optics.port]
            if on.any():
                for flag, lane in zip(*(where.tolist() for where in on.nonzero()), strict=True):
                    yield family, f'{at},lane="lane{lane}",flag="{LANE_FLAGS[flag]}"', 1.0


_NO_PEER = 'peer_card="",peer_oe=""'


def _channels(card: Card, oe: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """Signal line and channel of each lane of an engine; no scenario moves them."""
    of_lane = {e.lane: (e.signal_line, e.channel) for e in card.channel_map if e.oe == oe}
    return tuple(of_lane[lane] for lane in range(lanes))


def _levels(
    at: str, of: Mapping[str, tuple[Family, float]], thresholds: Mapping[str, Sequence[float]]
) -> Iterator[Mark]:
    for quantity, (family, per_unit) in of.items():
        for level, value in zip(LEVELS, thresholds.get(quantity, ()), strict=False):
            if math.isfinite(value):
                yield family, f'{at},level="{level}"', value / per_unit


@lru_cache(1 << 14)
def _lane_infos(
    at: str,
    channels: tuple[tuple[int, int], ...],
    peers: tuple[int, ...],
    wavelength_nm: float,
    step_nm: float,
) -> tuple[str, ...]:
    return tuple(
        f'{at},lane="lane{lane}",signal_line="{line}",channel="{channel}",'
        f'peer_lane="{f"lane{peer}" if peer >= 0 else ""}",'
        f'wavelength_nm="{wavelength_nm + lane * step_nm:g}"'
        for lane, ((line, channel), peer) in enumerate(zip(channels, peers, strict=True))
    )
