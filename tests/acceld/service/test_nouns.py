"""Cards, links, lanes, host: what is shown, what can be done, what is refused."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from accel.v1 import card_pb2, event_pb2, host_pb2, link_pb2, optics_pb2
from acceld.host.host import Host
from acceld.records import EventFilter
from accelhw.interface.messages import Completion, SetChannelMap, SetPortAdmin, TrainPort
from accelhw.model.link import DownReason, LinkState

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware

LINK = "cards/card0/links/oe0"


async def link(daemon: Daemon, name: str = LINK) -> link_pb2.Link:
    return await daemon.links.GetLink(link_pb2.GetLinkRequest(name=name))


# ---- cards ---------------------------------------------------------------------------------------


async def test_cards_come_in_the_order_of_the_hardware_page_by_page(daemon: Daemon) -> None:
    first = await daemon.cards.ListCards(card_pb2.ListCardsRequest(page_size=1))
    second = await daemon.cards.ListCards(
        card_pb2.ListCardsRequest(page_size=1, page_token=first.next_page_token)
    )
    assert [c.name for c in (*first.cards, *second.cards)] == ["cards/card0", "cards/card1"]
    assert second.next_page_token == ""
    assert first.cards[0].emulated
    assert first.cards[0].capacity_gbit_per_s == 800


async def test_a_reset_reaches_the_hardware_and_the_log(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    card = await daemon.cards.ResetCard(card_pb2.ResetCardRequest(name="cards/card0"))
    assert card.resets_total == 1
    await until(lambda: daemon.host.events.list(wanted=EventFilter("card0")))


async def test_an_unknown_card_meets_its_nearest_name(daemon: Daemon) -> None:
    for call in (daemon.cards.GetCard, daemon.cards.ResetCard):
        refused = await refusal(call(card_pb2.GetCardRequest(name="cards/crad1")))
        assert (refused.reason, refused.metadata) == ("CARD_NOT_FOUND", {"card": "crad1"})
        assert "did you mean card1?" in refused.message


async def test_what_a_caller_sent_does_not_come_back_whole(daemon: Daemon) -> None:
    """gRPC drops trailers of 8 KiB, and with them what was wrong."""
    for long in ("a" * 9000, "é" * 9000, "a " * 4500):
        for call, request in (
            (daemon.cards.GetCard, card_pb2.GetCardRequest(name=f"cards/{long}")),
            (daemon.events.ListEvents, event_pb2.ListEventsRequest(subject=long)),
            (daemon.events.ListEvents, event_pb2.ListEventsRequest(kinds=[long])),
        ):
            refused = await refusal(call(request))
            assert refused.status == "INVALID_ARGUMENT"
            assert len(refused.message.encode()) < 1100
            assert all(len(value.encode()) < 300 for value in refused.metadata.values())
            assert re.search("; (try|there is) ", refused.message)  # What works is told still.


# ---- links ---------------------------------------------------------------------------------------


async def test_a_link_shows_its_peer_its_fibre_and_its_worst_lane(daemon: Daemon) -> None:
    shown = await link(daemon)
    assert (shown.state, shown.peer) == (link_pb2.LINK_STATE_UP, "cards/card1/links/oe0")
    assert (shown.fibre.transport, shown.fibre.mtu_bytes) == ("veth", 65535)
    assert shown.margin_min_db == pytest.approx(3.3)
    assert shown.training_ms == 12.5


async def test_a_dark_link_has_a_reason_and_no_made_up_figures(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.set_link("card0", 0, LinkState.SEEKING, DownReason.NO_SIGNAL)
    shown = await link(daemon)
    assert (shown.reason.code, shown.peer) == ("NO_SIGNAL", "")
    assert "fibre" in shown.reason.next_action
    assert not shown.HasField("margin_min_db")
    assert not shown.HasField("up_time")
    lane = await daemon.optics.GetLane(
        optics_pb2.GetLaneRequest(name="cards/card0/engines/oe0/lanes/lane0")
    )
    assert (lane.los, lane.rx_power_dbm) == (True, -40.0)
    assert not any(lane.HasField(f) for f in ("margin_db", "q", "pre_fec_ber", "peer_lane"))


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("cards/card0/links/oe1", "NOT_FOUND", "NO_FIBRE"),
        ("cards/card0/links/oe7", "NOT_FOUND", "PORT_NOT_FOUND"),
        ("cards/card8/links/oe0", "NOT_FOUND", "CARD_NOT_FOUND"),
        ("card0/oe0", "INVALID_ARGUMENT", "NAME_INVALID"),
        ("cards/card0/links/oe01", "INVALID_ARGUMENT", "NAME_INVALID"),
        ("", "INVALID_ARGUMENT", "NAME_INVALID"),
    ],
)
async def test_a_link_that_is_not_there_is_refused(
    daemon: Daemon, name: str, status: str, reason: str
) -> None:
    for call in (
        link(daemon, name),
        daemon.links.SetLinkAdmin(link_pb2.SetLinkAdminRequest(name=name, up=True)),
        daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=name)),
    ):
        refused = await refusal(call)
        assert (refused.status, refused.reason) == (status, reason)


async def test_training_is_told_step_by_step_to_its_end(daemon: Daemon) -> None:
    before = (await link(daemon)).trainings_total
    call = daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=LINK))
    steps = [step async for step in call]
    assert [s.phase for s in steps][:3] == ["SEEK", "LOCK", "MAP"]
    assert [s.HasField("link") for s in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].link.trainings_total == before + 1
    assert steps[-1].state == link_pb2.LINK_STATE_UP


async def test_training_that_gives_up_ends_with_its_reason(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.training = "failed"
    call = daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=LINK))
    last = [step async for step in call][-1]
    assert (last.state, last.link.reason.code) == (link_pb2.LINK_STATE_FAILED, "CDR_NO_LOCK")
    assert last.link.reason.next_action


async def test_a_training_may_be_left_alone_and_ends_unwatched(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.training = "hold"
    call = daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=LINK))
    assert (await call.read()).phase == "SEEK"
    call.cancel()
    await until(lambda: not daemon.host.links._watchers)


async def test_the_end_of_a_training_is_seen_though_no_progress_told_it(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.training = "hold"
    call = daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=LINK))
    await call.read()
    hardware.set_link("card0", 0, LinkState.UP, DownReason.NONE)
    step = await call.read()
    while not step.HasField("link"):
        step = await call.read()
    assert step.link.trainings_total == 2


async def test_a_link_switched_off_stays_so_and_is_not_trained(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    off = await daemon.links.SetLinkAdmin(link_pb2.SetLinkAdminRequest(name=LINK, up=False))
    assert (off.admin_up, off.reason.code) == (False, "ADMIN_DOWN")
    refused = await refusal(daemon.links.TrainLink(link_pb2.TrainLinkRequest(name=LINK)))
    assert (refused.status, refused.reason) == ("FAILED_PRECONDITION", "LINK_ADMIN_DOWN")
    assert "accelctl link up card0/oe0" in refused.message
    assert not any(isinstance(c, TrainPort) for c in hardware.commands)


async def test_a_watcher_sees_all_links_then_those_that_change(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    call = daemon.links.WatchLinks(link_pb2.WatchLinksRequest())
    assert [(await call.read()).name for _ in range(2)] == [LINK, "cards/card1/links/oe0"]
    hardware.set_link("card1", 0, LinkState.SEEKING, DownReason.SIGNAL_LOST)
    hardware.emit("LINK_DOWN", "card1/oe0")
    changed = await call.read()
    assert (changed.name, changed.reason.code) == ("cards/card1/links/oe0", "SIGNAL_LOST")


# ---- channel map ---------------------------------------------------------------------------------


async def channels(daemon: Daemon, *moves: tuple[int, int]) -> dict[int, int]:
    answer = await daemon.links.UpdateChannelMap(
        link_pb2.UpdateChannelMapRequest(
            name="cards/card0/channelMap",
            channels=[link_pb2.Channel(channel=c, signal_line=s) for c, s in moves],
        )
    )
    return {c.channel: c.signal_line for c in answer.channels}


async def test_channels_change_places_and_the_map_stays_a_permutation(daemon: Daemon) -> None:
    assert (await channels(daemon, (0, 3)))[3] == 0
    moved = await channels(daemon, (0, 15), (1, 3), (2, 0))
    assert (moved[0], moved[1], moved[2]) == (15, 3, 0)
    assert sorted(moved.values()) == list(range(16))
    lane = await daemon.optics.GetLane(
        optics_pb2.GetLaneRequest(name="cards/card0/engines/oe1/lanes/lane7")
    )
    assert (lane.signal_line, lane.channel) == (15, 0)


async def test_a_map_that_stays_as_it_is_leaves_the_links_alone(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    assert (await channels(daemon, (0, 0)))[0] == 0
    assert not any(isinstance(c, SetChannelMap) for c in hardware.commands)


@pytest.mark.parametrize(
    "moves", [(), ((0, 1), (2, 1)), ((0, 1), (0, 2)), ((16, 0),), ((0, 16),), ((2**32 - 1, 0),)]
)
async def test_a_map_that_is_none_is_refused(
    hardware: FakeHardware, daemon: Daemon, moves: tuple[tuple[int, int], ...]
) -> None:
    refused = await refusal(channels(daemon, *moves))
    assert (refused.status, refused.reason) == ("INVALID_ARGUMENT", "CHANNEL_MAP_INVALID")
    assert not any(isinstance(c, SetChannelMap) for c in hardware.commands)


async def test_a_map_that_the_hardware_refuses_is_not_kept(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.refuse[SetChannelMap] = Completion(0, "BAD_MAP", "no")
    assert (await refusal(channels(daemon, (0, 3)))).reason == "CHANNEL_MAP_INVALID"
    shown = await daemon.links.GetChannelMap(
        link_pb2.GetChannelMapRequest(name="cards/card0/channelMap")
    )
    assert [c.signal_line for c in shown.channels] == list(range(16))
    assert daemon.host.store.channel_maps() == {}


# ---- optics --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "count"),
    [
        ("", 32),
        ("cards/-/engines/-", 32),
        ("cards/card1/engines/-", 16),
        ("cards/-/engines/oe0", 16),
        ("cards/card1/engines/oe1", 8),
    ],
)
async def test_a_dash_stands_for_any(daemon: Daemon, parent: str, count: int) -> None:
    found, token = [], ""
    while True:
        page = await daemon.optics.ListLanes(
            optics_pb2.ListLanesRequest(parent=parent, page_size=7, page_token=token)
        )
        found += [lane.name for lane in page.lanes]
        token = page.next_page_token
        if not token:
            break
    assert len(found) == len(set(found)) == count


@pytest.mark.parametrize(
    ("parent", "status"),
    [
        ("cards/card9/engines/-", "NOT_FOUND"),
        ("cards/card0/engines/oe5", "NOT_FOUND"),
        ("cards/card0", "INVALID_ARGUMENT"),
        ("cards/card0/engines/5", "INVALID_ARGUMENT"),
    ],
)
async def test_lanes_of_nothing_are_refused(daemon: Daemon, parent: str, status: str) -> None:
    call = daemon.optics.ListLanes(optics_pb2.ListLanesRequest(parent=parent))
    assert (await refusal(call)).status == status


async def test_engines_count_their_light(daemon: Daemon) -> None:
    listed = await daemon.optics.ListEngines(optics_pb2.ListEnginesRequest(parent="cards/card0"))
    assert [(e.lanes_lit_count, e.lanes_los_count) for e in listed.engines] == [(8, 0), (0, 8)]
    one = await daemon.optics.GetEngine(optics_pb2.GetEngineRequest(name="cards/card0/engines/oe0"))
    assert one == listed.engines[0]
    refused = await refusal(
        daemon.optics.GetLane(optics_pb2.GetLaneRequest(name="cards/card0/engines/oe0/lanes/lane8"))
    )
    assert (refused.reason, "lane0 to lane7" in refused.message) == ("LANE_NOT_FOUND", True)


# ---- events --------------------------------------------------------------------------------------


async def test_watchers_resume_without_hole_or_double(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    start = daemon.host.events.newest_revision
    for n in range(1200):
        hardware.emit("DIAG_ENDED", "card0/oe0", n=n)
    first = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(after_revision=start))
    seen = [(await first.read()).revision for _ in range(700)]
    first.cancel()
    second = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(after_revision=seen[-1]))
    seen += [(await second.read()).revision for _ in range(500)]
    assert seen == list(range(start + 1, start + 1201))


async def test_only_new_events_of_one_card(hardware: FakeHardware, daemon: Daemon) -> None:
    call = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(subject="cards/card1"))
    await call.wait_for_connection()
    hardware.emit("LINK_UP", "card0/oe0")
    hardware.emit("LINK_DOWN", "card1/oe0", severity=2, width=7)
    event = await call.read()
    assert (event.kind, event.severity, event.detail["width"]) == ("LINK_DOWN", 2, 7)


async def test_events_are_listed_both_ways(hardware: FakeHardware, daemon: Daemon) -> None:
    for n in range(10):
        kind = "DIAG_ENDED" if n % 2 else "DIAG_STARTED"
        hardware.emit(kind, "card0/oe0", severity=1 + n % 2)
    await until(lambda: daemon.host.events.newest_revision >= 12)

    async def all_pages(**fields: Any) -> list[int]:
        found, token = [], ""
        while True:
            page = await daemon.events.ListEvents(
                event_pb2.ListEventsRequest(page_size=3, page_token=token, **fields)
            )
            found += [e.revision for e in page.events]
            token = page.next_page_token
            if not token:
                return found

    newest = daemon.host.events.newest_revision
    assert await all_pages() == list(range(1, newest + 1))
    assert await all_pages(descending=True) == list(range(newest, 0, -1))
    assert len(await all_pages(subject="card0", min_severity=2)) == 5


async def test_the_log_does_not_wait_for_hardware_that_is_slow_to_hear_what_is_kept(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.gate = asyncio.Event()
    for n in range(3):
        hardware.emit("DIAG_ENDED", "card0/oe0", n=n)
        await until(lambda n=n: n in [e.detail.get("n") for e in daemon.host.events.list()])
    hardware.gate.set()
    await until(lambda: hardware.acknowledged == len(hardware.journal))


async def test_an_event_names_its_reason_who_is_to_blame_and_the_far_end(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.emit("LINK_DOWN", "card0/oe0", severity=2, reason="CDR_NO_LOCK", lane=3)
    await until(lambda: daemon.host.events.list(wanted=EventFilter("card0/oe0")))
    request = event_pb2.ListEventsRequest(subject="card0/oe0", kinds=["LINK_DOWN"])
    (event,) = (await daemon.events.ListEvents(request)).events
    assert (event.reason, event.cause, event.peer) == (
        "CDR_NO_LOCK", "card0/oe0/lane3", "card1/oe0",
    )  # fmt: skip
    assert (event.count, event.HasField("first_time")) == (1, False)
    assert event.next_action == "see why: accelctl health show card0/oe0"


async def test_a_watcher_that_resumes_sees_a_repeat_once_more_with_its_count(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    start = daemon.host.events.newest_revision
    for kind in ("LINK_DOWN", "LINK_UP", "LINK_DOWN"):
        hardware.emit(kind, "card0/oe0")
    await until(lambda: daemon.host.events.newest_revision == start + 3)
    wanted = {"after_revision": start, "subject": "card0/oe0", "kinds": ["LINK_DOWN", "LINK_UP"]}
    call = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(**wanted))
    seen = [await call.read() for _ in range(2)]
    assert [(e.revision - start, e.kind, e.count) for e in seen] == [
        (2, "LINK_UP", 1), (3, "LINK_DOWN", 2),
    ]  # fmt: skip
    hardware.emit("LINK_DOWN", "card0/oe0")
    assert (await call.read()).count == 3
    # A revision that has moved on is not one that was forgotten.
    again = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(after_revision=start + 1))
    assert (await again.read()).kind == "LINK_UP"


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"kinds": ["LINK_DONW"]}, "INVALID_ARGUMENT", "KIND_UNKNOWN"),
        ({"after_revision": 10**6}, "OUT_OF_RANGE", "REVISION_UNKNOWN"),
        ({"subject": "*"}, "INVALID_ARGUMENT", "SUBJECT_INVALID"),
        ({"subject": "card9"}, "NOT_FOUND", "CARD_NOT_FOUND"),
        ({"subject": "cards/card0/links/oe99"}, "NOT_FOUND", "PORT_NOT_FOUND"),
    ],
)
async def test_a_watch_that_cannot_be_is_refused(
    daemon: Daemon, fields: dict[str, Any], status: str, reason: str
) -> None:
    refused = await refusal(daemon.events.WatchEvents(event_pb2.WatchEventsRequest(**fields)))
    assert (refused.status, refused.reason) == (status, reason)


async def test_events_of_what_is_not_there_are_asked_for_in_vain_only_if_it_never_was(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    def asked(subject: str) -> Any:
        return daemon.events.ListEvents(event_pb2.ListEventsRequest(subject=subject))

    refused = await refusal(asked("card9"))
    assert (refused.status, refused.reason) == ("NOT_FOUND", "CARD_NOT_FOUND")
    assert not (await asked("card1/oe0")).events  # It is there, and quiet.
    hardware.emit("LINK_UP", "card9/oe0")
    await until(lambda: daemon.host.events.list(wanted=EventFilter("card9")))
    assert len((await asked("card9")).events) == 1


async def test_a_revision_that_is_not_kept_is_too_old(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    daemon.host.store._events_max = 5
    for _ in range(20):
        hardware.emit("DIAG_ENDED", "card0/oe0")
    await until(lambda: daemon.host.store.oldest_revision > 10)
    refused = await refusal(
        daemon.events.WatchEvents(event_pb2.WatchEventsRequest(after_revision=2))
    )
    assert (refused.status, refused.reason) == ("OUT_OF_RANGE", "REVISION_TOO_OLD")
    assert refused.metadata["oldest_revision"] == str(daemon.host.store.oldest_revision)
    call = daemon.events.WatchEvents(event_pb2.WatchEventsRequest(after_revision=0))
    assert (await call.read()).revision == daemon.host.store.oldest_revision


# ---- the server as a whole -----------------------------------------------------------------------


async def test_the_host_counts_what_it_has(daemon: Daemon) -> None:
    host = await daemon.hosts.GetHost(host_pb2.GetHostRequest())
    assert (host.card_count, host.link_count, host.links_up_count) == (2, 2, 2)
    assert host.chassis_attached
    assert list(host.workers[0].cards) == ["card0", "card1"]


async def test_health_and_reflection_answer(daemon: Daemon) -> None:
    health = health_pb2_grpc.HealthStub(daemon.channel)
    for name in ("", "accel.v1.LinkService"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    watch = health.Watch(health_pb2.HealthCheckRequest(service=""))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()
    stub = reflection_pb2_grpc.ServerReflectionStub(daemon.channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = [a async for a in stub.ServerReflectionInfo(iter([ask]))]
    names = {s.name for s in answers[0].list_services_response.service}
    assert {"accel.v1.CardService", "accel.v1.EventService", "grpc.health.v1.Health"} <= names


async def test_an_unforeseen_failure_says_so_and_shows_nothing_of_the_inside(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Host, name: str) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(Host, "card", broken)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await daemon.cards.GetCard(card_pb2.GetCardRequest(name="cards/card0"))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (caught.value.details() or "")
    assert await daemon.cards.ListCards(card_pb2.ListCardsRequest())


async def test_a_card_lost_by_its_worker_is_unavailable(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.refuse[SetPortAdmin] = Completion(0, "CARD_LOST")
    refused = await refusal(
        daemon.links.SetLinkAdmin(link_pb2.SetLinkAdminRequest(name=LINK, up=False))
    )
    assert (refused.status, refused.reason) == ("UNAVAILABLE", "CARD_LOST")
    assert daemon.host.store.link_admin() == {}, "what was not done is not applied later"


async def test_any_time_may_be_asked_for(daemon: Daemon) -> None:
    for seconds, nanos in ((2**63 - 1, 0), (-(2**63), 0), (0, -1), (253_402_300_799, 0)):
        request = event_pb2.ListEventsRequest()
        request.since_time.seconds, request.since_time.nanos = seconds, nanos
        assert (await daemon.events.ListEvents(request)).newest_revision >= 0
