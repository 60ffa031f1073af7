"""MemoryService: regions of HBM, and bytes between them and this host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from accel.v1 import memory_pb2, memory_pb2_grpc
from acceld.errors import InvalidRequest
from acceld.host.host import Host
from acceld.service import convert, names
from acceld.service.pages import page
from accelhw.model.region import HBM_ALIGNMENT


class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListRegions(self, request: Any, context: Any) -> memory_pb2.ListRegionsResponse:
        card = names.parse_card_parent(request.parent)
        if card is not None and self._host.hardware.attachment is not None:
            self._host.hardware.card(card)
        chosen, token = page(
            self._host.regions.all(card),
            lambda region: (region.card, region.name),
            f"regions/{card or names.ANY}",
            request.page_size,
            request.page_token,
        )
        return memory_pb2.ListRegionsResponse(
            regions=[self._region(region) for region in chosen], next_page_token=token
        )

    async def GetRegion(self, request: Any, context: Any) -> memory_pb2.Region:
        return self._region(self._host.regions.get(*names.parse_region(request.name)))

    async def CreateRegion(self, request: Any, context: Any) -> memory_pb2.Region:
        region = await self._host.regions.create(
            names.parse_card(request.parent),
            request.region_id,
            request.size_bytes,
            request.alignment_bytes or HBM_ALIGNMENT,
            request.address if request.HasField("address") else None,
        )
        return self._region(region)

    async def DeleteRegion(self, request: Any, context: Any) -> memory_pb2.DeleteRegionResponse:
        await self._host.regions.delete(*names.parse_region(request.name))
        return memory_pb2.DeleteRegionResponse()

    async def FillRegion(
        self, request: Any, context: Any
    ) -> AsyncIterator[memory_pb2.MemoryProgress]:
        pattern = request.WhichOneof("pattern")
        async for progress in self._host.operations.fill(
            *names.parse_region(request.name),
            request.offset,
            request.length,
            request.byte if pattern == "byte" else None,
            request.random_seed if pattern == "random_seed" else None,
        ):
            yield convert.progress(progress)

    async def ChecksumRegion(
        self, request: Any, context: Any
    ) -> AsyncIterator[memory_pb2.MemoryProgress]:
        async for progress in self._host.operations.checksum(
            *names.parse_region(request.name), request.offset, request.length
        ):
            yield convert.progress(progress)

    async def WriteRegion(self, requests: Any, context: Any) -> memory_pb2.WriteRegionResponse:
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("part") != "header":
            raise InvalidRequest(
                "HEADER_MISSING", "the first message of the stream must carry the header"
            )
        header = first.header
        progress = await self._host.operations.write(
            *names.parse_region(header.name), header.offset, header.length, _data(requests)
        )
        return memory_pb2.WriteRegionResponse(
            written_bytes=progress.done_bytes, crc32c=progress.crc32c
        )

    async def ReadRegion(
        self, request: Any, context: Any
    ) -> AsyncIterator[memory_pb2.ReadRegionResponse]:
        async for data in self._host.operations.read(
            *names.parse_region(request.name), request.offset, request.length
        ):
            yield memory_pb2.ReadRegionResponse(data=data)

    async def MapRegion(self, request: Any, context: Any) -> memory_pb2.MapRegionResponse:
        region = self._host.regions.usable(*names.parse_region(request.name))
        hbm = self._host.hardware.hbm(region.card)
        return memory_pb2.MapRegionResponse(
            socket_path=str(self._host.broker.path),
            token=self._host.broker.grant(hbm, request.writable),
            address=region.address,
            size_bytes=region.size,
        )

    def _region(self, region: Any) -> memory_pb2.Region:
        return convert.region(region, self._host.regions.transfers_running(region))


async def _data(requests: Any) -> AsyncIterator[bytes]:
    async for request in requests:
        if request.WhichOneof("part") != "data":
            raise InvalidRequest("HEADER_REPEATED", "the header comes once, then data alone")
        yield request.data
