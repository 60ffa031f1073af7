"""HostService: daemon, chassis and workers as a whole. Answers without a chassis, too."""

from __future__ import annotations

from typing import Any

from accel.v1 import host_pb2, host_pb2_grpc
from acceld.host.host import Host
from acceld.service import convert


class HostServicer(host_pb2_grpc.HostServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def GetHost(self, request: Any, context: Any) -> host_pb2.Host:
        return convert.host(self._host.overview())
