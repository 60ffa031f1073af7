"""A whole chassis over the memory transport, with workers that only pretend."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from accelhw.chassis.app import Chassis
from accelhw.chassis.device_server import SocketInUse
from accelhw.chassis.memory import NotEnoughMemory
from accelhw.interface.client import ChassisRefused, ChassisUnreachable, DeviceClient
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    AcknowledgeEvents,
    AcknowledgeTransfer,
    CancelTransfer,
    ChannelMapEntry,
    ClearFlags,
    Event,
    Hello,
    RegisterWindow,
    ResetCard,
    SetChannelMap,
    SetPortAdmin,
    StartTransfer,
    TrainPort,
    TransferProgress,
    UnregisterWindow,
)
from accelhw.interface.tables import CARD_FELL_OFF_BUS, Tables
from accelhw.model.config import Config
from accelhw.model.configfile import load
from accelhw.model.transfer import TransferState

HANG_S = 60  # only ever reached by a test that fails
FAKE = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))
PAIR = """
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


def pair(extra="") -> Config:
    config = load(extra + PAIR)
    assert isinstance(config, Config)
    return config


def open_fds():
    return len(os.listdir("/proc/self/fd"))


async def until_so(condition):
    """Other tests' gRPC opens and closes descriptors in its own time, beside what we count."""
    async with asyncio.timeout(HANG_S):
        while not condition():
            await asyncio.sleep(0.01)


def children():
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


@asynccontextmanager
async def running(tmp_path, config=None, backoff_s=0.0):
    chassis = Chassis(
        config or pair(),
        tmp_path / "hardware.sock",
        worker_command=FAKE,
        worker_backoff_s=lambda failures: backoff_s,
    )
    await chassis.start()
    try:
        await chassis.supervisor.wait_ready()
        yield chassis
    finally:
        await chassis.stop()


async def attach(tmp_path, last_event=0, boot_id=""):
    hello = Hello(INTERFACE_VERSION, boot_id, last_event)
    return await DeviceClient.connect(str(tmp_path / "hardware.sock"), hello)


async def until(client, wanted):
    """What the client hears, up to and including the first that is wanted."""
    heard = []
    async with asyncio.timeout(HANG_S):
        async for message in client:
            heard.append(message)
            if wanted(message):
                return heard
    raise AssertionError(f"never heard; only {heard}")


def kind(name, subject=None):
    return lambda m: isinstance(m, Event) and m.kind == name and subject in (None, m.subject)


def transfer(name="t1", card="card0", length=100):
    return StartTransfer(0, name, 1, card, 1, 0, length, "card1", 1, 7, 0)


async def test_a_driver_is_told_everything_and_shares_the_memory(tmp_path):
    async with running(tmp_path) as chassis:
        client = await attach(tmp_path)
        welcome = client.welcome
        assert [card.name for card in welcome.cards] == ["card0", "card1"]
        assert welcome.boot_id == chassis.boot_id
        assert welcome.chassis_pid == os.getpid()
        assert {card.worker for card in welcome.cards} == {0, 1}, "a pair gets two CPUs"
        assert welcome.cards[0].ports[0].fibre.transport == "memory"
        assert welcome.channel_maps["card0"] == (ChannelMapEntry(0, 0, 0, 0),)
        assert os.fstat(client.hbm_fd("card1")).st_size == 16 << 30
        assert os.fstat(client.hbm_fd("card1")).st_blocks == 0
        with pytest.raises(OSError, match="not permitted"):
            os.ftruncate(client.hbm_fd("card1"), 0)
        tables = Tables.attach(client.tables_fd, welcome.table_rows, writable=False)
        assert list(tables.worker["pid"]) == [chassis.supervisor.pid(n) for n in (0, 1)]
        await client.close()


async def test_commands_reach_the_worker_and_nonsense_does_not(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)

        async def error(command):
            return (await client.command(command)).error

        assert await error(SetPortAdmin(0, "card0", 0, False)) == ""
        assert await error(SetPortAdmin(0, "card0", 1, False)) == "UNKNOWN_PORT"
        assert await error(TrainPort(0, "card0", 0)) == "BAD_STATE"  # The worker's own word.
        assert await error(TrainPort(0, "card9", 0)) == "UNKNOWN_CARD"
        assert await error(RegisterWindow(0, "card0", 1, 7, 0, 4096)) == ""
        assert await error(RegisterWindow(0, "card0", 1, 7, 0, 4096)) == "EXISTS"
        assert await error(RegisterWindow(0, "card0", 2, 7, 16 << 30, 1)) == "OUT_OF_RANGE"
        assert await error(UnregisterWindow(0, "card0", 5)) == "UNKNOWN_REGION"
        assert await error(SetChannelMap(0, "card0", ())) == "BAD_MAP"
        twisted = (ChannelMapEntry(0, 0, 0, 1),)
        assert await error(SetChannelMap(0, "card0", twisted)) == "BAD_MAP"
        assert await error(transfer(length=5000)) == "OUT_OF_RANGE"
        assert await error(CancelTransfer(0, "t1")) == "UNKNOWN_TRANSFER"
        assert await error(transfer()) == ""
        assert await error(transfer()) == "EXISTS"
        assert await error(AcknowledgeTransfer(0, "t1")) == "BAD_STATE"
        assert await error(UnregisterWindow(0, "card0", 1)) == ""
        await client.close()


