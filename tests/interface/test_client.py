"""A driver's side: who answers is checked, answers find their question, a loss is noticed."""

import asyncio
import os
import socket
from contextlib import asynccontextmanager

import pytest

from accelhw.interface.channel import Channel, pack, receive_bare, send_bare
from accelhw.interface.client import (
    PROGRESS_BACKLOG,
    ChassisLost,
    ChassisRefused,
    ChassisUnreachable,
    DeviceClient,
)
from accelhw.interface.messages import (
    INTERFACE_VERSION,
    Completion,
    Event,
    Hello,
    Refused,
    TrainingProgress,
    TrainPort,
    TransferInfo,
    TransferProgress,
    Welcome,
    decode,
)
from accelhw.model.transfer import TransferState

HELLO = Hello(INTERFACE_VERSION)
ENDED = TransferInfo("t1", 1, int(TransferState.DONE), "card0", "card1", 100, ended_ns=9)


def welcome(version=INTERFACE_VERSION):
    return Welcome(version, "b", 1, 2, 3, (), (), (), {}, 0, 1, (0, 0, 0, 0))


def event(number):
    return Event(number, 0, 1, "LINK_UP", "card0/oe0", "up")


@asynccontextmanager
async def chassis(tmp_path, talk):
    """`talk(connection)` is the whole of a chassis."""
    path = str(tmp_path / "hardware.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.setblocking(False)

    async def serve():
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        connection.setblocking(False)
        await receive_bare(connection, decode)
        await talk(connection)

    task = asyncio.create_task(serve())
    try:
        yield path
        await task
    finally:
        task.cancel()
        listener.close()


async def greet(connection):
    tables = os.memfd_create("tables")
    await send_bare(connection, welcome(), [tables])
    os.close(tables)
    return await Channel.over(connection, decode)


async def test_answers_find_their_questions_in_any_order(tmp_path):
    async def talk(connection):
        channel = await greet(connection)
        asked = [await channel.receive() for _ in range(10)]
        for command in reversed(asked):
            channel.post(Completion(command.id, detail=str(command.oe)))
        await channel.close()

    async with chassis(tmp_path, talk) as path:
        client = await DeviceClient.connect(path, HELLO)
        done = await asyncio.gather(*(client.command(TrainPort(0, "c", n)) for n in range(10)))
        assert [c.detail for c in done] == [str(n) for n in range(10)]
        await client.close()


async def test_who_waits_for_an_answer_hears_of_the_loss(tmp_path):
    async def talk(connection):
        channel = await greet(connection)
        await channel.receive()
        channel.abort()

    async with chassis(tmp_path, talk) as path:
        client = await DeviceClient.connect(path, HELLO)
        with pytest.raises(ChassisLost, match="closed the connection"):
            await client.command(TrainPort(0, "c", 0))
        with pytest.raises(ChassisLost):
            await client.command(TrainPort(0, "c", 0))
        assert [m async for m in client] == []
        await client.close()


async def test_a_driver_that_lags_loses_progress_but_no_event_and_no_end(tmp_path):
    async def talk(connection):
        channel = await greet(connection)
        for number in range(PROGRESS_BACKLOG + 10):
            await channel.send(TrainingProgress("c", 0, 1, 1, text=str(number)))
        await channel.send(TransferProgress(ENDED))
        await channel.send(event(1))
        await channel.send(event(2))
        await channel.close()

    async with chassis(tmp_path, talk) as path:
        client = await DeviceClient.connect(path, HELLO)
        await client.wait_lost()
        heard = [m async for m in client]
        assert [m for m in heard if isinstance(m, Event)] == [event(1), event(2)]
        assert [m.transfer for m in heard if isinstance(m, TransferProgress)] == [ENDED]
        assert len(heard) == PROGRESS_BACKLOG + 3
        assert client.dropped_progress == 10
        await client.close()


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Refused("not now"), ChassisRefused, "not now"),
        (welcome(version=9), ChassisRefused, "run both from one release"),
        (welcome(), ChassisUnreachable, "no chassis of ours"),  # without its descriptors
        (Completion(1), ChassisUnreachable, "no chassis of ours"),
    ],
)
async def test_who_answers_otherwise_is_not_taken(tmp_path, answer, error, message):
    async def talk(connection):
        await send_bare(connection, answer)

    before = len(os.listdir("/proc/self/fd"))
    async with chassis(tmp_path, talk) as path:
        with pytest.raises(error, match=message):
            await DeviceClient.connect(path, HELLO)
    async with asyncio.timeout(60):  # Other tests' gRPC opens and closes some in its own time.
        while len(os.listdir("/proc/self/fd")) > before + 1:  # The test's own end, not collected.
            await asyncio.sleep(0.01)


async def test_who_does_not_answer_at_all(tmp_path):
    async def talk(connection):
        await asyncio.Event().wait()

    with pytest.raises(ChassisUnreachable, match=r"did not answer in 0\.05 s"):
        async with chassis(tmp_path, talk) as path:
            await DeviceClient.connect(path, HELLO, timeout_s=0.05)


async def test_a_chassis_that_talks_nonsense_is_lost(tmp_path):
    async def talk(connection):
        channel = await greet(connection)
        channel._writer.write(pack(HELLO))
        await channel.close()

    async with chassis(tmp_path, talk) as path:
        client = await DeviceClient.connect(path, HELLO)
        await client.wait_lost()
        assert "Hello is not for a driver" in client.why_lost
        await client.close()
