"""Every transport keeps the same promises; the faulty one breaks them by its seed."""

from __future__ import annotations

import errno
import mmap
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from accelhw.transport.base import InterfaceDown, Transport
from accelhw.transport.faulty import FaultyTransport
from accelhw.transport.memory import InProcessPair, MemoryTransport, open_memory_pair
from accelhw.transport.packet import PacketTransport, frames_that_fit, open_packet
from accelhw.transport.tap import TapTransport, open_tap
from accelhw.wire.frame import (
    CHANNELS_MAX,
    ETHERTYPE,
    HEADER_BYTES,
    FrameType,
    Header,
    HeaderWriter,
)

MTU = 9000
PATIENCE_S = 60
Ends = tuple[Transport, Transport]


def ip(command: str) -> str:
    done = subprocess.run(["ip", *command.split()], check=True, capture_output=True, text=True)
    return done.stdout


def wait_until_it_carries(*interfaces: str) -> None:
    """The first end of a pair drops what it is given until a thread of the kernel's has noticed
    that the second is up."""
    deadline_s = time.monotonic() + PATIENCE_S
    while any("state UP" not in ip(f"-o link show {name}") for name in interfaces):
        assert time.monotonic() < deadline_s, "never up"
        time.sleep(0.01)


@pytest.fixture
def in_process() -> Ends:
    pair = InProcessPair(MTU)
    return pair.a, pair.b


@pytest.fixture
def memory() -> Iterator[Ends]:
    a, b = (MemoryTransport(fd, MTU) for fd in open_memory_pair())
    yield a, b
    a.close()
    b.close()


@pytest.fixture
def packet() -> Iterator[Ends]:
    ip(f"link add ta0 mtu {MTU} type veth peer name ta1 mtu {MTU}")
    ip("link set ta0 up")
    ip("link set ta1 up")
    wait_until_it_carries("ta0", "ta1")
    a, b = (PacketTransport(open_packet(name), MTU) for name in ("ta0", "ta1"))
    yield a, b
    a.close()
    b.close()
    ip("link del ta0")


@pytest.fixture
def tap() -> Iterator[Ends]:
    """A TAP device's user side; its kernel side, as a packet socket."""
    try:
        fd = open_tap("tatap")
    except OSError as error:
        pytest.skip(f"no TAP device here: {error}")
    ip(f"link set tatap mtu {MTU} up")
    a, b = TapTransport(fd, MTU), PacketTransport(open_packet("tatap"), MTU)
    yield a, b
    b.close()
    a.close()


EVERY = [
    "in_process",
    "memory",
    pytest.param("packet", marks=pytest.mark.network),
    pytest.param("tap", marks=pytest.mark.network),
]


@pytest.fixture(params=EVERY)
def ends(request: pytest.FixtureRequest) -> Ends:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def frame(payload: bytes = b"", sequence: int = 0) -> bytes:
    return Header(FrameType.DATA, 255, 0, 0, 0, 1, sequence, 0, 0, 0, 0).encode(payload)


def peek(end: Transport) -> memoryview:
    """The next frame of ours; a fresh interface also says things of its own."""
    while True:
        seen = end.peek()
        if seen is None:  # the kernel may leave a frame to a thread of its own for a while
            assert end.fileno() >= 0, "nothing came"
            assert select.select([end.fileno()], [], [], PATIENCE_S)[0], "nothing came"
        elif bytes(seen[12:14]) == b"\x88\xb5":
            return seen
        else:
            end.discard()


@pytest.mark.parametrize("backwards", [False, True])
def test_a_frame_is_seen_before_it_is_taken(ends: Ends, backwards: bool) -> None:
    a, b = reversed(ends) if backwards else ends
    first, second = frame(bytes(range(256)) * 30, 1), frame(b"short", 2)
    assert a.send((first[:HEADER_BYTES], memoryview(first)[HEADER_BYTES:]))
    assert a.send((second,))
    assert bytes(peek(b)) == first[:HEADER_BYTES]
    assert bytes(peek(b)) == first[:HEADER_BYTES]  # still there
    assert b.peeked_bytes == len(first)
    head, payload = bytearray(HEADER_BYTES), bytearray(len(first) - HEADER_BYTES)
    assert b.receive_into((memoryview(head), memoryview(payload))) == len(first)
    assert head + payload == first
    assert bytes(peek(b)) == second[:HEADER_BYTES]
    assert b.peeked_bytes == len(second)


def test_a_discarded_frame_is_gone_and_a_longer_one_is_cut(ends: Ends) -> None:
    a, b = ends
    for n in range(3):
        a.send((frame(bytes([n]) * 100, n),))
    peek(b)
    b.discard()
    peek(b)
    assert b.receive_into((memoryview(bytearray(HEADER_BYTES)),)) == HEADER_BYTES + 100
    assert bytes(peek(b)) == frame(bytes([2]) * 100, 2)[:HEADER_BYTES]


