"""The fake daemon's memory: regions with real bytes, and the broker that hands them out mapped."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import grpc
from crc32c import crc32c

from accel.v1 import (
    memory_pb2,
    memory_pb2_grpc,
)

from .fake_canned import MIB
from .fake_servicer import Servicer, refuse
from .fake_state import State


class MemoryServicer(Servicer, memory_pb2_grpc.MemoryServiceServicer):
    broker_path = ""

    def region(self, name: str, context: Any) -> Any:
        if name not in self.state.regions:
            short = name.removeprefix("cards/").replace("/regions/", ":")
            refuse(context, "NOT_FOUND", "REGION_NOT_FOUND", f"no region {short}", name=name)
        return self.state.regions[name]

    def ListRegions(self, request: Any, context: Any) -> Any:
        parent = "" if request.parent == "cards/-" else request.parent + "/"
        found = [r for name, r in self.state.regions.items() if name.startswith(parent)]
        regions, token = self.page(found, request)
        return memory_pb2.ListRegionsResponse(regions=regions, next_page_token=token)

    def GetRegion(self, request: Any, context: Any) -> Any:
        return self.region(request.name, context)

    def CreateRegion(self, request: Any, context: Any) -> Any:
        card = request.parent.removeprefix("cards/")
        self.find(self.state.cards, request.parent, "card", context)
        name = request.region_id or "region-1"
        if f"{request.parent}/regions/{name}" in self.state.regions:
            refuse(context, "ALREADY_EXISTS", "REGION_EXISTS", f"{card}:{name} exists already")
        if request.size_bytes > 1 << 32:
            refuse(context, "RESOURCE_EXHAUSTED", "BUDGET_EXCEEDED", "beyond the host's budget")
        address = request.address if request.HasField("address") else 0x300000
        content = bytes(min(request.size_bytes, 16 * MIB))  # A fake has little memory.
        region = self.state.add_region(card, name, content, address)
        region.size_bytes = request.size_bytes
        self.state.on_answer.get("CreateRegion", int)()
        return region

    def DeleteRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        if region.transfers_running_count or self.state.busy_answers:
            self.state.busy_answers = max(self.state.busy_answers - 1, 0)
            refuse(context, "FAILED_PRECONDITION", "REGION_BUSY", "a transfer uses it")
        del self.state.regions[request.name], self.state.memory[request.name]
        return memory_pb2.DeleteRegionResponse()

    def FillRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        length = request.length or region.size_bytes - request.offset
        byte = request.byte if request.WhichOneof("pattern") == "byte" else request.random_seed
        memory = self.state.memory[request.name]
        held = len(memory[request.offset : request.offset + length])  # A fake has little.
        memory[request.offset : request.offset + held] = bytes([byte % 256]) * held
        for done in (length // 2, length):
            yield memory_pb2.MemoryProgress(
                done_bytes=done, total_bytes=length, done=done == length
            )

    def ChecksumRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        length = request.length or region.size_bytes - request.offset
        data = bytes(self.state.memory[request.name][request.offset : request.offset + length])
        yield memory_pb2.MemoryProgress(done_bytes=length // 2, total_bytes=length)
        yield memory_pb2.MemoryProgress(
            done_bytes=length,
            total_bytes=length,
            done=True,
            sha256=hashlib.sha256(data).hexdigest(),
            crc32c=crc32c(data),
        )

    def WriteRegion(self, requests: Any, context: Any) -> Any:
        header = next(requests).header
        self.region(header.name, context)
        memory, position, crc = self.state.memory[header.name], header.offset, 0
        for request in requests:
            memory[position : position + len(request.data)] = request.data
            crc = crc32c(request.data, crc)
            position += len(request.data)
        written = position - header.offset
        if written != header.length:
            refuse(context, "ABORTED", "STREAM_SHORT", "the stream ended short")
        return memory_pb2.WriteRegionResponse(written_bytes=written, crc32c=crc)

    def ReadRegion(self, request: Any, context: Any) -> Any:
        data = self.state.memory[request.name][request.offset : request.offset + request.length]
        for start in range(0, len(data), 65536):
            yield memory_pb2.ReadRegionResponse(data=bytes(data[start : start + 65536]))

    def MapRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        if not self.state.mappable:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no mapping here")
        return memory_pb2.MapRegionResponse(
            socket_path=self.broker_path,
            token=request.name,
            address=region.address,
            size_bytes=region.size_bytes,
        )


class Broker:
    """Hands a client the memory, if it has a token for it.

    One memfd for all cards: regions of a fake may overlap, tests use one at a time.
    """

    def __init__(self, path: str, state: State) -> None:
        self._state = state
        self._memory_fd = os.memfd_create("hbm")
        os.ftruncate(self._memory_fd, 1 << 40)
        for name, content in state.memory.items():
            os.pwrite(self._memory_fd, content, state.regions[name].address)
        self._socket = socket.socket(socket.AF_UNIX)
        Path(path).unlink(missing_ok=True)
        self._socket.bind(path)
        self._socket.listen()
        threading.Thread(target=self._hand_out, daemon=True).start()

    def read(self, address: int, length: int) -> bytes:
        """What lies in the mapped HBM."""
        return os.pread(self._memory_fd, length, address)

    def close(self) -> None:
        self._socket.close()
        os.close(self._memory_fd)

    def _hand_out(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                token = client.makefile().readline().strip()
                if token in self._state.regions:
                    socket.send_fds(client, [b"+"], [self._memory_fd])
                else:
                    client.sendall(b"-no such token")