async def test_a_hundred_commands_at_once_each_get_their_own_answer(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)
        done = await asyncio.gather(
            *(client.command(RegisterWindow(0, f"card{n % 2}", n, 1, 0, 1)) for n in range(100))
        )
        assert [c.error for c in done] == [""] * 100
        assert len({c.id for c in done}) == 100
        await client.close()


async def test_a_killed_worker_comes_back_as_it_was(tmp_path):
    async with running(tmp_path) as chassis:
        client = await attach(tmp_path)
        assert not (await client.command(SetPortAdmin(0, "card0", 0, False))).error
        assert not (await client.command(RegisterWindow(0, "card0", 5, 7, 0, 4096))).error
        assert not (await client.command(RegisterWindow(0, "card0", 1, 7, 0, 4096))).error
        assert not (await client.command(transfer())).error
        await until(client, lambda m: isinstance(m, TransferProgress))
        os.pwrite(client.hbm_fd("card0"), b"weights", 1 << 30)

        lost = await client.command(ResetCard(0, "card0"))  # The fake dies of it.
        assert lost.error == "CARD_LOST"

        heard = await until(client, kind("TRANSFER_DONE"))
        events = [m for m in heard if isinstance(m, Event)]
        assert [(e.kind, e.subject) for e in events] == [
            ("WORKER_DIED", "chassis"),
            ("FELL_OFF_BUS", "card0"),
            ("WORKER_STARTED", "chassis"),
            ("TOLD", "card0"),
            ("CARD_READY", "card0"),
            ("TRANSFER_WAITING", "card0"),
            ("TRANSFER_DONE", "card0"),
        ]
        assert "was ended by SIGKILL" in events[0].message
        assert events[3].detail == {"up": "", "channel0": 0, "windows": "5 1", "life": 1}
        assert events[5].message.endswith("waits for a link at 50 good bytes")
        assert events[6].message.endswith("done in 2578.0 ms, every byte checked")

        def ended(message):
            return isinstance(message, TransferProgress) and message.transfer.state >= 4

        assert not any(ended(m) for m in heard), "nothing overtakes the events before it"
        heard += await until(client, ended)
        told = [m.transfer for m in heard if isinstance(m, TransferProgress)]
        *waited, done = told
        assert {(t.state, t.good_bytes) for t in waited} == {(TransferState.WAITING, 50)}
        assert (done.state, done.good_bytes) == (TransferState.DONE, 100)
        assert done.started_ns == waited[0].started_ns, "one transfer, over two lives"
        assert not (await client.command(RegisterWindow(0, "card1", 1, 7, 0, 4096))).error
        ends = [e for e in chassis.journal.after(0) if e.kind == "TRANSFER_DONE"]
        assert len(ends) == 1, "its end is told once, however often a worker tells it"
        assert os.pread(client.hbm_fd("card0"), 7, 1 << 30) == b"weights"
        tables = Tables.attach(client.tables_fd, client.welcome.table_rows, writable=False)
        assert list(tables.worker["restarts"]) == [1, 0]
        assert chassis.registers.transfers["t1"].ended
        assert not (await client.command(AcknowledgeTransfer(0, "t1"))).error
        assert not chassis.registers.transfers
        await client.close()


async def test_sockets_of_virtual_channels_come_for_interfaces_only(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)
        fds = open_fds()
        for _ in range(2):
            assert not (await client.command(ClearFlags(0, "card0", 0))).error
            got = (await until(client, kind("GOT")))[-1]
            assert (got.subject, got.detail) == ("card0/oe0", {"interfaces": ""}), "memory has none"
            await client.command(ResetCard(0, "card0"))
            await until(client, kind("CARD_READY", "card0"))
        assert open_fds() <= fds
        await client.close()


@pytest.mark.network
async def test_a_worker_gets_as_many_sockets_as_it_asked_for_in_each_life(tmp_path):
    config = load(PAIR.replace("memory", "veth"))
    async with running(tmp_path, config):
        client = await attach(tmp_path)
        interface = client.welcome.cards[0].ports[0].fibre.interface
        fds = open_fds()
        for _ in range(2):
            assert not (await client.command(ClearFlags(0, "card0", 0))).error
            got = (await until(client, kind("GOT")))[-1]
            assert got.detail == {"interfaces": f"{interface} {interface}"}
            await client.command(ResetCard(0, "card0"))  # Its death closes them.
            await until(client, kind("CARD_READY", "card0"))
        assert open_fds() <= fds, "the chassis keeps none"
        await client.close()


