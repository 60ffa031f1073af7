"""The gRPC server: all servicers, health and reflection, on one Unix socket."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2 as standard_pb2
from grpc_health.v1 import health_pb2_grpc as standard_pb2_grpc
from grpc_health.v1._async import HealthServicer as StandardHealth
from grpc_reflection.v1alpha import reflection

from accel.v1 import (
    card_pb2,
    card_pb2_grpc,
    diag_pb2,
    diag_pb2_grpc,
    event_pb2,
    event_pb2_grpc,
    fault_pb2,
    fault_pb2_grpc,
    health_pb2,
    health_pb2_grpc,
    host_pb2,
    host_pb2_grpc,
    link_pb2,
    link_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    optics_pb2,
    optics_pb2_grpc,
    transfer_pb2,
    transfer_pb2_grpc,
)
from acceld.host.host import Host
from acceld.service.card import CardServicer
from acceld.service.diag import DiagServicer
from acceld.service.errors import guarded
from acceld.service.event import EventServicer
from acceld.service.fault import FaultServicer
from acceld.service.health import HealthServicer
from acceld.service.host import HostServicer
from acceld.service.link import LinkServicer
from acceld.service.memory import MemoryServicer
from acceld.service.optics import OpticsServicer
from acceld.service.transfer import TransferServicer

MESSAGE_BYTES_MAX = 8 << 20  # of one message; a stream has no bound
STREAMS_MAX = 1000  # calls at once on one connection

SERVICES = (
    (card_pb2, card_pb2_grpc.add_CardServiceServicer_to_server, CardServicer),
    (host_pb2, host_pb2_grpc.add_HostServiceServicer_to_server, HostServicer),
    (memory_pb2, memory_pb2_grpc.add_MemoryServiceServicer_to_server, MemoryServicer),
    (link_pb2, link_pb2_grpc.add_LinkServiceServicer_to_server, LinkServicer),
    (optics_pb2, optics_pb2_grpc.add_OpticsServiceServicer_to_server, OpticsServicer),
    (transfer_pb2, transfer_pb2_grpc.add_TransferServiceServicer_to_server, TransferServicer),
    (event_pb2, event_pb2_grpc.add_EventServiceServicer_to_server, EventServicer),
    (diag_pb2, diag_pb2_grpc.add_DiagServiceServicer_to_server, DiagServicer),
    (fault_pb2, fault_pb2_grpc.add_FaultServiceServicer_to_server, FaultServicer),
    (health_pb2, health_pb2_grpc.add_HealthServiceServicer_to_server, HealthServicer),
)


class Server:
    """Bound when made, so that a client which comes early waits; serves after `start`."""

    def __init__(self, host: Host, address: str) -> None:
        self._server: Any = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_concurrent_streams", STREAMS_MAX),
                ("grpc.so_reuseport", 0),
            ),
        )
        self._health = StandardHealth()
        self._names = []
        for module, add, servicer in SERVICES:
            add(guarded(servicer(host)), self._server)
            self._names += [s.full_name for s in module.DESCRIPTOR.services_by_name.values()]
        standard_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            [
                *self._names,
                standard_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
                reflection.SERVICE_NAME,
            ],
            self._server,
        )
        self._server.add_insecure_port(address)

    async def start(self) -> None:
        await self._server.start()
        await self.set_serving(True)

    async def set_serving(self, serving: bool) -> None:
        """Standard health of the whole ("") and of each service: whether the hardware answers."""
        status = (
            standard_pb2.HealthCheckResponse.SERVING
            if serving
            else standard_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in ("", *self._names):
            await self._health.set(name, status)

    async def stop(self, grace_s: float) -> None:
        """Calls get `grace_s` to end, then they are cancelled."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
