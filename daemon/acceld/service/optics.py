"""OpticsService: engines and their lanes."""

from __future__ import annotations

from typing import Any

from accel.v1 import optics_pb2, optics_pb2_grpc
from acceld.errors import NotFound
from acceld.host.host import Host
from acceld.host.snapshot import PortSnapshot
from acceld.service import convert, names
from acceld.service.pages import page


class OpticsServicer(optics_pb2_grpc.OpticsServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListEngines(self, request: Any, context: Any) -> optics_pb2.ListEnginesResponse:
        card = names.parse_card_parent(request.parent)
        chosen, token = page(
            list(enumerate(self._ports(card, None))),
            lambda item: (item[0],),
            f"engines/{card or names.ANY}",
            request.page_size,
            request.page_token,
        )
        return optics_pb2.ListEnginesResponse(
            engines=[convert.engine(port) for _, port in chosen], next_page_token=token
        )

    async def GetEngine(self, request: Any, context: Any) -> optics_pb2.Engine:
        return convert.engine(self._host.port(names.parse_engine(request.name)))

    async def ListLanes(self, request: Any, context: Any) -> optics_pb2.ListLanesResponse:
        card, oe = names.parse_engine_parent(request.parent)
        lanes = [
            (number, port, index)
            for number, port in enumerate(self._ports(card, oe))
            for index in range(len(port.lanes))
        ]
        chosen, token = page(
            lanes,
            lambda item: (item[0], item[2]),
            f"lanes/{card or names.ANY}/{names.ANY if oe is None else oe}",
            request.page_size,
            request.page_token,
        )
        return optics_pb2.ListLanesResponse(
            lanes=[convert.lane(port, index) for _, port, index in chosen], next_page_token=token
        )

    async def GetLane(self, request: Any, context: Any) -> optics_pb2.Lane:
        lane = names.parse_lane(request.name)
        port = self._host.port(lane.port)
        if lane.index >= len(port.lanes):
            raise NotFound(
                "LANE_NOT_FOUND",
                f"there is no {lane}; {lane.port} has lane0 to lane{len(port.lanes) - 1}",
                lane=lane,
            )
        return convert.lane(port, lane.index)

    async def ClearFlags(self, request: Any, context: Any) -> optics_pb2.Engine:
        port = names.parse_engine(request.name)
        await self._host.clear_flags(port.card, port.oe)
        return convert.engine(self._host.port(port))

    def _ports(self, card: str | None, oe: int | None) -> list[PortSnapshot]:
        cards = self._host.cards() if card is None else [self._host.card(card)]
        ports = [p for c in cards for p in c.ports if oe is None or p.id.oe == oe]
        if not ports and cards and oe is not None:
            raise NotFound(
                "PORT_NOT_FOUND",
                f"there is no engine oe{oe} on {card or 'any card'}",
                oe=oe,
            )
        return ports
