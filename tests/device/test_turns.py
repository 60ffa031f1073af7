"""Bursts that go on behind the far end's turn, and what ends them.

Only the loops in C do; where set-up made no library of them nothing here is collected (see
test_native.py). Whole transfers that way are among those of test_channels.py and its neighbours.
"""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from accelhw.device.bursts import Arriving, Leaving, Outcome
from accelhw.transport.base import InterfaceDown
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    ETHERNET_BYTES,
    HEADER_BYTES,
    NO_LANE,
    FrameFlag,
    FrameType,
    Header,
    HeaderWriter,
    bare_ack,
    bare_data,
    decode_header,
)

from .burstends import LIBRARY, End, in_c

__test__ = LIBRARY is not None

SHARE = 64
NOISE = bytes((n * n * 3 + n // 251) & 0xFF for n in range(64 * SHARE))
EPOCH, STREAM, CHANNEL, CREDIT = 77, 5, 2, 40
FIRST = 0xFFFFFFFD  # sequence numbers begin anew in the middle
WINDOW, EVERY = 6, 3
PATIENCE_MS = 60_000  # the far end's turn comes by itself, or the test stands still


class Turns(End):
    """With a loop's epoll, which also has a pipe."""

    def __init__(self, memory: bytes) -> None:
        super().__init__(in_c, memory, CHANNEL)
        self.loop = select.epoll()
        self.loop.register(self.socket, select.EPOLLIN)
        self._other, self._others_end = os.pipe()
        self.loop.register(self._other, select.EPOLLIN)
        self.writer.begin_run(0, SHARE, CREDIT, EPOCH)
        self.bursts.answer.write(FrameType.ACK, NO_LANE, 0, 0, CREDIT, EPOCH, 0, 0, 0, 0, 0)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.loop.close()
        os.close(self._other)
        os.close(self._others_end)

    def something_else(self) -> None:
        os.write(self._others_end, b"!")

    def drop(self, patience_ms: int = 0) -> Leaving:
        """A burst of all frames."""
        burst = Leaving(
            stop=len(NOISE), share=SHARE, sequence=FIRST, stream=STREAM, acked=FIRST,
            window=WINDOW, epoch=EPOCH, credit=CREDIT, plain=bare_ack(CHANNEL),
        )  # fmt: skip
        burst.turns.loop, burst.turns.patience_ms = self.loop.fileno(), patience_ms
        return burst

    def catch(self, patience_ms: int = 0, frames: int = 20) -> Arriving:
        burst = Arriving(
            end=frames * SHARE, data=bare_data(CHANNEL), light_left=math.inf, share=SHARE,
            sequence=FIRST, stream=STREAM, epoch=EPOCH, limit=1000, every=EVERY,
        )  # fmt: skip
        burst.turns.loop, burst.turns.patience_ms = self.loop.fileno(), patience_ms
        return burst

    def says(self, *frames: bytes) -> None:
        """The far end."""
        for frame in frames:
            self.far.send(frame)

    def heard(self) -> list[int]:
        """By the far end: how many frames each plain acknowledgement is for."""
        frames = self.arrived_far()
        counts = [(decode_header(frame, len(frame)).ack - FIRST) & 0xFFFFFFFF for frame in frames]
        assert frames == [answer(count) for count in counts]
        return counts


@pytest.fixture
def end() -> Iterator[Turns]:
    with Turns(NOISE) as made:
        yield made


@pytest.fixture
def taker() -> Iterator[Turns]:
    with Turns(bytes(len(NOISE))) as made:
        yield made


def answer(frames: int, **changed: int) -> bytes:
    plain = Header(
        FrameType.ACK, NO_LANE, CHANNEL << 4, 0, CREDIT, EPOCH, 0, (FIRST + frames) & 0xFFFFFFFF,
        0, 0, 0,
    )  # fmt: skip
    return bytes(HeaderWriter().write(*plain._replace(**changed)))


def data(first: int, behind: int, *now: int) -> list[bytes]:
    """Frames `first` to `behind`; those in `now` ask for their acknowledgement."""
    writer, frames = HeaderWriter(channel=CHANNEL), []
    for n in range(first, behind):
        flags = FrameFlag.ACK_NOW if n in now else 0
        head = writer.write(
            FrameType.DATA, NO_LANE, flags, SHARE, CREDIT, EPOCH, (FIRST + n) & 0xFFFFFFFF, 0,
            STREAM, n * SHARE, crc32c(NOISE[: (n + 1) * SHARE]),
        )  # fmt: skip
        frames.append(bytes(head) + NOISE[n * SHARE : (n + 1) * SHARE])
    return frames


# ---- sending ----


def test_the_frame_that_fills_the_window_asks_and_the_burst_ends_there(end: Turns) -> None:
    burst = end.drop()
    assert len(end.bursts.send(burst)) == WINDOW
    flags = [decode_header(frame, len(frame)).flags & 15 for frame in end.arrived_far()]
    assert flags == [0] * (WINDOW - 1) + [FrameFlag.ACK_NOW]
    assert (burst.acked, burst.turns.answers, burst.error) == (FIRST, 0, 0)


def test_a_burst_goes_on_behind_the_answers_that_wait(end: Turns) -> None:
    end.says(answer(2), answer(5))
    burst = end.drop()
    assert len(end.bursts.send(burst)) == 5 + WINDOW
    asked = [n for n, f in enumerate(end.arrived_far()) if decode_header(f, len(f)).flags & 2]
    assert asked == [WINDOW - 1, 5 + WINDOW - 1]
    assert (burst.acked, burst.turns.answers) == ((FIRST + 5) & 0xFFFFFFFF, 2)
    assert burst.round_trip_ns == 0  # of the frame that asked, nothing was heard
    assert end.next_shown() is None


def test_a_round_trip_is_from_the_frame_that_asks_to_its_answer(end: Turns) -> None:
    end.says(answer(WINDOW), answer(WINDOW + 1))
    burst = end.drop()
    assert len(end.bursts.send(burst)) == 2 * WINDOW + 1
    assert burst.round_trip_ns > 0


@pytest.mark.parametrize(
    "changed",
    [
        {"type": FrameType.MESSAGE}, {"flags": CHANNEL << 4 | FrameFlag.NACK},
        {"flags": CHANNEL << 4 | FrameFlag.DROPPED}, {"flags": CHANNEL + 1 << 4},
        {"epoch": EPOCH + 1}, {"credit": CREDIT - 1}, {"lane": 0},
        {"ack": (FIRST + 4 * WINDOW) & 0xFFFFFFFF}, {"ack": FIRST - 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_plain_answer_stays_and_ends_the_burst(end: Turns, changed) -> None:
    other = answer(4, **changed)
    end.says(answer(3), other, answer(5))
    burst = end.drop(PATIENCE_MS)
    assert len(end.bursts.send(burst)) == 3 + WINDOW
    assert (burst.acked, burst.turns.answers, burst.error) == (FIRST + 3 & 0xFFFFFFFF, 1, 0)
    assert end.next_shown() == (other, other)
    assert end.next_shown() == (answer(5), answer(5))


def test_of_an_answer_no_bit_may_differ(end: Turns) -> None:
    for bit in range(8 * (ETHERNET_BYTES - 2), 8 * HEADER_BYTES):
        frame = bytearray(answer(3))
        frame[bit >> 3] ^= 1 << (bit & 7)
        end.says(bytes(frame))
        burst = end.drop()
        assert len(end.bursts.send(burst)) == WINDOW, bit
        assert end.next_shown() == (frame, frame)
        end.arrived_far()


@pytest.mark.parametrize("frame", [answer(3) + b"?", answer(3)[:-1], data(0, 1)[0]], ids=len)
def test_an_answer_of_another_length_is_none(end: Turns, frame: bytes) -> None:
    end.says(frame)
    assert len(end.bursts.send(end.drop(PATIENCE_MS))) == WINDOW
    assert end.next_shown() == (frame[:HEADER_BYTES], frame)


def test_a_window_that_shrank_below_what_is_under_way_waits_for_room(end: Turns) -> None:
    burst = end.drop()
    burst.sequence = (FIRST + 9) & 0xFFFFFFFF
    burst.offset = 9 * SHARE
    end.says(answer(2))
    assert list(end.bursts.send(burst)) == []
    assert burst.acked == (FIRST + 2) & 0xFFFFFFFF
    end.says(answer(5))
    assert len(end.bursts.send(burst)) == 2


def test_with_patience_the_far_ends_turn_comes_in_between(end: Turns) -> None:
    """It answers what it was asked for, until all frames are there."""
    arrived = []

    def far_end() -> None:
        end.far.setblocking(True)
        while len(arrived) < len(NOISE) // SHARE:
            arrived.append(end.far.recv(1 << 16))
            if decode_header(arrived[-1], len(arrived[-1])).flags & FrameFlag.ACK_NOW:
                end.far.send(answer(len(arrived)))

    thread = threading.Thread(target=far_end)
    thread.start()
    burst = end.drop(PATIENCE_MS)
    assert len(end.bursts.send(burst)) == len(NOISE) // SHARE
    thread.join()
    assert b"".join(frame[HEADER_BYTES:] for frame in arrived) == NOISE
    assert burst.turns.answers == (len(NOISE) // SHARE - 1) // WINDOW
    assert burst.turns.now_ns > 0


def test_patience_ends_when_the_loop_has_something_else_to_do(end: Turns) -> None:
    end.something_else()
    assert len(end.bursts.send(end.drop(PATIENCE_MS))) == WINDOW
    assert end.next_shown() is None


def test_patience_ends(end: Turns) -> None:
    assert len(end.bursts.send(end.drop(1))) == WINDOW


def test_a_far_end_that_goes_during_its_turn_is_told(end: Turns) -> None:
    thread = threading.Thread(target=lambda: (wait_for(end, WINDOW), end.far.close()))
    thread.start()
    burst = end.drop(PATIENCE_MS)
    assert len(end.bursts.send(burst)) == WINDOW
    thread.join()
    with pytest.raises(InterfaceDown):
        end.transport.peek()


def wait_for(end: Turns, frames: int) -> None:
    end.far.setblocking(True)
    for _ in range(frames):
        end.far.recv(1 << 16)


# ---- taking ----


def test_answers_go_for_so_many_frames_and_for_who_asks(taker: Turns) -> None:
    taker.says(*data(0, 8, 7))
    burst = taker.catch()
    assert taker.bursts.take(burst) is Outcome.EMPTY
    assert taker.heard() == [3, 6, 8]
    assert (burst.frames, burst.turns.answers, burst.owed, burst.flags) == (8, 3, 0, 0)
    assert taker.memory[: 8 * SHARE] == NOISE[: 8 * SHARE]


def test_what_nobody_asks_for_yet_is_owed(taker: Turns) -> None:
    taker.says(*data(0, 5))
    burst = taker.catch()
    burst.owed = 1  # from before
    assert taker.bursts.take(burst) is Outcome.EMPTY
    assert taker.heard() == [2, 5]
    assert burst.owed == 0
    taker.says(*data(5, 6))
    assert taker.bursts.take(burst) is Outcome.EMPTY
    assert taker.heard() == []
    assert burst.owed == 1


def test_that_a_chunk_is_whole_is_not_acknowledged_before_it_was_told(taker: Turns) -> None:
    taker.says(*data(0, 6, 5))
    burst = taker.catch(frames=6)
    assert taker.bursts.take(burst) is Outcome.FULL
    assert taker.heard() == [3]
    assert (burst.owed, burst.flags) == (3, FrameFlag.ACK_NOW)


def test_who_may_not_answer_does_not(taker: Turns) -> None:
    taker.says(*data(0, 8, 7))
    burst = taker.catch()
    burst.every = 0
    assert taker.bursts.take(burst) is Outcome.EMPTY
    assert taker.heard() == []
    assert (burst.owed, burst.flags, burst.turns.answers) == (8, FrameFlag.ACK_NOW, 0)


def test_with_patience_the_next_frames_are_waited_for(taker: Turns) -> None:
    def far_end() -> None:
        taker.far.setblocking(True)
        for first in range(0, 20, 4):
            taker.says(*data(first, first + 4, first + 3))
            if first < 16:  # the last is not told before the chunk
                while taker.far.recv(1 << 16) != answer(first + 4):
                    pass

    thread = threading.Thread(target=far_end)
    thread.start()
    burst = taker.catch(PATIENCE_MS)
    assert taker.bursts.take(burst) is Outcome.FULL
    thread.join()
    assert (burst.frames, burst.crc) == (20, crc32c(NOISE[: 20 * SHARE]))
    assert taker.memory[: 20 * SHARE] == NOISE[: 20 * SHARE]


def test_a_taker_has_patience_only_while_nothing_else_is_to_be_done(taker: Turns) -> None:
    taker.something_else()
    taker.says(*data(0, 2))
    assert taker.bursts.take(taker.catch(PATIENCE_MS)) is Outcome.EMPTY


def test_an_answer_that_finds_no_room_is_owed(taker: Turns) -> None:
    with socket.socket(fileno=os.dup(taker.socket)) as here:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 10)
        full = 0
        while not full:
            try:
                here.send(bytes(1024))
            except BlockingIOError:
                full = 1
    taker.says(*data(0, 8, 7))
    burst = taker.catch()
    assert taker.bursts.take(burst) is Outcome.FULL
    assert (burst.frames, burst.owed, burst.turns.answers, burst.error) == (3, 3, 0, 0)
    assert taker.bursts.take(burst) is Outcome.FULL  # one more comes in before it tries again
    assert burst.frames == 4


def test_an_outage_that_an_answer_hears_of_is_told(taker: Turns) -> None:
    taker.says(*data(0, 8, 7))
    taker.far.shutdown(socket.SHUT_RD)
    burst = taker.catch()
    assert taker.bursts.take(burst) is Outcome.FAILED
    assert (burst.error, burst.frames, burst.owed) == (errno.EPIPE, EVERY, EVERY)
