"""Faults: what is wrong with the hardware because somebody wanted it so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accel import span
from accel.address import CardAddress, fault_name, subject_name
from accel.v1 import fault_pb2, fault_pb2_grpc
from accel.wire import Wire


class Faults:
    """Faults; most methods give `accel.v1.Fault`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = fault_pb2_grpc.FaultServiceStub(wire.channel)

    def kinds(self) -> Iterator[fault_pb2.FaultKind]:
        """The catalogue: what this hardware can be given."""
        request = fault_pb2.ListFaultKindsRequest()
        return self._wire.pages(self._stub.ListFaultKinds, request, "fault_kinds")

    def list(self, card: str | None = None) -> Iterator[fault_pb2.Fault]:
        """The active faults of one card, or of all."""
        parent = CardAddress.parse(card).name if card else "cards/-"
        request = fault_pb2.ListFaultsRequest(parent=parent)
        return self._wire.pages(self._stub.ListFaults, request, "faults")

    def get(self, fault: str) -> fault_pb2.Fault:
        request = fault_pb2.GetFaultRequest(name=fault_name(fault))
        answer: fault_pb2.Fault = self._wire.call(self._stub.GetFault, request)
        return answer

    def inject(
        self,
        kind: str,
        subject: str,
        *,
        lanes: Sequence[int] = (),
        shape: str = "",
        duration_s: float | None = None,
        ramp_s: float | None = None,
        scale: float | None = None,
        target_ber: float | None = None,
        seed: int | None = None,
        hbm_address: int | None = None,
        fault_id: str = "",
    ) -> fault_pb2.Fault:
        """Injects a fault of the catalogue; what is left out is as the kind has it.

        `subject` is a card, a port or a lane. `shape` is a word as `ramp`. Without `duration_s` it
        stays until `clear`. `target_ber` solves for the scale that gives this pre-FEC BER.
        """
        request = fault_pb2.InjectFaultRequest(
            kind=kind,
            subject=subject_name(subject),
            lanes=lanes,
            scale=scale,
            target_ber=target_ber,
            seed=seed,
            hbm_address=hbm_address,
            fault_id=fault_id,
        )
        if shape:
            request.shape = getattr(fault_pb2, f"FAULT_SHAPE_{shape.upper()}")
        if duration_s is not None:
            span.put(request.duration, duration_s)
        if ramp_s is not None:
            span.put(request.ramp, ramp_s)
        answer: fault_pb2.Fault = self._wire.call(self._stub.InjectFault, request)
        return answer

    def clear(self, fault: str) -> None:
        """Takes its causes away; what it has done stays done."""
        request = fault_pb2.ClearFaultRequest(name=fault_name(fault))
        self._wire.call(self._stub.ClearFault, request)
