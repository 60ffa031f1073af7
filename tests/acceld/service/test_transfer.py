"""Transfers over the API: started, watched, cancelled, kept; and what is refused."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence

import crc32c
import pytest
from google.protobuf.duration_pb2 import Duration

from accel.v1 import event_pb2, host_pb2, memory_pb2, transfer_pb2
from acceld.records import NewEvent, StoredEvent
from accelhw.interface.messages import AcknowledgeTransfer, Completion, StartTransfer
from accelhw.model.transfer import TransferError

from ..conftest import WAIT_S, Daemon, refusal, until
from ..fake_hardware import FakeHardware

MIB = 1 << 20
REQUEST = "3f2a7c5e9b1d4e6f8a0b2c4d6e8f0a1b"
DONE, FAILED, CANCELLED, RUNNING = (
    transfer_pb2.TRANSFER_STATE_DONE,
    transfer_pb2.TRANSFER_STATE_FAILED,
    transfer_pb2.TRANSFER_STATE_CANCELLED,
    transfer_pb2.TRANSFER_STATE_RUNNING,
)


def region(card: str, name: str, offset: int = 0) -> transfer_pb2.RegionSlice:
    return transfer_pb2.RegionSlice(region=f"cards/{card}/regions/{name}", offset=offset)


async def copy(daemon: Daemon, **more: object) -> transfer_pb2.Transfer:
    fields = {"source": region("card0", "a"), "target": region("card1", "b"), **more}
    return await daemon.transfers.CreateTransfer(transfer_pb2.CreateTransferRequest(**fields))


async def end_of(daemon: Daemon, name: str) -> transfer_pb2.Transfer:
    call = daemon.transfers.WatchTransfer(transfer_pb2.WatchTransferRequest(name=name))
    return [step async for step in call][-1]


@pytest.fixture
async def pair(daemon: Daemon) -> Daemon:
    await daemon.region("card0", "a")
    await daemon.region("card1", "b")
    return daemon


@pytest.mark.parametrize("kind", [0, transfer_pb2.TRANSFER_KIND_READ])
async def test_a_copy_ends_with_every_byte_and_its_times(pair: Daemon, kind: int) -> None:
    data = random.Random(1).randbytes(MIB)
    await pair.write("cards/card0/regions/a", data)
    started = await copy(pair, kind=kind)
    done = await end_of(pair, started.name)
    assert done.state == DONE
    assert done.good_bytes == done.total_bytes == MIB
    assert done.crc32c == crc32c.crc32c(data)
    assert done.modelled_pcie_us > done.modelled_us > 0
    assert done.source.region == "cards/card0/regions/a"
    assert done.source.key == 0, "keys are for those who were given them"
    assert await pair.read("cards/card1/regions/b") == data
    assert await pair.transfers.GetTransfer(
        transfer_pb2.GetTransferRequest(name=started.name)
    ) == done  # fmt: skip


async def test_the_end_is_acknowledged_after_it_is_kept(
    hardware: FakeHardware, pair: Daemon
) -> None:
    started = await copy(pair)
    await end_of(pair, started.name)
    await until(lambda: any(isinstance(c, AcknowledgeTransfer) for c in hardware.commands))
    assert pair.host.store.transfer(started.name.removeprefix("transfers/"))
    assert not hardware.transfers


async def test_a_list_of_events_tells_all_that_another_answer_shows(
    hardware: FakeHardware, pair: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link went down before the transfer ended: who sees the end finds the event, however long
    the disk takes to keep it."""
    hardware.hold_transfers = True
    started = await copy(pair)
    disk, append = threading.Event(), pair.host.store.append_events

    def slowly(events: Sequence[NewEvent]) -> list[StoredEvent]:
        assert disk.wait(WAIT_S)
        return append(events)

    monkeypatch.setattr(pair.host.store, "append_events", slowly)
    hardware.emit("LINK_DOWN", "card0/oe0")
    hardware.finish(started.name.removeprefix("transfers/"))
    assert (await end_of(pair, started.name)).state == DONE
    listing = pair.events.ListEvents(event_pb2.ListEventsRequest(subject="card0/oe0"))
    await pair.hosts.GetHost(host_pb2.GetHostRequest())  # By now it has the other call too.
    assert not listing.done()
    disk.set()
    assert [event.kind for event in (await listing).events] == ["LINK_DOWN"]


