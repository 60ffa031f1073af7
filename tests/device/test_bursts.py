"""The two loops of the data path: what they promise, each of them, on a socket pair.

Where set-up made no library of the loops in C (no compiler, another CPU, ACCEL_NATIVE=0), only
those in Python are run here; test_native.py tells when that is not right. That both do the same
with whatever comes is in test_bursts_same.py.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import socket

import pytest

from accelhw.device.bursts import BURST_FRAMES_MAX, Arriving, Leaving, Outcome
from accelhw.transport.base import InterfaceDown
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    HEADER_BYTES,
    FrameFlag,
    FrameType,
    bare_data,
    decode_frame,
    decode_header,
)

from .burstends import LOOPS, End, Make

NOISE = bytes((n * n * 3 + n // 251) & 0xFF for n in range(1 << 18))
EPOCH, STREAM, CHANNEL, ACK = 77, 5, 2, 41

every_loop = pytest.mark.parametrize("make", LOOPS, ids=lambda make: make.__name__)


def leaving(
    nbytes: int, share: int, base: int = 0, offset: int = 0, sequence: int = 0, crc: int = 0
) -> Leaving:
    return Leaving(
        base=base, offset=offset, stop=offset + nbytes, share=share, sequence=sequence, ack=ACK,
        stream=STREAM, crc=crc, last_flags=FrameFlag.ACK_NOW | CHANNEL << 4,
    )  # fmt: skip


def arriving(nbytes: int, share: int) -> Arriving:
    """The far side of `leaving`, from its start."""
    return Arriving(
        end=nbytes, data=bare_data(CHANNEL), light_left=math.inf, share=share, ack=ACK,
        stream=STREAM, epoch=EPOCH, limit=BURST_FRAMES_MAX,
    )  # fmt: skip


def sent(nbytes: int, share: int) -> list[bytes]:
    """The frames of a chunk."""
    with End(LOOPS[0], NOISE, CHANNEL) as end:
        end.writer.begin_run(0, share, 16, EPOCH)
        end.bursts.send(leaving(nbytes, share))
        return end.arrived_far()


# ---- sending ----


@every_loop
@pytest.mark.parametrize(
    ("nbytes", "share"), [(1, 64), (64, 64), (65, 64), (6400, 64), (100_001, 8960), (90_000, 65472)]
)
def test_frames_say_what_they_carry(make: Make, nbytes: int, share: int) -> None:
    base, offset, sequence, crc = -(5 << 32) + 1000, 5 << 32, 0xFFFFFFFE, 0xABCDEF01
    with End(make, NOISE, CHANNEL) as end:
        end.writer.begin_run(int(FrameFlag.DROPPED), share, 16, EPOCH)
        burst = leaving(nbytes, share, base, offset, sequence, crc)
        crcs = end.bursts.send(burst)
        frames = end.arrived_far()
    assert burst.error == 0
    assert len(crcs) == len(frames) == -(-nbytes // share)
    for number, (frame, after) in enumerate(zip(frames, crcs, strict=True)):
        header = decode_header(frame, len(frame))
        place = base + offset + number * share
        payload = NOISE[place : min(place + share, base + offset + nbytes)]
        last = number == len(frames) - 1
        crc = crc32c(payload, crc)
        assert frame[HEADER_BYTES:] == payload
        assert header == (
            FrameType.DATA, 0xFF,
            CHANNEL << 4 | (FrameFlag.ACK_NOW if last else FrameFlag.DROPPED),
            len(payload), 16, EPOCH, (sequence + number) & 0xFFFFFFFF, ACK, STREAM,
            offset + number * share, crc,
        )  # fmt: skip
        assert after == crc


@every_loop
def test_a_full_queue_ends_a_burst_and_the_next_goes_on_behind_it(make: Make) -> None:
    with End(make, NOISE) as end:
        with socket.socket(fileno=os.dup(end.socket)) as here:
            here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 10)
        end.writer.begin_run(0, 2048, 1, EPOCH)
        burst = leaving(64 << 10, 2048)
        left: list[bytes] = []
        while burst.offset < burst.stop:
            crcs = end.bursts.send(burst)
            assert crcs  # the far end made room
            assert burst.error in (0, errno.EAGAIN)
            burst.sequence += len(crcs)
            burst.offset += len(crcs) * 2048
            burst.crc = crcs[-1]
            left += end.arrived_far()
        assert len(left) == 32
        assert b"".join(frame[HEADER_BYTES:] for frame in left) == NOISE[: 64 << 10]
        assert burst.crc == crc32c(NOISE[: 64 << 10])


@every_loop
def test_a_far_end_that_is_gone_is_an_error(make: Make) -> None:
    with End(make, NOISE) as end:
        end.far.close()
        end.writer.begin_run(0, 64, 1, EPOCH)
        burst = leaving(640, 64)
        assert list(end.bursts.send(burst)) == []
        assert burst.error == errno.EPIPE


@every_loop
def test_no_burst_is_longer_than_its_checksums_have_room_for(make: Make) -> None:
    with End(make, NOISE) as end:
        end.writer.begin_run(0, 64, 1, EPOCH)
        burst = leaving((BURST_FRAMES_MAX + 1) * 64, 64)
        assert len(end.bursts.send(burst)) == BURST_FRAMES_MAX
        assert burst.error == 0
        frames = end.arrived_far()
    assert len(frames) == BURST_FRAMES_MAX
    assert not decode_frame(frames[0])[0].flags & FrameFlag.ACK_NOW
    assert not decode_header(frames[-1], len(frames[-1])).flags & FrameFlag.ACK_NOW  # not the last


# ---- taking ----


@every_loop
def test_a_chunk_lands_whole(make: Make) -> None:
    frames = sent(100_001, 8960)
    with End(make, bytes(len(NOISE)), CHANNEL) as end:
        for frame in frames:
            end.far.send(frame)
        burst = arriving(100_001, 8960)
        assert end.bursts.take(burst) is Outcome.FULL
        assert end.memory[:100_001] == NOISE[:100_001]
        assert not any(end.memory[100_001:])
        assert (burst.offset, burst.sequence, burst.frames) == (100_001, len(frames), len(frames))
        assert burst.crc == crc32c(NOISE[:100_001])
        assert burst.flags == FrameFlag.ACK_NOW


@every_loop
def test_where_hbm_has_no_page_the_frame_that_is_lost_has_its_length(make: Make) -> None:
    """A page behind the end of the file, as the kernel answers where none is to be had."""
    page = mmap.PAGESIZE
    share, fd = page // 4, os.memfd_create("hole")
    os.ftruncate(fd, 2 * page)
    with mmap.mmap(fd, 2 * page) as pages:
        os.ftruncate(fd, page)
        os.close(fd)
        memory = memoryview(pages)
        with End(make, memory, CHANNEL) as end:
            for frame in sent(page + share // 2, share):
                end.far.send(frame)
            burst = arriving(page + share // 2, share)
            assert end.bursts.take(burst) is Outcome.FAILED
            assert burst.error == errno.EFAULT
            assert (burst.offset, burst.frames, burst.length) == (page, 4, share // 2)
            assert end.next_shown() is None  # it is gone
            del end.memory, end.bursts
        memory.release()


@every_loop
def test_the_end_of_the_far_end_is_no_frame(make: Make) -> None:
    with End(make, bytes(64)) as end:
        end.far.close()
        burst = arriving(64, 64)
        assert end.bursts.take(burst) is Outcome.OTHER
        end.bursts.give_back(burst)
        with pytest.raises(InterfaceDown):
            end.transport.peek()


@every_loop
def test_nothing_waits(make: Make) -> None:
    with End(make, bytes(64)) as end:
        assert end.bursts.take(arriving(64, 64)) is Outcome.EMPTY


@every_loop
@pytest.mark.parametrize(("end_at", "limit"), [(-1, 9), (64, 0), (0, 9)])
def test_of_a_chunk_that_takes_nothing_no_frame_is_touched(make: Make, end_at, limit) -> None:
    (frame,) = sent(64, 64)
    with End(make, bytes(64), CHANNEL) as end:
        end.far.send(frame)
        burst = arriving(end_at, 64)
        burst.limit = limit
        assert end.bursts.take(burst) is Outcome.FULL
        assert burst.frames == 0
        assert not any(end.memory)
        assert end.next_shown() == (frame[:HEADER_BYTES], frame)
