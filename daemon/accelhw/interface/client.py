"""The driver's side of the border: attach to a chassis, give commands, hear what happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import AsyncIterator
from itertools import count

import msgspec

from accelhw.interface.channel import (
    Channel,
    ChannelClosed,
    MalformedMessage,
    receive_bare,
    send_bare,
)
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    AnyMessage,
    Command,
    Completion,
    DiagProgress,
    Event,
    FaultChanged,
    Hello,
    Refused,
    TrainingProgress,
    TransferProgress,
    Welcome,
    decode,
)

Unasked = Event | FaultChanged | TransferProgress | TrainingProgress | DiagProgress

# Progress is left out, and events never, when the driver lags this many messages behind.
PROGRESS_BACKLOG = 4096


class ChassisUnreachable(Exception):
    """Nobody answers at the socket; the message says what works."""


class ChassisRefused(Exception):
    """The chassis does not take this driver: another one is attached, or the version differs."""


class ChassisLost(Exception):
    """The chassis went away while we were attached."""


class DeviceClient:
    """An attached chassis. Read it with `async for message in client`, which ends when the chassis
    is lost or the client closed; commands may be given from many tasks at once."""

    def __init__(
        self, channel: Channel[AnyMessage], welcome: Welcome, fds: tuple[int, ...]
    ) -> None:
        self.welcome = welcome
        self._fds = fds  # tables, then each card's HBM
        self._channel = channel
        self._ids = count(1)
        self._pending: dict[int, asyncio.Future[Completion]] = {}
        self._unasked: deque[Unasked] = deque()
        self._arrived = asyncio.Event()
        self._lost = asyncio.Event()
        self._why_lost = ""
        self.dropped_progress = 0
        self._reader = asyncio.create_task(self._read(), name="device-client")

    @classmethod
    async def connect(cls, path: str, hello: Hello, timeout_s: float = 5.0) -> DeviceClient:
        """Attach to the chassis at `path`. Raises ChassisUnreachable, ChassisRefused."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.setblocking(False)
        fds: tuple[int, ...] = ()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.get_running_loop().sock_connect(sock, path)
                await send_bare(sock, hello)
                answer, fds = await receive_bare(sock, decode)
            match answer:
                case Welcome(version=version) if version != INTERFACE_VERSION:
                    raise ChassisRefused(
                        f"the chassis speaks version {version} of the device interface, we speak"
                        f" {INTERFACE_VERSION}; run both from one release"
                    )
                case Welcome(cards=cards) if len(fds) == 1 + len(cards):
                    return cls(await Channel.over(sock, decode), answer, fds)
                case Refused(reason=reason):
                    raise ChassisRefused(reason)
                case _:
                    raise ChassisUnreachable(f"what answers at {path} is no chassis of ours")
        except BaseException as error:
            sock.close()
            for fd in fds:
                os.close(fd)
            match error:
                case TimeoutError():
                    raise ChassisUnreachable(
                        f"the chassis at {path} did not answer in {timeout_s:g} s"
                    ) from error
                case OSError():
                    raise ChassisUnreachable(
                        f"no chassis at {path} ({os.strerror(error.errno or 0)});"
                        " start one: acceld chassis --config FILE"
                    ) from error
                case ChannelClosed() | MalformedMessage():
                    raise ChassisUnreachable(
                        f"what answers at {path} is no chassis of ours: {error}"
                    ) from error
            raise

    @property
    def tables_fd(self) -> int:
        """Shared memory of the status tables: `Tables.attach(client.tables_fd, rows, False)`."""
        return self._fds[0]

    def hbm_fd(self, card: str) -> int:
        """Shared memory of a card's HBM. Ours until `close`; mappings outlive it. KeyError."""
        for fd, info in zip(self._fds[1:], self.welcome.cards, strict=True):
            if info.name == card:
                return fd
        raise KeyError(card)

    async def command(self, command: Command) -> Completion:
        """Give a command and wait for its completion; the client sets its id.

        A refusal is a completion with an error, no exception. Raises ChassisLost.
        """
        if self._lost.is_set():
            raise ChassisLost(self._why_lost)
        command = msgspec.structs.replace(command, id=next(self._ids))
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._pending[command.id] = future
        try:
            self._channel.post(command)
            return await future
        finally:
            self._pending.pop(command.id, None)

    def tell(self, command: Command) -> None:
        """Give a command whose completion nobody waits for; a lost chassis does not hear it."""
        if not self._lost.is_set():
            self._channel.post(msgspec.structs.replace(command, id=next(self._ids)))

    async def __aiter__(self) -> AsyncIterator[Unasked]:
        while True:
            while self._unasked:
                yield self._unasked.popleft()
            if self._lost.is_set():
                return
            self._arrived.clear()
            await self._arrived.wait()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    @property
    def why_lost(self) -> str:
        return self._why_lost

    async def wait_lost(self) -> None:
        await self._lost.wait()

    async def close(self) -> None:
        """Detach. The hardware goes on; its next driver misses nothing."""
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        self._end("detached")
        await self._channel.close()
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    async def _read(self) -> None:
        why = "the chassis closed the connection"
        try:
            while True:
                self._dispatch(await self._channel.receive())
        except ChannelClosed:
            pass
        except MalformedMessage as error:
            why = f"the chassis sent something we do not understand: {error}"
        self._end(why)
        self._channel.abort()

    def _dispatch(self, message: AnyMessage) -> None:
        match message:
            case Completion(id=number):
                future = self._pending.get(number)
                if future is not None and not future.done():
                    future.set_result(message)
            case Event() | FaultChanged():
                self._unasked.append(message)
                self._arrived.set()
            case TransferProgress() if message.transfer.ended_ns:
                self._unasked.append(message)
                self._arrived.set()
            case DiagProgress() if message.diag.ended_ns:
                self._unasked.append(message)
                self._arrived.set()
            case TransferProgress() | TrainingProgress() | DiagProgress():
                if len(self._unasked) >= PROGRESS_BACKLOG:
                    self.dropped_progress += 1
                else:
                    self._unasked.append(message)
                    self._arrived.set()
            case _:
                raise MalformedMessage(f"{type(message).__name__} is not for a driver")

    def _end(self, why: str) -> None:
        if self._lost.is_set():
            return
        self._why_lost = why
        self._lost.set()
        self._arrived.set()
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ChassisLost(why))
