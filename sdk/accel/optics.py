"""Optical engines and their lanes."""

from __future__ import annotations

from collections.abc import Iterator

from accel.address import BadAddress, CardAddress, LaneAddress, PortAddress
from accel.v1 import optics_pb2, optics_pb2_grpc
from accel.wire import Wire


class Engines:
    """Optical engines; each method gives `accel.v1.Engine`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = optics_pb2_grpc.OpticsServiceStub(wire.channel)

    def list(self, card: str | None = None) -> Iterator[optics_pb2.Engine]:
        """Of one card, or of all."""
        parent = CardAddress.parse(card).name if card else "cards/-"
        request = optics_pb2.ListEnginesRequest(parent=parent)
        return self._wire.pages(self._stub.ListEngines, request, "engines")

    def get(self, port: str) -> optics_pb2.Engine:
        request = optics_pb2.GetEngineRequest(name=PortAddress.parse(port).engine_name)
        answer: optics_pb2.Engine = self._wire.call(self._stub.GetEngine, request)
        return answer

    def clear_flags(self, port: str) -> optics_pb2.Engine:
        """Clear the latched flags of all its lanes; what is active stays latched."""
        request = optics_pb2.ClearFlagsRequest(name=PortAddress.parse(port).engine_name)
        answer: optics_pb2.Engine = self._wire.call(self._stub.ClearFlags, request)
        return answer


class Lanes:
    """Lanes, each as its own end sees it; each method gives `accel.v1.Lane`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = optics_pb2_grpc.OpticsServiceStub(wire.channel)

    def list(self, owner: str | None = None) -> Iterator[optics_pb2.Lane]:
        """Of one engine (`card0/oe1`), of one card (`card0`), or of all."""
        request = optics_pb2.ListLanesRequest(parent=_parent(owner))
        return self._wire.pages(self._stub.ListLanes, request, "lanes")

    def get(self, lane: str) -> optics_pb2.Lane:
        request = optics_pb2.GetLaneRequest(name=LaneAddress.parse(lane).name)
        answer: optics_pb2.Lane = self._wire.call(self._stub.GetLane, request)
        return answer


def _parent(owner: str | None) -> str:
    if not owner:
        return "cards/-/engines/-"
    try:
        return f"{CardAddress.parse(owner).name}/engines/-"
    except BadAddress:
        return PortAddress.parse(owner).engine_name
