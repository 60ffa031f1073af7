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

from accelhw.device.bursts import BURST_FRAMES_MAX, Arriving, Leaving, Outcome, Stage
from accelhw.transport.base import InterfaceDown
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    ETHERNET_BYTES,
    HEADER_BYTES,
    NO_LANE,
    FrameFlag,
    FrameType,
    Header,
    bare_data,
    decode_frame,
    decode_header,
)

from .burstends import LOOPS, End, Make

NOISE = bytes((n * n * 3 + n // 251) & 0xFF for n in range(1 << 18))
EPOCH, STREAM, CHANNEL, ACK = 77, 5, 2, 41
FREE = 1 << 31  # a window that nothing fills

every_loop = pytest.mark.parametrize("make", LOOPS, ids=lambda make: make.__name__)


def leaving(
    nbytes: int, share: int, base: int = 0, offset: int = 0, sequence: int = 0, crc: int = 0
) -> Leaving:
    return Leaving(
        base=base, offset=offset, stop=offset + nbytes, share=share, sequence=sequence, ack=ACK,
        stream=STREAM, crc=crc, last_flags=FrameFlag.ACK_NOW, acked=sequence, window=FREE,
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
            CHANNEL << 4 | FrameFlag.DROPPED | (FrameFlag.ACK_NOW if last else 0),
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


@every_loop
@pytest.mark.parametrize("under_way", [0, 3, 4, 5])
def test_a_window_that_is_full_ends_a_burst_and_the_frame_that_fills_it_asks(
    make: Make, under_way: int
) -> None:
    with End(make, NOISE) as end:
        end.writer.begin_run(int(FrameFlag.DROPPED), 64, 1, EPOCH)
        burst = leaving(640, 64, sequence=2)
        burst.acked, burst.window = (2 - under_way) & 0xFFFFFFFF, 4
        assert len(end.bursts.send(burst)) == max(0, 4 - under_way)
        assert burst.error == 0
        flags = [decode_header(frame, len(frame)).flags for frame in end.arrived_far()]
    dropped = int(FrameFlag.DROPPED)
    assert flags == ([dropped] * 3 + [dropped | FrameFlag.ACK_NOW])[under_way:]


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


# One frame, the next of its chunk; and what is nearly that.
NEXT = Header(
    FrameType.DATA, NO_LANE, CHANNEL << 4, 0, 16, EPOCH, 0xFFFFFFFF, ACK, STREAM, 6 << 32, 0
)  # fmt: skip
SHARE = 640


def awaits_next(share: int = SHARE) -> Arriving:
    """Another follows in the chunk."""
    burst = arriving(NEXT.offset + 2 * SHARE, share)
    burst.base, burst.offset, burst.sequence = -NEXT.offset, NEXT.offset, NEXT.sequence
    return burst


def comes_back(end: End, burst: Arriving, frame: bytes) -> bool:
    """It is not taken, and shown as it is."""
    earlier = (burst.offset, burst.sequence, burst.crc, burst.frames, burst.light_left)
    end.far.send(frame)
    outcome = end.bursts.take(burst)
    end.bursts.give_back(burst)
    return (
        outcome is Outcome.OTHER
        and end.next_shown() == (frame[:HEADER_BYTES], frame)
        and (burst.offset, burst.sequence, burst.crc, burst.frames, burst.light_left) == earlier
    )


@every_loop
def test_sequence_and_offset_go_on_behind_what_is_taken(make: Make) -> None:
    with End(make, bytes(4096)) as end:
        end.far.send(NEXT.encode(NOISE[:SHARE]))
        burst = awaits_next()
        assert end.bursts.take(burst) is Outcome.EMPTY
        assert (burst.offset, burst.sequence) == (NEXT.offset + SHARE, 0)
        assert (burst.frames, burst.crc) == (1, crc32c(NOISE[:SHARE]))


@every_loop
@pytest.mark.parametrize(
    "changed",
    [
        {"type": FrameType.MESSAGE}, {"type": FrameType.ACK}, {"type": FrameType.CARRIER},
        {"lane": 0}, {"flags": CHANNEL + 1 << 4}, {"flags": 0},
        {"epoch": EPOCH + 1}, {"epoch": EPOCH | 1 << 31},
        {"sequence": 0}, {"sequence": NEXT.sequence - 1}, {"sequence": 0x7FFFFFFF},
        {"stream": STREAM + 1}, {"stream": STREAM | 1 << 31},
        {"offset": NEXT.offset + 1}, {"offset": 0}, {"offset": NEXT.offset | 1 << 63},
    ],
    ids=str,
)  # fmt: skip
def test_a_well_made_frame_of_something_else_is_given_back(make: Make, changed) -> None:
    with End(make, bytes(4096)) as end:
        assert comes_back(end, awaits_next(), NEXT._replace(**changed).encode(NOISE[:SHARE]))


@every_loop
def test_no_bit_of_a_header_may_differ(make: Make) -> None:
    """Behind the Ethernet addresses, which mean nothing to us."""
    whole = NEXT.encode(NOISE[:SHARE])
    with End(make, bytes(4096)) as end:
        burst = awaits_next()
        for bit in range(8 * (ETHERNET_BYTES - 2), 8 * HEADER_BYTES):
            frame = bytearray(whole)
            frame[bit >> 3] ^= 1 << (bit & 7)
            assert comes_back(end, burst, bytes(frame)), bit
        end.far.send(whole)
        assert end.bursts.take(burst) is Outcome.EMPTY
        assert burst.frames == 1


@every_loop
@pytest.mark.parametrize("nbytes", [1, SHARE - 1, SHARE + 1, 2 * SHARE, 2 * SHARE + 1, 65535])
def test_a_frame_of_another_length_is_given_back(make: Make, nbytes: int) -> None:
    with End(make, bytes(4096)) as end:
        assert comes_back(end, awaits_next(), NEXT.encode(NOISE[:nbytes]))
        assert not any(end.memory[SHARE:])


@every_loop
@pytest.mark.parametrize("nbytes", [1, 14, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 9])
def test_of_a_frame_cut_short_what_an_earlier_one_left_is_not_believed(make: Make, nbytes) -> None:
    whole = NEXT.encode(NOISE[:SHARE])
    with End(make, bytes(4096)) as end:
        end.direct.head[:] = whole[:HEADER_BYTES]
        end.memory[:SHARE] = whole[HEADER_BYTES:]
        assert comes_back(end, awaits_next(), whole[:nbytes])


@every_loop
def test_a_frame_longer_than_its_header_says_is_given_back(make: Make) -> None:
    with End(make, bytes(4096)) as end:
        assert comes_back(end, awaits_next(), NEXT.encode(NOISE[:SHARE]) + b"?")


@every_loop
@pytest.mark.parametrize("share", [0, SHARE])
def test_a_frame_without_bytes_is_given_back(make: Make, share: int) -> None:
    """A chunk of which none has landed yet knows no share."""
    with End(make, bytes(4096)) as end:
        assert comes_back(end, awaits_next(share), NEXT.encode(b""))
        assert comes_back(end, awaits_next(0), NEXT.encode(NOISE[:SHARE]))


@every_loop
def test_an_acknowledgement_is_heard_before_its_frame_is_taken(make: Make) -> None:
    said = NEXT._replace(ack=ACK + 3, flags=NEXT.flags | FrameFlag.DROPPED)
    with End(make, bytes(4096)) as end:
        end.far.send(said.encode(NOISE[:SHARE]))
        burst = awaits_next()
        assert end.bursts.take(burst) is Outcome.ACKED
        assert (burst.frame_ack, burst.frame_flags) == (ACK + 3, FrameFlag.DROPPED)
        assert (burst.frames, burst.offset) == (0, NEXT.offset)
        burst.ack, burst.stage = burst.frame_ack, Stage.HEARD
        assert end.bursts.take(burst) is Outcome.EMPTY
        assert (burst.frames, burst.flags) == (1, FrameFlag.DROPPED)


@every_loop
@pytest.mark.parametrize(("spare", "struck"), [(0.0, True), (-1.0, True), (0.5, False)])
def test_light_strikes_where_none_is_left(make: Make, spare: float, struck: bool) -> None:
    with End(make, bytes(4096)) as end:
        end.far.send(NEXT.encode(NOISE[:SHARE]))
        burst = awaits_next()
        burst.light_fixed, burst.light_per_byte = 3.0, 0.25
        burst.light_left = 3.0 + SHARE * 0.25 + spare
        if struck:
            assert end.bursts.take(burst) is Outcome.STRUCK
            assert (burst.length, burst.frames) == (SHARE, 0)
            burst.light_left, burst.stage = 9.0, Stage.LIT
            spare = 9.0
        assert end.bursts.take(burst) is Outcome.EMPTY
        assert (burst.frames, burst.light_left) == (1, spare)


@every_loop
def test_what_light_struck_is_damaged_and_gone(make: Make) -> None:
    with End(make, bytes(4096)) as end:
        end.far.send(NEXT.encode(NOISE[:SHARE]))
        burst = awaits_next()
        burst.light_left = 0.0
        assert end.bursts.take(burst) is Outcome.STRUCK
        end.memory[SHARE - 1] ^= 0x80
        burst.stage = Stage.LIT
        assert end.bursts.take(burst) is Outcome.DAMAGED
        assert (burst.frames, burst.offset, burst.crc) == (0, NEXT.offset, 0)
        assert burst.sequence == NEXT.sequence
        assert burst.stage == Stage.FRESH
        assert end.next_shown() is None
