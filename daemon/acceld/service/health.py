"""HealthService: what is well, what is not, why, and what to do. Answers without a chassis, too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from accel.v1 import health_pb2, health_pb2_grpc
from acceld.host.host import Host
from acceld.service import convert_health


class HealthServicer(health_pb2_grpc.HealthServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._health = host.health

    async def GetHealth(self, request: Any, context: Any) -> health_pb2.Health:
        found = self._health.of(convert_health.place(request.name))
        return convert_health.asked(found, request.with_parts)

    async def WatchHealth(self, request: Any, context: Any) -> AsyncIterator[health_pb2.Health]:
        async for one in self._health.watch(convert_health.place(request.name)):
            yield convert_health.health(one)
