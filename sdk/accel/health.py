"""Health: what is well, what is not, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from accel.address import BadAddress, CardAddress, LaneAddress, PortAddress
from accel.plain import word
from accel.v1 import health_pb2, health_pb2_grpc
from accel.wire import Wire

UNWELL = ("WARNING", "CRITICAL")
_WORKER = re.compile(r"(?:workers/)?(worker[0-9]{1,4})")


class HealthOf:
    """Health; each method gives `accel.v1.Health`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = health_pb2_grpc.HealthServiceStub(wire.channel)

    def get(self, name: str = "host", *, with_parts: bool = False) -> health_pb2.Health:
        """Of an object, judged now: `host`, `daemon`, `card0`, `card0/oe1` (the engine with its
        link and lanes), `cards/card0/links/oe1`, `card0/oe1/lane3`, `worker0`."""
        request = health_pb2.GetHealthRequest(name=object_name(name), with_parts=with_parts)
        answer: health_pb2.Health = self._wire.call(self._stub.GetHealth, request)
        return answer

    def watch(self, name: str = "host") -> Iterator[health_pb2.Health]:
        """Each object of the tree once, then each whose state or reasons changed, without end."""
        request = health_pb2.WatchHealthRequest(name=object_name(name))
        return self._wire.stream(self._stub.WatchHealth, request)


def is_unwell(health: health_pb2.Health) -> bool:
    """Whether it needs somebody; starting and training do not, nor does what is not in service."""
    return word(health, "state") in UNWELL


def walk(health: health_pb2.Health) -> Iterator[health_pb2.Health]:
    """An object and all that is inside it, if it was asked for `with_parts`."""
    yield health
    for part in health.parts:
        yield from walk(part)


def object_name(text: str) -> str:
    """The name of what has health, from the form that people write. Raises BadAddress."""
    if text in ("", "host", "daemon"):
        return text or "host"
    if worker := _WORKER.fullmatch(text):
        return f"workers/{worker[1]}"
    if "/links/" in text:
        return PortAddress.parse(text).link_name
    for kind in (CardAddress, LaneAddress, PortAddress):
        try:
            place = kind.parse(text)
        except BadAddress:
            continue
        return place.engine_name if isinstance(place, PortAddress) else place.name
    raise BadAddress(
        f"{text!r} names nothing that has health; try host, daemon, card0, card0/oe1 or"
        " card0/oe1/lane3"
    )
