"""The HealthService of the fake daemon: one link that failed, one lane that gets less light."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accel.v1 import health_pb2 as pb
from accel.v1 import health_pb2_grpc


def _reason(code: str, state: str, name: str, text: str, action: str) -> pb.HealthReason:
    return pb.HealthReason(
        code=code, state=f"HEALTH_STATE_{state}", object=name, text=text, next_action=action
    )


def _health(name: str, kind: str, state: str, *parts: pb.Health, **fields: Any) -> pb.Health:
    return pb.Health(
        name=name, kind=f"OBJECT_KIND_{kind}", state=f"HEALTH_STATE_{state}", parts=parts, **fields
    )


def _engine(card: int, oe: int) -> pb.Health:
    engine, link = f"cards/card{card}/engines/oe{oe}", f"cards/card{card}/links/oe{oe}"
    capability = pb.HealthCapability(
        lanes_fitted=4, lanes_data=4, modes=("kp4", "kp4/2"), capacity_gbit_per_s=425, fibre=True
    )
    up = pb.HealthStanding(lanes_used=4, mode="kp4", capacity_gbit_per_s=425)
    shared = {"capability": capability, "standing": up if oe == 0 else pb.HealthStanding()}
    dim = f"{engine}/lanes/lane2" if (card, oe) == (0, 0) else ""
    lanes = [
        _health(f"{engine}/lanes/lane{n}", "LANE", "HEALTHY") for n in range(4) if n != 2 or not dim
    ]
    if dim:
        text = "receives -7.10 dBm, below the warning level of -6.40 dBm"
        action = "clean the connector; look for a bend"
        why = _reason("RX_POWER_LOW", "WARNING", dim, text, action)
        lanes.insert(2, _health(dim, "LANE", "WARNING", reasons=(why,)))
    state, reasons, cause = "HEALTHY", (), ""
    if oe == 1 and card == 0:
        state = "CRITICAL"
        text = "FAILED: a receiver does not lock to its lane, lane3; not up for 73 s"
        action = "look at the lane's margin; clean or shorten the fibre"
        reasons = (_reason("CDR_NO_LOCK", "CRITICAL", link, text, action),)
    elif oe == 1:
        state, cause = "CRITICAL", "cards/card0/links/oe1"
    its_link = _health(link, "LINK", state, reasons=reasons, cause=cause, **shared)
    whole = "WARNING" if dim else state
    return _health(engine, "OE", whole, its_link, *lanes, cause=cause, **shared)


def canned_health() -> pb.Health:
    cards = [
        _health(
            f"cards/card{card}", "CARD", "CRITICAL", _engine(card, 0), _engine(card, 1),
            cause="cards/card0/links/oe1" if card else "",
        )
        for card in (0, 1)
    ]  # fmt: skip
    daemon = _health("daemon", "DAEMON", "HEALTHY")
    return _health("host", "HOST", "CRITICAL", daemon, *cards)


def _walk(health: pb.Health) -> list[pb.Health]:
    return [health, *(inner for part in health.parts for inner in _walk(part))]


class HealthServicer(health_pb2_grpc.HealthServiceServicer):  # type: ignore[misc, unused-ignore]
    def __init__(self, health: pb.Health, refuse: Callable[..., None]) -> None:
        self._health = health
        self._refuse = refuse

    def GetHealth(self, request: Any, context: Any) -> pb.Health:
        found = [one for one in _walk(self._health) if one.name == (request.name or "host")]
        if not found:
            self._refuse(context, "NOT_FOUND", "OBJECT_NOT_FOUND", f"there is no {request.name}")
        answer = pb.Health()
        answer.CopyFrom(found[0])
        reasons = [reason for one in _walk(found[0]) for reason in one.reasons]
        answer.causes.extend(sorted(reasons, key=lambda reason: -reason.state))
        if not request.with_parts:
            answer.ClearField("parts")
        return answer
