"""What is really wrong at a time: the labels that telemetry of a simulated run carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from accelhw.device.faults import fault_of
from accelhw.fault.injector import Injector
from accelhw.interface.messages import FaultInfo
from accelhw.model.config import Config
from accelhw.model.ids import LaneId, PortId
from accelhw.optics.causes import CAUSES
from accelhw.transport.cable import CableMap

NOTHING = ""


class Truth:
    """The active faults of a fleet, and how they look from each lane that is watched."""

    def __init__(self, config: Config, lanes: Sequence[LaneId], causes: Iterable[str]) -> None:
        self.causes = tuple(causes)
        self.near: list[str] = [NOTHING] * len(lanes)
        self.far: list[str] = [NOTHING] * len(lanes)
        self.active: dict[str, FaultInfo] = {}
        self._injectors: dict[str, Injector] = {}
        self._profile = {card.name: card.profile for card in config.cards}
        self._fitted = {card.name: card.profile.lanes_per_oe for card in config.cards}
        self._place = {lane: place for place, lane in enumerate(lanes)}
        self._watched: dict[PortId, list[int]] = {}
        for place, lane in enumerate(lanes):
            self._watched.setdefault(lane.port, []).append(place)
        # The lane at the other end that hears a transmitter.
        self._hears = dict(_hearing(config, self._fitted))

    def change(self, info: FaultInfo) -> None:
        """A fault began, or is over."""
        injector = self._injectors.setdefault(_card(info), Injector())
        if info.state == "ACTIVE":
            injector.start(fault_of(info, self._profile[_card(info)]))
            self.active[info.fault_id] = info
        else:
            injector.clear(info.fault_id)
            self.active.pop(info.fault_id, None)
        self._label(_card(info))

    def _label(self, card: str) -> None:
        """Anew for all lanes of a card, and for those that hear them."""
        faults = [info for info in self.active.values() if _card(info) == card]
        for port in self._ports_of(card):
            of_port = [info for info in faults if info.subject in (card, str(port))]
            for lane in range(self._fitted[card]):
                kinds = sorted(
                    {info.kind for info in of_port if not info.lanes or lane in info.lanes}
                )
                text = "+".join(kinds)
                here = LaneId(port, lane)
                if (place := self._place.get(here)) is not None:
                    self.near[place] = text
                far = self._hears.get(here)
                if far is not None and (place := self._place.get(far)) is not None:
                    self.far[place] = text

    def _ports_of(self, card: str) -> Iterable[PortId]:
        return sorted({lane.port for lane in self._hears if lane.port.card == card})

    def amounts(self, now_ns: int) -> Mapping[str, NDArray[np.float64]]:
        """Each cause on each lane watched; `now_ns` of the clock that the faults were begun by."""
        found = {name: np.zeros(len(self.near)) for name in self.causes}
        for card, injector in self._injectors.items():
            if not injector.faults:
                continue
            on_card = injector.card_causes(now_ns)
            for port in self._ports_of(card):
                places = self._watched.get(port)
                if places is None:
                    continue
                on_lanes = injector.lane_causes(port.oe, self._fitted[card], now_ns)
                for name in self.causes:
                    if CAUSES.get(name) == "card":
                        found[name][places] = on_card.get(name, 0.0)
                    elif name in on_lanes:
                        found[name][places] = on_lanes[name]
        return found


def _card(info: FaultInfo) -> str:
    return info.subject.partition("/")[0]


def _hearing(config: Config, fitted: Mapping[str, int]) -> Iterable[tuple[LaneId, LaneId]]:
    for fibre in config.fibres:
        if fibre.b is None:
            continue
        ends = {"a": fibre.a.port, "b": fibre.b.port}
        for end, other in (("a", "b"), ("b", "a")):
            here, there = ends[end], ends[other]
            arriving = CableMap.of(fibre, other, fitted[there.card])
            for lane in range(fitted[here.card]):
                yield LaneId(here, lane), LaneId(there, arriving.arrives(lane))
