"""An engine with its link and lanes: which lane's trouble the link or the engine names."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from acceld.health import lane, link
from acceld.health.lane import RECEIVING, counted_as
from acceld.health.reasons import WARNING
from acceld.health.report import Health, HealthState, Kind, Place, Reason, whole
from acceld.health.scene import Scene
from acceld.host.snapshot import PortSnapshot
from accelhw.model.ids import LaneId, PortId

ENGINES_KEPT = 1 << 14
COMMON_SHARE = 0.5  # of the lanes: from here on it is the engine's trouble, or the fibre's


def place(port: PortSnapshot) -> Place:
    return Place(Kind.OE, str(port.id))


def health(port: PortSnapshot, scene: Scene, heat_at: Place | None = None) -> Health:
    """`heat_at` names the card's temperature already, and with it what heat does to lanes."""
    its_link = link.health(port, scene)
    found = {index: lane.reasons(port, index) for index in lane.troubled(port)}
    if not found and its_link.state is HealthState.HEALTHY:  # As most are, at every look.
        well = (its_link, *_well_lanes(port.id, port.info.lanes))
        return Health(
            place(port), HealthState.HEALTHY, (), None, well, its_link.capability, its_link.standing
        )
    causes: dict[int, Place] = {}
    for index, its in list(found.items()):
        found[index], cause = _left_to_the_lane(port, index, its, its_link, heat_at)
        if cause is not None:
            causes[index] = cause
    common = _common(port, found)
    for one in common:
        for index, its in found.items():
            rest = [r for r in its if r.code != one.code]
            if len(rest) < len(its):
                found[index], causes[index] = rest, place(port)
    states = {index: _state(causes[index], its_link, common, heat_at) for index in causes}
    lanes = tuple(
        _lane(port, index, found.get(index, []), causes.get(index), states.get(index))
        for index in range(port.info.lanes)
    )
    elsewhere = _same_fibre(port, scene, common)
    own = tuple(one for one in common if one.code not in elsewhere)
    parts = (_without_what_lanes_explain(its_link, own, lanes), *lanes)
    made = whole(place(port), own, parts, None, its_link.capability, its_link.standing)
    far = scene.far(port.id)
    return replace(made, cause=place(far)) if elsewhere and not own and far else made


def _same_fibre(port: PortSnapshot, scene: Scene, common: list[Reason]) -> frozenset[str]:
    """What most lanes of both ends have, since the light of both comes through one fibre: the
    first end names it."""
    far = scene.far(port.id)
    codes = {one.code for one in common} & RECEIVING
    if far is None or not codes or port.id < far.id:
        return frozenset()
    there = {index: lane.reasons(far, index) for index in lane.troubled(far)}
    return frozenset(codes & {one.code for one in _common(far, there)})


def _without_what_lanes_explain(
    its_link: Health, common: tuple[Reason, ...], lanes: tuple[Health, ...]
) -> Health:
    """Codewords are hard to correct because of errors that a lane, or the engine, names."""
    named = [*common, *(one for its in lanes for one in its.reasons)]
    source = next((one.place for one in named if one.code in RECEIVING), None)
    left = tuple(one for one in its_link.reasons if one.code not in link.OWN)
    if source is None or len(left) == len(its_link.reasons):
        return its_link
    return replace(its_link, reasons=left, cause=its_link.cause if left else source)


@lru_cache(ENGINES_KEPT)
def _well_lanes(port: PortId, lanes: int) -> tuple[Health, ...]:
    return tuple(
        Health(Place(Kind.LANE, str(LaneId(port, index))), HealthState.HEALTHY)
        for index in range(lanes)
    )


def _left_to_the_lane(
    port: PortSnapshot, index: int, found: list[Reason], its_link: Health, heat_at: Place | None
) -> tuple[list[Reason], Place | None]:
    """What of a lane's trouble nothing larger explains; and what explains the rest."""
    cause: Place | None = None
    left = found
    if heat_at is not None:
        left = [one for one in left if one.code not in lane.OF_HEAT]
        cause = heat_at if len(left) < len(found) else None
    is_up, is_used = port.state.carries_data, bool(port.lanes[index]["used"])
    if not is_up:
        blamed = {r.code for r in its_link.reasons} & {"TX_FAULT"}
        named = RECEIVING | (frozenset(blamed) if port.reason.blamed >> index & 1 else set())
        kept = [one for one in left if one.code not in named]
    elif not is_used and int(port.row["width"]) < port.profile.data_lanes:
        kept = []  # The link names the lanes that it left out, and why.
    else:
        kept = left
    if len(kept) < len(left):
        cause = its_link.cause or its_link.place
    if is_up and not is_used and kept:
        kept = [counted_as(one, WARNING) for one in kept]  # A spare: the link is whole without it.
    return kept, cause


def _common(port: PortSnapshot, found: dict[int, list[Reason]]) -> list[Reason]:
    """Trouble that most lanes have, told once."""
    counts = Counter(one.code for its in found.values() for one in its)
    told = []
    for code, count in counts.items():
        if count < 2 or count < COMMON_SHARE * port.info.lanes:
            continue
        ones = [one for its in found.values() for one in its if one.code == code]
        worst = max(ones, key=lambda one: one.state.rank)
        name = worst.place.address.rpartition("/")[2]
        text = f"on {count} of {port.info.lanes} lanes; {name}: {worst.text}"
        told.append(Reason(code, worst.state, place(port), text, worst.next_action))
    return told


def _state(
    cause: Place, its_link: Health, common: list[Reason], heat_at: Place | None
) -> HealthState:
    if cause.kind is Kind.OE:
        return max((one.state for one in common), key=lambda state: state.rank)
    return WARNING if cause == heat_at else its_link.state


def _lane(
    port: PortSnapshot,
    index: int,
    reasons: list[Reason],
    cause: Place | None,
    state: HealthState | None,
) -> Health:
    if not reasons and cause is None:
        return _well_lanes(port.id, port.info.lanes)[index]
    made = whole(lane.place(port, index), tuple(reasons))
    if cause is None or state is None:
        return made
    if not reasons and state is HealthState.ABSENT:
        return Health(made.place, state, (), cause)
    worse = max((made.state, state), key=lambda one: one.rank)
    return Health(made.place, worse, made.reasons, cause)
