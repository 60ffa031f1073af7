"""Faults to messages of accel.v1."""

from __future__ import annotations

from typing import Any

from accel.v1 import fault_pb2
from acceld.errors import InvalidRequest
from acceld.host.faults import FaultInfo, FaultKindInfo
from acceld.service import convert, names
from accelhw.model.span import LONGEST, LONGEST_S

_PLACE = "FAULT_PLACE_"
_SHAPE = "FAULT_SHAPE_"


def _value(name: str) -> Any:
    """An enum value by its name; unspecified for one that this API does not know."""
    return getattr(fault_pb2, name, 0)


def shape_word(value: int) -> str:
    """As the hardware says it; empty when unspecified. Raises InvalidRequest."""
    if not value:
        return ""
    words = {number: name for name, number in fault_pb2.FaultShape.items()}
    if value not in words:
        raise InvalidRequest("FAULT_INVALID", f"{value} is no shape of a fault", shape=value)
    return words[value].removeprefix(_SHAPE).lower()


def check(request: fault_pb2.InjectFaultRequest) -> None:
    """What the hardware takes for "as the kind has it", and nobody may have meant.

    Raises InvalidRequest.
    """
    if request.HasField("target_ber") and request.target_ber == 0.0:
        raise InvalidRequest(
            "FAULT_INVALID", "a BER of 0 cannot be aimed at; use one between 0 and 0.5, as 1e-5"
        )
    for field in ("duration", "ramp"):
        seconds = convert.seconds(getattr(request, field))
        if request.HasField(field) and not 0.0 < seconds <= LONGEST_S:
            raise InvalidRequest(
                "FAULT_INVALID",
                f"the {field} must be above 0 and at most {LONGEST}; it is {seconds:g} s",
                field=field,
            )


def kind(info: FaultKindInfo) -> fault_pb2.FaultKind:
    return fault_pb2.FaultKind(
        name=names.fault_kind(info.id),
        place=_value(_PLACE + info.where.upper()),
        summary=info.summary,
        near_signature=info.near,
        far_signature=info.far,
        repair=info.repair,
        source=info.source,
        shape=_value(_SHAPE + info.shape.upper()),
        rise_s=info.rise_s or None,
        on_s=info.on_s or None,
        off_s=info.off_s or None,
        causes=[
            fault_pb2.FaultCause(cause=cause, amount=amount)
            for cause, amount in info.causes.items()
        ],
        crossing=info.crossing,
        takes_target_ber=info.aims,
    )


def fault(info: FaultInfo) -> fault_pb2.Fault:
    end_ns = info.started_ns + round(info.duration_s * 1e9) if info.duration_s else 0
    return fault_pb2.Fault(
        name=names.fault(info.fault_id),
        kind=info.kind,
        subject=convert.link_name(info.subject) if "/" in info.subject else names.card(info.card),
        lanes=info.lanes,
        shape=_value(_SHAPE + info.shape.upper()),
        start_time=convert.timestamp(info.started_ns),
        end_time=convert.timestamp(end_ns),
        ramp_s=info.ramp_s or None,
        scale=info.scale,
        lane_scales=info.lane_scales,
        target_ber=info.target_ber or None,
        seed=info.seed,
        hbm_address=info.address,
    )
