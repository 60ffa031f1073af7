"""Virtual channels under flipped bits, replays without end and held links; what they count."""

from __future__ import annotations

import pytest

from accelhw.device.channelwords import Arrived, Count, Landed, Left, Spent
from accelhw.device.portcounters import GAUGES
from accelhw.model.transfer import TransferKind, TransferState
from accelhw.optics.strikes import Aim

from .channelworld import (
    BAD_FIBRE,
    BULK,
    READ,
    WRITE,
    MakeWorld,
    assert_moved,
    ends,
    opened,
)

# ---- errors by light -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_are_found_replayed_and_counted_once(world_of: MakeWorld, seed: int) -> None:
    world = world_of(seed=seed)
    data = world.a.fill(seed)
    opened(world)
    for card in (world.a, world.b):
        world.channels[card][0].aim(Aim((0, 1), (4e-6, 4e-6), (0.0, 0.0), (0.0, 0.0), "none", 0))
    before = world.b.ports[0].counters.crc_errors
    world.start("t", 16 * BULK)
    info = world.finish("t")
    assert_moved(world, data[: 16 * BULK], world.b, 0, "t")
    world.settle()
    flipped = [strikes for line in world.lines[world.b] for strikes in line.strikes.values()]
    bits = sum(strikes.struck_bits for strikes in flipped)
    assert bits > 10
    exposure, words, flips = world.met[world.b].take()
    assert (words, sum(flips.values())) == (0, bits)
    assert exposure >= 8 * 16 * BULK
    assert 0 < world.b.ports[0].counters.crc_errors - before <= bits
    assert world.a.ports[0].counters.replayed_frames >= info.replayed_frames > 0
    assert world.b.ports[0].counters.nacks_sent == world.a.ports[0].counters.nacks_received
    assert world.met[world.b].take() == (0.0, 0, {}), "once"


def test_a_channel_that_gets_nothing_through_has_its_port_train_again(world_of: MakeWorld) -> None:
    world = world_of()
    data = world.a.fill(1)
    opened(world)
    epoch = world.a.ports[0].epoch
    cable = world.lanes[0, 2][0]
    cable.loss_ratio = 1.0
    world.start("t", 4 * BULK)
    world.run(lambda: world.a.ports[0].epoch > epoch, turns=100_000)
    cable.loss_ratio = 0.0
    assert any(isinstance(word, Spent) for word in world.lines[world.a][1].said)
    for _ in range(100):
        world.turn()
        assert not world.channels[world.a][0].exhausted, "it was told of an epoch that is over"
    world.finish("t")
    assert_moved(world, data[: 4 * BULK], world.b, 0, "t")
    assert world.a.ports[0].epoch == epoch + 1


def test_a_spent_channel_that_is_held_and_released_goes_on(world_of: MakeWorld) -> None:
    world = world_of()
    data = world.a.fill(1)
    opened(world)
    lane, channels = world.lanes[0, 1][0], world.channels[world.a][0]
    lane.loss_ratio = 1.0
    world.start("t", 4 * BULK)
    for _ in range(100_000):
        world.turn()
        if channels.exhausted:
            break
    assert channels.exhausted
    lane.loss_ratio = 0.0
    for card in (world.a, world.b):
        card.ports[0].hold()
        world.channels[card][0].hold()
    for card in (world.a, world.b):
        card.ports[0].release(world.now_ns)
        world.channels[card][0].release()
    assert not channels.exhausted
    world.finish("t")
    assert_moved(world, data[: 4 * BULK], world.b, 0, "t")
    assert world.a.ports[0].epoch == 1


@pytest.mark.parametrize("widened", [True, False])
def test_a_held_link_sends_nothing_and_loses_nothing(world_of: MakeWorld, widened: bool) -> None:
    """Also where the channels open only while it is held."""
    world = world_of()
    data = world.a.fill(1)
    if widened:
        opened(world)
    else:
        world.up()
    world.start("t", 4 * BULK)
    for card in (world.a, world.b):
        card.ports[0].hold()
        world.channels[card][0].hold()
    if not widened:
        for card in (world.a, world.b):
            world._open(card, 0)
            world.channels[card][0]._listen(2)
        for card in (world.a, world.b):
            world.channels[card][0]._widen(2, world.now_ns)
    for _ in range(8):
        world.turn()
    assert all(line.engines for lines in world.lines.values() for line in lines)
    assert world.b.ports[0].counters.rx_frames == world.b.ports[0].counters.rx_frames
    assert not any(port.counters.in_flight_frames for port in world.a.ports)
    moved = world.info("t").good_bytes
    assert (moved, world.info("t").state) == (0, TransferState.RUNNING)
    assert world.b.read(4 * BULK) != data[: 4 * BULK]
    for card in (world.a, world.b):
        card.ports[0].release(world.now_ns)
        world.channels[card][0].release()
    world.finish("t")
    assert_moved(world, data[: 4 * BULK], world.b, 0, "t")
    assert world.a.ports[0].epoch == 1


def test_no_more_is_in_flight_than_the_far_buffer_holds_from_the_first_frame_on(
    world_of: MakeWorld,
) -> None:
    world = world_of(credits_=4)
    world.a.fill(1)
    most = 0

    def look() -> None:
        nonlocal most
        for port in world.ways(world.a):
            most = max(most, world.engine_of(port).port.counters.in_flight_frames)

    world.after_turn = look
    world.up()
    world.start("t", 4 * BULK)
    world.finish("t")
    assert most == 4


# ---- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("seed", range(8))
def test_counters_agree_when_it_is_done_and_never_step_back(
    world_of: MakeWorld, seed: int, kind: TransferKind
) -> None:
    world = world_of(seed=seed, links=1 + seed % 2, **(BAD_FIBRE if seed % 2 else {}))
    source, target = ends(world, kind)
    source.fill(seed)
    world.up()
    seen: dict[tuple[str, int, str], int] = {}

    def look() -> None:
        for card in (world.a, world.b):
            for n, port in enumerate(card.ports):
                for name in type(port.counters).__dataclass_fields__:
                    if name not in GAUGES:
                        value = getattr(port.counters, name)
                        assert value >= seen.get((card.name, n, name), 0)
                        seen[card.name, n, name] = value

    world.after_turn = look
    total = 0
    for n in range(3):
        length = (n + 1) * BULK + n
        world.start(f"t{n}", length, kind=kind)
        world.finish(f"t{n}")
        total += length
        # At once where it was commanded, not at the next beat of anything.
        name = "tx_payload_bytes" if kind is WRITE else "rx_payload_bytes"
        assert sum(getattr(port.counters, name) for port in world.a.ports) >= total
    world.settle()
    sent = sum(port.counters.tx_payload_bytes for port in source.ports)
    taken = sum(port.counters.rx_payload_bytes for port in target.ports)
    assert sent == taken
    assert (
        source.engine.counters.bus_read_bytes == target.engine.counters.bus_written_bytes == total
    )
    channels = [each for card in (world.a, world.b) for each in world.channels[card]]
    world.run(lambda: not any(each.gauge("in_flight_frames") for each in channels))


def test_frames_are_counted_before_what_they_brought_about_is_told(world_of: MakeWorld) -> None:
    world = world_of()
    world.a.fill(1)
    opened(world)
    world.start("t", 2 * BULK)
    world.finish("t")
    for word, card in ((Arrived, world.a), (Landed, world.b)):
        for line in world.lines[card]:
            told = [type(each) for each in line.said if isinstance(each, Count | word | Left)]
            assert word in told
            assert Count in told[: told.index(word)]
