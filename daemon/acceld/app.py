"""Builds the daemon, hands each part what it needs, and ends it in order.

What takes long to import is imported where it is needed: a chassis of our own loads meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Coroutine
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog

from acceld import sockets
from acceld.config import Settings
from acceld.errors import EXIT_CONFLICT, EXIT_DENIED, EXIT_INTERNAL, EXIT_USAGE, StartFailure
from acceld.host.own_chassis import OwnChassis
from acceld.notify import Notifier, watchdog_interval_s
from acceld.store.store import Store, StoreLocked, StoreUnusable
from accelhw.model.event import Severity

if TYPE_CHECKING:
    from acceld.host.host import Host
    from acceld.service.server import Server
    from acceld.telemetry.http import MetricsServer

log = structlog.get_logger()

GRACE_S = 1.0  # for calls that run when we are asked to end


class App:
    """One daemon. `run` returns after SIGTERM or SIGINT, or raises StartFailure."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._notify = Notifier()
        self._stop = asyncio.Event()
        self._ended = contextlib.AsyncExitStack()
        self.host: Host | None = None
        self.ready = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with self._ended:
            starting = asyncio.create_task(self._start())
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                with contextlib.suppress(asyncio.CancelledError, StartFailure):
                    await starting
            else:
                await starting
                await stopping
            self._notify(STOPPING="1")
            log.info("stopping")
            if self.ready.is_set() and self.host is not None:
                self.host.events.report(Severity.INFO, "DAEMON_STOPPED", "The daemon stopped.")
        log.info("stopped")

    def stop(self) -> None:
        self._stop.set()

    async def _start(self) -> None:
        """In an order such that a conflict is found before anything is powered on."""
        settings, ended = self._settings, self._ended
        sockets.prepare(settings.socket)
        store = _open_store(settings)
        bound = self._claim_metrics()
        own = self._own_chassis()
        if own is not None:
            # Entered before it is powered on: whatever happens next, it will be powered off.
            ended.push_async_callback(own.power_off)
            await own.power_on()

        from acceld.host.host import Host
        from acceld.host.keeper import Keeper
        from acceld.journal import say_events

        host = self.host = Host(
            store, settings.memory_socket, version("acceld"), says_events=own is None
        )
        ended.callback(host.close)
        host.events.say = say_events()
        metrics = self._listen_for_scrapes(host, bound)
        host.broker.take_over(sockets.listen(settings.memory_socket))
        ended.callback(settings.memory_socket.unlink, missing_ok=True)
        server = self._listen_for_calls(host)
        self._watch_store(host, store)
        await self._task(host.events.run(), "events")

        keeper = Keeper(host, settings.hardware_socket, own)
        ended.push_async_callback(keeper.close)
        host.events.report(
            Severity.INFO, "DAEMON_STARTED", "The daemon started.", version=host.version
        )
        await keeper.attach_first()
        await self._task(keeper.run(), "keeper")
        await self._task(host.broker.run(), "memory-broker")
        await self._task(host.health.run(host.links.changed), "health")
        await self._task(host.keep_totals(), "totals")
        if metrics:
            metrics.start()
        await server.start()
        ended.push_async_callback(server.stop, GRACE_S)
        await self._task(self._tell_state(host, server), "state")
        if interval_s := watchdog_interval_s():
            await self._task(self._beat(interval_s), "watchdog")
        self._say_ready(host)

    # ---- parts ----------------------------------------------------------------------------------

    def _claim_metrics(self) -> socket.socket | None:
        address = self._settings.metrics
        if address is None:
            return None
        try:
            bound = sockets.listen_tcp(*address)
        except OSError as error:
            code = EXIT_DENIED if isinstance(error, PermissionError) else EXIT_CONFLICT
            raise StartFailure(
                f"cannot serve metrics at {address[0]}:{address[1]}: {error.strerror or error};"
                " choose another --metrics HOST:PORT, or --metrics off",
                code,
            ) from error
        self._ended.callback(bound.close)
        return bound

    def _listen_for_scrapes(self, host: Host, bound: socket.socket | None) -> MetricsServer | None:
        from acceld.fields.table import DEFAULT
        from acceld.telemetry.http import MetricsServer
        from acceld.telemetry.scrape import Scraper
        from acceld.telemetry.selection import UnknownGroup, known

        try:
            groups = DEFAULT | known(self._settings.metrics_collect)
        except UnknownGroup as error:
            raise StartFailure(f"--metrics-collect: {error}", EXIT_USAGE) from error
        if self._settings.metrics is None:
            return None
        scraper = Scraper(host.snapshot)
        metrics = MetricsServer(*self._settings.metrics, scraper, groups, bound)
        self._ended.callback(metrics.close)
        host.metrics_address = metrics.address
        host.scrapes = lambda: scraper.scrapes
        return metrics

    def _listen_for_calls(self, host: Host) -> Server:
        from acceld.service.server import Server

        path = self._settings.socket
        try:
            with sockets.private_umask():
                server = Server(host, f"unix:{path}")
            sockets.share(path)
        except (RuntimeError, OSError) as error:
            raise sockets.cannot_listen(path, str(error)) from error
        self._ended.callback(path.unlink, missing_ok=True)
        return server

    def _watch_store(self, host: Host, store: Store) -> None:
        """A store that left the disk is told once: in the log, and as an event."""
        loop = asyncio.get_running_loop()

        def tell(why: str) -> None:
            loop.call_soon_threadsafe(
                host.events.report,
                Severity.ERROR,
                "STORE_DEGRADED",
                f"The store is in memory only and ends with the daemon: {why}. Make room or"
                " rights, then restart the daemon.",
            )

        store.on_trouble = tell
        if store.trouble:
            tell(store.trouble)

    def _own_chassis(self) -> OwnChassis | None:
        settings = self._settings
        if settings.chassis == "attach":
            return None
        if settings.chassis == "auto" and sockets.answers(settings.hardware_socket):
            return None
        if settings.config is None:
            raise StartFailure("a chassis of our own needs --config FILE", 2)
        if sockets.answers(settings.hardware_socket):
            raise StartFailure(
                f"a chassis answers at {settings.hardware_socket} already; use it with --chassis"
                " attach, or choose another --hardware-socket",
                EXIT_CONFLICT,
            )
        sockets.prepare(settings.hardware_socket)
        return OwnChassis(
            settings.config, settings.hardware_socket, ("--log-format", settings.log_format)
        )

    async def _task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run in the background until the end; its failure is the daemon's."""
        task = asyncio.create_task(work, name=name)
        failed: list[BaseException] = []

        def done(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("part_failed", part=name, exc_info=error)
                failed.append(error)
                self.stop()

        task.add_done_callback(done)

        async def end() -> None:
            task.cancel()
            await asyncio.wait([task])
            if failed:
                raise StartFailure(f"the daemon's {name} failed: {failed[0]}", EXIT_INTERNAL)

        self._ended.push_async_callback(end)

    # ---- telling --------------------------------------------------------------------------------

    def _say_ready(self, host: Host) -> None:
        self._notify(READY="1", STATUS=_status(host))
        self.ready.set()
        log.info(
            "ready",
            socket=str(self._settings.socket),
            metrics=host.metrics_address or "off",
            state_dir=str(self._settings.state_dir),
            cards=len(host.hardware.attachment.cards) if host.hardware.attachment else 0,
        )

    async def _tell_state(self, host: Host, server: Server) -> None:
        """Health and the service manager's status line follow the hardware and its links."""
        before = ""
        while True:
            seen = host.links.changed.count
            status = _status(host)
            if status != before:
                self._notify(STATUS=status)
                await server.set_serving(host.hardware.attachment is not None)
                before = status
            await host.links.changed.past(seen)

    async def _beat(self, interval_s: float) -> None:
        while True:
            self._notify(WATCHDOG="1")
            await asyncio.sleep(interval_s)


def _status(host: Host) -> str:
    attachment = host.hardware.attachment
    if attachment is None:
        return f"waiting for the chassis: {host.hardware.why_gone}"
    counts = attachment.counts
    return f"{counts.cards} cards, {counts.links_up} of {counts.links} links up"


def _open_store(settings: Settings) -> Store:
    try:
        return Store.in_folder(settings.state_dir)
    except (StoreUnusable, StoreLocked) as error:
        raise StartFailure(str(error), EXIT_CONFLICT) from error
