"""FaultService: what can be wrong with the hardware, what is, and making it so."""

from __future__ import annotations

from typing import Any

from accel.v1 import fault_pb2, fault_pb2_grpc
from acceld.host.faults import InjectFault
from acceld.host.host import Host
from acceld.service import convert, convert_fault, names
from acceld.service.pages import page


class FaultServicer(fault_pb2_grpc.FaultServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def ListFaultKinds(self, request: Any, context: Any) -> fault_pb2.ListFaultKindsResponse:
        chosen, token = page(
            list(enumerate(self._host.faults.kinds())),
            lambda item: (item[0],),
            "faultKinds",
            request.page_size,
            request.page_token,
        )
        return fault_pb2.ListFaultKindsResponse(
            fault_kinds=[convert_fault.kind(kind) for _, kind in chosen], next_page_token=token
        )

    async def ListFaults(self, request: Any, context: Any) -> fault_pb2.ListFaultsResponse:
        card = names.parse_card_parent(request.parent)
        chosen, token = page(
            sorted(self._host.faults.of(card), key=lambda info: (info.started_ns, info.fault_id)),
            lambda info: (info.started_ns, info.fault_id),
            f"faults/{card or names.ANY}",
            request.page_size,
            request.page_token,
        )
        return fault_pb2.ListFaultsResponse(
            faults=[convert_fault.fault(info) for info in chosen], next_page_token=token
        )

    async def GetFault(self, request: Any, context: Any) -> fault_pb2.Fault:
        return convert_fault.fault(self._host.faults.get(names.parse_fault(request.name)))

    async def InjectFault(self, request: Any, context: Any) -> fault_pb2.Fault:
        wanted = InjectFault(
            id=0,
            fault_id=request.fault_id,
            kind=request.kind,
            subject=names.parse_fault_subject(request.subject),
            lanes=tuple(request.lanes),
            shape=convert_fault.shape_word(request.shape),
            duration_s=convert.seconds(request.duration),
            ramp_s=convert.seconds(request.ramp),
            scale=request.scale if request.HasField("scale") else 1.0,
            target_ber=request.target_ber,
            seed=request.seed if request.HasField("seed") else None,
            address=request.hbm_address if request.HasField("hbm_address") else None,
        )
        convert_fault.check(request)
        return convert_fault.fault(await self._host.faults.inject(wanted))

    async def ClearFault(self, request: Any, context: Any) -> fault_pb2.ClearFaultResponse:
        await self._host.faults.clear(names.parse_fault(request.name))
        return fault_pb2.ClearFaultResponse()
