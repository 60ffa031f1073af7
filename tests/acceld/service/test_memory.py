"""Regions over the API: made, filled, read, freed, and every way to be refused."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import socket
from collections.abc import AsyncIterator

import crc32c
import pytest

from accel.v1 import memory_pb2
from acceld.host.hbm import Hbm
from acceld.host.operations import RANDOM_BLOCK_BYTES, random_block
from accelhw.interface.messages import Completion, RegisterWindow, UnregisterWindow

from ..conftest import Daemon, refusal, until
from ..fake_hardware import FakeHardware

WEIGHTS = "cards/card0/regions/weights"
MIB = 1 << 20
GIB = 1 << 30


async def test_bytes_come_back_as_they_went(daemon: Daemon) -> None:
    await daemon.region("card0", "weights", 4 * MIB)
    data = random.Random(7).randbytes(3 * MIB + 17)
    await daemon.write(WEIGHTS, data, offset=5)
    assert await daemon.read(WEIGHTS, 5, len(data)) == data
    assert await daemon.read(WEIGHTS, 0, 5) == bytes(5)
    assert len(await daemon.read(WEIGHTS)) == 4 * MIB


async def test_a_write_reports_the_checksum_of_what_arrived(daemon: Daemon) -> None:
    await daemon.region("card0", "weights")

    async def parts() -> AsyncIterator[memory_pb2.WriteRegionRequest]:
        header = memory_pb2.WriteRegionRequest.Header(name=WEIGHTS, length=6)
        yield memory_pb2.WriteRegionRequest(header=header)
        yield memory_pb2.WriteRegionRequest(data=b"abc")
        yield memory_pb2.WriteRegionRequest(data=b"def")

    answer = await daemon.memory.WriteRegion(parts())
    assert (answer.written_bytes, answer.crc32c) == (6, crc32c.crc32c(b"abcdef"))


async def test_fill_and_checksum_stream_progress_to_the_end(daemon: Daemon) -> None:
    await daemon.region("card0", "weights", 9 * MIB)
    fill = memory_pb2.FillRegionRequest(name=WEIGHTS, byte=0xA5)
    steps = [p async for p in daemon.memory.FillRegion(fill)]
    assert [p.done for p in steps] == [False, False, True]
    last = [
        p
        async for p in daemon.memory.ChecksumRegion(memory_pb2.ChecksumRegionRequest(name=WEIGHTS))
    ][-1]
    expected = b"\xa5" * (9 * MIB)
    assert last.sha256 == hashlib.sha256(expected).hexdigest()
    assert last.crc32c == crc32c.crc32c(expected)


async def test_a_random_fill_is_told_by_its_seed_alone(daemon: Daemon) -> None:
    await daemon.region("card0", "weights", 6 * MIB)
    request = memory_pb2.FillRegionRequest(
        name=WEIGHTS, offset=100, length=5 * MIB + 3, random_seed=2**64 - 1
    )
    async for _ in daemon.memory.FillRegion(request):
        pass
    expected = b"".join(random_block(2**64 - 1, n) for n in range(6))[: 5 * MIB + 3]
    assert len(random_block(1, 0)) == RANDOM_BLOCK_BYTES
    assert await daemon.read(WEIGHTS, 100, 5 * MIB + 3) == expected
    assert await daemon.read(WEIGHTS, 0, 100) == bytes(100)


async def test_memory_is_prepared_for_what_is_written_and_not_beyond(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    region = await daemon.region("card0", "weights", 12 * MIB)
    assert region.address % (2 * MIB) == 0
    asked: list[tuple[int, ...]] = []

    def prepare(self: Hbm, *limits: int) -> None:
        asked.append(tuple(limit - region.address for limit in limits))

    monkeypatch.setattr(Hbm, "prepare", prepare)
    request = memory_pb2.FillRegionRequest(name=WEIGHTS, offset=MIB, length=9 * MIB, byte=1)
    async for _ in daemon.memory.FillRegion(request):
        pass
    steps = [(1, 5), (5, 9), (9, 10)]
    assert asked == [(start * MIB, end * MIB, MIB, 10 * MIB) for start, end in steps]
    asked.clear()
    await daemon.write(WEIGHTS, b"x" * 1000)
    assert (asked[0][0], asked[-1][1]) == (0, 1000)
    assert {limits[2:] for limits in asked} == {(0, 1000)}


async def test_a_cancelled_fill_stops_and_lets_the_region_go(daemon: Daemon) -> None:
    await daemon.region("card0", "weights", GIB)
    call = daemon.memory.FillRegion(memory_pb2.FillRegionRequest(name=WEIGHTS, random_seed=1))
    first = await call.read()
    call.cancel()
    assert first.total_bytes == GIB
    await until(lambda: not daemon.host.regions._pins["card0", "weights"])
    await daemon.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name=WEIGHTS))
    assert daemon.host.hardware.hbm("card0").resident_bytes < GIB / 2


async def test_a_freed_region_gives_memory_back_and_the_next_one_is_empty(daemon: Daemon) -> None:
    first = await daemon.region("card0", "weights", 2 * MIB)
    await daemon.write(WEIGHTS, b"secret" * 1000)
    await daemon.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name=WEIGHTS))
    assert daemon.host.hardware.hbm("card0").resident_bytes == 0
    second = await daemon.region("card0", "weights", 2 * MIB)
    assert second.address == first.address
    assert second.key != first.key
    assert await daemon.read(WEIGHTS) == bytes(2 * MIB)


async def test_regions_without_a_name_get_one(daemon: Daemon) -> None:
    made = [await daemon.region("card1", "") for _ in range(2)]
    assert [r.name.rpartition("/")[2] for r in made] == ["region-1", "region-2"]


async def test_a_fixed_address_and_alignment_are_kept(daemon: Daemon) -> None:
    top = await daemon.memory.CreateRegion(
        memory_pb2.CreateRegionRequest(
            parent="cards/card0", region_id="top", size_bytes=4096, address=80 * GIB - 4096
        )
    )
    aligned = await daemon.memory.CreateRegion(
        memory_pb2.CreateRegionRequest(
            parent="cards/card0", region_id="huge", size_bytes=5000, alignment_bytes=2 * MIB
        )
    )
    assert top.address == 80 * GIB - 4096
    assert (aligned.address % (2 * MIB), aligned.size_bytes) == (0, 5000)


async def test_a_large_region_lies_on_huge_pages_where_there_is_room(daemon: Daemon) -> None:
    small = await daemon.region("card0", "small", 4096)
    large = await daemon.region("card0", "large", 2 * MIB)
    assert (small.address, large.address) == (0, 2 * MIB)
    between = await daemon.region("card0", "between", 2 * MIB - 4096)
    assert between.address == 4096


async def test_a_large_region_lies_anywhere_rather_than_nowhere(daemon: Daemon) -> None:
    allocator = daemon.host.regions._allocators["card0"]
    allocator.allocate_at(0, 4096)
    allocator.allocate_at(3 * MIB, 80 * GIB - 3 * MIB)
    large = await daemon.region("card0", "large", 2 * MIB)
    assert large.address == 4096


@pytest.mark.parametrize(
    ("request_fields", "status", "reason", "words"),
    [
        ({"parent": "cards/card9"}, "NOT_FOUND", "CARD_NOT_FOUND", "did you mean card"),
        ({"parent": "card0"}, "INVALID_ARGUMENT", "NAME_INVALID", "try cards/card0"),
        ({"parent": "cards/-"}, "INVALID_ARGUMENT", "NAME_INVALID", "try cards/card0"),
        ({"region_id": "Bad_Name"}, "INVALID_ARGUMENT", "REGION_NAME_INVALID", "a-z"),
        ({"region_id": "taken"}, "ALREADY_EXISTS", "REGION_EXISTS", "another name"),
        ({"size_bytes": 0}, "INVALID_ARGUMENT", "SIZE_INVALID", "at least 1"),
        ({"size_bytes": 81 * GIB}, "OUT_OF_RANGE", "BEYOND_HBM", "80 GiB of HBM"),
        ({"size_bytes": 2**64 - 1}, "OUT_OF_RANGE", "BEYOND_HBM", "80 GiB of HBM"),
        ({"address": 80 * GIB}, "OUT_OF_RANGE", "BEYOND_HBM", "80 GiB of HBM"),
        ({"size_bytes": 9 * GIB}, "RESOURCE_EXHAUSTED", "HBM_BUDGET_EXCEEDED", "8 GiB are free"),
        ({"alignment_bytes": 5000}, "INVALID_ARGUMENT", "ALIGNMENT_INVALID", "power of two"),
        ({"alignment_bytes": 512}, "INVALID_ARGUMENT", "ALIGNMENT_INVALID", "power of two"),
        ({"address": 100}, "INVALID_ARGUMENT", "ADDRESS_UNALIGNED", "multiple of 4096"),
        ({"address": 4096}, "ALREADY_EXISTS", "REGION_OVERLAPS", "card0:taken"),
        (
            {"alignment_bytes": 64 * GIB, "size_bytes": 17 * GIB},
            "RESOURCE_EXHAUSTED",
            "HBM_BUDGET_EXCEEDED",
            "hbm_budget_gib",
        ),
    ],
)
async def test_a_region_that_cannot_be_is_refused_with_a_reason(
    hardware: FakeHardware,
    daemon: Daemon,
    request_fields: dict[str, str | int],
    status: str,
    reason: str,
    words: str,
) -> None:
    await daemon.memory.CreateRegion(
        memory_pb2.CreateRegionRequest(
            parent="cards/card0", region_id="taken", size_bytes=4096, address=4096
        )
    )
    fields = {"parent": "cards/card0", "region_id": "new", "size_bytes": 4096, **request_fields}
    if reason == "HBM_BUDGET_EXCEEDED" and "8 GiB" in words:
        await daemon.memory.DeleteRegion(
            memory_pb2.DeleteRegionRequest(name="cards/card0/regions/taken")
        )
    refused = await refusal(daemon.memory.CreateRegion(memory_pb2.CreateRegionRequest(**fields)))
    assert (refused.status, refused.reason, refused.domain) == (status, reason, "acceld")
    assert words in refused.message


async def test_a_full_card_says_what_would_fit(settings, folder) -> None:  # type: ignore[no-untyped-def]
    small = FakeHardware(folder / "hardware.sock", hbm_bytes=4 * MIB)
    await small.start()
    daemon = Daemon(settings)
    await daemon.start()
    await daemon.region("card0", "a", 3 * MIB)
    refused = await refusal(daemon.region("card0", "b", 2 * MIB))
    assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "HBM_EXHAUSTED")
    assert refused.metadata["largest_free_bytes"] == str(MIB)
    await daemon.region("card0", "b", MIB)
    await daemon.stop()
    await small.stop()
    small.close()


async def test_when_the_hardware_refuses_nothing_stays_allocated(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.refuse[RegisterWindow] = Completion(0, "CARD_LOST", "card0 is gone")
    refused = await refusal(daemon.region("card0", "weights"))
    assert (refused.status, refused.reason) == ("UNAVAILABLE", "CARD_LOST")
    assert daemon.host.regions.all() == []
    assert daemon.host.store.regions() == []
    assert (await daemon.region("card0", "weights")).address == 0


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_caller_who_hangs_up_leaves_nothing_half_done(
    hardware: FakeHardware, daemon: Daemon, refuses: bool
) -> None:
    hardware.gate = asyncio.Event()
    if refuses:
        hardware.refuse[RegisterWindow] = Completion(0, "CARD_LOST", "card0 is gone")
    call = asyncio.create_task(daemon.region("card0", "weights"))
    await until(lambda: any(isinstance(c, RegisterWindow) for c in hardware.commands))
    call.cancel()
    hardware.gate.set()
    await until(lambda: not daemon.host.regions._reserved)
    assert [r.name for r in daemon.host.regions.all()] == ([] if refuses else ["weights"])
    assert len(hardware.windows) == len(daemon.host.store.regions()) == (0 if refuses else 1)
    assert (await daemon.region("card0", "next")).region_id == (1 if refuses else 2)


async def test_a_busy_region_is_not_freed(hardware: FakeHardware, daemon: Daemon) -> None:
    await daemon.region("card0", "weights")
    hardware.refuse[UnregisterWindow] = Completion(0, "BUSY", "a peer reads it")
    delete = memory_pb2.DeleteRegionRequest(name=WEIGHTS)
    refused = await refusal(daemon.memory.DeleteRegion(delete))
    assert (refused.status, refused.reason) == ("FAILED_PRECONDITION", "REGION_BUSY")
    with daemon.host.regions.pinned("card0", "weights"):
        refused = await refusal(daemon.memory.DeleteRegion(delete))
        assert refused.reason == "REGION_BUSY"
    await daemon.memory.DeleteRegion(delete)
    refused = await refusal(daemon.memory.GetRegion(memory_pb2.GetRegionRequest(name=WEIGHTS)))
    assert (refused.status, refused.reason) == ("NOT_FOUND", "REGION_NOT_FOUND")


async def test_a_mistyped_region_meets_its_nearest_name(daemon: Daemon) -> None:
    await daemon.region("card0", "weights")
    request = memory_pb2.GetRegionRequest(name="cards/card0/regions/wieghts")
    assert (
        "did you mean card0:weights?" in (await refusal(daemon.memory.GetRegion(request))).message
    )


@pytest.mark.parametrize(
    ("offset", "length"), [(MIB, 0), (MIB - 1, 2), (0, MIB + 1), (2**63, 2**63), (2**64 - 1, 1)]
)
async def test_no_one_reads_or_writes_beyond_a_region(
    daemon: Daemon, offset: int, length: int
) -> None:
    await daemon.region("card0", "weights")
    memory = daemon.memory
    for call in (
        memory.ReadRegion(memory_pb2.ReadRegionRequest(name=WEIGHTS, offset=offset, length=length)),
        memory.ChecksumRegion(
            memory_pb2.ChecksumRegionRequest(name=WEIGHTS, offset=offset, length=length)
        ),
        memory.FillRegion(
            memory_pb2.FillRegionRequest(name=WEIGHTS, offset=offset, length=length, byte=1)
        ),
    ):
        refused = await refusal(call)
        assert (refused.status, refused.reason) == ("OUT_OF_RANGE", "BEYOND_REGION")


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [
        ([], "INVALID_ARGUMENT", "HEADER_MISSING"),
        ([b"data first"], "INVALID_ARGUMENT", "HEADER_MISSING"),
        ([("weights", 0, 0)], "INVALID_ARGUMENT", "LENGTH_MISSING"),
        ([("weights", 0, 8), b"1234"], "ABORTED", "STREAM_INCOMPLETE"),
        ([("weights", 0, 8), b"123456789"], "OUT_OF_RANGE", "TOO_MUCH_DATA"),
        ([("weights", 0, 8), b"1234", ("weights", 0, 8)], "INVALID_ARGUMENT", "HEADER_REPEATED"),
        ([("weights", MIB, 1), b"1"], "OUT_OF_RANGE", "BEYOND_REGION"),
        ([("nothing", 0, 1), b"1"], "NOT_FOUND", "REGION_NOT_FOUND"),
    ],
)
async def test_a_crooked_write_stream_is_refused(
    daemon: Daemon, parts: list[bytes | tuple[str, int, int]], status: str, reason: str
) -> None:
    await daemon.region("card0", "weights")

    async def stream() -> AsyncIterator[memory_pb2.WriteRegionRequest]:
        for part in parts:
            if isinstance(part, bytes):
                yield memory_pb2.WriteRegionRequest(data=part)
            else:
                name = f"cards/card0/regions/{part[0]}"
                yield memory_pb2.WriteRegionRequest(
                    header=memory_pb2.WriteRegionRequest.Header(
                        name=name, offset=part[1], length=part[2]
                    )
                )

    refused = await refusal(daemon.memory.WriteRegion(stream()))
    assert (refused.status, refused.reason) == (status, reason)


@pytest.mark.parametrize("pattern", [{}, {"byte": 256}])
async def test_a_fill_needs_a_pattern(daemon: Daemon, pattern: dict[str, int]) -> None:
    await daemon.region("card0", "weights")
    call = daemon.memory.FillRegion(memory_pb2.FillRegionRequest(name=WEIGHTS, **pattern))
    assert (await refusal(call)).status == "INVALID_ARGUMENT"


# ---- mapping -------------------------------------------------------------------------------------


def fetch(path: str, token: str) -> tuple[bytes, list[int]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        sock.sendall(token.encode() + b"\n")
        text, fds, _, _ = socket.recv_fds(sock, 200, 4)
        return text, fds


@pytest.mark.parametrize("writable", [True, False])
async def test_a_client_of_this_host_gets_the_memory_itself(daemon: Daemon, writable: bool) -> None:
    await daemon.region("card0", "other", 4096)
    region = await daemon.region("card0", "weights")
    grant = await daemon.memory.MapRegion(
        memory_pb2.MapRegionRequest(name=WEIGHTS, writable=writable)
    )
    assert (grant.address, grant.size_bytes) == (region.address, region.size_bytes)
    text, fds = await asyncio.to_thread(fetch, grant.socket_path, grant.token)
    assert (text, len(fds)) == (b"+", 1)
    if writable:
        os.pwrite(fds[0], b"in place", grant.address)
        assert await daemon.read(WEIGHTS, 0, 8) == b"in place"
    else:
        await daemon.write(WEIGHTS, b"to read")
        assert os.pread(fds[0], 7, grant.address) == b"to read"
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(fds[0], b"x", grant.address)
    os.close(fds[0])
    again, fds = await asyncio.to_thread(fetch, grant.socket_path, grant.token)
    assert again.startswith(b"-")
    assert not fds


async def test_a_guessed_token_fetches_nothing(daemon: Daemon) -> None:
    for token in ("", "0" * 32, "x" * 5000):
        text, fds = await asyncio.to_thread(fetch, str(daemon.settings.memory_socket), token)
        assert text[:1] == b"-"
        assert not fds


# ---- pages ---------------------------------------------------------------------------------------


async def test_pages_give_each_region_once_though_others_come_and_go(daemon: Daemon) -> None:
    for name in ("a", "c", "e", "g"):
        await daemon.region("card0", name, 4096)
    seen: list[str] = []
    token = ""
    for extra in ("b", "d", "f"):
        page = await daemon.memory.ListRegions(
            memory_pb2.ListRegionsRequest(parent="cards/card0", page_size=2, page_token=token)
        )
        seen += [region.name[-1] for region in page.regions]
        token = page.next_page_token
        if not token:
            break
        await daemon.region("card0", extra, 4096)
        await daemon.memory.DeleteRegion(memory_pb2.DeleteRegionRequest(name=page.regions[1].name))
    assert [name for name in seen if name in "aceg"] == ["a", "c", "e", "g"]
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("token", ["x", "!!!", "W10", "WyJyZWdpb25zLy0iLHt9XQ", "WyJvdGhlciIsMV0"])
async def test_a_forged_page_token_is_refused(daemon: Daemon, token: str) -> None:
    await daemon.region("card0", "a", 4096)
    call = daemon.memory.ListRegions(memory_pb2.ListRegionsRequest(page_token=token))
    assert (await refusal(call)).reason == "PAGE_TOKEN_INVALID"
    call = daemon.memory.ListRegions(memory_pb2.ListRegionsRequest(page_size=-1))
    assert (await refusal(call)).reason == "PAGE_SIZE_INVALID"
