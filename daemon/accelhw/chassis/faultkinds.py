"""The catalogue of faults as it crosses the border: the hardware says itself what can befall it."""

from __future__ import annotations

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.kinds import FaultKind
from accelhw.fault.request import incoming_db
from accelhw.interface.messages import FaultKindInfo


def fault_kinds() -> tuple[FaultKindInfo, ...]:
    return tuple(_info(kind) for kind in CATALOGUE.values())


def _info(kind: FaultKind) -> FaultKindInfo:
    return FaultKindInfo(
        id=kind.id,
        where=kind.where.value,
        summary=kind.summary,
        near=kind.near,
        far=kind.far,
        repair=kind.repair,
        source=kind.source,
        shape=kind.shape.kind.value,
        causes={
            effect.cause + ("_per_v" if effect.of_supply else ""): effect.amount
            for effect in kind.effects
        },
        rise_s=kind.shape.rise_s,
        on_s=kind.shape.on_s,
        off_s=kind.shape.off_s,
        crossing=kind.crossing.value if kind.crossing else "",
        aims=incoming_db(kind) > 0.0,
    )
