"""The daemon comes and goes, the chassis comes and goes: nothing is missed, nothing doubled."""

from __future__ import annotations

import sqlite3

import pytest

from accel.v1 import (
    card_pb2,
    event_pb2,
    host_pb2,
    link_pb2,
    memory_pb2,
    optics_pb2,
    transfer_pb2,
)
from acceld.config import Settings
from acceld.errors import EXIT_CONFLICT, StartFailure
from acceld.store.store import FILE_NAME
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    RegisterWindow,
    SetChannelMap,
    SetPortAdmin,
    WindowInfo,
)
from accelhw.model.link import DownReason, LinkState

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware

MIB = 1 << 20


async def start_copy(daemon: Daemon) -> str:
    await daemon.region("card0", "a")
    await daemon.region("card1", "b")
    started = await daemon.transfers.CreateTransfer(
        transfer_pb2.CreateTransferRequest(
            source=transfer_pb2.RegionSlice(region="cards/card0/regions/a"),
            target=transfer_pb2.RegionSlice(region="cards/card1/regions/b"),
        )
    )
    return str(started.name.removeprefix("transfers/"))


async def get(daemon: Daemon, transfer_id: str) -> transfer_pb2.Transfer:
    return await daemon.transfers.GetTransfer(
        transfer_pb2.GetTransferRequest(name=f"transfers/{transfer_id}")
    )


def hardware_events(daemon: Daemon) -> list[int]:
    return [int(e.detail["n"]) for e in daemon.host.events.list(limit=10_000) if "n" in e.detail]


async def test_a_restarted_daemon_finds_its_regions_and_the_bytes_in_them(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    before = await daemon.region("card0", "weights")
    await daemon.write("cards/card0/regions/weights", b"still here")
    await daemon.stop()
    await daemon.start()
    after = await daemon.memory.GetRegion(
        memory_pb2.GetRegionRequest(name="cards/card0/regions/weights")
    )
    assert after == before
    assert await daemon.read("cards/card0/regions/weights", 0, 10) == b"still here"
    assert sum(isinstance(c, RegisterWindow) for c in hardware.commands) == 1
    refused = await refusal(
        daemon.memory.CreateRegion(
            memory_pb2.CreateRegionRequest(
                parent="cards/card0", region_id="x", size_bytes=4096, address=before.address
            )
        )
    )
    assert refused.reason == "REGION_OVERLAPS"


async def test_a_copy_goes_on_without_the_daemon_and_its_end_is_reported(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    hardware.progress(number, 4096)
    await daemon.stop()
    hardware.progress(number, 8192)
    await daemon.start()
    running = await get(daemon, number)
    assert (running.good_bytes, running.state) == (8192, transfer_pb2.TRANSFER_STATE_RUNNING)
    assert running.source.region == "cards/card0/regions/a"
    refused = await refusal(
        daemon.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name="cards/card0/regions/a"))
    )
    assert refused.reason == "REGION_BUSY"
    hardware.finish(number)
    await until(lambda: daemon.host.transfers.running == 0)
    assert (await get(daemon, number)).state == transfer_pb2.TRANSFER_STATE_DONE


