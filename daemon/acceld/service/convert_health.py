"""Health as messages, and the names of what has health."""

from __future__ import annotations

import re

from accel.v1 import health_pb2
from acceld.errors import InvalidRequest
from acceld.health.report import (
    DAEMON,
    HOST,
    Capability,
    Health,
    Kind,
    Place,
    Reason,
    Standing,
)
from acceld.service import names
from acceld.service.convert import enum
from accelhw.model.ids import LaneId, PortId

KINDS = {kind: number for number, kind in enumerate(Kind, 1)}
_WORKER = re.compile(r"workers/(worker[0-9]{1,4})")


def place(name: str) -> Place:
    """Raises InvalidRequest."""
    if name in ("", HOST.address):
        return HOST
    if name == DAEMON.address:
        return DAEMON
    if worker := _WORKER.fullmatch(name):
        return Place(Kind.WORKER, worker.group(1))
    for kind, parse in (
        (Kind.CARD, names.parse_card),
        (Kind.OE, names.parse_engine),
        (Kind.LINK, names.parse_link),
        (Kind.LANE, names.parse_lane),
    ):
        try:
            return Place(kind, str(parse(name)))
        except InvalidRequest:
            continue
    raise InvalidRequest(
        "NAME_INVALID",
        f"{name!r} names nothing that has health; try host, daemon, cards/card0,"
        " cards/card0/links/oe1 or cards/card0/engines/oe1/lanes/lane3",
        name=name,
    )


def name_of(at: Place) -> str:
    match at.kind:
        case Kind.WORKER:
            return f"workers/{at.address}"
        case Kind.CARD:
            return names.card(at.address)
        case Kind.OE:
            return names.engine(PortId.parse(at.address))
        case Kind.LINK:
            return names.link(PortId.parse(at.address))
        case Kind.LANE:
            return names.lane(LaneId.parse(at.address))
    return at.address


def health(value: Health, with_parts: bool = False) -> health_pb2.Health:
    """Of one object; its parts only `with_parts`."""
    return health_pb2.Health(
        name=name_of(value.place),
        kind=enum(KINDS[value.place.kind]),
        state=enum(value.state),
        reasons=[_reason(one) for one in value.reasons],
        cause=name_of(value.cause) if value.cause is not None else "",
        capability=_capability(value.capability),
        standing=_standing(value.standing),
        parts=[health(part, True) for part in value.parts] if with_parts else (),
    )


def asked(value: Health, with_parts: bool) -> health_pb2.Health:
    """Of the object that was asked for: with every cause at and inside it."""
    message = health(value, with_parts)
    message.causes.extend(_reason(one) for one in value.all_reasons())
    return message


def _reason(value: Reason) -> health_pb2.HealthReason:
    return health_pb2.HealthReason(
        code=value.code,
        state=enum(value.state),
        object=name_of(value.place),
        text=value.text,
        next_action=value.next_action,
    )


def _capability(value: Capability | None) -> health_pb2.HealthCapability | None:
    if value is None:
        return None
    return health_pb2.HealthCapability(
        lanes_fitted=value.lanes_fitted,
        lanes_data=value.lanes_data,
        lanes_spare=value.lanes_spare,
        modes=value.modes,
        capacity_gbit_per_s=value.gbit_per_s,
        fibre=value.fibre,
    )


def _standing(value: Standing | None) -> health_pb2.HealthStanding | None:
    if value is None:
        return None
    return health_pb2.HealthStanding(
        lanes_used=value.lanes_used,
        mode=value.mode,
        capacity_gbit_per_s=value.gbit_per_s,
    )