async def test_watchers_see_progress_and_the_end(hardware: FakeHardware, pair: Daemon) -> None:
    hardware.hold_transfers = True
    started = await copy(pair)
    number = started.name.removeprefix("transfers/")
    call = pair.transfers.WatchTransfer(transfer_pb2.WatchTransferRequest(name=started.name))
    assert (await call.read()).good_bytes == 0
    hardware.progress(number, 4096)
    assert (await call.read()).good_bytes == 4096
    hardware.fail(number, TransferError.LINK_DEADLINE, "card0/oe0 was down for 30 s")
    last = await call.read()
    assert (last.state, last.error, last.good_bytes) == (FAILED, "LINK_DEADLINE", 4096)
    assert "30 s" in last.error_detail


async def test_a_call_that_waits_is_answered_with_the_end(pair: Daemon) -> None:
    done = await copy(pair, wait=Duration(seconds=30))
    assert (done.state, done.good_bytes) == (DONE, MIB)


async def test_a_call_waits_no_longer_than_it_asked_to(
    hardware: FakeHardware, pair: Daemon
) -> None:
    hardware.hold_transfers = True
    assert not (await copy(pair, wait=Duration(nanos=1_000_000))).HasField("end_time")


async def test_the_same_request_again_starts_no_second_transfer(
    hardware: FakeHardware, pair: Daemon
) -> None:
    hardware.hold_transfers = True
    first = await copy(pair, request_id=REQUEST)
    assert first.name == f"transfers/{REQUEST}"
    assert (await copy(pair, request_id=REQUEST)).name == first.name
    hardware.fail(REQUEST, TransferError.LINK_DEADLINE, "")
    await end_of(pair, first.name)
    assert (await copy(pair, request_id=REQUEST)).state == FAILED  # also after its end
    assert sum(isinstance(c, StartTransfer) for c in hardware.commands) == 1
    refused = await refusal(copy(pair, request_id=REQUEST, length=4096))
    assert (refused.status, refused.reason) == ("ALREADY_EXISTS", "REQUEST_ID_USED")


async def test_a_running_transfer_is_cancelled_once(hardware: FakeHardware, pair: Daemon) -> None:
    hardware.hold_transfers = True
    started = await copy(pair)
    cancel = transfer_pb2.CancelTransferRequest(name=started.name)
    assert (await pair.transfers.CancelTransfer(cancel)).state == CANCELLED
    refused = await refusal(pair.transfers.CancelTransfer(cancel))
    assert (refused.status, refused.reason) == ("FAILED_PRECONDITION", "TRANSFER_ENDED")


async def test_a_region_in_a_transfer_is_not_freed(hardware: FakeHardware, pair: Daemon) -> None:
    hardware.hold_transfers = True
    started = await copy(pair)
    name = "cards/card1/regions/b"
    found = await pair.memory.GetRegion(memory_pb2.GetRegionRequest(name=name))
    assert found.transfers_running_count == 1
    refused = await refusal(pair.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name=name)))
    assert refused.reason == "REGION_BUSY"
    hardware.finish(started.name.removeprefix("transfers/"))
    await end_of(pair, started.name)
    await pair.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name=name))


async def test_two_regions_of_one_card_are_copied_inside_it(
    hardware: FakeHardware, pair: Daemon
) -> None:
    await pair.region("card0", "c")
    started = await copy(pair, target=region("card0", "c"))
    assert started.kind == transfer_pb2.TRANSFER_KIND_LOCAL
    assert (await end_of(pair, started.name)).state == DONE


