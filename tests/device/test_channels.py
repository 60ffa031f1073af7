"""Virtual channels: bulk goes over them, whatever happens to frames, links, words and movers."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from accelhw.device import channelport, dataport, push, sending
from accelhw.device.channelwords import Arrived, AsksHearing, Count, Landed, Left, Spent, Taken
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.optics.strikes import Aim
from accelhw.transport.base import InterfaceDown
from accelhw.wire.checksum import crc32c
from accelhw.wire.message import Accept, encode_message

from .channelworld import ChannelWorld
from .conftest import REGION_BASE, Card

WRITE, READ = TransferKind.WRITE, TransferKind.READ
KIB = 1 << 10
BULK = 64 * KIB  # here
CHUNK = 16 * KIB
BAD_FIBRE = {
    "loss_ratio": 0.03, "duplicate_ratio": 0.03, "reorder_ratio": 0.03, "corrupt_ratio": 0.03,
}  # fmt: skip

MakeWorld = Callable[..., ChannelWorld]


@pytest.fixture
def world_of(monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """`world_of(seed=7, links=2)`: links down; what is bulk, and a chunk, small."""
    for module in (channelport, dataport, sending):
        monkeypatch.setattr(module, "BULK_BYTES", BULK)
    monkeypatch.setattr(push, "CHUNK_BYTES_MIN", CHUNK)
    return ChannelWorld


def ends(world: ChannelWorld, kind: TransferKind) -> tuple[Card, Card]:
    """Who sends, and who takes, when card0 commands."""
    return (world.a, world.b) if kind is WRITE else (world.b, world.a)


def opened(world: ChannelWorld) -> None:
    """Both ends have their channels up, for a first bulk transfer asked for them."""
    world.up()
    world.start("first", BULK)
    assert world.finish("first").state == TransferState.DONE
    world.run(world.relieved)
    world.settle()


def assert_moved(world: ChannelWorld, data: bytes, target: Card, offset: int, name: str) -> None:
    info = world.info(name)
    assert (info.state, info.error) == (TransferState.DONE, TransferError.NONE)
    assert info.crc32c == crc32c(data)
    assert target.read(len(data), offset) == data


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


# ---- links that come and go ----------------------------------------------------------------------


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


# ---- ends ----------------------------------------------------------------------------------------


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


def test_an_interface_that_goes_in_the_middle_of_a_burst_is_told(world_of: MakeWorld) -> None:
    """A packet socket says so once."""
    world = world_of()
    world.a.fill(1)
    opened(world)
    inbound = world.engine_of(world.ways(world.b)[0]).port._inbound
    world.start("t", 8 * BULK)
    world.run(lambda: inbound._landing is not None)

    def gone(*parts):
        raise OSError(errno.ENETDOWN, "Network is down")

    direct = inbound._bursts._direct
    for name, call in (("look", gone), ("take", gone), ("put_back", lambda frame: None)):
        object.__setattr__(direct, name, call)
    landing, landed = inbound._landing, inbound._landing.next
    with pytest.raises(InterfaceDown):
        inbound.run(8, world.now_ns)
    assert (inbound._landing, landing.next) == (landing, landed)


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
                    if name not in channelport.GAUGES:
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
