"""A daemon in this process, whole but for its hardware, which is fake."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from accel.v1 import (
    card_pb2_grpc,
    diag_pb2_grpc,
    event_pb2_grpc,
    fault_pb2_grpc,
    health_pb2_grpc,
    host_pb2_grpc,
    link_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    optics_pb2_grpc,
    transfer_pb2_grpc,
)
from acceld.app import App
from acceld.config import Settings
from acceld.host.host import Host
from acceld.service.errors import DETAILS_KEY
from accelhw.model.link import DownReason, LinkState

from .fake_hardware import FakeHardware

WAIT_S = 60.0  # only ever reached by a test that fails


async def until(condition: Callable[[], Any]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


@dataclass
class Refused:
    """What a call was refused with, as a client reads it."""

    status: str
    reason: str
    domain: str
    message: str
    metadata: dict[str, str]


async def _drain(stream: Any) -> None:
    async for _ in stream:
        pass


async def refusal(call: Awaitable[Any] | Any) -> Refused:
    """The refusal of a call, unary or streaming. Fails if there is none."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (_drain(call) if hasattr(call, "__aiter__") else call)
    error = caught.value
    blob = dict(error.trailing_metadata() or ()).get(DETAILS_KEY, b"")
    status = status_pb2.Status.FromString(blob)
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    assert status.message == error.details()
    return Refused(error.code().name, info.reason, info.domain, status.message, dict(info.metadata))


@dataclass
class Daemon:
    """`start` and `stop` as often as a test likes; the store stays."""

    settings: Settings
    _app: App | None = None
    _task: asyncio.Task[None] | None = None
    _channel: Any = field(default=None, repr=False)

    async def start(self) -> None:
        self._app = App(self.settings)
        self._task = asyncio.create_task(self._app.run())
        ready = asyncio.create_task(self._app.ready.wait())
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait((self._task, ready), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            await self._task
        await self.host.events.settled()  # What it told of its start has its revisions.
        self.connect()

    def connect(self) -> None:
        """To the daemon at the socket, in whatever process it runs."""
        self._channel = grpc.aio.insecure_channel(
            f"unix:{self.settings.socket}", options=(("grpc.use_local_subchannel_pool", 1),)
        )
        for name, module in (
            ("cards", card_pb2_grpc.CardServiceStub),
            ("hosts", host_pb2_grpc.HostServiceStub),
            ("memory", memory_pb2_grpc.MemoryServiceStub),
            ("links", link_pb2_grpc.LinkServiceStub),
            ("optics", optics_pb2_grpc.OpticsServiceStub),
            ("transfers", transfer_pb2_grpc.TransferServiceStub),
            ("events", event_pb2_grpc.EventServiceStub),
            ("faults", fault_pb2_grpc.FaultServiceStub),
            ("diags", diag_pb2_grpc.DiagServiceStub),
            ("health", health_pb2_grpc.HealthServiceStub),
        ):
            setattr(self, name, module(self._channel))

    cards: Any = None
    hosts: Any = None
    memory: Any = None
    links: Any = None
    optics: Any = None
    transfers: Any = None
    events: Any = None
    faults: Any = None
    diags: Any = None
    health: Any = None

    async def stop(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None
        if self._app is not None and self._task is not None:
            self._app.stop()
            app_task, self._app, self._task = self._task, None, None
            async with asyncio.timeout(WAIT_S):
                await app_task

    @property
    def host(self) -> Host:
        assert self._app is not None
        assert self._app.host is not None
        return self._app.host

    @property
    def channel(self) -> Any:
        return self._channel

    async def region(self, card: str, name: str, size: int = 1 << 20) -> memory_pb2.Region:
        return await self.memory.CreateRegion(
            memory_pb2.CreateRegionRequest(parent=f"cards/{card}", region_id=name, size_bytes=size)
        )

    async def write(self, region: str, data: bytes, offset: int = 0) -> None:
        async def parts() -> AsyncIterator[memory_pb2.WriteRegionRequest]:
            yield memory_pb2.WriteRegionRequest(
                header=memory_pb2.WriteRegionRequest.Header(
                    name=region, offset=offset, length=len(data)
                )
            )
            for start in range(0, len(data), 1 << 20):
                yield memory_pb2.WriteRegionRequest(data=data[start : start + (1 << 20)])

        await self.memory.WriteRegion(parts())

    async def read(self, region: str, offset: int = 0, length: int = 0) -> bytes:
        request = memory_pb2.ReadRegionRequest(name=region, offset=offset, length=length)
        return b"".join([part.data async for part in self.memory.ReadRegion(request)])


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for sockets, which tmp_path may not be."""
    path = Path(tempfile.mkdtemp(prefix="acceld-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def hardware(folder: Path) -> AsyncIterator[FakeHardware]:
    """Two cards, one link between them, which is up."""
    fake = FakeHardware(folder / "hardware.sock")
    fake.set_link("card0", 0, LinkState.UP, DownReason.NONE)
    fake.set_link("card1", 0, LinkState.UP, DownReason.NONE)
    await fake.start()
    yield fake
    await fake.stop()
    fake.close()


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings(
        config=None,
        state_dir=folder / "state",
        socket=folder / "acceld.sock",
        memory_socket=folder / "memory.sock",
        hardware_socket=folder / "hardware.sock",
        metrics=None,
        chassis="attach",
    )


@pytest.fixture
async def daemon(hardware: FakeHardware, settings: Settings) -> AsyncIterator[Daemon]:
    running = Daemon(settings)
    await running.start()
    yield running
    await running.stop()
