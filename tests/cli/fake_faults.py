"""The FaultService of the fake daemon: three kinds, two active faults."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from accel.v1 import fault_pb2, fault_pb2_grpc

LANES = 8


def _cause(cause: str, amount: float) -> fault_pb2.FaultCause:
    return fault_pb2.FaultCause(cause=cause, amount=amount)


def canned_kinds() -> list[fault_pb2.FaultKind]:
    return [
        fault_pb2.FaultKind(
            name="faultKinds/bent_fibre",
            place=fault_pb2.FAULT_PLACE_PORT,
            summary="The cable is bent too tightly: light is lost in both directions.",
            near_signature="Rx power 6 dB lower on all lanes",
            far_signature="the same",
            repair="lay the cable with a radius above 30 mm",
            source="one turn of 7.5 mm radius takes several dB",
            shape=fault_pb2.FAULT_SHAPE_STEP,
            causes=[_cause("rx_path_loss_db", 6), _cause("tx_path_loss_db", 6)],
            takes_target_ber=True,
        ),
        fault_pb2.FaultKind(
            name="faultKinds/polarity_swap",
            place=fault_pb2.FAULT_PLACE_LANE,
            summary="A lane's polarity is swapped in the cable.",
            near_signature="the lane map shows it as inverted",
            far_signature="the same",
            repair="none needed",
            source="training finds it",
            shape=fault_pb2.FAULT_SHAPE_STEP,
            crossing="inverted",
        ),
        fault_pb2.FaultKind(
            name="faultKinds/cdr_unlock",
            place=fault_pb2.FAULT_PLACE_LANE,
            summary="A receiver's clock recovery slips now and then.",
            near_signature="LOL without LOS",
            far_signature="the link trains with it",
            repair="replace the engine",
            source="a choice",
            shape=fault_pb2.FAULT_SHAPE_POISSON,
            on_s=0.03,
            off_s=1800,
            causes=[_cause("cdr_unlocked", 1)],
        ),
    ]


def canned_faults(start: Timestamp, end: Timestamp) -> list[fault_pb2.Fault]:
    return [
        fault_pb2.Fault(
            name="faults/3f2a91",
            kind="dirty_connector_bad",
            subject="cards/card0/links/oe0",
            lanes=[0, 1, 2, 5],
            shape=fault_pb2.FAULT_SHAPE_RAMP,
            start_time=start,
            end_time=end,
            ramp_s=10,
            scale=1,
            lane_scales=[0.52, 0.61, 0.55, 0.5],
            target_ber=1e-5,
            seed=7,
        ),
        fault_pb2.Fault(
            name="faults/0b77d2",
            kind="hbm_dbe",
            subject="cards/card1",
            shape=fault_pb2.FAULT_SHAPE_STEP,
            start_time=start,
            scale=1,
            seed=12,
            hbm_address=4096,
        ),
    ]


class FaultServicer(fault_pb2_grpc.FaultServiceServicer):
    """`refuse(context, status, reason, message)` aborts."""

    def __init__(self, faults: list[fault_pb2.Fault], start: Timestamp, refuse: Any) -> None:
        self._faults = faults
        self._start = start
        self._refuse = refuse

    def ListFaultKinds(self, request: Any, context: Any) -> Any:
        return fault_pb2.ListFaultKindsResponse(fault_kinds=canned_kinds())

    def ListFaults(self, request: Any, context: Any) -> Any:
        of = "" if request.parent in ("", "cards/-") else request.parent
        found = [fault for fault in self._faults if fault.subject.startswith(of)]
        return fault_pb2.ListFaultsResponse(faults=found)

    def GetFault(self, request: Any, context: Any) -> Any:
        for fault in self._faults:
            if fault.name == request.name:
                return fault
        return self._refuse(context, "NOT_FOUND", "FAULT_NOT_FOUND", f"no fault {request.name}")

    def InjectFault(self, request: Any, context: Any) -> Any:
        subject, _, lane = request.subject.partition("/lanes/lane")
        subject = subject.replace("/engines/", "/links/")
        lanes = sorted([*request.lanes, *([int(lane)] if lane else [])])
        on_card = subject.count("/") == 1
        fault = fault_pb2.Fault(
            name=f"faults/{request.fault_id or 'c0ffee'}",
            kind=request.kind,
            subject=subject,
            lanes=lanes or ([] if on_card else range(LANES)),
            shape=request.shape or fault_pb2.FAULT_SHAPE_STEP,
            start_time=self._start,
            scale=request.scale if request.HasField("scale") else 1.0,
            seed=request.seed if request.HasField("seed") else 1,
        )
        if request.HasField("duration"):
            end = fault.end_time
            end.FromNanoseconds(self._start.ToNanoseconds() + request.duration.ToNanoseconds())
        if request.HasField("ramp"):
            fault.ramp_s = request.ramp.ToNanoseconds() / 1e9
        for field in ("target_ber", "hbm_address"):
            if request.HasField(field):
                setattr(fault, field, getattr(request, field))
        self._faults.append(fault)
        return fault

    def ClearFault(self, request: Any, context: Any) -> Any:
        self._faults.remove(self.GetFault(request, context))
        return fault_pb2.ClearFaultResponse()