def test_nothing_there_is_said_at_once(in_process: Ends, memory: Ends) -> None:
    assert in_process[0].peek() is None
    assert memory[0].peek() is None


def unbackable() -> memoryview:
    """A mapping whose pages cannot be had: beyond the end of its file."""
    fd = os.memfd_create("short")
    os.ftruncate(fd, 4 * mmap.PAGESIZE)
    mapping = mmap.mmap(fd, 4 * mmap.PAGESIZE)
    os.ftruncate(fd, 0)
    os.close(fd)
    return memoryview(mapping)


@pytest.mark.parametrize("kind", EVERY[1:])
def test_memory_that_cannot_be_backed_is_an_error_not_a_crash(
    kind: str, request: pytest.FixtureRequest
) -> None:
    # On the TAP, what the kernel side sends is read at the user side, where the copy is made.
    ends: Ends = request.getfixturevalue(kind)
    a, b = reversed(ends) if kind == "tap" else ends
    a.send((frame(bytes(2000), 1),))
    a.send((frame(b"next", 2),))
    peek(b)
    with pytest.raises(OSError, match="Bad address") as caught:
        b.receive_into((memoryview(bytearray(HEADER_BYTES)), unbackable()[:2000]))
    assert caught.value.errno == errno.EFAULT
    assert bytes(peek(b)) == frame(b"next", 2)[:HEADER_BYTES]


def test_a_full_socket_pair_pushes_back(memory: Ends) -> None:
    a, b = memory
    sent = 0
    while a.send((frame(bytes(8000)),)):
        sent += 1
        assert sent < 10_000
    assert sent > b.receive_frames // 8
    b.discard()
    assert a.send((frame(bytes(8000)),))


def test_a_closed_far_end_is_an_interface_that_is_down(memory: Ends) -> None:
    a, b = memory
    b.close()
    with pytest.raises(InterfaceDown):
        a.peek()
    with pytest.raises(InterfaceDown):
        a.send((frame(),))


@pytest.mark.network
def test_an_interface_going_down_is_told_apart(packet: Ends) -> None:
    a, _ = packet
    ip("link set ta0 down")
    with pytest.raises(InterfaceDown):
        a.send((frame(),))
    with pytest.raises(InterfaceDown):
        a.peek()


def pull(kind: str, ends: Ends) -> None:
    """An outage that the second end is told of once."""
    if kind == "packet":
        ip("link set ta1 down")
    else:
        ends[1].send((frame(),))  # unread, which makes the close a reset
        ends[0].close()


@pytest.mark.parametrize("take", ["receive_into", "discard"])
@pytest.mark.parametrize("kind", ["memory", pytest.param("packet", marks=pytest.mark.network)])
def test_an_outage_between_look_and_take_is_an_interface_that_is_down(
    kind: str, take: str, request: pytest.FixtureRequest
) -> None:
    ends: Ends = request.getfixturevalue(kind)
    a, b = ends
    for n in (1, 2):
        a.send((frame(bytes(100), n),))
    peek(b)
    pull(kind, ends)
    with pytest.raises(InterfaceDown):
        b.discard() if take == "discard" else b.receive_into((memoryview(bytearray(200)),))
    assert bytes(peek(b)) == frame(bytes(100), 2)[:HEADER_BYTES], "and the frame is gone, once"


@pytest.mark.network
def test_a_whole_window_fits_into_the_receive_buffer(packet: Ends) -> None:
    a, b = packet
    for n in range(b.receive_frames):
        assert a.send((frame(bytes(MTU - 42), n),))
    for n in range(b.receive_frames):
        assert int.from_bytes(peek(b)[24 + 4 : 24 + 8], "big") == n
        b.discard()


def on_channel(channel: int, sequence: int) -> bytes:
    writer = HeaderWriter(channel=channel)
    return bytes(writer.write(FrameType.DATA, 255, 7, 0, 0, 1, sequence, 0, 0, 0, 0))


def all_heard(end: Transport, last: bytes) -> list[bytes]:
    """Frames of our EtherType, as they come, up to the last one."""
    heard: list[bytes] = []
    while not heard or heard[-1] != last:
        peek(end)
        whole = bytearray(end.peeked_bytes)
        end.receive_into((memoryview(whole),))
        heard.append(bytes(whole))
    return heard


