"""The loops in C beside those in Python: the same bytes, answers and errors, whatever comes.

Without the library (see test_native.py) there is nothing to compare, and nothing here is collected.
"""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.device import dataport
from accelhw.device.bursts import (
    Arriving,
    Leaving,
    Outcome,
    PlainBursts,
    Stage,
)
from accelhw.link.retry import SEQUENCE_MASK
from accelhw.model.transfer import TransferKind, TransferState
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.memory import MemoryTransport, open_memory_pair
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    HEADER_BYTES,
    MAX_MTU,
    NO_LANE,
    FrameType,
    HeaderWriter,
    MalformedFrame,
    bare_data,
    decode_header,
)

from .burstends import LANES, LIBRARY, End, Make, fields, in_c
from .world import World

__test__ = LIBRARY is not None

NOISE = random.Random(1).randbytes(1 << 19)
MARGIN = 256  # bytes of HBM round a chunk, which are somebody else's
words = st.integers(0, 0xFFFFFFFF) | st.sampled_from([0, 1, 0xFFFFFFFF])
offsets = st.integers(0, 1 << 20) | st.integers((1 << 32) - 9999, (1 << 32) + 99) | st.just(1 << 60)
channels = st.integers(0, 4)
one_in_four = st.integers(0, 3).map(lambda n: n == 3)
shares = st.integers(1, 40).map(lambda n: 64 * n) | st.sampled_from([64, 8960, 65472])


# ---- sending ----


@dataclass(frozen=True)
class Departure:
    share: int
    nbytes: int
    base: int  # place of the first byte in HBM
    offset: int
    sequence: int
    ack: int
    stream: int
    crc: int
    channel: int
    flags: int
    last_flags: int
    send_buffer_bytes: int  # 0: as the transport has it
    deaf: bool  # the far end is gone
    under_way: int
    window: int


