"""A daemon without hardware: the services of accel.v1 over canned messages and real bytes.

State outlives a restart, as the hardware's does. Knobs on `State` make it refuse or fail.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from accel.v1 import (
    card_pb2_grpc,
    diag_pb2_grpc,
    event_pb2_grpc,
    fault_pb2_grpc,
    health_pb2_grpc,
    host_pb2_grpc,
    link_pb2_grpc,
    memory_pb2_grpc,
    optics_pb2_grpc,
    transfer_pb2_grpc,
)

from .fake_canned import stamp
from .fake_diag import DiagServicer
from .fake_faults import FaultServicer
from .fake_health import HealthServicer
from .fake_memory import Broker, MemoryServicer
from .fake_servicer import refuse
from .fake_state import State
from .fake_things import (
    CardServicer,
    EventServicer,
    HostServicer,
    LinkServicer,
    OpticsServicer,
)
from .fake_transfers import TransferServicer


class Refusals(grpc.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    """Refuses the methods that a test named, and notes every call."""

    def __init__(self, state: State) -> None:
        self.state = state

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        self.state.calls.append(method)
        handler = continuation(details)
        if method not in self.state.refuse or handler is None:
            return handler
        status, reason, message = self.state.refuse[method]

        def no(request: Any, context: Any) -> Any:
            refuse(context, status, reason, message)

        if handler.response_streaming:
            make = grpc.unary_stream_rpc_method_handler
        elif handler.request_streaming:
            make = grpc.stream_unary_rpc_method_handler
        else:
            make = grpc.unary_unary_rpc_method_handler
        return make(no, handler.request_deserializer, handler.response_serializer)


class FakeDaemon:
    """Serves a State on a socket; may be stopped and followed by another on the same one."""

    def __init__(self, folder: Path, state: State) -> None:
        self.state = state
        self.socket = folder / "acceld.sock"
        self._broker: Broker | None = None

    def start(self) -> FakeDaemon:
        self._server: Any = grpc.server(ThreadPoolExecutor(8), interceptors=(Refusals(self.state),))
        memory = MemoryServicer(self.state)
        memory.broker_path = str(self.socket.parent / "memory.sock")
        for add, servicer in (
            (card_pb2_grpc.add_CardServiceServicer_to_server, CardServicer(self.state)),
            (link_pb2_grpc.add_LinkServiceServicer_to_server, LinkServicer(self.state)),
            (optics_pb2_grpc.add_OpticsServiceServicer_to_server, OpticsServicer(self.state)),
            (memory_pb2_grpc.add_MemoryServiceServicer_to_server, memory),
            (transfer_pb2_grpc.add_TransferServiceServicer_to_server, TransferServicer(self.state)),
            (event_pb2_grpc.add_EventServiceServicer_to_server, EventServicer(self.state)),
            (host_pb2_grpc.add_HostServiceServicer_to_server, HostServicer(self.state)),
            (
                fault_pb2_grpc.add_FaultServiceServicer_to_server,
                FaultServicer(self.state.faults, stamp(120), refuse),
            ),
            (
                health_pb2_grpc.add_HealthServiceServicer_to_server,
                HealthServicer(self.state.health, refuse),
            ),
            (
                diag_pb2_grpc.add_DiagServiceServicer_to_server,
                DiagServicer(self.state, stamp, refuse),
            ),
        ):
            add(servicer, self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        if self.state.mappable:
            self._broker = Broker(memory.broker_path, self.state)
        return self

    def stop(self, grace_s: float | None = None) -> None:
        self._server.stop(grace_s).wait()
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    def hbm(self, address: int, length: int) -> bytes:
        """What lies in the mapped HBM."""
        assert self._broker is not None
        return self._broker.read(address, length)
