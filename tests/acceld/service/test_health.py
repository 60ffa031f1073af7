"""Health over the API."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from accel.v1 import health_pb2
from accelhw.model.link import NEXT_ACTION, DownReason, LinkState

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware


async def health(daemon: Daemon, name: str = "", with_parts: bool = False) -> health_pb2.Health:
    request = health_pb2.GetHealthRequest(name=name, with_parts=with_parts)
    answer: health_pb2.Health = await daemon.health.GetHealth(request)
    return answer


async def test_a_host_in_order_is_healthy_and_shows_its_parts_when_asked(daemon: Daemon) -> None:
    bare = await health(daemon)
    assert (bare.name, bare.state, len(bare.parts)) == ("host", health_pb2.HEALTH_STATE_HEALTHY, 0)
    whole = await health(daemon, with_parts=True)
    assert [part.name for part in whole.parts] == [
        "daemon", "workers/worker0", "cards/card0", "cards/card1",
    ]  # fmt: skip
    engine = whole.parts[2].parts[0]
    assert [part.name for part in engine.parts][:2] == [
        "cards/card0/links/oe0",
        "cards/card0/engines/oe0/lanes/lane0",
    ]
    assert engine.parts[0].capability.lanes_fitted == engine.parts[0].standing.lanes_used == 8


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("daemon", health_pb2.OBJECT_KIND_DAEMON),
        ("workers/worker0", health_pb2.OBJECT_KIND_WORKER),
        ("cards/card1", health_pb2.OBJECT_KIND_CARD),
        ("cards/card1/links/oe0", health_pb2.OBJECT_KIND_LINK),
        ("cards/card1/engines/oe0", health_pb2.OBJECT_KIND_OE),
        ("cards/card1/engines/oe0/lanes/lane7", health_pb2.OBJECT_KIND_LANE),
    ],
)
async def test_each_kind_of_object_has_health(daemon: Daemon, name: str, kind: int) -> None:
    one = await health(daemon, name)
    assert (one.name, one.kind) == (name, kind)


async def test_what_is_not_there_is_refused(hardware: FakeHardware, daemon: Daemon) -> None:
    for name, status, reason in (
        ("cards/card7", "NOT_FOUND", "OBJECT_NOT_FOUND"),
        ("cards", "INVALID_ARGUMENT", "NAME_INVALID"),
    ):
        refused = await refusal(health(daemon, name))
        assert (refused.status, refused.reason) == (status, reason)
    hardware.hang_up()
    await hardware.stop()
    await until(lambda: daemon.host.hardware.attachment is None)
    refused = await refusal(health(daemon, "cards/card0"))
    assert (refused.status, refused.reason) == ("UNAVAILABLE", "CHASSIS_GONE")
    assert (await health(daemon)).causes[0].code == "CHASSIS_GONE"


async def test_a_link_that_went_down_says_so_at_once_and_is_given_its_time(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    stream: Any = daemon.health.WatchHealth(health_pb2.WatchHealthRequest(name="cards/card0"))
    seen = {(await stream.read()).name for _ in range(1 + 2 * 10)}
    assert "cards/card0/links/oe0" in seen
    hardware.set_link("card0", 0, LinkState.SEEKING, DownReason.SIGNAL_LOST)
    hardware.emit("LINK_DOWN", "card0/oe0", severity=2)
    one = await stream.read()
    while one is not grpc.aio.EOF and one.name != "cards/card0/links/oe0":
        one = await stream.read()
    assert one.state == health_pb2.HEALTH_STATE_TRAINING
    assert one.reasons[0].code == "SIGNAL_LOST"
    assert one.reasons[0].next_action == NEXT_ACTION[DownReason.SIGNAL_LOST]
    stream.cancel()
