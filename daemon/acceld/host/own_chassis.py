"""A chassis as our child: powered on with the daemon, powered off at its end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import structlog

log = structlog.get_logger()

POWER_OFF_S = 10.0  # from SIGTERM to SIGKILL: for workers to end and interfaces to be unmade


class OwnChassis:
    def __init__(self, config: Path, socket: Path, arguments: tuple[str, ...] = ()) -> None:
        self._command = (
            sys.executable, "-m", "accelhw.chassis",
            "--config", str(config), "--socket", str(socket), "--die-with-parent", *arguments,
        )  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, or was never started."""
        return self._process.returncode if self._process else None

    @property
    def was_started(self) -> bool:
        """Once at least; it may have ended since."""
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def power_on(self) -> None:
        # A session of its own: Ctrl-C reaches the daemon, which then ends it in order; and the
        # kernel shares the CPUs between sessions (sched_autogroup(7)), so that calls do not wait
        # behind each process that moves frames.
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        log.info("chassis_powered_on", pid=self._process.pid)

    async def wait(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def power_off(self) -> None:
        """SIGTERM, and SIGKILL when that does not end it."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(POWER_OFF_S):
                await process.wait()
        except TimeoutError:
            log.warning("chassis_killed", pid=process.pid, after_s=POWER_OFF_S)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        log.info("chassis_powered_off", exit_code=process.returncode)
