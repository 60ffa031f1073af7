"""The bare calls of every transport move the same frames as its usual ones."""

from __future__ import annotations

import errno

import pytest

from accelhw.transport.base import InterfaceDown
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.direct import direct_of, no_room
from accelhw.transport.faulty import FaultyTransport
from accelhw.transport.memory import InProcessPair, MemoryTransport, open_memory_pair
from accelhw.wire.frame import HEADER_BYTES, FrameType, Header

LANES = 4
FRAME = Header(FrameType.DATA, 255, 0, 0, 0, 1, 7, 0, 0, 0, 0).encode(bytes(range(200)))


def pairs() -> list[tuple[str, object, object]]:
    memory = [MemoryTransport(fd) for fd in open_memory_pair()]
    crossed = [MemoryTransport(fd) for fd in open_memory_pair()]
    turned = CableMap(tuple(reversed(range(LANES))), frozenset({0}))
    inside, faulty = InProcessPair(), InProcessPair()
    return [
        ("memory", *memory),
        ("cable", *(Cable(end, turned) for end in crossed)),
        ("in-process", inside.a, inside.b),
        ("faulty", FaultyTransport(faulty.a, 1), faulty.b),
    ]


@pytest.mark.parametrize("kind", ["memory", "cable", "in-process", "faulty"])
def test_a_frame_goes_through_as_by_the_usual_calls(kind: str) -> None:
    (a, b) = next(ends for name, *ends in pairs() if name == kind)
    sender, receiver = direct_of(a), direct_of(b)
    with pytest.raises(BlockingIOError):
        receiver.look()
    sender.put((FRAME[:HEADER_BYTES], memoryview(FRAME)[HEADER_BYTES:]))
    assert receiver.look() == len(FRAME)
    assert bytes(receiver.head) == FRAME[:HEADER_BYTES]
    assert bytes(b.peek() or b"") == FRAME[:HEADER_BYTES]  # it was only looked at
    head, payload = bytearray(HEADER_BYTES), bytearray(200)
    receiver.look()
    receiver.take((memoryview(head), memoryview(payload)))
    assert head + payload == FRAME
    with pytest.raises(BlockingIOError):
        receiver.look()


def test_a_far_end_that_is_gone_is_an_interface_that_is_down() -> None:
    a, b = (MemoryTransport(fd) for fd in open_memory_pair())
    b.close()
    with pytest.raises(BrokenPipeError) as caught:
        direct_of(a).put((FRAME,))
    with pytest.raises(InterfaceDown):
        no_room(caught.value)
    a.close()


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM])
def test_a_full_queue_is_no_error(number: int) -> None:
    assert no_room(OSError(number, "full"))


def test_what_is_neither_full_nor_gone_stays_an_error() -> None:
    with pytest.raises(OSError, match="bad address") as caught:
        no_room(OSError(errno.EFAULT, "bad address"))
    assert not isinstance(caught.value, InterfaceDown)
