"""Regions of HBM: allocate, fill, checksum, and move bytes between them and files of this host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from accel import hostcopy
from accel.address import CardAddress, RegionAddress
from accel.errors import NotFound
from accel.hostcopy import HostCopy, Progress
from accel.v1 import memory_pb2, memory_pb2_grpc
from accel.wire import Wire


class Regions:
    """Regions; most methods give `accel.v1.Region`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = memory_pb2_grpc.MemoryServiceStub(wire.channel)

    def list(self, card: str | None = None) -> Iterator[memory_pb2.Region]:
        """Of one card, or of all."""
        parent = CardAddress.parse(card).name if card else "cards/-"
        request = memory_pb2.ListRegionsRequest(parent=parent)
        return self._wire.pages(self._stub.ListRegions, request, "regions")

    def get(self, region: str) -> memory_pb2.Region:
        request = memory_pb2.GetRegionRequest(name=RegionAddress.parse(region).name)
        answer: memory_pb2.Region = self._wire.call(self._stub.GetRegion, request)
        return answer

    def create(
        self,
        card: str,
        region: str,
        size_bytes: int,
        *,
        alignment_bytes: int = 0,
        address: int | None = None,
    ) -> memory_pb2.Region:
        """Allocates; an empty `region` lets the daemon make up a name."""
        request = memory_pb2.CreateRegionRequest(
            parent=CardAddress.parse(card).name,
            region_id=region,
            size_bytes=size_bytes,
            alignment_bytes=alignment_bytes,
        )
        if address is not None:
            request.address = address
        answer: memory_pb2.Region = self._wire.call(self._stub.CreateRegion, request)
        return answer

    def delete(self, region: str) -> None:
        """Frees it. Refused while a transfer uses it."""
        request = memory_pb2.DeleteRegionRequest(name=RegionAddress.parse(region).name)
        self._wire.call(self._stub.DeleteRegion, request)

    def fill(
        self, region: str, *, byte: int = 0, seed: int | None = None, length: int = 0
    ) -> Iterator[memory_pb2.MemoryProgress]:
        """Fills from the address's offset (length 0: to the end) with a byte, or with
        pseudo-random bytes of a seed. Runs as it is iterated."""
        place = RegionAddress.parse(region)
        request = memory_pb2.FillRegionRequest(name=place.name, offset=place.offset, length=length)
        if seed is None:
            request.byte = byte
        else:
            request.random_seed = seed
        return self._wire.stream(self._stub.FillRegion, request)

    def checksum(self, region: str, *, length: int = 0) -> Iterator[memory_pb2.MemoryProgress]:
        """SHA-256 and CRC-32C from the address's offset, in the last message."""
        place = RegionAddress.parse(region)
        request = memory_pb2.ChecksumRegionRequest(
            name=place.name, offset=place.offset, length=length
        )
        return self._wire.stream(self._stub.ChecksumRegion, request)

    def ensure(self, place: RegionAddress, size_bytes: int) -> None:
        """Allocates the region of a place unless it exists, whatever its size."""
        try:
            self.get(str(place))
        except NotFound as error:
            if error.reason == "CARD_NOT_FOUND":
                raise
            self.create(place.card, place.region, size_bytes)

    def upload(
        self,
        path: str | os.PathLike[str],
        region: str,
        *,
        create: bool = False,
        progress: Progress | None = None,
    ) -> HostCopy:
        """A file into a region. With `create` the region is allocated when it is absent."""
        place = RegionAddress.parse(region)
        with hostcopy.open_source(path) as source:
            if create:
                self.ensure(place, place.offset + source.size)
            return self.upload_from(
                source.fileno(), region, source.size, progress=progress, label=source.path
            )

    def upload_from(
        self,
        descriptor: int,
        region: str,
        length: int,
        *,
        progress: Progress | None = None,
        label: str = "the source",
    ) -> HostCopy:
        """`length` bytes of an open descriptor, from its position on, into a region.

        `label` names the source in errors.
        """
        place = RegionAddress.parse(region)
        mapped = self._map(place, length, writable=True)
        if mapped is None:
            return hostcopy.upload_streamed(
                self._wire, self._stub, descriptor, place, length, progress, label
            )
        with mapped:
            return hostcopy.upload_mapped(descriptor, mapped, length, progress, label)

    def download(
        self,
        region: str,
        path: str | os.PathLike[str],
        *,
        length: int = 0,
        progress: Progress | None = None,
    ) -> HostCopy:
        """A region into a file. The file appears whole or not at all."""
        with hostcopy.open_target(path) as target:
            return self.download_to(
                region, target.fileno(), length=length, progress=progress, label=target.path
            )

    def download_to(
        self,
        region: str,
        descriptor: int,
        *,
        length: int = 0,
        progress: Progress | None = None,
        label: str = "the target",
    ) -> HostCopy:
        """A region (length 0: to its end) into an open descriptor, which may be a pipe."""
        place = RegionAddress.parse(region)
        length = length or self.get(str(place)).size_bytes - place.offset
        mapped = self._map(place, length, writable=False)
        if mapped is None:
            return hostcopy.download_streamed(
                self._wire, self._stub, place, descriptor, length, progress, label
            )
        with mapped:
            return hostcopy.download_mapped(mapped, descriptor, length, progress, label)

    def _map(self, place: RegionAddress, length: int, *, writable: bool) -> Any:
        request = memory_pb2.MapRegionRequest(name=place.name, writable=writable)
        return hostcopy.map_region(self._wire, self._stub, request, place, length)
