"""TransferService: copies between regions, which the hardware carries out by itself."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from accel.v1 import transfer_pb2, transfer_pb2_grpc
from acceld.errors import InvalidRequest
from acceld.host.host import Host
from acceld.host.transfers import LINK_DEADLINE_S
from acceld.service import convert, names
from acceld.service.pages import page
from accelhw.model.transfer import TransferKind

WAIT_MAX_S = 60.0


class TransferServicer(transfer_pb2_grpc.TransferServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def CreateTransfer(self, request: Any, context: Any) -> transfer_pb2.Transfer:
        transfer = await self._host.transfers.start(
            convert.slice_of(request.source, "source"),
            convert.slice_of(request.target, "target"),
            request.length,
            _kind(request.kind),
            convert.seconds(request.link_deadline)
            if request.HasField("link_deadline")
            else LINK_DEADLINE_S,
            _request_id(request.request_id),
        )
        if request.HasField("wait"):
            wait_s = min(convert.seconds(request.wait), WAIT_MAX_S)
            transfer = await self._host.transfers.settled(transfer.id, wait_s)
        return convert.transfer(transfer)

    async def GetTransfer(self, request: Any, context: Any) -> transfer_pb2.Transfer:
        return convert.transfer(self._host.transfers.get(names.parse_transfer(request.name)))

    async def ListTransfers(self, request: Any, context: Any) -> transfer_pb2.ListTransfersResponse:
        chosen, token = page(
            self._host.transfers.list(request.active_only),
            lambda transfer: (-transfer.created_ns, transfer.id),
            "transfers/active" if request.active_only else "transfers",
            request.page_size,
            request.page_token,
        )
        return transfer_pb2.ListTransfersResponse(
            transfers=[convert.transfer(transfer) for transfer in chosen], next_page_token=token
        )

    async def WatchTransfer(
        self, request: Any, context: Any
    ) -> AsyncIterator[transfer_pb2.Transfer]:
        async for transfer in self._host.transfers.watch(names.parse_transfer(request.name)):
            yield convert.transfer(transfer)

    async def CancelTransfer(self, request: Any, context: Any) -> transfer_pb2.Transfer:
        return convert.transfer(
            await self._host.transfers.cancel(names.parse_transfer(request.name))
        )


def _request_id(text: str) -> str:
    try:
        return uuid.UUID(text).hex if text else ""
    except ValueError as error:
        raise InvalidRequest(
            "REQUEST_ID_INVALID",
            f"{text!r} is no request id; use a UUID, a new one for each transfer",
            request_id=text,
        ) from error


def _kind(value: int) -> TransferKind | None:
    if value == 0:
        return None
    try:
        return TransferKind(value)
    except ValueError as error:
        raise InvalidRequest(
            "KIND_INVALID", f"{value} is no kind of transfer; use WRITE, READ or LOCAL", kind=value
        ) from error
