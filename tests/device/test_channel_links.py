"""Virtual channels of links that come and go, with their movers, never make a wrong byte."""

from __future__ import annotations

import pytest

from accelhw.model.transfer import TransferKind

from .channelworld import (
    BAD_FIBRE,
    BULK,
    READ,
    WRITE,
    ChannelWorld,
    MakeWorld,
    assert_moved,
    ends,
    opened,
)


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("seed", range(20))
def test_a_link_that_comes_and_goes_never_makes_a_wrong_byte(
    world_of: MakeWorld, seed: int, kind: TransferKind
) -> None:
    faults = BAD_FIBRE if seed % 2 else {}
    world = world_of(
        seed=seed, links=1 + seed % 3 // 2, delay_ns=seed % 3 * 200_000, jitter_ns=300_000, **faults
    )
    source, target = ends(world, kind)
    data, far = source.fill(seed), 4 << 20
    world.up()
    length = 6 * BULK + seed
    local, remote = (0, far) if kind is WRITE else (far, 0)
    world.start("t", length, kind=kind, local_offset=local, remote_offset=remote)
    for _ in range(6):
        for _ in range(world.random.randrange(60)):
            world.turn()
        link = world.random.randrange(world.links)
        world.down(link)
        if world.random.random() < 0.7:
            for _ in range(world.random.randrange(20)):
                world.turn()
        world.up(link)
    world.finish("t", turns=100_000)
    assert_moved(world, data[:length], target, far, "t")
    world.settle()


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("seed", range(12))
def test_a_worker_that_dies_with_its_movers_makes_no_wrong_byte(
    world_of: MakeWorld, seed: int, kind: TransferKind
) -> None:
    world = world_of(seed=seed, links=1 + seed % 2, delay_ns=seed % 3 * 100_000)
    source, target = ends(world, kind)
    data, length = source.fill(seed), 8 * BULK + seed
    world.up()
    world.start("t", length, kind=kind)
    for _ in range(3):
        for _ in range(world.random.randrange(5, 30)):
            world.turn()
        if world.info("t").ended_ns:
            break
        card = world.random.choice([world.a, world.b])
        world.restart(card)
        if card is world.a:
            world.start("t", length, kind=kind)  # as its driver has it go on
        world.up()
    world.finish("t", turns=100_000)
    assert_moved(world, data[:length], target, 0, "t")
    world.settle()


@pytest.mark.parametrize("seed", range(20))
def test_a_link_may_go_while_a_mover_waits_for_an_answer(world_of: MakeWorld, seed: int) -> None:
    """The question is heard in the next epoch, where it means nothing."""
    world = world_of(seed=seed, links=1 + seed % 2, delay_ns=100_000)
    data = world.a.fill(seed)
    opened(world)
    bounces = 0

    def bounce() -> None:
        nonlocal bounces
        if bounces < 5 and world.random.random() < 0.4:
            bounces += 1
            world.down(0)
            world.up(0)
            if world.random.random() < 0.5:
                for card in (world.a, world.b):
                    world.channels[card][0]._listen(2)

    world.meanwhile = bounce
    world.start("t", 10 * BULK)
    world.finish("t", turns=100_000)
    assert_moved(world, data[: 10 * BULK], world.b, 0, "t")
    assert bounces
    # A frame of the old epoch takes no place in the sequence of the next.
    assert not any(port.counters.duplicate_frames for port in (*world.a.ports, *world.b.ports))


# Elsewhere some more wait, in a socket that nobody here sees.
@pytest.mark.parametrize("world_of", [ChannelWorld], indirect=True)
def test_late_frames_of_an_old_epoch_are_stale(world_of: MakeWorld) -> None:
    world = world_of()
    world.a.fill(1)
    opened(world)
    lanes = [world.lanes[0, channel][0] for channel in (1, 2)]
    cables = [world.cables[0, channel] for channel in (1, 2)]
    for lane in lanes:
        lane.delay_ns = 1_000_000
    world.start("t", 4 * BULK)
    world.run(lambda: all(lane._held for lane in lanes))
    late = [[frame for *_, frame in lane._held] for lane in lanes]
    for lane in lanes:
        lane.delay_ns = 0
        lane._held.clear()
    for cable in (*cables, world.pairs[0]):
        cable.a._out.clear()
    world.down()
    world.up()
    world.run(world.relieved)
    for cable, frames in zip(cables, late, strict=True):
        cable.a._out.extend(frames)
    world.finish("t")
    world.settle()
    assert world.b.ports[0].counters.stale_frames == sum(map(len, late))


@pytest.mark.parametrize("seed", range(12))
def test_a_dead_links_chunk_moves_over_the_other_and_its_late_frames_touch_nothing(
    world_of: MakeWorld, seed: int
) -> None:
    """Only the sender's end knows that link 0 is dead: what it sent is on its way, damaged."""
    world = world_of(seed=seed, links=2)
    data = world.a.fill(seed)
    opened(world)
    for channel in (1, 2):
        world.lanes[0, channel][0].delay_ns = 5_000_000
    world.start("t", 8 * BULK)
    world.run(lambda: any(world.lanes[0, channel][0]._held for channel in (1, 2)))
    for _ in range(seed):
        world.turn()
    for way in (world.channels[world.a][0], world.a.ports[0]):
        way.link_down(world.now_ns)
    for channel in (1, 2):
        held = world.lanes[0, channel][0]._held
        for n, (due_ns, order, frame) in enumerate(held):
            spoilt = bytearray(frame)
            spoilt[-1] ^= 0xFF  # found by the checksum only after it landed
            held[n] = due_ns, order, bytes(spoilt)
    world.finish("t")
    assert_moved(world, data[: 8 * BULK], world.b, 0, "t")
    for _ in range(100):
        world.turn()
    assert world.b.read(8 * BULK) == data[: 8 * BULK]
