"""Where a frame may land: the next place of a chunk that is not complete, and nowhere else."""

from __future__ import annotations

import pytest

from accelhw.device.sink import Landing, Sink

CHUNK = 1 << 20


class Port:
    """A way for frames; it is told which chunks are not its own any more."""

    def __init__(self) -> None:
        self.voided: list[int] = []

    def void(self, landing: Landing) -> None:
        self.voided.append(landing.chunk)


A, B = Port(), Port()


@pytest.fixture(autouse=True)
def _fresh_ports() -> None:
    A.voided.clear()
    B.voided.clear()


def sink() -> Sink:
    return Sink("t", 1, "card0", 4096, 2 * CHUNK + 100, CHUNK, 0)


def land(target: Sink, port: Port, offset: int, length: int) -> bool:
    landing = target.landing(port, 1, offset, length)  # type: ignore[arg-type]
    if landing is None:
        return False
    landing.next += length
    if landing.next == landing.end:
        target.chunk_complete(landing)
    return True


def test_frames_land_one_behind_the_other() -> None:
    target = sink()
    assert land(target, A, 0, 1000)
    assert not land(target, A, 2000, 1000)  # a hole
    assert not land(target, A, 500, 500)  # has been
    assert land(target, A, 1000, CHUNK - 1000)
    assert (target.good_bytes, target.first_gap_offset) == (CHUNK, CHUNK)


def test_nothing_lands_outside() -> None:
    target = sink()
    assert not land(target, A, 2 * CHUNK, 101)  # past the end
    assert not land(target, A, 3 * CHUNK, 1)
    assert not land(target, A, 0, CHUNK + 1)  # over the edge of its chunk
    assert not land(target, A, CHUNK + 1, 5)  # not from its chunk's start
    assert not land(target, A, 0, 0)


def test_a_complete_chunk_is_not_touched_again() -> None:
    target = sink()
    assert land(target, A, 2 * CHUNK, 100)
    assert target.has(2 * CHUNK + 50)
    assert not land(target, B, 2 * CHUNK, 100)
    assert (target.bitmap, target.good_bytes, target.first_gap_offset) == (b"\x04", 100, 0)


def test_a_chunk_taken_over_is_closed_to_the_port_that_had_it() -> None:
    target = sink()
    first = target.landing(A, 1, 0, 1000)  # type: ignore[arg-type]
    assert first is not None
    first.next = 1000
    assert land(target, B, 0, 1000)
    assert first.end < 0  # what the port remembers of it fits no frame
    assert (A.voided, B.voided) == ([0], [])
    assert not land(target, A, 1000, 1000)
    assert land(target, B, 1000, 1000)


def test_a_lost_port_leaves_complete_chunks_only() -> None:
    target = sink()
    land(target, A, 0, CHUNK)
    land(target, A, CHUNK, 1000)
    land(target, B, 2 * CHUNK, 50)
    target.drop_landings(A)  # type: ignore[arg-type]
    assert not land(target, A, CHUNK + 1000, 10)
    assert land(target, B, 2 * CHUNK + 50, 50)
    assert target.bitmap == b"\x05"