async def test_a_far_region_is_named_by_id_and_key(hardware: FakeHardware, pair: Daemon) -> None:
    far = await pair.memory.GetRegion(memory_pb2.GetRegionRequest(name="cards/card1/regions/b"))
    address = transfer_pb2.RegionSlice(
        card="cards/card1", region_id=far.region_id, key=far.key, offset=8192
    )
    await copy(pair, target=address, length=4096)
    sent = next(c for c in hardware.commands if isinstance(c, StartTransfer))
    assert (sent.remote_card, sent.remote_key, sent.remote_offset) == ("card1", far.key, 8192)
    await copy(pair, source=address, target=region("card0", "a"), length=4096)
    read = [c for c in hardware.commands if isinstance(c, StartTransfer)][-1]
    assert (read.kind, read.local_card) == (transfer_pb2.TRANSFER_KIND_READ, "card0")


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"source": region("card0", "x")}, "NOT_FOUND", "REGION_NOT_FOUND"),
        ({"source": region("card7", "a")}, "NOT_FOUND", "CARD_NOT_FOUND"),
        ({"source": transfer_pb2.RegionSlice()}, "INVALID_ARGUMENT", "SLICE_INVALID"),
        (
            {"source": transfer_pb2.RegionSlice(region="cards/card0/regions/a", key=5)},
            "INVALID_ARGUMENT",
            "SLICE_INVALID",
        ),
        ({"source": region("card0", "a", MIB)}, "OUT_OF_RANGE", "BEYOND_REGION"),
        ({"length": MIB + 1}, "OUT_OF_RANGE", "BEYOND_REGION"),
        ({"length": 2**64 - 1}, "OUT_OF_RANGE", "BEYOND_REGION"),
        ({"source": region("card0", "a", 4096)}, "INVALID_ARGUMENT", "LENGTH_AMBIGUOUS"),
        ({"kind": 3}, "INVALID_ARGUMENT", "KIND_INVALID"),
        ({"kind": 77}, "INVALID_ARGUMENT", "KIND_INVALID"),
        ({"link_deadline": Duration(seconds=0)}, "INVALID_ARGUMENT", "DEADLINE_INVALID"),
        ({"link_deadline": Duration(seconds=-3)}, "INVALID_ARGUMENT", "DEADLINE_INVALID"),
        ({"request_id": "two words"}, "INVALID_ARGUMENT", "REQUEST_ID_INVALID"),
        ({"request_id": "3f2a"}, "INVALID_ARGUMENT", "REQUEST_ID_INVALID"),
        (
            {"target": region("card0", "a", 4096), "length": 8192},
            "INVALID_ARGUMENT",
            "SLICES_OVERLAP",
        ),
        (
            {"target": transfer_pb2.RegionSlice(card="cards/card1", key=1), "length": 1},
            "INVALID_ARGUMENT",
            "REGION_MISSING",
        ),
        (
            {
                "source": transfer_pb2.RegionSlice(card="cards/card0", region_id=1),
                "target": transfer_pb2.RegionSlice(card="cards/card1", region_id=1),
            },
            "INVALID_ARGUMENT",
            "NO_LOCAL_REGION",
        ),
    ],
)
async def test_a_transfer_that_cannot_be_is_refused(
    hardware: FakeHardware, pair: Daemon, fields: dict[str, object], status: str, reason: str
) -> None:
    refused = await refusal(copy(pair, **fields))
    assert (refused.status, refused.reason) == (status, reason)
    assert not any(isinstance(c, StartTransfer) for c in hardware.commands)
    assert pair.host.transfers.running == 0


async def test_what_the_hardware_refuses_leaves_no_trace(
    hardware: FakeHardware, pair: Daemon
) -> None:
    hardware.refuse[StartTransfer] = Completion(0, "BAD_STATE", "too many transfers")
    refused = await refusal(copy(pair))
    assert (refused.status, refused.message) == ("FAILED_PRECONDITION", "too many transfers")
    listed = await pair.transfers.ListTransfers(transfer_pb2.ListTransfersRequest())
    assert not listed.transfers
    await pair.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name="cards/card0/regions/a"))


@pytest.mark.parametrize(
    ("name", "reason"), [("transfers/00", "TRANSFER_NOT_FOUND"), ("transfer/../x", "NAME_INVALID")]
)
async def test_an_unknown_transfer_is_not_found(pair: Daemon, name: str, reason: str) -> None:
    stub = pair.transfers
    for call in (
        stub.GetTransfer(transfer_pb2.GetTransferRequest(name=name)),
        stub.WatchTransfer(transfer_pb2.WatchTransferRequest(name=name)),
        stub.CancelTransfer(transfer_pb2.CancelTransferRequest(name=name)),
    ):
        assert (await refusal(call)).reason == reason


async def test_the_list_is_newest_first_and_may_be_of_running_ones(
    hardware: FakeHardware, pair: Daemon
) -> None:
    ended = [(await copy(pair)).name for _ in range(3)]
    for name in ended:
        await end_of(pair, name)
    hardware.hold_transfers = True
    running = (await copy(pair)).name
    listed = await pair.transfers.ListTransfers(transfer_pb2.ListTransfersRequest(page_size=2))
    assert [t.name for t in listed.transfers] == [running, ended[2]]
    rest = await pair.transfers.ListTransfers(
        transfer_pb2.ListTransfersRequest(page_token=listed.next_page_token)
    )
    assert [t.name for t in rest.transfers] == [ended[1], ended[0]]
    active = await pair.transfers.ListTransfers(transfer_pb2.ListTransfersRequest(active_only=True))
    assert [t.name for t in active.transfers] == [running]


async def test_many_copies_at_once_all_end(pair: Daemon) -> None:
    started = await asyncio.gather(*(copy(pair) for _ in range(30)))
    ends = await asyncio.gather(*(end_of(pair, t.name) for t in started))
    assert {t.state for t in ends} == {DONE}
    assert len({t.name for t in ends}) == 30
