"""Virtual channels: bulk goes over them and arrives whole, the rest stays on channel 0."""

from __future__ import annotations

import pytest

from accelhw.device.channelwords import AsksHearing, Taken
from accelhw.model.transfer import TransferKind, TransferState
from accelhw.wire.message import Accept, encode_message

from .channelworld import (
    BAD_FIBRE,
    BULK,
    CHUNK,
    READ,
    WRITE,
    MakeWorld,
    assert_moved,
    ends,
    opened,
)
from .world import REGION_BASE

# ---- the bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("seed", range(6))
def test_bulk_arrives_whole_over_channels(world_of: MakeWorld, kind, seed, links) -> None:
    world = world_of(seed=seed, links=links)
    source, target = ends(world, kind)
    data = source.fill(seed)
    before = target.whole()
    world.up()
    length = 3 * BULK + 7 * seed
    world.start("t", length, kind=kind, local_offset=33, remote_offset=33)
    world.finish("t")
    assert_moved(world, data[33 : 33 + length], target, 33, "t")
    after, start = target.whole(), REGION_BASE + 33
    assert (after[:start], after[start + length :]) == (before[:start], before[start + length :])
    world.settle()
    assert world.a.events == ["TRANSFER_STARTED", "TRANSFER_DONE"]


@pytest.mark.parametrize("seed", range(30))
def test_bad_fibres_only_delay_bulk(world_of: MakeWorld, seed: int) -> None:
    world = world_of(
        seed=seed, links=1 + seed % 2, **BAD_FIBRE,
        delay_ns=seed % 4 * 50_000, jitter_ns=seed % 5 * 40_000,
    )  # fmt: skip
    data, back = world.a.fill(seed), world.b.fill(seed + 1000)
    world.up()
    length = BULK + world.random.randrange(2 * BULK)
    far = 4 << 20
    world.start("there", length, remote_offset=far)
    world.start("here", length, kind=READ, local_offset=far)
    world.start("small", 5000, local_offset=length, remote_offset=far + length)
    for name in ("there", "here", "small"):
        world.finish(name)
    assert_moved(world, data[:length], world.b, far, "there")
    assert_moved(world, back[:length], world.a, far, "here")
    assert_moved(world, data[length : length + 5000], world.b, far + length, "small")


def test_both_ends_count_the_same_frames(world_of: MakeWorld) -> None:
    world = world_of()
    world.a.fill(1)
    opened(world)
    world.start("there", 8 * BULK)
    world.finish("there")
    world.settle()
    for here, there in (world.a, world.b), (world.b, world.a):
        for one, other in zip(world.ways(here), world.ways(there), strict=True):
            left = world.engine_of(one).port.counters
            came = world.engine_of(other).port.counters
            assert left.tx_payload_bytes == came.rx_payload_bytes
            assert (left.tx_frames, left.tx_bytes) == (came.rx_frames, came.rx_bytes)
            assert left.acks_sent == came.acks_received
            assert left.replayed_frames == left.replay_timeouts == left.duplicate_frames == 0
            assert left.in_flight_frames == 0
    assert sum(world.engine_of(way).port.counters.acks_sent for way in world.ways(world.b))


# ---- which way -----------------------------------------------------------------------------------


def test_a_small_transfer_stays_on_channel_0_and_opens_none(world_of: MakeWorld) -> None:
    world = world_of()
    world.a.fill(1)
    world.up()
    world.start("t", BULK - 1)
    world.finish("t")
    assert not world.ways(world.a)
    assert not world.ways(world.b)


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_bulk_leaves_channel_0_once_others_are_up(world_of: MakeWorld, kind: TransferKind) -> None:
    world = world_of()
    source, _ = ends(world, kind)
    opened(world)
    before, helped = world.sent_bytes(source)
    world.start("big", 4 * BULK, kind=kind)
    world.finish("big")
    world.settle()
    assert world.sent_bytes(source) == (before, helped + 4 * BULK)
    for port in world.ways(source):
        assert world.engine_of(port).port.counters.tx_payload_bytes > CHUNK, "each has a share"
    world.start("small", BULK - 1, kind=kind)
    world.finish("small")
    world.settle()
    assert world.sent_bytes(source) == (before + BULK - 1, helped + 4 * BULK)


