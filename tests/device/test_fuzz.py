"""Whatever comes over the fibre: no crash, it is counted, and HBM outside the transfer stays."""

from __future__ import annotations

import random

import pytest

from accelhw.model.transfer import TransferState
from accelhw.wire.frame import FrameType, Header, rewrite_payload_crc

MIB = 1 << 20


def noise(chance: random.Random, samples: list[bytes]) -> bytes:
    """Random bytes, a truncated or a bit-flipped valid frame, a foreign one, or a wrong claim."""
    frame = bytearray(chance.choice(samples))
    match chance.randrange(6):
        case 0:
            return chance.randbytes(chance.randrange(200))
        case 1:
            return bytes(frame[: chance.randrange(len(frame))])
        case 2:
            bit = chance.randrange(8 * 12, 8 * len(frame))
            frame[bit >> 3] ^= 1 << (bit & 7)
            return bytes(frame)
        case 3:
            return bytes(frame[:12]) + b"\x08\x00" + bytes(frame[14:])
        case 4:
            return bytes(frame) + bytes(chance.randrange(1, 100))
        case _:
            # Well made, but not for this place, stream, sequence or life.
            header = Header(
                chance.choice([FrameType.DATA, FrameType.ACK, FrameType.MESSAGE]), 255, 0, 0, 0,
                chance.choice([1, 0, 77]), chance.randrange(1 << 31), chance.randrange(1 << 32),
                chance.randrange(4), chance.randrange(1 << 64), 0,
            )  # fmt: skip
            return header.encode(chance.randbytes(chance.randrange(500)))


@pytest.mark.parametrize("seed", range(30))
def test_noise_beside_a_transfer_changes_nothing_but_counters(make_world, seed) -> None:
    world = make_world(seed=seed, mtu=9000)
    chance = random.Random(seed)
    data = world.a.fill(1)
    world.b.fill(2)
    world.up()
    before = world.b.whole()
    length = MIB + 77
    world.start("t", length, remote_offset=2 * MIB)
    # Of an earlier life, and then what this fibre carried: what goes in is never a forgery that
    # fits, for no link can tell that from the true frame.
    early = [Header(4, 255, 0, 0, 0, 9, n, 0, 2, n * 8, 0).encode(b"\xee" * 99) for n in range(9)]
    pair = world.pairs[0]
    carried = {end: list(early) for end in (pair.a, pair.b)}
    for _ in range(20_000):
        if world.info("t").ended_ns:
            break
        for _ in range(chance.randrange(4)):
            end = chance.choice((pair.a, pair.b))
            end.send((noise(chance, carried[end]),))
        for end, samples in carried.items():
            if end._out and len(end._out[-1]) >= 60:
                samples.append(end._out[-1])
                del samples[:-40]
        world.turn()
        if world.a.ports[0].exhausted or world.b.ports[0].exhausted:
            world.down()
            world.up()
    assert world.info("t").state == TransferState.DONE
    for n in range(200):
        end = (pair.a, pair.b)[n % 2]
        end.send((noise(chance, carried[end]),))
        world.turn()
    start = 3 * MIB
    after = world.b.whole()
    assert after[start : start + length] == data[:length]
    assert after[:start] == before[:start]
    assert after[start + length :] == before[start + length :]
    for card in (world.a, world.b):
        counters = card.ports[0].counters
        assert counters.malformed_frames > 0
        assert counters.foreign_frames > 0
        assert counters.crc_errors > 0
        assert counters.stale_frames > 0


@pytest.mark.parametrize("seed", range(20))
def test_noise_on_an_idle_port_never_touches_memory(make_world, seed) -> None:
    world = make_world(seed=seed)
    chance = random.Random(seed)
    world.b.fill(1)
    before = world.b.whole()
    samples = [Header(4, 255, 0, 0, 0, 9, n, 0, 2, 0, 0).encode(b"\xee" * 999) for n in range(9)]
    for up in (False, True):
        if up:
            world.up()
        for _ in range(300):
            world.pairs[0].a.send((noise(chance, samples),))
            world.turn()
    assert world.b.whole() == before
    counters = world.b.ports[0].counters
    assert counters.rx_frames >= 600
    assert counters.rx_payload_bytes == 0


def test_a_length_that_lies_never_lands(make_world) -> None:
    """A valid header over too long a frame is found before a byte of it is stored."""
    world = make_world()
    data = world.a.fill(1)
    world.b.fill(2)
    before = world.b.whole()
    world.up()
    world.start("t", 100_000)
    world.a.ports[0].pump(world.now_ns)
    out = world.pairs[0].a._out
    out[1] = out[1] + b"\xee"
    landed = []
    receive = world.fibres[0][1].receive_into
    world.fibres[0][1].receive_into = lambda parts: (landed.append(len(parts)), receive(parts))[1]
    world.b.ports[0].receive(world.now_ns)
    assert world.b.ports[0].counters.malformed_frames == 1
    assert len(landed) == 1  # the Open
    assert world.b.whole() == before
    assert world.finish("t").state == TransferState.DONE
    assert world.b.read(100_000) == data[:100_000]


def test_a_frame_of_an_earlier_life_is_stale(make_world) -> None:
    world = make_world()
    world.a.fill(1)
    world.b.fill(2)
    world.up()
    world.start("t", 100_000)
    world.a.ports[0].pump(world.now_ns)
    late = list(world.pairs[0].a._out)
    world.pairs[0].a._out.clear()
    world.down()
    world.up()
    before = world.b.whole()
    world.pairs[0].a._out.extend(late)
    world.b.ports[0].receive(world.now_ns)
    assert world.b.ports[0].counters.stale_frames == len(late)
    assert world.b.whole() == before


def test_a_damaged_payload_lands_only_where_it_belongs(make_world) -> None:
    world = make_world()
    data = world.a.fill(1)
    before = world.b.whole()
    world.up()
    world.start("t", 30_000)
    world.a.ports[0].pump(world.now_ns)
    out = world.pairs[0].a._out
    frame = bytearray(out[1])
    rewrite_payload_crc(frame, 0)
    out[1] = bytes(frame)
    world.b.ports[0].receive(world.now_ns)
    after = world.b.whole()
    assert after[:MIB] == before[:MIB]
    assert after[MIB + 30_000 :] == before[MIB + 30_000 :]
    assert world.b.ports[0].counters.crc_errors == 1
    assert world.finish("t").state == TransferState.DONE
    assert world.b.read(30_000) == data[:30_000]
