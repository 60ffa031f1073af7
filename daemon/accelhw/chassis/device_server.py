"""The device socket: one driver at a time, a Welcome with everything, then events and commands."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import grp
import os
import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from accelhw.chassis.journal import Journal
from accelhw.interface.channel import (
    Channel,
    ChannelClosed,
    MalformedMessage,
    receive_bare,
    send_bare,
)
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    AcknowledgeEvents,
    AnyMessage,
    Command,
    Completion,
    Event,
    Hello,
    Message,
    Refused,
    Welcome,
    decode,
)

log = structlog.get_logger()

GROUP = "accel"  # its members may drive the hardware
HELLO_S = 5.0
REPLACE_S = 0.5  # how long a second driver waits for the first one's end to be noticed
EVENT_BATCH = 256
PROGRESS_UNSENT_BYTES = 1 << 20  # a driver that lags further gets no progress until it caught up


class SocketInUse(Exception):
    """Somebody answers at the socket already."""


class Hardware(Protocol):
    """What stands behind the socket."""

    def welcome(self) -> tuple[Welcome, Sequence[int]]:
        """The hardware as it is now, with its descriptors, which stay the hardware's."""

    def command(self, command: Command, reply: Callable[[Completion], None]) -> None: ...


class DeviceServer:
    def __init__(self, path: Path, boot_id: str, journal: Journal, hardware: Hardware) -> None:
        self._path = path
        self._boot_id = boot_id
        self._journal = journal
        self._hardware = hardware
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._driver: _Driver | None = None
        self._turn = asyncio.Lock()  # one Hello at a time
        self._unsaid: list[Message] | None = None  # since a welcome that is on its way

    def claim(self) -> None:
        """Take the socket; drivers that come wait until `start`. Raises SocketInUse, OSError."""
        self._listener = listen(self._path)

    def start(self) -> None:
        """Let drivers in: the hardware is there."""
        assert self._listener is not None
        self._accepting = asyncio.create_task(self._accept(self._listener), name="accept")

    async def stop(self) -> None:
        """Hang up and take the socket's name away."""
        if self._listener is None:
            return
        tasks = [*self._connections, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()
        self._listener = None
        with contextlib.suppress(OSError):
            self._path.unlink()

    def tell(self, progress: Message) -> None:
        """Progress for the driver, if there is one and it keeps up. Like all that is told, it does
        not overtake the events before it."""
        if self._driver is not None:
            self._driver.tell(progress)

    def say(self, message: Message) -> None:
        """What the driver must not miss, however slow it is; it is rare."""
        if self._driver is not None:
            self._driver.say(message)
        elif self._unsaid is not None:
            self._unsaid.append(message)

    def journal_grew(self) -> None:
        if self._driver is not None:
            self._driver.events.set()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:  # Out of descriptors, most likely: let some go first.
                log.error("accept_failed", error=str(error))
                await asyncio.sleep(1)
                continue
            task = asyncio.create_task(self._serve(connection), name="driver")
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _serve(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        pid = _peer_pid(connection)
        driver: _Driver | None = None
        try:
            async with asyncio.timeout(HELLO_S):
                hello, fds = await receive_bare(connection, decode)
            for fd in fds:
                os.close(fd)
            async with self._turn:
                if refusal := await self._refusal(hello):
                    log.warning("driver_refused", pid=pid, reason=refusal)
                    await send_bare(connection, Refused(refusal))
                    return
                assert isinstance(hello, Hello)
                driver = self._driver = await self._attach(connection, hello, pid)
            await driver.run()
        except (ChannelClosed, MalformedMessage, TimeoutError) as error:
            log.warning("driver_dropped", pid=pid, reason=str(error) or "no hello came")
        except Exception:
            log.exception("driver_failed", pid=pid)  # Ours to mend; the hardware goes on.
        finally:
            if driver is None:
                connection.close()
            else:
                driver.end()
                if self._driver is driver:
                    self._driver = None
                log.info("driver_detached", pid=pid)

    async def _refusal(self, hello: AnyMessage) -> str:
        if not isinstance(hello, Hello):
            return "say Hello first"
        if hello.version != INTERFACE_VERSION:
            return (
                f"you speak version {hello.version} of the device interface, this chassis"
                f" {INTERFACE_VERSION}; run both from one release"
            )
        if self._driver is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPLACE_S):
                    await self._driver.ended.wait()
        if self._driver is not None:
            return f"another driver is attached (process {self._driver.pid}); stop it first"
        return ""

    async def _attach(self, connection: socket.socket, hello: Hello, pid: int) -> _Driver:
        if hello.boot_id == self._boot_id:
            self._journal.acknowledge(hello.last_event)
        self._journal.tell_loss()
        after = self._journal.oldest_kept - 1
        unsaid: list[Message] = []
        self._unsaid = unsaid
        try:
            welcome, fds = self._hardware.welcome()
            async with asyncio.timeout(HELLO_S):
                await send_bare(connection, welcome, fds)
            log.info("driver_attached", pid=pid, replayed_events=self._journal.newest - after)
            channel = await Channel.over(connection, decode)
        finally:
            self._unsaid = None
        driver = _Driver(channel, self._journal, self._hardware, after, pid)
        for message in unsaid:
            driver.say(message)
        return driver


class _Driver:
    """An attached driver: its commands in, completions, events and progress out."""

    def __init__(
        self,
        channel: Channel[AnyMessage],
        journal: Journal,
        hardware: Hardware,
        sent_event: int,
        pid: int,
    ) -> None:
        self.pid = pid
        self.events = asyncio.Event()
        self.ended = asyncio.Event()
        self._channel = channel
        self._journal = journal
        self._hardware = hardware
        self._sent_event = sent_event

    async def run(self) -> None:
        """Until the driver leaves. Raises MalformedMessage."""
        pump = asyncio.create_task(self._pump_events(), name="events")
        try:
            while True:
                message = await self._channel.receive()
                if isinstance(message, AcknowledgeEvents):
                    self._journal.acknowledge(message.sequence)
                    self._channel.post(Completion(message.id))
                elif isinstance(message, Command):
                    self._hardware.command(message, self.say)
                else:
                    raise MalformedMessage(f"a driver does not send {type(message).__name__}")
                await self._channel.drain()  # No driver makes us hold more than it takes.
        except ChannelClosed:
            return
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    def tell(self, progress: Message) -> None:
        if self._channel.unsent_bytes < PROGRESS_UNSENT_BYTES:
            self.say(progress)

    def say(self, message: Message) -> None:
        self._post_events()
        self._channel.post(message)

    def end(self) -> None:
        self._channel.abort()
        self.ended.set()

    async def _pump_events(self) -> None:
        """Each event once, in order, as fast as the driver takes them."""
        with contextlib.suppress(ChannelClosed):
            while True:
                self.events.clear()
                posted = self._post_events()
                await self._channel.drain()
                if not posted:
                    await self.events.wait()

    def _post_events(self) -> int:
        """Those of the next batch; how many they were."""
        batch = self._batch()
        for event in batch:
            self._channel.post(event)
            self._sent_event = event.sequence
        return len(batch)

    def _batch(self) -> list[Event]:
        if self._journal.oldest_kept > self._sent_event + 1:
            self._journal.tell_loss()
        found: list[Event] = []
        for event in self._journal.after(self._sent_event):
            found.append(event)
            if len(found) == EVENT_BATCH:
                break
        return found


def listen(path: Path) -> socket.socket:
    """A listening Unix socket, mode 0660, of the group `accel` if that exists.

    A socket file that nobody answers at is replaced. Raises SocketInUse, OSError.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        try:
            _bind(listener, path)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if not path.is_socket():
                raise SocketInUse(
                    f"{path} exists and is no socket; remove it, or use --socket"
                ) from error
            if _answers(path):
                raise SocketInUse(
                    f"a chassis answers at {path} already; stop it, or use --socket with another"
                    " path"
                ) from error
            path.unlink()
            _bind(listener, path)
        with contextlib.suppress(KeyError, OSError):  # No such group here, or not ours to give.
            os.chown(path, -1, grp.getgrnam(GROUP).gr_gid)
        listener.listen(8)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _bind(listener: socket.socket, path: Path) -> None:
    before = os.umask(0o117)  # The file is never wider open than it shall be.
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # Somebody is there, if only too busy.
    return True


def _peer_pid(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("iII", credentials)[0])