@pytest.mark.parametrize("seed", range(8))
def test_both_ends_may_ask_at_once(world_of: MakeWorld, seed: int) -> None:
    world = world_of(seed=seed, delay_ns=200_000)
    data, back = world.a.fill(1), world.b.fill(2)
    world.up()
    world.start("there", 2 * BULK, remote_offset=4 << 20)
    world.start("back", 2 * BULK, card=world.b, remote_offset=4 << 20)
    world.finish("there")
    world.finish("back", world.b)
    assert world.b.read(2 * BULK, 4 << 20) == data[: 2 * BULK]
    assert world.a.read(2 * BULK, 4 << 20) == back[: 2 * BULK]
    world.run(world.relieved)


@pytest.mark.parametrize("hosts", [(2, None), (None, 2), (2, 0), (0, 2)])
def test_an_end_without_channels_leaves_all_to_channel_0(world_of: MakeWorld, hosts) -> None:
    world = world_of(hosts=hosts)
    data = world.a.fill(1)
    world.up()
    world.start("t", 4 * BULK)
    world.finish("t")
    world.settle()
    assert_moved(world, data[: 4 * BULK], world.b, 0, "t")
    assert not world.a.ports[0].relieved
    assert world.sent_bytes(world.a) == (4 * BULK, 0)


@pytest.mark.parametrize("can_open", [(2, 0), (0, 2), (0, 0)])
@pytest.mark.parametrize("asker", [0, 1])
def test_sockets_that_nobody_gives_leave_all_to_channel_0(
    world_of: MakeWorld, can_open, asker: int
) -> None:
    world = world_of(can_open=can_open)
    card = (world.a, world.b)[asker]
    card.fill(1)
    world.up()
    for name in ("first", "second"):  # the second asks an end that has tried in vain before
        world.start(name, 2 * BULK, card=card)
        assert world.finish(name, card).state == TransferState.DONE
        world.down()
        world.up()
    assert not world.relieved()
    answers = [c._asking or c._asked_for for c in (world.channels[card][0],)]
    assert answers == [0]


def test_an_end_that_got_none_says_so_each_time_it_is_asked(world_of: MakeWorld) -> None:
    world = world_of(can_open=(0, 2))
    world.up()
    world.start("mine", 2 * BULK)  # asks for sockets in vain
    world.finish("mine")
    heard = []
    hear = world.channels[world.b][0].hear
    world.b.ports[0].on_widen = lambda message, now: (heard.append(message), hear(message, now))
    world.start("theirs", 2 * BULK, card=world.b)
    world.finish("theirs", world.b)
    world.settle()
    assert [(m.channels, m.answer) for m in heard] == [(0, True)]


@pytest.mark.parametrize("can_open", [(1, 2), (2, 1)])
def test_the_end_with_fewer_decides(world_of: MakeWorld, can_open) -> None:
    world = world_of(can_open=can_open)
    data = world.a.fill(1)
    world.up()
    world.start("t", 6 * BULK)
    world.finish("t")
    assert_moved(world, data[: 6 * BULK], world.b, 0, "t")
    world.settle()
    for card in (world.a, world.b):
        assert [port.up for port in world.ways(card)] == [True, False][: len(world.ways(card))]


def test_a_frame_of_a_channel_may_come_before_the_answer_that_opens_it(world_of: MakeWorld) -> None:
    """Card1 sends as soon as it has said yes; its word to card0 is slow."""
    world = world_of()
    data = world.b.fill(1)
    world.up()
    for card in (world.a, world.b):
        world._open(card, 0)
        world.channels[card][0]._listen(2)
    world.channels[world.b][0]._widen(2, world.now_ns)
    world.start("theirs", 4 * BULK, card=world.b)
    world.finish("theirs", world.b)
    assert world.a.read(4 * BULK) == data[: 4 * BULK]
    assert not world.a.ports[0].relieved, "the answer never came"


def test_a_question_of_an_old_epoch_is_answered_and_means_nothing(world_of: MakeWorld) -> None:
    world = world_of()
    opened(world)
    port, line = world.ways(world.b)[0], world.lines[world.b][0]
    accept = encode_message(Accept("first", b"\xff"))
    asked = AsksHearing(port.way, world.b.ports[0].epoch, accept)
    world.down()
    world.up()
    world.channels[world.b][0]._listen(2)
    line.told.clear()
    port.hear(asked, world.now_ns)
    assert line.told == [Taken(port.way)]
    assert not port.up, "it says nothing of whether the far end listens now"