async def test_while_a_worker_is_gone_its_cards_are_lost_and_the_others_are_not(tmp_path):
    async with running(tmp_path, backoff_s=3600):
        client = await attach(tmp_path)
        assert (await client.command(ResetCard(0, "card0"))).error == "CARD_LOST"
        await until(client, kind("FELL_OFF_BUS"))
        assert (await client.command(SetPortAdmin(0, "card0", 0, True))).error == "CARD_LOST"
        assert (await client.command(SetPortAdmin(0, "card1", 0, True))).error == ""
        tables = Tables.attach(client.tables_fd, client.welcome.table_rows, writable=False)
        assert tables.card["state"][0] == CARD_FELL_OFF_BUS
        assert list(tables.worker["alive"]) == [0, 1]
        await client.close()


async def test_nothing_leaks_over_many_deaths_and_drivers(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)
        fds, processes = open_fds(), len(children())
        for _ in range(10):
            await client.command(ResetCard(0, "card0"))
            await until(client, kind("CARD_READY", "card0"))
            await client.close()
            client = await attach(tmp_path)
            await until(client, kind("CARD_READY", "card1"))
        await until_so(lambda: open_fds() <= fds)
        assert len(children()) == processes
        await client.close()


async def test_a_stopped_chassis_leaves_nothing(tmp_path):
    fds, processes = open_fds(), children()
    async with running(tmp_path):
        client = await attach(tmp_path)
    await client.wait_lost()
    await client.close()
    assert children() == processes
    assert list(tmp_path.iterdir()) == []
    # asyncio keeps no descriptor of ours; its own are opened once, before the first count.
    await until_so(lambda: open_fds() <= fds)


async def test_events_are_told_again_until_acknowledged_once_for_each_hello(tmp_path):
    async with running(tmp_path) as chassis:
        ready = chassis.journal.newest
        client = await attach(tmp_path)
        first = await until(client, lambda m: m.sequence == ready)
        assert [event.sequence for event in first] == list(range(1, ready + 1))
        await client.close()

        client = await attach(tmp_path)
        assert await until(client, lambda m: m.sequence == ready) == first
        assert not (await client.command(AcknowledgeEvents(0, 3))).error
        await client.close()

        client = await attach(tmp_path)
        assert client.welcome.oldest_kept_event == 4
        assert await until(client, lambda m: m.sequence == ready) == first[3:]
        await client.close()

        client = await attach(tmp_path, ready - 1, chassis.boot_id)
        assert await until(client, lambda m: m.sequence == ready) == first[-1:]
        await client.close()

        other_boot = await attach(tmp_path, ready, "0123456789abcdef")
        assert await until(other_boot, lambda m: m.sequence == ready) == first[-1:]
        await other_boot.close()


async def test_a_second_driver_is_refused_and_the_next_one_is_not(tmp_path):
    async with running(tmp_path):
        first = await attach(tmp_path)
        with pytest.raises(ChassisRefused, match=f"process {os.getpid()}"):
            await attach(tmp_path)
        assert not (await first.command(SetPortAdmin(0, "card0", 0, True))).error
        await first.close()
        second = await attach(tmp_path)  # At once: the end of the first may not be noticed yet.
        await second.close()


async def test_a_driver_of_another_version_is_refused(tmp_path):
    async with running(tmp_path):
        with pytest.raises(ChassisRefused, match="run both from one release"):
            await DeviceClient.connect(str(tmp_path / "hardware.sock"), Hello(99))


async def test_noise_on_the_socket_drops_that_connection_only(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "hardware.sock"))
        writer.write(b"\xff" * 100)
        with suppress(ConnectionResetError):  # So it is called when bytes were left unread.
            assert await reader.read() == b""
        writer.close()
        assert not (await client.command(SetPortAdmin(0, "card0", 0, True))).error
        await client.close()


async def test_a_lost_chassis_is_noticed(tmp_path):
    async with running(tmp_path):
        client = await attach(tmp_path)
    async with asyncio.timeout(HANG_S):
        heard = [message async for message in client]
    assert {type(m) for m in heard} == {Event}
    assert client.is_lost
    await client.close()
    with pytest.raises(ChassisUnreachable, match="start one: acceld chassis"):
        await attach(tmp_path)


async def test_a_socket_in_use_is_refused_and_a_stale_one_replaced(tmp_path):
    async with running(tmp_path):
        with pytest.raises(SocketInUse, match="a chassis answers at"):
            async with running(tmp_path):
                pass
        client = await attach(tmp_path)  # The first one was not disturbed.
        await client.close()
    import socket

    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "hardware.sock"))
    async with running(tmp_path):
        assert (tmp_path / "hardware.sock").stat().st_mode & 0o777 == 0o660


async def test_a_budget_beyond_the_machine_is_refused(tmp_path):
    asked = load(PAIR.replace("workers = 2", "workers = 2\nhbm_budget_gib = 1000000"))
    assert isinstance(asked, Config)
    with pytest.raises(NotEnoughMemory, match="asks for 1e\\+06 GiB, and this machine can"):
        async with running(tmp_path, asked):
            pass
    assert list(tmp_path.iterdir()) == []
