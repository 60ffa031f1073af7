"""The fake daemon's transfers: real bytes from region to region, ended as a test wants it."""

from __future__ import annotations

import time
from typing import Any

from crc32c import crc32c

from accel.v1 import (
    transfer_pb2,
    transfer_pb2_grpc,
)

from .fake_canned import stamp
from .fake_servicer import Servicer


class TransferServicer(Servicer, transfer_pb2_grpc.TransferServiceServicer):
    def CreateTransfer(self, request: Any, context: Any) -> Any:
        memory = self.state.memory.get(request.source.region, b"")
        transfer = transfer_pb2.Transfer(
            name=f"transfers/7f3a{len(self.state.transfers) + 1:02x}",
            kind=request.kind or transfer_pb2.TRANSFER_KIND_WRITE,
            state=transfer_pb2.TRANSFER_STATE_QUEUED,
            source=request.source,
            target=request.target,
            total_bytes=request.length or len(memory) - request.source.offset,
            start_time=stamp(30),
        )
        self.state.transfers.insert(0, transfer)
        if self.state.transfer_end == "HANG":
            self.state.regions[request.target.region].transfers_running_count = 1
        self.state.on_answer.get("CreateTransfer", int)()
        return transfer

    def GetTransfer(self, request: Any, context: Any) -> Any:
        return self.find(self.state.transfers, request.name, "transfer", context)

    def ListTransfers(self, request: Any, context: Any) -> Any:
        found = [t for t in self.state.transfers if not request.active_only or t.state <= 3]
        transfers, token = self.page(found, request)
        return transfer_pb2.ListTransfersResponse(transfers=transfers, next_page_token=token)

    def WatchTransfer(self, request: Any, context: Any) -> Any:
        transfer = self.find(self.state.transfers, request.name, "transfer", context)
        if transfer.state >= transfer_pb2.TRANSFER_STATE_DONE:
            yield transfer
            return
        transfer.state = transfer_pb2.TRANSFER_STATE_RUNNING
        yield transfer
        if self.state.on_watch is not None:
            action, self.state.on_watch = self.state.on_watch, None
            action()
            while context.is_active():  # The daemon is going away; the hardware goes on.
                time.sleep(0.01)
        if self.state.transfer_end == "HANG":
            while context.is_active() and transfer.state < transfer_pb2.TRANSFER_STATE_DONE:
                time.sleep(0.01)
            yield transfer
            return
        self.finish(transfer)
        yield transfer

    def finish(self, transfer: Any) -> None:
        total = transfer.total_bytes
        transfer.links.append("cards/card0/links/oe0")
        transfer.end_time.CopyFrom(stamp(31))
        if self.state.transfer_end == "FAILED":
            transfer.state = transfer_pb2.TRANSFER_STATE_FAILED
            transfer.good_bytes = transfer.first_gap_offset = total // 2
            transfer.error = self.state.transfer_error
            transfer.error_detail = "no usable link for 30 s"
            return
        source = self.state.memory.get(transfer.source.region, bytearray())
        target = self.state.memory.get(transfer.target.region)
        data = source[transfer.source.offset : transfer.source.offset + total]
        if target is not None:
            target[transfer.target.offset : transfer.target.offset + len(data)] = data
        transfer.state = transfer_pb2.TRANSFER_STATE_DONE
        transfer.good_bytes = transfer.first_gap_offset = total
        transfer.wall_ms, transfer.wall_gbyte_per_s = 0.5, 2.097152
        transfer.modelled_us, transfer.modelled_pcie_us = 21.4, 18.9
        transfer.crc32c = crc32c(bytes(data))

    def CancelTransfer(self, request: Any, context: Any) -> Any:
        transfer = self.find(self.state.transfers, request.name, "transfer", context)
        transfer.state = transfer_pb2.TRANSFER_STATE_CANCELLED
        transfer.error = "CANCELLED"
        for region in self.state.regions.values():
            region.transfers_running_count = 0
        return transfer
