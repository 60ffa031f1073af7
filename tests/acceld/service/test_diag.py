"""Tests of links as the API gives them: started, followed, cancelled, lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from accel.v1 import diag_pb2
from accelhw.interface.messages import (
    CancelDiag,
    Completion,
    LaneErrors,
    LaneEye,
    StartDiag,
    TrainPort,
)
from accelhw.model.diag import DURATION_S_MAX, DiagKind, DiagState, Verdict

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware

LINK = "cards/card0/links/oe0"
DONE = int(DiagState.DONE)


async def start(daemon: Daemon, kind: str = "PRBS", **how: Any) -> diag_pb2.Diag:
    kind_value = diag_pb2.DiagKind.Value(f"DIAG_KIND_{kind}")
    return await daemon.diags.StartDiag(
        diag_pb2.StartDiagRequest(link=LINK, kind=kind_value, **how)
    )


def given(hardware: FakeHardware, kind: type) -> list[Any]:
    return [command for command in hardware.commands if isinstance(command, kind)]


def id_of(diag: diag_pb2.Diag) -> str:
    return str(diag.name).removeprefix("diags/")


async def get(daemon: Daemon, name: str, brief: bool = False) -> diag_pb2.Diag:
    return await daemon.diags.GetDiag(diag_pb2.GetDiagRequest(name=name, brief=brief))


async def test_a_test_is_followed_to_its_end(hardware: FakeHardware, daemon: Daemon) -> None:
    made = await start(daemon, lanes=[3, 1], pattern="prbs7")
    assert made.state == diag_pb2.DIAG_STATE_RUNNING
    (command,) = given(hardware, StartDiag)
    assert (command.lanes, command.pattern, command.duration_s) == ((1, 3), "prbs7", 2.0)
    seen: list[diag_pb2.Diag] = []

    async def follow() -> None:
        async for diag in daemon.diags.WatchDiag(diag_pb2.WatchDiagRequest(name=made.name)):
            seen.append(diag)

    following = asyncio.create_task(follow())
    await until(lambda: seen)
    hardware.measure(id_of(made), done_ratio=0.5)
    await until(lambda: seen[-1].done_ratio == 0.5)
    lanes = (LaneErrors(1, bits=2e10, errors=4, verdict=int(Verdict.PASSED), locked=True),)
    hardware.measure(id_of(made), state=DONE, verdict=int(Verdict.PASSED), errors=lanes, ended_ns=5)
    await following
    assert seen[-1].state == diag_pb2.DIAG_STATE_DONE
    assert seen[-1].errors[0].ber == 2e-10
    assert (await get(daemon, made.name)) == seen[-1]


async def test_lists_are_newest_first_and_without_pictures(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    first, second = await start(daemon, "EYE"), await start(daemon, "BER")
    eyes = (LaneEye(0, lit=True, density=b"\1\2", rows=1, columns=2),)
    hardware.measure(id_of(first), state=DONE, eyes=eyes, ended_ns=5)
    await until(lambda: daemon.host.diags.get(id_of(first)).eyes)
    listed = await daemon.diags.ListDiags(diag_pb2.ListDiagsRequest())
    assert [diag.name for diag in listed.diags] == [second.name, first.name]
    assert not listed.diags[1].eyes
    assert (await get(daemon, first.name)).eyes[0].density == b"\1\2"
    assert not (await get(daemon, first.name, brief=True)).eyes
    other = diag_pb2.ListDiagsRequest(link="cards/card1/links/oe0")
    assert not (await daemon.diags.ListDiags(other)).diags


async def test_results_outlive_the_daemon(hardware: FakeHardware, daemon: Daemon) -> None:
    made = await start(daemon, "EYE")
    eyes = (LaneEye(0, lit=True, density=b"\1\2", rows=1, columns=2),)
    hardware.measure(id_of(made), state=DONE, eyes=eyes, ended_ns=5)
    await until(lambda: daemon.host.diags.get(id_of(made)).eyes)
    before = await get(daemon, made.name)
    await daemon.stop()
    await daemon.start()
    assert await get(daemon, made.name) == before
    listed = await daemon.diags.ListDiags(diag_pb2.ListDiagsRequest())
    assert [diag.name for diag in listed.diags] == [made.name]


async def test_cancelling_waits_for_the_end(hardware: FakeHardware, daemon: Daemon) -> None:
    made = await start(daemon)
    ended = await daemon.diags.CancelDiag(diag_pb2.CancelDiagRequest(name=made.name))
    assert ended.state == diag_pb2.DIAG_STATE_CANCELLED
    again = await daemon.diags.CancelDiag(diag_pb2.CancelDiagRequest(name=made.name))
    assert again == ended
    assert len(given(hardware, CancelDiag)) == 1


async def test_a_margin_scan_dwells_shortly_unless_told(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await start(daemon, "MARGIN")
    assert given(hardware, StartDiag)[0].duration_s == 0.05


async def test_the_far_loop_brings_its_reflector(hardware: FakeHardware, daemon: Daemon) -> None:
    made = await start(daemon, "LOOPBACK_FAR")
    reflector, tester = given(hardware, StartDiag)
    assert (reflector.kind, reflector.card, reflector.oe) == (DiagKind.REFLECT, "card1", 0)
    assert reflector.duration_s > tester.duration_s
    hardware.measure(id_of(made), state=DONE, ended_ns=5)
    await until(lambda: given(hardware, CancelDiag) and given(hardware, TrainPort))
    assert given(hardware, CancelDiag)[0].diag_id == reflector.diag_id
    assert given(hardware, TrainPort)[0].card == "card0"


async def test_a_far_loop_may_take_as_long_as_any_test(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await start(daemon, "LOOPBACK_FAR", duration=timedelta(days=1))
    assert max(one.duration_s for one in given(hardware, StartDiag)) <= DURATION_S_MAX


async def test_a_refused_far_loop_leaves_no_reflector(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    command = daemon.host.diags.start
    await start(daemon)
    hardware.refuse[StartDiag] = Completion(0, "LINK_BUSY", "card0/oe0 is being tested already")
    refused = await refusal(start(daemon, "PRBS"))
    assert (refused.status, refused.reason) == ("FAILED_PRECONDITION", "LINK_BUSY")
    assert len(daemon.host.diags.list()) == 1
    assert command is not None


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        ("BAD_TEST", "INVALID_ARGUMENT", "TEST_INVALID"),
        ("LINK_BUSY", "FAILED_PRECONDITION", "LINK_BUSY"),
        ("BAD_STATE", "FAILED_PRECONDITION", "BAD_STATE"),
    ],
)
async def test_what_the_hardware_refuses_is_told(
    hardware: FakeHardware, daemon: Daemon, error: str, status: str, reason: str
) -> None:
    hardware.refuse[StartDiag] = Completion(0, error, "because")
    refused = await refusal(start(daemon))
    assert (refused.status, refused.reason, refused.message) == (status, reason, "because")
    assert not daemon.host.diags.list()


async def test_tests_end_with_their_hardware(hardware: FakeHardware, daemon: Daemon) -> None:
    made = await start(daemon)
    hardware.emit("FELL_OFF_BUS", "card1", 3)
    hardware.emit("FELL_OFF_BUS", "card0", 3)
    await until(lambda: daemon.host.diags.get(id_of(made)).state == DiagState.FAILED)
    assert daemon.host.diags.get(id_of(made)).error == "CARD_LOST"
    second = await start(daemon)
    hardware.hang_up()
    await until(lambda: daemon.host.diags.get(id_of(second)).state == DiagState.FAILED)


async def test_an_unknown_test_is_not_found(daemon: Daemon) -> None:
    for call in (daemon.diags.GetDiag, daemon.diags.CancelDiag):
        refused = await refusal(call(diag_pb2.GetDiagRequest(name="diags/abc")))
        assert (refused.status, refused.reason) == ("NOT_FOUND", "DIAG_NOT_FOUND")
    refused = await refusal(daemon.diags.StartDiag(diag_pb2.StartDiagRequest(link=LINK)))
    assert refused.reason == "TEST_INVALID"


async def test_a_test_takes_a_day_at_most(hardware: FakeHardware, daemon: Daemon) -> None:
    refused = await refusal(start(daemon, duration=timedelta(days=2)))
    assert (refused.status, refused.reason) == ("INVALID_ARGUMENT", "TEST_INVALID")
    assert refused.message == "a test of 172800 s; use more than 0 and at most a day"
    assert not given(hardware, StartDiag)


async def test_old_results_are_forgotten(hardware: FakeHardware, daemon: Daemon) -> None:
    first = await start(daemon, "BER")
    hardware.measure(id_of(first), state=DONE, ended_ns=5)
    for _ in range(64):
        made = await start(daemon, "BER")
        hardware.measure(id_of(made), state=DONE, ended_ns=5)
    await until(lambda: len(daemon.host.diags.list()) == 64)
    assert (await refusal(get(daemon, first.name))).reason == "DIAG_NOT_FOUND"
