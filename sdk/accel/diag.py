"""Tests of links: patterns, errors, margin, eyes, loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from accel import span
from accel.address import PortAddress, diag_name
from accel.plain import word
from accel.v1 import diag_pb2, diag_pb2_grpc
from accel.wire import Wire

ENDED = frozenset({"DONE", "FAILED", "CANCELLED"})


def ended(diag: diag_pb2.Diag) -> bool:
    return word(diag, "state") in ENDED


class Diags:
    """Tests; each method gives `accel.v1.Diag`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = diag_pb2_grpc.DiagServiceStub(wire.channel)

    def list(self, port: str | None = None) -> Iterator[diag_pb2.Diag]:
        """Of one port, or of all; newest first, without pictures."""
        link = PortAddress.parse(port).link_name if port else ""
        request = diag_pb2.ListDiagsRequest(link=link)
        return self._wire.pages(self._stub.ListDiags, request, "diags")

    def get(self, diag: str) -> diag_pb2.Diag:
        request = diag_pb2.GetDiagRequest(name=diag_name(diag))
        answer: diag_pb2.Diag = self._wire.call(self._stub.GetDiag, request)
        return answer

    def start(
        self,
        port: str,
        kind: str,
        *,
        lanes: Iterable[int] = (),
        pattern: str = "",
        checker: str = "",
        duration_s: float | None = None,
        target_ber: float = 0.0,
        confidence: float = 0.0,
        stop_early: bool = False,
        force: bool = False,
    ) -> diag_pb2.Diag:
        """Starts a test and returns at once. `kind` is PRBS, BER, MARGIN, EYE, LOOPBACK_NEAR,
        LOOPBACK_FAR, REFLECT or FEC; what is left out takes its usual value."""
        request = diag_pb2.StartDiagRequest(
            link=PortAddress.parse(port).link_name,
            kind=f"DIAG_KIND_{kind.upper()}",
            lanes=lanes,
            pattern=pattern,
            checker=checker,
            target_ber=target_ber,
            confidence_ratio=confidence,
            stop_early=stop_early,
            force=force,
        )
        if duration_s is not None:
            span.put(request.duration, duration_s)
        answer: diag_pb2.Diag = self._wire.call(self._stub.StartDiag, request)
        return answer

    def watch(self, diag: str) -> Iterator[diag_pb2.Diag]:
        """The test now, at each step of progress, and at its end."""
        request = diag_pb2.WatchDiagRequest(name=diag_name(diag))
        return self._wire.stream(self._stub.WatchDiag, request)

    def cancel(self, diag: str) -> diag_pb2.Diag:
        """Ends it; what it measured so far is kept."""
        request = diag_pb2.CancelDiagRequest(name=diag_name(diag))
        answer: diag_pb2.Diag = self._wire.call(self._stub.CancelDiag, request)
        return answer
