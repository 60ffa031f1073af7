"""Virtual channels when a transfer ends badly: cancelled, its source changed, memory gone."""

from __future__ import annotations

import errno

import pytest

from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.transport.base import InterfaceDown

from .channelworld import (
    BULK,
    READ,
    WRITE,
    ChannelWorld,
    MakeWorld,
    assert_moved,
    ends,
    opened,
)
from .world import REGION_BASE

# What fails there is a call that a test can take the place of.
in_python = pytest.mark.parametrize("world_of", [ChannelWorld], indirect=True)


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("canceller", ["card0", "card1"])
@pytest.mark.parametrize("seed", range(5))
def test_after_a_cancel_at_the_target_not_a_byte_moves(
    world_of: MakeWorld, seed: int, canceller: str, kind: TransferKind
) -> None:
    world = world_of(seed=seed, links=1 + seed % 2, delay_ns=seed * 50_000)
    source, target = ends(world, kind)
    opened(world)
    source.fill(seed + 7)
    card = world.a if canceller == "card0" else world.b
    length = 40 * BULK
    world.start("t", length, kind=kind)
    sinks = target.engine.transfers.sinks
    world.run(lambda: "t" in sinks and sinks["t"].complete_chunks > seed)
    card.engine.cancel("t", world.now_ns)
    if card is not target:
        world.run(lambda: not target.engine.transfers.active)  # until it heard
    before = target.whole()
    assert before[REGION_BASE : REGION_BASE + length] != source.read(length)
    world.settle()
    for _ in range(50):
        world.turn()
    assert target.whole() == before
    assert world.info("t").state == TransferState.CANCELLED
    # The channels are free for the next.
    world.start("next", 2 * BULK, kind=kind)
    world.finish("next")
    assert target.read(2 * BULK) == source.read(2 * BULK)
    world.settle()
    for port in (*world.ways(source), *world.ways(target)):
        assert not port._pushes
        assert not port._ahead


@pytest.mark.parametrize("seed", range(5))
def test_a_cancel_while_a_mover_waits_for_an_answer_holds(world_of: MakeWorld, seed: int) -> None:
    world = world_of(seed=seed)
    opened(world)
    world.a.fill(9)
    kept: list[bytes] = []
    asked = 0

    def cancel() -> None:
        nonlocal asked
        asked += 1
        if asked == 6 + seed and world.b.engine.transfers.active:
            world.b.engine.cancel("t", world.now_ns)
            kept.append(world.b.whole())

    world.meanwhile = cancel
    world.start("t", 20 * BULK)
    world.finish("t")
    world.settle()
    assert kept == [world.b.whole()]


def test_a_source_that_changes_on_the_way_is_told(world_of: MakeWorld) -> None:
    world = world_of()
    opened(world)
    world.a.fill(1)
    world.start("t", 4 * BULK)
    out = world.cables[0, 1].a._out
    world.run(lambda: len(out) > 3)
    # A frame is lost, and what it carried is another thing when it goes again.
    del out[2]
    world.a.fill(2)
    info = world.finish("t")
    assert info.error == TransferError.CHECKSUM_DIFFERS
    assert info.crc32c is None
    world.settle()
    world.start("next", 2 * BULK)
    assert world.finish("next").state == TransferState.DONE


@in_python
def test_memory_that_cannot_be_had_ends_the_transfer_only(world_of: MakeWorld) -> None:
    world = world_of()
    data = world.a.fill(1)
    opened(world)
    cable = world.lanes[0, 1][1]
    receive = cable.receive_into
    taken = 0

    def unbacked(parts):
        nonlocal taken
        taken += 1
        if taken == 20:
            cable.discard()
            raise OSError(14, "Bad address")
        return receive(parts)

    engine = world.engine_of(world.ways(world.b)[0])
    cable.receive_into = unbacked  # type: ignore[method-assign]
    direct = engine.port._inbound._bursts._direct
    object.__setattr__(direct, "take", unbacked)
    world.start("t", 8 * BULK)
    info = world.finish("t")
    assert info.error == TransferError.MEMORY_FAULT
    world.settle()
    world.start("next", 2 * BULK)
    world.finish("next")
    assert_moved(world, data[: 2 * BULK], world.b, 0, "next")
    assert world.a.ports[0].epoch == 1, "the link never went"


@in_python
def test_an_interface_that_goes_in_the_middle_of_a_burst_is_told(world_of: MakeWorld) -> None:
    """A packet socket says so once."""
    world = world_of()
    world.a.fill(1)
    opened(world)
    inbound = world.engine_of(world.ways(world.b)[0]).port._inbound
    world.start("t", 8 * BULK)
    world.run(lambda: inbound.landing is not None)

    def gone(*parts):
        raise OSError(errno.ENETDOWN, "Network is down")

    direct = inbound._bursts._direct
    for name, call in (("look", gone), ("take", gone), ("put_back", lambda frame: None)):
        object.__setattr__(direct, name, call)
    landing, landed = inbound.landing, inbound.landing.next
    with pytest.raises(InterfaceDown):
        inbound.run(8, world.now_ns)
    assert (inbound.landing, landing.next) == (landing, landed)
