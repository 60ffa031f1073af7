"""Faults in a whole chassis with real workers: carried out, told, kept over a worker's death."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from accelhw.chassis.app import Chassis
from accelhw.interface.client import DeviceClient
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    ClearFault,
    Event,
    FaultChanged,
    FaultInfo,
    Hello,
    InjectFault,
)
from accelhw.interface.tables import Tables
from accelhw.model.config import Config
from accelhw.model.configfile import load
from accelhw.model.link import LinkState

WAIT_S = 60.0  # only ever reached by a test that fails
RACK = """
[hardware]
workers = 2
[[card]]
name = "card0"
profile = "single"
[[card]]
name = "card1"
profile = "single"
[[fibre]]
a = "card0/oe0"
b = "card1/oe0"
transport = "memory"
"""


class Driver:
    """An attached driver, and all it has heard."""

    def __init__(self, client: DeviceClient, chassis: Chassis) -> None:
        self.client = client
        self.chassis = chassis
        self.faults: list[FaultInfo] = []
        self.events: list[Event] = []
        rows = client.welcome.table_rows
        self.tables = Tables.attach(client.tables_fd, rows, writable=False)
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.client:
            match message:
                case FaultChanged(fault=fault):
                    self.faults.append(fault)
                case Event():
                    self.events.append(message)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.01)

    async def until_up(self) -> None:
        await self.until(lambda: set(self.tables.port["state"]) == {LinkState.UP})

    async def inject(self, name: str, kind: str, subject: str = "card0/oe0", **how: object) -> str:
        """The error of the completion; empty when it was carried out."""
        command = InjectFault(0, name, kind, subject, **how)  # type: ignore[arg-type]
        return (await self.client.command(command)).error

    async def clear(self, name: str) -> str:
        return (await self.client.command(ClearFault(0, name))).error

    async def close(self) -> None:
        self._listening.cancel()
        await self.client.close()


async def attach(chassis: Chassis, path: Path) -> Driver:
    hello = Hello(INTERFACE_VERSION, "", 0)
    return Driver(await DeviceClient.connect(str(path), hello), chassis)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Driver]:
    config = load(RACK)
    assert isinstance(config, Config)
    chassis = Chassis(config, folder / "hw.sock", worker_backoff_s=lambda failures: 0.0)
    await chassis.start()
    driver = None
    try:
        await chassis.supervisor.wait_ready()
        driver = await attach(chassis, folder / "hw.sock")
        await driver.until_up()
        yield driver
    finally:
        if driver is not None:
            await driver.close()
        await chassis.stop()


async def test_a_cut_fibre_is_dark_until_it_is_spliced(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        assert await driver.inject("cut", "fibre_cut") == ""
        assert [info.fault_id for info in driver.faults] == ["cut"]  # told before the completion
        await driver.until(lambda: driver.tables.lane["los"].all())
        await driver.until(lambda: driver.kinds.count("LINK_DOWN") == 2)
        assert await driver.clear("cut") == ""
        await driver.until_up()
        await driver.until(lambda: "FAULT_CLEARED" in driver.kinds)
        here = [event.kind for event in driver.events if event.subject == "card0/oe0"]
        assert here.index("FAULT_INJECTED") < here.index("LINK_DOWN")
        assert [info.state for info in driver.faults] == ["ACTIVE", "CLEARED"]
        injected = next(event for event in driver.events if event.kind == "FAULT_INJECTED")
        assert injected.subject == "card0/oe0"
        assert injected.detail["fault_kind"] == "fibre_cut"


async def test_a_fault_ends_in_its_time(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        assert await driver.inject("short", "dirty_connector_mild", duration_s=0.05) == ""
        await driver.until(lambda: "FAULT_ENDED" in driver.kinds)
        assert driver.chassis.registers.faults == {}
        assert await driver.clear("short") == "UNKNOWN_FAULT"


async def test_a_fault_outlives_the_worker_and_the_driver(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        how = {"target_ber": 1e-9, "shape": "step"}
        assert await driver.inject("aimed", "dirty_connector_bad", **how) == ""
        worker = driver.client.welcome.cards[0].worker
        pid = driver.chassis.supervisor.pid(worker)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await driver.until(lambda: driver.kinds.count("CARD_READY") == 3)
        await driver.close()
        again = await attach(driver.chassis, tmp_path / "hw.sock")
        try:
            (info,) = again.client.welcome.faults
            assert (info.fault_id, info.target_ber) == ("aimed", 1e-9)
            await again.until_up()
            await again.until(
                lambda: again.tables.lane["pre_fec_ber"][0] == pytest.approx(1e-9, rel=0.05)
            )
        finally:
            await again.close()


async def test_a_plug_that_is_turned_shows_in_the_lane_map(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        assert await driver.inject("turned", "polarity_swap") == ""
        await driver.until(lambda: driver.tables.lane["inverted"].all())
        await driver.until_up()


async def test_the_catalogue_comes_with_the_welcome(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        kinds = {kind.id: kind for kind in driver.client.welcome.fault_kinds}
        assert kinds["bent_fibre"].causes == {"rx_path_loss_db": 6.0, "tx_path_loss_db": 6.0}
        assert kinds["bent_fibre"].aims
        assert not kinds["laser_fail"].aims


async def test_what_cannot_be_is_refused_before_a_worker_hears_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        assert await driver.inject("taken", "dirty_connector_mild") == ""
        for error, how in {
            "UNKNOWN_FAULT": ("x", "bent_fiber"),
            "UNKNOWN_PORT": ("x", "bent_fibre", "card0/oe1"),
            "UNKNOWN_CARD": ("x", "bent_fibre", "card7/oe0"),
            "UNKNOWN_LANE": ("x", "bent_fibre", "card0/oe0/lane1"),
            "BAD_FAULT": ("x", "ring_drift"),
            "EXISTS": ("taken", "bent_fibre"),
        }.items():
            assert await driver.inject(*how) == error
        assert await driver.inject("x", "bent_fibre", scale=-1.0) == "BAD_FAULT"
        assert await driver.inject("x", "hbm_dbe", "card0", address=1 << 60) == "OUT_OF_RANGE"
        assert await driver.inject("x", "dirty_connector_mild", address=16) == "BAD_FAULT"
        assert await driver.inject("x", "dirty_connector_mild", duration_s=1e12) == "BAD_FAULT"
        command = InjectFault(0, "x", "bent_fiber", "card0/oe0")
        detail = (await driver.client.command(command)).detail
        assert detail == "there is no fault 'bent_fiber'; did you mean bent_fibre?"
        near = (await driver.client.command(ClearFault(0, "takn"))).detail
        assert near == "there is no fault 'takn'; did you mean taken?"
        assert list(driver.chassis.registers.faults) == ["taken"]


async def test_a_drivers_own_times_are_not_believed(tmp_path: Path) -> None:
    async with running(tmp_path) as driver:
        command = InjectFault(0, "old", "dirty_connector_mild", "card0/oe0", duration_s=60.0)
        await driver.client.command(msgspec.structs.replace(command, begun_ns=1, started_ns=1))
        (info,) = driver.faults
        assert info.started_ns > 10**18
        assert info.state == "ACTIVE"