@pytest.mark.network
def test_each_channel_hears_its_own_frames_and_channel_0_what_is_nobodys(packet: Ends) -> None:
    a, zero = packet
    channels = range(1, CHANNELS_MAX + 1)
    ears = {n: PacketTransport(open_packet("ta1", n), MTU) for n in channels} | {0: zero}
    # Unlike any frame of ours: other magics, runts with and without flags, channels above the last.
    start = frame()[:12] + ETHERTYPE.to_bytes(2, "big")
    magic = bytearray(on_channel(1, 98))
    magic[15] ^= 1
    noise = [
        bytes(magic), start, start + b"\xac", start + b"\xac\xce\x01\x04", start + b"\x10" * 6,
        *(on_channel(n, 99) for n in range(CHANNELS_MAX + 1, 16)),
    ]  # fmt: skip
    frames = {n: [on_channel(n, sequence) for sequence in range(5)] for n in ears}
    try:
        for sequence in range(5):
            for n in ears:
                assert a.send((frames[n][sequence],))
                if n < len(noise) and sequence == 2:
                    assert a.send((noise[n],))
        for late in noise[len(ears) :]:
            assert a.send((late,))
        ends = {n: on_channel(n, 1000) for n in ears}
        for n in ears:
            assert a.send((ends[n],))
        heard = {n: all_heard(end, ends[n])[:-1] for n, end in ears.items()}
        assert {n: heard[n] for n in channels} == {n: frames[n] for n in channels}
        assert [each for each in heard[0] if each in frames[0]] == frames[0]
        assert sorted(each for each in heard[0] if each not in frames[0]) == sorted(noise)
    finally:
        for n in channels:
            ears[n].close()


@pytest.mark.network
def test_a_runt_that_would_be_a_channels_by_its_flags_is_heard_once(packet: Ends) -> None:
    """As long as its flags, and no longer: each is somebody's, and no more than that."""
    a, zero = packet
    one = PacketTransport(open_packet("ta1", 1), MTU)
    try:
        for size in range(16, HEADER_BYTES):
            a.send((on_channel(1, 5)[:size],))
        a.send((on_channel(1, 6),))
        a.send((on_channel(0, 6),))
        heard = all_heard(one, on_channel(1, 6))[:-1] + all_heard(zero, on_channel(0, 6))[:-1]
        assert sorted(map(len, heard)) == list(range(16, HEADER_BYTES))
    finally:
        one.close()


@pytest.mark.parametrize("mtu", [1500, 9000, 65535])
def test_more_buffer_never_means_less_credit(mtu: int) -> None:
    credits_ = [frames_that_fit(size << 10, mtu) for size in range(1, 20_000, 100)]
    assert credits_ == sorted(credits_)
    assert credits_[0] == 1


def through(seed: int, **faults: float) -> list[bytes]:
    pair = InProcessPair(MTU, 10_000)
    bad = FaultyTransport(pair.a, seed, **faults)  # type: ignore[arg-type]
    for n in range(500):
        bad.send((frame(bytes([n % 251]) * 8, n),))
    arrived = []
    while pair.b.peek() is not None:
        whole = bytearray(pair.b.peeked_bytes)
        pair.b.receive_into((memoryview(whole),))
        arrived.append(bytes(whole))
    return arrived


SENT = [frame(bytes([n % 251]) * 8, n) for n in range(500)]
CHECKS: list[tuple[str, Callable[[list[bytes]], bool]]] = [
    ("loss_ratio", lambda got: 300 < len(got) < 450 and got == [f for f in SENT if f in set(got)]),
    ("duplicate_ratio", lambda got: len(got) > 550 and set(got) == set(SENT)),
    # The last few still wait to be passed.
    ("reorder_ratio", lambda got: len(got) > 490 and got != [f for f in SENT if f in set(got)]),
    ("corrupt_ratio", lambda got: 50 < sum(f not in set(SENT) for f in got) < 200),
]


@pytest.mark.parametrize(("fault", "holds"), CHECKS, ids=[name for name, _ in CHECKS])
def test_a_bad_fibre_does_what_it_is_told_and_the_same_each_time(
    fault: str, holds: Callable[[list[bytes]], bool]
) -> None:
    assert holds(through(7, **{fault: 0.2}))
    assert through(7, **{fault: 0.2}) == through(7, **{fault: 0.2})
    assert through(7, **{fault: 0.2}) != through(8, **{fault: 0.2})


def test_a_delayed_frame_waits_for_the_clock() -> None:
    now_ns = 0
    pair = InProcessPair(MTU)
    slow = FaultyTransport(pair.a, 1, delay_ns=100, clock=lambda: now_ns)
    slow.send((frame(b"late"),))
    assert pair.b.peek() is None
    assert slow.next_due_ns == 100
    now_ns = 100
    slow.flush()
    assert pair.b.peek() is not None
