"""Faults through the daemon: what it passes on, what it follows, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from accel.plain import to_plain
from accel.v1 import fault_pb2
from acceld.telemetry.scrape import scrape
from accelhw.interface.messages import Completion, InjectFault

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware

PORT = "cards/card0/links/oe0"


async def inject(daemon: Daemon, subject: str = PORT, kind: str = "bent_fibre", **how: Any) -> Any:
    request = fault_pb2.InjectFaultRequest(kind=kind, subject=subject, **how)
    return await daemon.faults.InjectFault(request)


async def listed(daemon: Daemon, parent: str = "") -> list[str]:
    answer = await daemon.faults.ListFaults(fault_pb2.ListFaultsRequest(parent=parent))
    return [fault.name for fault in answer.faults]


async def test_the_catalogue_is_what_the_hardware_tells(daemon: Daemon) -> None:
    answer = await daemon.faults.ListFaultKinds(fault_pb2.ListFaultKindsRequest(page_size=1))
    assert to_plain(answer.fault_kinds[0]) == {
        "name": "faultKinds/bent_fibre",
        "place": "PORT",
        "summary": "A bend.",
        "near_signature": "less light",
        "far_signature": "the same",
        "repair": "straighten it",
        "source": "a choice",
        "shape": "STEP",
        "causes": [
            {"cause": "rx_path_loss_db", "amount": 6.0},
            {"cause": "tx_path_loss_db", "amount": 6.0},
        ],
        "takes_target_ber": True,
    }
    rest = fault_pb2.ListFaultKindsRequest(page_token=answer.next_page_token)
    (second,) = (await daemon.faults.ListFaultKinds(rest)).fault_kinds
    assert (second.name, second.on_s, second.off_s) == ("faultKinds/hbm_dbe", 0.5, 60.0)


async def test_a_fault_is_injected_shown_and_cleared(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    made = await inject(daemon, lanes=[3], scale=0.5, fault_id="mine")
    assert to_plain(made) == {
        "name": "faults/mine",
        "kind": "bent_fibre",
        "subject": PORT,
        "lanes": [3],
        "shape": "STEP",
        "start_time": "2023-11-14T22:13:20Z",
        "scale": 0.5,
        "lane_scales": [],
        "seed": 0,
    }
    assert await daemon.faults.GetFault(fault_pb2.GetFaultRequest(name="faults/mine")) == made
    assert await listed(daemon) == await listed(daemon, "cards/card0") == ["faults/mine"]
    assert await listed(daemon, "cards/card1") == []
    await daemon.faults.ClearFault(fault_pb2.ClearFaultRequest(name="faults/mine"))
    assert (await listed(daemon), hardware.faults) == ([], {})


async def test_all_that_is_asked_for_reaches_the_hardware(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    request = fault_pb2.InjectFaultRequest(
        kind="hbm_dbe", subject="cards/card1", shape="FAULT_SHAPE_RAMP", target_ber=1e-5, seed=9,
        hbm_address=4096,
    )  # fmt: skip
    request.duration.FromSeconds(30)
    request.ramp.FromMilliseconds(1500)
    made = await daemon.faults.InjectFault(request)
    sent = next(c for c in hardware.commands if isinstance(c, InjectFault))
    assert (sent.shape, sent.duration_s, sent.ramp_s) == ("ramp", 30.0, 1.5)
    assert (sent.target_ber, sent.seed, sent.address) == (1e-5, 9, 4096)
    assert (made.subject, list(made.lanes)) == ("cards/card1", [])
    assert made.end_time.seconds - made.start_time.seconds == 30


async def test_a_lane_is_a_subject_of_its_own(hardware: FakeHardware, daemon: Daemon) -> None:
    await inject(daemon, "cards/card0/engines/oe0/lanes/lane5")
    sent = next(c for c in hardware.commands if isinstance(c, InjectFault))
    assert sent.subject == "card0/oe0/lane5"


async def test_a_fault_without_an_id_gets_one(daemon: Daemon) -> None:
    made = [await inject(daemon) for _ in range(2)]
    assert made[0].name != made[1].name
    assert await listed(daemon) == [fault.name for fault in made]


async def test_a_fault_whose_time_is_over_is_gone(hardware: FakeHardware, daemon: Daemon) -> None:
    await inject(daemon, fault_id="short")
    hardware.end_fault("short")
    await until(lambda: not daemon.host.faults.active())


async def test_faults_outlive_the_daemon(hardware: FakeHardware, daemon: Daemon) -> None:
    await inject(daemon, fault_id="kept")
    await daemon.stop()
    await daemon.start()
    assert await listed(daemon) == ["faults/kept"]
    hardware.power_cycle()
    await until(lambda: daemon.host.hardware.attachment and not daemon.host.faults.active())


async def test_a_scrape_tells_the_truth_lane_by_lane(daemon: Daemon) -> None:
    await inject(daemon, lanes=[2, 3])
    await inject(daemon, lanes=[3])
    await inject(daemon, "cards/card1", "hbm_dbe")
    lines = [
        line
        for line in scrape(daemon.host.snapshot()).text.splitlines()
        if line.startswith("accel_fault_active{")
    ]
    assert lines == [
        'accel_fault_active{kind="bent_fibre",card="card0",oe="oe0",lane="lane2"} 1',
        'accel_fault_active{kind="bent_fibre",card="card0",oe="oe0",lane="lane3"} 1',
        'accel_fault_active{kind="hbm_dbe",card="card1"} 1',
    ]


@pytest.mark.parametrize(
    ("how", "status", "reason", "says"),
    [
        ({"kind": "bend"}, "NOT_FOUND", "FAULT_NOT_FOUND", "no such kind"),
        ({"subject": "card0/oe0"}, "INVALID_ARGUMENT", "NAME_INVALID", "cards/card0/links/oe1"),
        ({"subject": ""}, "INVALID_ARGUMENT", "NAME_INVALID", "card, link or lane"),
        ({"target_ber": 0.0}, "INVALID_ARGUMENT", "FAULT_INVALID", "as 1e-5"),
        ({"duration": 0}, "INVALID_ARGUMENT", "FAULT_INVALID", "the duration must be above 0"),
        ({"ramp": -1}, "INVALID_ARGUMENT", "FAULT_INVALID", "the ramp must be above 0"),
        ({"duration": 10**12}, "INVALID_ARGUMENT", "FAULT_INVALID", "at most 36500d"),
        ({"ramp": 10**12}, "INVALID_ARGUMENT", "FAULT_INVALID", "at most 36500d"),
        ({"fault_id": "x" * 9000}, "INVALID_ARGUMENT", "FAULT_INVALID", "…xx' is no fault id"),
        ({"shape": 99}, "INVALID_ARGUMENT", "FAULT_INVALID", "99 is no shape"),
        ({"fault_id": "Ünfit"}, "INVALID_ARGUMENT", "FAULT_INVALID", "no fault id"),
        ({"fault_id": "taken"}, "ALREADY_EXISTS", "FAULT_EXISTS", "there is a fault 'taken'"),
    ],
)
async def test_what_cannot_be_injected_is_refused(
    daemon: Daemon, how: dict[str, Any], status: str, reason: str, says: str
) -> None:
    await inject(daemon, fault_id="taken")
    request = fault_pb2.InjectFaultRequest(**{"kind": "bent_fibre", "subject": PORT} | {
        key: value for key, value in how.items() if key not in ("duration", "ramp")
    })  # fmt: skip
    for field in ("duration", "ramp"):
        if field in how:
            getattr(request, field).FromSeconds(how[field])
    refused = await refusal(daemon.faults.InjectFault(request))
    assert (refused.status, refused.reason) == (status, reason)
    assert says in refused.message
    assert await listed(daemon) == ["faults/taken"]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        ("BAD_FAULT", "INVALID_ARGUMENT", "FAULT_INVALID"),
        ("UNKNOWN_LANE", "NOT_FOUND", "LANE_NOT_FOUND"),
        ("UNKNOWN_PORT", "NOT_FOUND", "PORT_NOT_FOUND"),
        ("BAD_STATE", "FAILED_PRECONDITION", "BAD_STATE"),
        ("CARD_LOST", "UNAVAILABLE", "CARD_LOST"),
    ],
)
async def test_the_hardware_says_no_in_its_own_words(
    hardware: FakeHardware, daemon: Daemon, error: str, status: str, reason: str
) -> None:
    hardware.refuse[InjectFault] = Completion(0, error, "the hardware's sentence")
    refused = await refusal(inject(daemon))
    assert (refused.status, refused.reason) == (status, reason)
    assert refused.message == "the hardware's sentence"


async def test_an_unknown_fault_meets_its_nearest_id(daemon: Daemon) -> None:
    await inject(daemon, fault_id="bend-1")
    for call, request in (
        (daemon.faults.GetFault, fault_pb2.GetFaultRequest(name="faults/bend-2")),
        (daemon.faults.ClearFault, fault_pb2.ClearFaultRequest(name="faults/bend-2")),
    ):
        refused = await refusal(call(request))
        assert (refused.status, refused.reason) == ("NOT_FOUND", "FAULT_NOT_FOUND")
        assert "did you mean bend-1?" in refused.message


async def test_without_hardware_there_are_no_faults(hardware: FakeHardware, daemon: Daemon) -> None:
    await inject(daemon)
    await hardware.stop()
    await until(lambda: daemon.host.hardware.attachment is None)
    assert daemon.host.snapshot().faults == ()
    for call, request in (
        (daemon.faults.ListFaults, fault_pb2.ListFaultsRequest()),
        (daemon.faults.ListFaultKinds, fault_pb2.ListFaultKindsRequest()),
    ):
        assert (await refusal(call(request))).reason == "CHASSIS_GONE"