@st.composite
def departures(draw: st.DrawFn) -> Departure:
    share = draw(shares)
    frames = draw(st.integers(1, max(1, min(80, (len(NOISE) - MARGIN) // share))))
    return Departure(
        share, draw(st.integers((frames - 1) * share + 1, frames * share)),
        draw(st.integers(0, MARGIN)), draw(offsets),
        draw(words | st.integers(0xFFFFFFC0, 0xFFFFFFFF)), draw(words), draw(words), draw(words),
        draw(channels), draw(st.integers(0, 15)), draw(st.integers(0, 15)),
        draw(st.sampled_from([0, 0, 6 << 10, 32 << 10])), draw(st.integers(0, 7)) == 7,
        draw(st.integers(0, 20)), draw(st.integers(1, 40) | st.just(9999)),
    )  # fmt: skip


Sent = tuple[list[int], dict[str, object], bytes, list[bytes]]


def depart(end: End, plan: Departure) -> Iterator[Sent]:
    """Bursts until all of it has left; the far end reads between them."""
    if plan.send_buffer_bytes:
        with socket.socket(fileno=os.dup(end.socket)) as here:
            here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, plan.send_buffer_bytes)
    if plan.deaf:
        end.far.close()
    burst = Leaving(
        base=plan.base - plan.offset, offset=plan.offset, stop=plan.offset + plan.nbytes,
        share=plan.share, sequence=plan.sequence, ack=plan.ack, stream=plan.stream, crc=plan.crc,
        last_flags=plan.last_flags, error=99,
        acked=plan.sequence - plan.under_way & SEQUENCE_MASK, window=plan.window,
    )  # fmt: skip
    while burst.offset < burst.stop:
        end.writer.begin_run(plan.flags, plan.share, 16, 7)
        crcs = list(end.bursts.send(burst))
        arrived = [] if plan.deaf else end.arrived_far()
        yield crcs, fields(burst), bytes(end.writer.buffer), arrived
        if not crcs:
            return
        burst.offset += len(crcs) * plan.share
        burst.sequence = burst.acked = (burst.sequence + len(crcs)) & SEQUENCE_MASK
        burst.crc = crcs[-1]


@settings(max_examples=150)
@given(departures())
def test_the_same_frames_leave(plan: Departure) -> None:
    with End(PlainBursts, NOISE, plan.channel) as plain, End(in_c, NOISE, plan.channel) as in_c_:
        assert list(depart(plain, plan)) == list(depart(in_c_, plan))
        assert plain.memory == in_c_.memory == NOISE


# ---- taking ----


@dataclass(frozen=True)
class Place:
    """Where a chunk is in all that a frame must say to be of it."""

    base: int
    start: int
    nbytes: int
    share: int
    sequence: int
    ack: int
    stream: int
    epoch: int
    channel: int
    crc: int  # of the chunk before `start`


@dataclass(frozen=True)
class Arrival:
    at: Place
    cases: tuple[str, ...]  # in words, for whoever reads of a failure
    frames: tuple[bytes, ...] = field(repr=False)
    limit: int
    light_per_byte: float
    light_left: tuple[float, ...]  # at first, and after each strike
    struck: tuple[int, ...]  # bits of each payload that light strikes
    voids_at: int  # the acknowledgement that ends the transfer
    head: bytes  # what an earlier frame left in the buffer
    gone: bool  # the far end, behind its last frame


@dataclass(frozen=True)
class Step:
    """What is there behind a call."""

    outcome: Outcome
    burst: dict[str, object]
    offset: int
    share: int
    memory: bytes
    shown: object


class FrameMaker:
    """A chunk's frames, each as it should be or as the case of that name has it."""

    def __init__(self, draw: st.DrawFn, at: Place) -> None:
        self._draw = draw
        self._at = at
        self._writer = HeaderWriter(channel=at.channel)

    def right(self, number: int, share: int = 0, **changed: int) -> bytearray:
        at = self._at
        offset = at.start + number * at.share
        length = min(share or at.share, at.start + at.nbytes - offset)
        before, behind = at.base + at.start, at.base + offset + length
        said = {
            "type": int(FrameType.DATA), "flags": self._draw(st.integers(0, 15)), "length": length,
            "epoch": at.epoch, "sequence": (at.sequence + number) & SEQUENCE_MASK, "ack": at.ack,
            "stream": at.stream, "offset": offset, "crc": crc32c(NOISE[before:behind], at.crc),
            **changed,
        }  # fmt: skip
        head = self._writer.write(
            said["type"], NO_LANE, said["flags"], said["length"], 16, said["epoch"],
            said["sequence"], said["ack"], said["stream"], said["offset"], said["crc"],
        )  # fmt: skip
        return head + NOISE[at.base + offset : behind]

    def odd(self, case: str, number: int) -> bytes:
        draw, at, frame = self._draw, self._at, self.right(number)
        match case:
            case "payload bit":
                _flip(frame, draw(st.integers(8 * HEADER_BYTES, 8 * len(frame) - 1)))
            case "header bit":
                _flip(frame, draw(st.integers(0, 8 * HEADER_BYTES - 1)))
            case "ack":
                frame = self.right(number, ack=draw(words))
            case "sequence" | "stream" | "epoch":
                frame = self.right(number, **{case: draw(words)})
            case "offset":
                step = draw(st.sampled_from([-1, 1, at.share, 1 << 32]))
                frame = self.right(number, offset=(at.start + number * at.share + step) % (1 << 64))
            case "channel":
                frame = self.right(number, flags=draw(st.integers(0, 15)) << 4)
            case "type":
                other = draw(st.sampled_from([*FrameType, 0, 6, 255]))
                frame = self.right(number, type=int(other))
            case "shorter":
                frame = self.right(number, draw(st.integers(1, at.share)))
            case "longer":
                frame = self.right(number, draw(st.integers(at.share, 2 * at.share)))
            case "empty":
                frame = self.right(number, length=0)[:HEADER_BYTES]
            case "padded" | "far too long":
                most = 100 if case == "padded" else 140_000
                frame += NOISE[: draw(st.integers(1, most))]
            case "cut short":
                del frame[draw(st.integers(1, len(frame) - 1)) :]
            case "cut in its header":
                del frame[draw(st.integers(1, HEADER_BYTES - 1)) :]
            case "foreign":
                frame[12:14] = b"\x08\x00"
            case "noise":
                frame[:] = draw(st.binary(min_size=1, max_size=200))
        return bytes(frame)


def _flip(memory: bytearray | memoryview, bit: int) -> None:
    memory[bit >> 3] ^= 1 << (bit & 7)


CASES = (
    "payload bit", "header bit", "ack", "sequence", "stream", "epoch", "offset", "channel", "type",
    "shorter", "longer", "empty", "padded", "far too long", "cut short", "cut in its header",
    "foreign", "noise",
)  # fmt: skip


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    share = draw(shares)
    frames_there = draw(st.integers(1, max(1, min(12, 100_000 // share))))
    nbytes = draw(st.integers((frames_there - 1) * share + 1, frames_there * share))
    start = draw(offsets)
    at = Place(
        MARGIN - start, start, nbytes, share, draw(words | st.integers(0xFFFFFFF8, 0xFFFFFFFF)),
        draw(words), draw(words), draw(words), draw(channels), draw(words),
    )  # fmt: skip
    make = FrameMaker(draw, at)
    cases: list[str] = []
    frames: list[bytes] = []
    for number in range(frames_there):
        # Ahead of the right one, or in its place.
        odd = draw(st.lists(st.sampled_from(CASES), max_size=2)) if draw(one_in_four) else ()
        for case in odd:
            cases.append(f"{case} {number}")
            frames.append(make.odd(case, number))
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 1, 2, 0]))):
            ack = (at.ack + draw(st.sampled_from([0, 0, number]))) & SEQUENCE_MASK
            cases.append(f"right {number}")
            frames.append(bytes(make.right(number, ack=ack)))
    bit = st.integers(0, 8 * min(share, nbytes) - 1)
    lights = draw(st.lists(st.floats(-1.0, 4.0 * share), min_size=1, max_size=3))
    stale = draw(st.sampled_from([bytes(HEADER_BYTES), *frames[:1], bytes(make.right(0))]))
    return Arrival(
        at, tuple(cases), tuple(frames), draw(st.integers(0, 14)),
        draw(st.sampled_from([0.0, 0.5, 1.0])), (*lights, 1e12),
        tuple(draw(st.lists(bit, max_size=3))), draw(st.sampled_from([99, 99, 0, 1])),
        stale[:HEADER_BYTES], draw(st.booleans()),
    )  # fmt: skip


def arrive(end: End, plan: Arrival) -> Iterator[Step]:
    """As Inbound does: bursts with what they ask for between them, and what is not of them by the
    transport's usual way."""
    at, lights, acknowledgements = plan.at, iter(plan.light_left), 0
    end.direct.head[: len(plan.head)] = plan.head
    frames = deque(plan.frames)
    _feed(end, frames, plan.gone)
    burst = Arriving(
        base=at.base, offset=at.start, end=at.start + at.nbytes, data=bare_data(at.channel),
        light_left=next(lights), light_fixed=3.0, light_per_byte=plan.light_per_byte,
        share=at.share, sequence=at.sequence, ack=at.ack, stream=at.stream, epoch=at.epoch,
        crc=at.crc, limit=plan.limit,
    )  # fmt: skip

    def step(outcome: Outcome, shown: object = None) -> Step:
        memory = bytes(end.memory)
        return Step(outcome, fields(burst), burst.offset, burst.share, memory, shown)

    for _ in range(8 * len(plan.frames) + 8):  # far more than there is to tell
        outcome = end.bursts.take(burst)
        yield step(outcome)
        start = burst.base + burst.offset
        match outcome:
            case Outcome.STRUCK:
                for bit in plan.struck:
                    _flip(end.memory[start : start + burst.length], bit % (8 * burst.length))
                burst.light_left = next(lights, 1e12)
                burst.stage = Stage.LIT
            case Outcome.ACKED if acknowledgements == plan.voids_at:
                end.bursts.give_back(burst)
                burst.end, burst.stage = -1, Stage.FRESH
                yield step(outcome, end.next_shown())
                yield step(end.bursts.take(burst))
                return
            case Outcome.ACKED:
                acknowledgements += 1
                burst.ack = burst.frame_ack
                burst.stage = Stage.HEARD
            case Outcome.OTHER:
                end.bursts.give_back(burst)
                try:
                    shown = end.next_shown()
                except OSError:
                    yield step(outcome, "the far end is gone")
                    return
                assert shown is not None
                yield step(outcome, shown)
                _land(end, burst, shown[1])
                burst.frames = burst.flags = 0
            case Outcome.FULL if burst.offset < burst.end and plan.limit:
                burst.frames = burst.flags = 0
            case Outcome.DAMAGED:
                burst.frames = burst.flags = 0
            case Outcome.EMPTY if frames:
                _feed(end, frames, plan.gone)
            case _:
                return
    raise AssertionError("it does not end")


def _feed(end: End, frames: deque[bytes], gone: bool) -> None:
    """As many as the queue has room for; and behind the last, the far end may go."""
    try:
        while frames:
            end.far.send(frames[0])
            frames.popleft()
    except BlockingIOError:
        return
    if gone:
        end.far.close()


def _land(end: End, burst: Arriving, frame: bytes) -> None:
    """Of a frame that may be the next all the same, but of another length."""
    try:
        header = decode_header(frame, len(frame))
    except MalformedFrame:
        return
    next_here = (burst.data & 15, burst.epoch, burst.sequence, burst.stream, burst.offset)
    said = (header.channel, header.epoch, header.sequence, header.stream, header.offset)
    fits = 0 < header.length <= burst.end - burst.offset
    if header.type == FrameType.DATA and said == next_here and fits:
        start = burst.base + burst.offset
        place = end.memory[start : start + header.length]
        place[:] = frame[HEADER_BYTES : HEADER_BYTES + header.length]
        if crc32c(place, burst.crc) == header.payload_crc:
            burst.share, burst.crc = header.length, header.payload_crc
            burst.offset += header.length
            burst.sequence = (burst.sequence + 1) & SEQUENCE_MASK


@settings(max_examples=400)
@given(arrivals())
def test_the_same_is_taken(plan: Arrival) -> None:
    at = plan.at
    before = bytes(MARGIN + at.nbytes + MARGIN + at.share)
    with End(PlainBursts, before, at.channel) as plain, End(in_c, before, at.channel) as in_c_:
        steps = list(arrive(plain, plan))
        others = list(arrive(in_c_, plan))
    offset, plains, in_cs = at.start, before, before
    for step, other in zip(steps, others, strict=True):
        assert (step.outcome, step.burst, step.shown) == (other.outcome, other.burst, other.shown)
        kept, landed = at.base + offset, at.base + step.offset
        free = min(landed + step.share, at.base + at.start + at.nbytes)
        assert step.memory[MARGIN:landed] == other.memory[MARGIN:landed] == NOISE[MARGIN:landed]
        for memory, earlier in ((step.memory, plains), (other.memory, in_cs)):
            assert memory[:kept] == earlier[:kept]
            assert memory[free:] == earlier[free:]
        offset, plains, in_cs = step.offset, step.memory, other.memory


# ---- whole transfers ----


class SocketWorld(World):
    """Its fibres are socket pairs."""

    def _lay(self, number: int) -> None:
        ends = [MemoryTransport(fd, self.mtu) for fd in open_memory_pair()]
        cables = [Cable(end, CableMap.straight_of(LANES)) for end in ends]
        for cable in cables:
            cable.flush = lambda: None
        self.fibres.append((cables[0], cables[1]))


@pytest.mark.parametrize("kind", [TransferKind.WRITE, TransferKind.READ])
@pytest.mark.parametrize("mtu", [1500, 9000, MAX_MTU])
def test_a_transfer_counts_the_same(monkeypatch, mtu: int, kind: TransferKind) -> None:
    """Through damage, replays and what does not belong there."""
    length = 3_000_001

    def carried(make: Make) -> tuple[object, ...]:
        monkeypatch.setattr(dataport, "bursts", make)
        world = SocketWorld(mtu=mtu, links=2)
        payloads = count()
        world.strike = lambda size: [8 * size - 1] if next(payloads) % 23 == 22 else []
        data = {world.a: world.a.fill(1), world.b: world.b.fill(2)}
        world.up()
        world.start("t", length, kind=kind, remote_offset=4 << 20)
        while not world.info("t").ended_ns:
            world.turn()
            for here, there in world.fibres:
                for end in (here, there):
                    end.send((NOISE[: 9 + world.now_ns // 100_000 % 90],))
        info = world.info("t")
        assert info.state == TransferState.DONE
        if kind is TransferKind.WRITE:
            assert world.b.read(length, 4 << 20) == data[world.a][:length]
        else:
            assert world.a.read(length) == data[world.b][4 << 20 :][:length]
        counters = [port.counters for card in (world.a, world.b) for port in card.ports]
        assert sum(counted.crc_errors for counted in counters)
        for fibre in world.fibres:
            for end in fibre:
                end.close()
        return counters, info, world.now_ns, world.a.whole(), world.b.whole()

    assert carried(PlainBursts) == carried(in_c)
