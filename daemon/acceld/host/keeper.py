"""Keeps the host attached: powers on a chassis of its own or waits for one, again and again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from acceld import sockets
from acceld.errors import EXIT_CONFLICT, EXIT_INTERNAL, StartFailure
from acceld.host.host import Host, UnfitChassis
from acceld.host.own_chassis import OwnChassis
from accelhw.interface.client import ChassisRefused, ChassisUnreachable, DeviceClient
from accelhw.model.event import Severity

log = structlog.get_logger()

BACKOFF_S = (0.1, 5.0)  # first and longest pause between two tries
BOOT_LOOK_S = 0.03  # between two looks whether our own chassis answers
BOOT_S = 30.0
REFUSED_S = 2.0  # so long may a chassis hold on to a driver that was killed


class Keeper:
    """`own` is None when the chassis is somebody else's."""

    def __init__(self, host: Host, socket: Path, own: OwnChassis | None) -> None:
        self._host = host
        self._socket = socket
        self._own = own
        self._client: DeviceClient | None = None
        self._was_attached = False

    async def attach_first(self) -> None:
        """Once, at the start. Raises StartFailure where waiting could not help."""
        try:
            if self._own is not None:
                if not self._own.was_started:
                    await self._own.power_on()
                self._client = await self._answer_of(self._own)
            else:
                self._client = await self._attach_patiently()
        except ChassisRefused as error:
            raise StartFailure(f"the chassis at {self._socket}: {error}", EXIT_CONFLICT) from error
        except UnfitChassis as error:
            raise StartFailure(str(error), EXIT_INTERNAL) from error
        except ChassisUnreachable as error:
            if self._own is not None:
                code = self._own.exit_code
                raise StartFailure(
                    f"the chassis did not come up: {error}",
                    code if code in (2, 4, 6) else EXIT_INTERNAL,
                ) from error
            self._host.hardware.why_gone = str(error)
            log.warning("chassis_awaited", socket=str(self._socket), why=str(error))

    async def run(self) -> None:
        """Follow the hardware, and attach again when it went away; until cancelled."""
        pause_s = BACKOFF_S[0]
        while True:
            if self._client is not None:
                pause_s = BACKOFF_S[0]
                await self._host.follow(self._client)
                await self._lost()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, BACKOFF_S[1])
            try:
                if self._own is not None:
                    await self._own.power_on()
                    self._client = await self._answer_of(self._own)
                else:
                    self._client = await self._host.attach(self._socket)
            except (ChassisUnreachable, ChassisRefused, UnfitChassis) as error:
                if str(error) != self._host.hardware.why_gone:
                    log.warning("chassis_awaited", socket=str(self._socket), why=str(error))
                self._host.hardware.why_gone = str(error)
                self._end_what_ran()

    def _end_what_ran(self) -> None:
        """A chassis listens as long as it lives. Where one did and nobody does now, its memory is
        gone, and whoever waits for a transfer waits in vain."""
        if self._was_attached and not sockets.answers(self._socket):
            self._host.transfers.powered_off()

    async def close(self) -> None:
        """Power off what is ours, and detach: the last counts are read then."""
        if self._own is not None:
            await self._own.power_off()
        if self._client is not None:
            client, self._client = self._client, None
            await self._host.detach(client, report=False)

    async def _attach_patiently(self) -> DeviceClient:
        """A chassis may notice only now that its last driver was killed."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + REFUSED_S
        while True:
            try:
                return await self._host.attach(self._socket)
            except ChassisRefused:
                if loop.time() > deadline_s:
                    raise
                await asyncio.sleep(BACKOFF_S[0])

    async def _lost(self) -> None:
        client, self._client = self._client, None
        assert client is not None
        self._was_attached = True
        await self._host.detach(client)
        if self._own is None:
            return
        # It hung up on us: a chassis without its driver is of no use here, and one that dies
        # right now needs a moment to be seen dead.
        await self._own.power_off()
        self._host.transfers.powered_off()
        self._host.events.report(
            Severity.ERROR,
            "CHASSIS_DIED",
            "The daemon's own chassis ended; it is powered on again.",
            "chassis",
            exit_code=self._own.exit_code if self._own.exit_code is not None else 0,
        )

    async def _answer_of(self, own: OwnChassis) -> DeviceClient:
        """Attach as soon as what was powered on answers. Raises ChassisUnreachable."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + BOOT_S
        while True:
            try:
                return await self._host.attach(self._socket)
            except ChassisUnreachable as error:
                if not own.is_running:
                    raise ChassisUnreachable(
                        f"it ended with exit code {own.exit_code}; its last lines say why"
                    ) from error
                if loop.time() > deadline_s:
                    await own.power_off()
                    raise
                await asyncio.sleep(BOOT_LOOK_S)