async def test_an_end_that_nobody_heard_is_reported_and_acknowledged_once(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    await daemon.stop()
    hardware.finish(number)
    await daemon.start()
    ended = await get(daemon, number)
    assert ended.state == transfer_pb2.TRANSFER_STATE_DONE
    assert ended.source.region == "cards/card0/regions/a"
    await daemon.stop()
    await daemon.start()
    assert sum(isinstance(c, AcknowledgeTransfer) for c in hardware.commands) == 1
    listed = await daemon.transfers.ListTransfers(transfer_pb2.ListTransfersRequest())
    assert [t.name for t in listed.transfers] == [f"transfers/{number}"]


async def test_no_event_is_missed_or_doubled_over_restarts(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    n = 0
    for _ in range(3):
        for _ in range(20):
            hardware.emit("DIAG_STARTED", "card0/oe0", n=n)
            n += 1
        if n == 40:
            hardware.hang_up()
            await until(lambda: daemon.host.hardware.attachment is None)
            await until(lambda: daemon.host.hardware.attachment is not None)
        else:
            await daemon.stop()
        for _ in range(20):
            hardware.emit("DIAG_ENDED", "card0/oe0", n=n)
            n += 1
        if n != 60:
            await daemon.stop()
            await daemon.start()
        else:
            await daemon.start()
    await until(lambda: len(hardware_events(daemon)) == n)
    assert hardware_events(daemon) == list(range(n))
    revisions = [e.revision for e in daemon.host.events.list(limit=10_000)]
    assert revisions == list(range(1, len(revisions) + 1))
    await until(lambda: hardware.acknowledged == len(hardware.journal))


async def test_events_in_a_store_that_left_the_disk_are_not_acknowledged(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.emit("DIAG_STARTED", "card0/oe0", n=0)
    await until(lambda: hardware.acknowledged == 1)
    pages = daemon.host.store._db.execute("PRAGMA page_count").fetchone()[0]
    daemon.host.store._db.execute(f"PRAGMA max_page_count = {pages}")
    for n in range(1, 400):
        hardware.emit("DIAG_STARTED", "card0/oe0", n=n)
        if n % 20 == 0:
            await until(lambda: len(hardware_events(daemon)) > n)  # noqa: B023
    await until(lambda: not daemon.host.store.is_durable)
    kinds = [e.kind for e in daemon.host.events.list(limit=10_000)]
    await until(lambda: "STORE_DEGRADED" in [e.kind for e in daemon.host.events.list(limit=10_000)])
    assert kinds.count("STORE_DEGRADED") <= 1
    assert (await daemon.hosts.GetHost(host_pb2.GetHostRequest())).card_count == 2
    unsaved = hardware.acknowledged
    assert unsaved < 399
    await daemon.stop()
    await daemon.start()  # The disk has room again.
    await until(lambda: len(hardware_events(daemon)) == 400)
    assert hardware_events(daemon) == list(range(400))


async def test_power_off_loses_regions_and_says_so_but_keeps_what_was_configured(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await daemon.region("card0", "weights")
    await daemon.links.SetLinkAdmin(
        link_pb2.SetLinkAdminRequest(name="cards/card0/links/oe0", up=False)
    )
    await daemon.links.UpdateChannelMap(
        link_pb2.UpdateChannelMapRequest(
            name="cards/card0/channelMap", channels=[link_pb2.Channel(channel=2, signal_line=9)]
        )
    )
    hardware.hold_transfers = True
    await daemon.region("card0", "a")
    await daemon.region("card1", "b")
    started = await daemon.transfers.CreateTransfer(
        transfer_pb2.CreateTransferRequest(
            source=transfer_pb2.RegionSlice(region="cards/card0/regions/a"),
            target=transfer_pb2.RegionSlice(region="cards/card1/regions/b"),
        )
    )
    hardware.commands.clear()
    hardware.power_cycle()
    watch = daemon.transfers.WatchTransfer(transfer_pb2.WatchTransferRequest(name=started.name))
    ends = [t async for t in watch]
    assert (ends[-1].state, ends[-1].error) == (transfer_pb2.TRANSFER_STATE_FAILED, "CARD_LOST")
    await until(lambda: any(isinstance(c, SetChannelMap) for c in hardware.commands))
    assert SetPortAdmin(2, "card0", 0, False).up == next(
        c.up for c in hardware.commands if isinstance(c, SetPortAdmin)
    )
    assert hardware.maps["card0"][2].signal_line == 9
    listed = await daemon.memory.ListRegions(memory_pb2.ListRegionsRequest(parent="cards/-"))
    assert not listed.regions
    await daemon.host.events.settled()
    kinds = [e.kind for e in daemon.host.events.list()]
    assert kinds.count("REGION_LOST") == 3
    assert kinds.count("CHASSIS_POWER_CYCLED") == 1
    assert (await daemon.region("card0", "weights")).address == 0


def ends_told(daemon: Daemon) -> list[tuple[str, str]]:
    kinds = ("TRANSFER_DONE", "TRANSFER_FAILED", "TRANSFER_CANCELLED")
    wanted = [e for e in daemon.host.events.list(limit=10_000) if e.kind in kinds]
    return [(e.kind, str(e.detail["transfer"])) for e in wanted]


async def ends_counted(daemon: Daemon, card: str = "card0") -> tuple[int, int, int]:
    found = await daemon.cards.GetCard(card_pb2.GetCardRequest(name=f"cards/{card}"))
    return (
        found.transfers_done_total, found.transfers_failed_total, found.transfers_cancelled_total
    )  # fmt: skip


@pytest.mark.parametrize("running", [True, False], ids=["it runs on", "it starts anew"])
async def test_a_power_off_ends_each_transfer_once_in_log_and_count(
    hardware: FakeHardware, daemon: Daemon, running: bool
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    hardware.emit("TRANSFER_STARTED", "card0", transfer=number)
    await until(lambda: hardware.acknowledged == 1)
    assert await ends_counted(daemon) == (0, 0, 0)
    if not running:
        await daemon.stop()
    hardware.power_cycle()
    if not running:
        await daemon.start()
    await until(lambda: daemon.host.transfers.running == 0)
    for _ in range(2):  # and a second power-off finds nothing more to tell
        await until(lambda: daemon.host.hardware.attachment is not None)
        await daemon.host.events.settled()
        assert ends_told(daemon) == [("TRANSFER_FAILED", number)]
        assert await ends_counted(daemon) == (0, 1, 0)
        await daemon.stop()
        hardware.power_cycle()
        await daemon.start()
    failed = [e for e in daemon.host.events.list() if e.kind == "TRANSFER_FAILED"]
    assert failed[0].subject == "card0"
    assert "CARD_LOST: the emulated hardware was powered off" in failed[0].message
    ended = await get(daemon, number)
    wall_ns = ended.end_time.ToNanoseconds() - ended.start_time.ToNanoseconds()
    assert ended.wall_ms == pytest.approx(wall_ns / 1e6)


async def test_an_end_whose_event_was_lost_with_daemon_and_hardware_is_told_at_the_next_start(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    number = await start_copy(daemon)
    await until(lambda: daemon.host.transfers.running == 0)
    hardware.emit("TRANSFER_STARTED", "card0", transfer=number)  # TRANSFER_DONE was not kept
    await until(lambda: hardware.acknowledged == 1)
    await daemon.stop()
    hardware.power_cycle()
    for _ in range(2):
        await daemon.start()
        await daemon.host.events.settled()
        assert ends_told(daemon) == [("TRANSFER_DONE", number)]
        assert await ends_counted(daemon) == (1, 0, 0)
        await daemon.stop()
        hardware.power_cycle()


async def test_a_daemon_that_dies_before_its_event_is_kept_tells_it_at_the_next_start(
    hardware: FakeHardware, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    hardware.emit("TRANSFER_STARTED", "card0", transfer=number)
    await until(lambda: hardware.acknowledged == 1)
    monkeypatch.setattr(daemon.host.events, "report", lambda *_, **__: None)
    daemon.host.transfers.powered_off()
    await daemon.stop()
    hardware.power_cycle()
    await daemon.start()
    assert ends_told(daemon) == [("TRANSFER_FAILED", number)]
    assert await ends_counted(daemon) == (0, 1, 0)
    await daemon.stop()


async def test_a_cancel_is_counted_as_a_cancel(hardware: FakeHardware, daemon: Daemon) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    request = transfer_pb2.CancelTransferRequest(name=f"transfers/{number}")
    await daemon.transfers.CancelTransfer(request)
    assert await ends_counted(daemon) == (0, 0, 1)
    await daemon.stop()
    await daemon.start()
    assert await ends_counted(daemon) == (0, 0, 1)


async def test_a_new_chassis_counts_its_events_from_one_and_none_is_missed(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    for n in range(5):
        hardware.emit("DIAG_STARTED", "card0/oe0", n=n)
    await until(lambda: len(hardware_events(daemon)) == 5)
    hardware.power_cycle()
    for n in range(5, 8):
        hardware.emit("DIAG_STARTED", "card0/oe0", n=n)
    await until(lambda: len(hardware_events(daemon)) == 8)
    assert hardware_events(daemon) == list(range(8))


async def test_a_chassis_that_still_has_its_last_driver_is_asked_again(
    hardware: FakeHardware, settings: Settings
) -> None:
    hardware.refuse_hellos = 2
    daemon = Daemon(settings)
    await daemon.start()
    assert (await daemon.hosts.GetHost(host_pb2.GetHostRequest())).chassis_attached
    await daemon.stop()


async def test_while_the_chassis_is_away_calls_say_so_and_what_is_kept_is_shown(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await daemon.region("card0", "weights")
    await hardware.stop()
    await until(lambda: daemon.host.hardware.attachment is None)
    for call in (
        daemon.cards.ListCards(card_pb2.ListCardsRequest()),
        daemon.cards.ResetCard(card_pb2.ResetCardRequest(name="cards/card0")),
        daemon.links.ListLinks(link_pb2.ListLinksRequest()),
        daemon.links.WatchLinks(link_pb2.WatchLinksRequest()),
        daemon.optics.ListLanes(optics_pb2.ListLanesRequest()),
        daemon.region("card0", "more"),
        daemon.memory.ReadRegion(memory_pb2.ReadRegionRequest(name="cards/card0/regions/weights")),
        daemon.memory.MapRegion(memory_pb2.MapRegionRequest(name="cards/card0/regions/weights")),
    ):
        refused = await refusal(call)
        assert (refused.status, refused.reason) == ("UNAVAILABLE", "CHASSIS_GONE")
    host = await daemon.hosts.GetHost(host_pb2.GetHostRequest())
    assert (host.chassis_attached, host.card_count) == (False, 0)
    listed = await daemon.memory.ListRegions(memory_pb2.ListRegionsRequest())
    assert [r.name for r in listed.regions] == ["cards/card0/regions/weights"]
    events = await daemon.events.ListEvents(event_pb2.ListEventsRequest(descending=True))
    assert events.events[0].kind == "CHASSIS_GONE"
    await daemon.transfers.ListTransfers(transfer_pb2.ListTransfersRequest())
    await hardware.start()
    await until(lambda: daemon.host.hardware.attachment is not None)
    assert await daemon.read("cards/card0/regions/weights", 0, 4) == bytes(4)


async def test_a_copy_ends_as_soon_as_its_hardware_is_known_to_be_off(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    hardware.progress(number, 4096)
    watching = daemon.transfers.WatchTransfer(
        transfer_pb2.WatchTransferRequest(name=f"transfers/{number}")
    )
    await hardware.stop()
    last = [state async for state in watching][-1]
    assert (last.state, last.error) == (transfer_pb2.TRANSFER_STATE_FAILED, "CARD_LOST")
    assert "powered off" in last.error_detail
    assert daemon.host.transfers.running == 0


async def test_a_copy_outlives_a_connection_that_breaks(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.hold_transfers = True
    number = await start_copy(daemon)
    hardware.hang_up()
    hardware.finish(number)
    await until(lambda: daemon.host.transfers.running == 0)
    assert (await get(daemon, number)).state == transfer_pb2.TRANSFER_STATE_DONE


async def test_windows_that_the_store_does_not_know_are_adopted_not_overwritten(
    hardware: FakeHardware, settings: Settings
) -> None:
    hardware.windows["card0", 77] = WindowInfo("card0", 77, 5, 0, 8192)
    daemon = Daemon(settings)
    await daemon.start()
    found = await daemon.memory.GetRegion(
        memory_pb2.GetRegionRequest(name="cards/card0/regions/adopted-77")
    )
    assert (found.region_id, found.key, found.size_bytes) == (77, 5, 8192)
    assert (await daemon.region("card0", "next")).address == 8192
    await daemon.stop()


async def test_a_region_whose_window_was_lost_is_registered_again(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    made = await daemon.region("card0", "weights")
    await daemon.stop()
    hardware.windows.clear()
    await daemon.start()
    await until(lambda: ("card0", made.region_id) in hardware.windows)
    assert hardware.windows["card0", made.region_id].key == made.key


async def test_a_daemon_may_start_before_its_chassis(settings: Settings) -> None:
    daemon = Daemon(settings)
    await daemon.start()
    refused = await refusal(daemon.cards.ListCards(card_pb2.ListCardsRequest()))
    assert refused.reason == "CHASSIS_GONE"
    late = FakeHardware(settings.hardware_socket)
    late.set_link("card0", 0, LinkState.UP, DownReason.NONE)
    await late.start()
    await until(lambda: daemon.host.hardware.attachment is not None)
    assert len((await daemon.cards.ListCards(card_pb2.ListCardsRequest())).cards) == 2
    await daemon.stop()
    await late.stop()
    late.close()


async def test_a_second_daemon_is_refused_at_the_socket_and_at_the_store(
    daemon: Daemon, settings: Settings
) -> None:
    with pytest.raises(StartFailure, match="another daemon answers") as caught:
        await Daemon(settings).start()
    assert caught.value.exit_code == EXIT_CONFLICT
    elsewhere = Settings(
        config=None,
        state_dir=settings.state_dir,
        socket=settings.socket.with_name("other.sock"),
        memory_socket=settings.memory_socket.with_name("other-memory.sock"),
        hardware_socket=settings.hardware_socket,
        metrics=None,
        chassis="attach",
    )
    with pytest.raises(StartFailure, match="--state-dir") as caught:
        await Daemon(elsewhere).start()
    assert caught.value.exit_code == EXIT_CONFLICT
    assert (await daemon.hosts.GetHost(host_pb2.GetHostRequest())).chassis_attached


async def test_a_socket_that_nobody_answers_at_is_replaced(
    hardware: FakeHardware, settings: Settings
) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(settings.socket))
    daemon = Daemon(settings)
    await daemon.start()
    assert settings.socket.stat().st_mode & 0o777 == 0o660
    assert (await daemon.hosts.GetHost(host_pb2.GetHostRequest())).card_count == 2
    await daemon.stop()
    assert not settings.socket.exists()
    settings.socket.write_text("somebody's file")
    with pytest.raises(StartFailure, match="is no socket"):
        await Daemon(settings).start()
    assert settings.socket.read_text() == "somebody's file"


async def test_a_damaged_store_stops_the_start_and_names_the_file(settings: Settings) -> None:
    settings.state_dir.mkdir()
    (settings.state_dir / FILE_NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(StartFailure, match=r"acceld\.db is damaged"):
        await Daemon(settings).start()
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(settings.state_dir / FILE_NAME).execute("SELECT * FROM events")
