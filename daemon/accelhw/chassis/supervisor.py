"""Starts the workers and watches them: a worker that dies is told, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from accelhw.chassis.control import (
    FromWorker,
    GivesUp,
    WorkerReady,
    WorkerStart,
    decode_from_worker,
)
from accelhw.chassis.process import how_it_ended
from accelhw.interface.channel import Channel, ChannelClosed, MalformedMessage
from accelhw.interface.messages import Message

log = structlog.get_logger()

WORKER_COMMAND = (sys.executable, "-m", "accelhw.chassis.worker")

BACKOFF_S_MIN = 0.1
BACKOFF_S_MAX = 5.0
STEADY_S = 10.0  # a life as long as this starts the backoff afresh
STOP_S = 3.0  # from power-off to SIGKILL
LINGER_S = 1.0  # from a closed control socket to SIGKILL


class Keeper(Protocol):
    """What the supervisor asks and tells; all calls come from its loop."""

    def worker_start(self, worker: int, life: int) -> tuple[WorkerStart, tuple[int, ...]]:
        """All that a new life needs, and the fresh descriptors in it: inherited, then closed here.

        Raises Exception; the worker is tried again later.
        """

    def lasting_fds(self, worker: int) -> tuple[int, ...]:
        """Descriptors to inherit that stay open here: HBM and tables."""

    def worker_started(self, worker: int, pid: int, life: int) -> None: ...

    def worker_said(self, worker: int, message: FromWorker) -> None: ...

    def worker_died(self, worker: int, pid: int, life: int, how: str) -> None:
        """It will start again by itself."""


@dataclass(slots=True)
class _Worker:
    index: int
    process: asyncio.subprocess.Process | None = None
    channel: Channel[FromWorker] | None = None
    life: int = -1
    task: asyncio.Task[None] | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor:
    def __init__(
        self,
        keeper: Keeper,
        workers: int,
        command: Sequence[str] = WORKER_COMMAND,
        backoff_s: Callable[[int], float] | None = None,
    ) -> None:
        """`command` gets the number of its control descriptor as its last argument."""
        self._keeper = keeper
        self._command = tuple(command)
        self._backoff_s = backoff_s or backoff
        self._workers = [_Worker(index) for index in range(workers)]
        self._stop = asyncio.Event()
        self._cpus = sorted(os.sched_getaffinity(0))

    async def start(self) -> None:
        """Start all workers; returns when each has been told what it is."""
        for worker in self._workers:
            await self._spawn(worker)
            worker.task = asyncio.create_task(self._watch(worker), name=f"worker{worker.index}")

    def send(self, worker: int, message: Message) -> bool:
        """Give a worker a message; False if it is gone just now."""
        channel = self._workers[worker].channel
        if channel is None:
            return False
        channel.post(message)
        return True

    def pid(self, worker: int) -> int | None:
        process = self._workers[worker].process
        return process.pid if process else None

    async def wait_ready(self) -> None:
        """Until each worker has said that its cards answer."""
        await asyncio.gather(*(worker.ready.wait() for worker in self._workers))

    async def run(self) -> None:
        """Until the watch over a worker itself breaks; raises what broke it."""
        await asyncio.gather(*(worker.task for worker in self._workers if worker.task))

    async def stop(self) -> None:
        """Power off: closed control sockets are the word; who does not hear it is killed."""
        self._stop.set()
        watches = [worker.task for worker in self._workers if worker.task]
        for worker in self._workers:
            if worker.channel is not None:
                worker.channel.abort()
        if watches:
            _, late = await asyncio.wait(watches, timeout=STOP_S)
            for worker in self._workers:
                if worker.task in late:
                    log.warning("worker_killed", worker=worker.index, after_s=STOP_S)
                    _kill(worker.process)
            await asyncio.wait(watches)

    async def _watch(self, worker: _Worker) -> None:
        """A worker's lives, one after the other."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            began = loop.time()
            if worker.process is not None:
                pid, how = worker.process.pid, await self._live(worker)
                if self._stop.is_set():
                    return
                self._keeper.worker_died(worker.index, pid, worker.life, how)
            failures = 1 if loop.time() - began > STEADY_S else failures + 1
            await self._sleep(self._backoff_s(failures))
            if self._stop.is_set():
                return
            try:
                await self._spawn(worker)
            except Exception as error:  # Whatever it is, the next try may find it mended.
                log.error("worker_not_started", worker=worker.index, error=str(error))

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not past the word to stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _live(self, worker: _Worker) -> str:
        """Listen until the worker is gone; returns how it went."""
        assert worker.process is not None
        assert worker.channel is not None
        channel, process = worker.channel, worker.process
        fault = last_word = ""
        try:
            while True:
                message = await channel.receive()
                if isinstance(message, WorkerReady):
                    worker.ready.set()
                elif isinstance(message, GivesUp):
                    last_word = f"gave up: {message.why}"
                    continue
                self._keeper.worker_said(worker.index, message)
        except ChannelClosed:
            pass
        except MalformedMessage as error:
            fault = f"said something we do not understand ({error})"
        finally:
            worker.channel = None
            worker.ready.clear()
            channel.abort()
        if fault:
            _kill(process)
        try:
            async with asyncio.timeout(STOP_S if self._stop.is_set() else LINGER_S):
                status = await process.wait()
        except TimeoutError:
            _kill(process)
            status = await process.wait()
        worker.process = None
        return fault or last_word or how_it_ended(status)

    async def _spawn(self, worker: _Worker) -> None:
        life = worker.life + 1
        start, fresh = self._keeper.worker_start(worker.index, life)
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            inherited = (far.fileno(), *fresh, *self._keeper.lasting_fds(worker.index))
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(far.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                pass_fds=inherited,
                process_group=0,  # Ctrl-C is for the chassis; it tells its workers.
            )
        except BaseException:
            near.close()
            raise
        finally:
            far.close()
            for fd in fresh:
                os.close(fd)
        near.setblocking(False)
        worker.life = life
        worker.process = process
        self._pin(worker)
        worker.channel = await Channel.over(near, decode_from_worker)
        worker.channel.post(start)
        self._keeper.worker_started(worker.index, process.pid, life)

    def _pin(self, worker: _Worker) -> None:
        """A CPU for each worker, where there are as many: two that talk do not share one."""
        if worker.process is not None and 1 < len(self._workers) <= len(self._cpus):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(worker.process.pid, {self._cpus[worker.index]})


def backoff(failures: int) -> float:
    """Seconds before the next life, after so many short ones in a row."""
    return float(min(BACKOFF_S_MAX, BACKOFF_S_MIN * 2 ** min(failures - 1, 16)))


def _kill(process: asyncio.subprocess.Process | None) -> None:
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
