"""Transfers between two cards' HBM: what arrives is what left, or the report says what does not."""

from __future__ import annotations

import os

import pytest

from accelhw.device.hbm import Hbm
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.hugepages import EXTENT_BYTES
from accelhw.model.link import PeerId
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.wire.checksum import crc32c

WRITE, READ, LOCAL = TransferKind.WRITE, TransferKind.READ, TransferKind.LOCAL
MIB = 1 << 20


def source_and_target(world, kind):
    return (world.a, world.b) if kind is WRITE else (world.b, world.a)


@pytest.mark.parametrize("links", [1, 3])
@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("length", [1, 8888, MIB, MIB + 1, 3 * MIB - 7])
def test_the_bytes_arrive_and_their_checksum_is_told(make_world, kind, length, links) -> None:
    world = make_world(links=links, mtu=65535)
    source, target = source_and_target(world, kind)
    data = source.fill(1)
    before = target.whole()
    world.up()
    world.start("t", length, kind=kind, local_offset=33, remote_offset=33)
    info = world.finish("t")
    assert (info.state, info.error) == (TransferState.DONE, TransferError.NONE)
    assert info.good_bytes == info.first_gap_offset == info.total_bytes == length
    assert info.crc32c == crc32c(data[33 : 33 + length])
    assert target.read(length, 33) == data[33 : 33 + length]
    start = MIB + 33
    after = target.whole()
    assert after[:start] == before[:start]
    assert after[start + length :] == before[start + length :]
    world.run(lambda: not world.a.engine.transfers.active and not world.b.engine.transfers.active)
    for card in (world.a, world.b):
        card.engine.windows.unregister(1)  # nothing holds it any more
    assert world.a.events == ["TRANSFER_STARTED", "TRANSFER_DONE"]
    assert world.b.events == []  # the far card is passive


def test_a_small_transfer_costs_one_round_trip(make_world) -> None:
    world = make_world(delay_ns=10_000_000)
    world.a.fill(1)
    world.up()
    began_ns = world.now_ns
    world.start("t", 4096)
    world.finish("t")
    assert 20_000_000 <= world.now_ns - began_ns < 25_000_000


def test_several_links_share_the_work(make_world) -> None:
    world = make_world(links=3, mtu=65535)
    world.a.fill(1)
    world.up()
    world.start("t", 8 * MIB)
    info = world.finish("t")
    assert info.links == ("card0/oe0", "card0/oe1", "card0/oe2")
    assert all(port.counters.tx_payload_bytes > MIB for port in world.a.ports)


def test_many_transfers_both_ways_and_none_starves(make_world) -> None:
    world = make_world(links=2, mtu=65535)
    data = {card: card.fill(n) for n, card in enumerate((world.a, world.b))}
    world.up()
    half = 4 * MIB
    world.start("big", half)
    for n in range(20):
        world.start(f"w{n}", 1000 + n, local_offset=n * 5000, remote_offset=half + n * 5000)
        world.start(
            f"r{n}", 1000 + n, kind=READ, local_offset=half + MIB + n * 5000,
            remote_offset=MIB + n * 5000,
        )  # fmt: skip
    world.start("back", MIB, card=world.b, local_offset=0, remote_offset=half + 2 * MIB)
    world.run(lambda: all(i.ended_ns for i in world.a.engine.jobs.infos(0)))
    infos = {info.transfer_id: info for info in world.a.engine.jobs.infos(world.now_ns)}
    assert {info.state for info in infos.values()} == {TransferState.DONE}
    # One chunk of the big one may be ahead of each small one, not the whole of it.
    assert max(i.ended_ns for n, i in infos.items() if n != "big") <= infos["big"].ended_ns
    world.finish("back", world.b)
    # `big` overwrote what `back` and the small ones read only where the copies say so.
    for n in range(20):
        assert infos[f"w{n}"].crc32c == crc32c(data[world.a][n * 5000 : n * 5000 + 1000 + n])
        assert infos[f"r{n}"].crc32c == crc32c(world.a.read(1000 + n, half + MIB + n * 5000))


def test_optics_errors_are_found_and_sent_again(make_world) -> None:
    world = make_world(mtu=9000)
    data = world.a.fill(1)
    flips = iter([n % 40 == 7 for n in range(100_000)])
    world.strike = lambda nbytes: [nbytes * 8 - 1, 3] if next(flips) else []
    world.up()
    world.start("t", 2 * MIB)
    info = world.finish("t")
    assert world.b.read(2 * MIB) == data[: 2 * MIB]
    assert info.replayed_frames > 0
    assert world.b.ports[0].counters.crc_errors == world.b.ports[0].counters.nacks_sent > 5


@pytest.mark.parametrize("seed", range(40))
def test_a_bad_fibre_only_delays(make_world, seed) -> None:
    world = make_world(
        seed=seed, links=1 + seed % 3, mtu=9000,
        loss_ratio=0.05, duplicate_ratio=0.05, reorder_ratio=0.05, corrupt_ratio=0.05,
        delay_ns=seed % 4 * 50_000, jitter_ns=seed % 5 * 40_000,
    )  # fmt: skip
    data, back = world.a.fill(seed), world.b.fill(seed + 1000)
    world.up()
    length = world.random.randrange(1, 2 * MIB)
    world.start("there", length, remote_offset=4 * MIB)
    world.start("here", length, kind=READ, local_offset=4 * MIB)
    there, here = world.finish("there"), world.finish("here")
    assert there.state == here.state == TransferState.DONE
    assert world.b.read(length, 4 * MIB) == data[:length]
    assert world.a.read(length, 4 * MIB) == back[:length]
    assert (there.crc32c, here.crc32c) == (crc32c(data[:length]), crc32c(back[:length]))


def test_no_frame_is_lost_for_want_of_credit(make_world) -> None:
    world = make_world(links=1, credits_=4)
    world.a.fill(1)
    world.up()
    world.start("t", 2 * MIB)
    world.finish("t")
    assert [pair.a.dropped_frames + pair.b.dropped_frames for pair in world.pairs] == [0]
    assert world.a.ports[0].counters.replayed_frames == 0


def test_a_source_that_changes_on_the_way_is_told(make_world) -> None:
    world = make_world(mtu=9000)
    world.a.fill(1)
    world.up()
    world.start("t", 2 * MIB)
    world.a.ports[0].pump(world.now_ns)
    # A frame is lost, and what it carried is another thing when it goes again.
    del world.pairs[0].a._out[1]
    world.a.fill(2)
    info = world.finish("t")
    assert info.error == TransferError.CHECKSUM_DIFFERS
    assert info.crc32c is None


# ---- refusals and ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"region": 9}, TransferError.REMOTE_NO_REGION),
        ({"key": 1}, TransferError.REMOTE_BAD_KEY),
        ({"remote_offset": 8 * MIB - 10}, TransferError.REMOTE_OUT_OF_RANGE),
    ],
)
def test_the_far_card_refuses_and_its_memory_stays(make_world, kind, change, error) -> None:
    world = make_world()
    world.b.fill(1)
    before = world.b.whole()
    world.up()
    world.start("t", 20_000, kind=kind, **change)
    info = world.finish("t")
    assert (info.state, info.error) == (TransferState.FAILED, error)
    assert info.good_bytes == 0
    assert info.error_detail
    assert world.b.whole() == before
    assert not world.b.engine.transfers.active


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"length": 0}, "OUT_OF_RANGE"),
        ({"length": 9 * MIB}, "OUT_OF_RANGE"),
        ({"local_offset": 8 * MIB - 1, "length": 2}, "OUT_OF_RANGE"),
        ({"name": "x" * 65}, "BAD_STATE"),
        ({"name": "known"}, "EXISTS"),
        ({"kind": LOCAL, "region": 5}, "UNKNOWN_REGION"),
        ({"kind": LOCAL, "key": 5}, "BAD_STATE"),
    ],
)
def test_a_command_that_cannot_be_is_refused_at_once(make_world, change, code) -> None:
    world = make_world()
    world.start("known", 1)
    name, length = change.pop("name", "t"), change.pop("length", 100)
    with pytest.raises(EngineRefusal) as refusal:
        world.start(name, length, **change)
    assert refusal.value.code == code
    assert [info.transfer_id for info in world.a.engine.jobs.infos(0)] == ["known"]


def test_windows_are_checked_and_held_while_used(make_world) -> None:
    world = make_world()
    engine = world.b.engine
    engine.windows.register(MemoryWindow(1, 0xBEEF, MIB, 8 * MIB))  # the same again
    for window, code in (
        (MemoryWindow(1, 0xBEEF, MIB, MIB), "EXISTS"),
        (MemoryWindow(2, 1, 16 * MIB, 1), "OUT_OF_RANGE"),
        (MemoryWindow(2, 1, 0, 0), "OUT_OF_RANGE"),
    ):
        with pytest.raises(EngineRefusal) as refusal:
            engine.windows.register(window)
        assert refusal.value.code == code
    world.up()
    world.start("t", 8 * MIB)
    world.turn()
    world.turn()
    for card in (world.a, world.b):
        with pytest.raises(EngineRefusal) as refusal:
            card.engine.windows.unregister(1)
        assert refusal.value.code == "BUSY"
    world.finish("t")
    for card in (world.a, world.b):
        card.engine.windows.unregister(1)
    with pytest.raises(EngineRefusal) as refusal:
        engine.windows.unregister(1)
    assert refusal.value.code == "UNKNOWN_REGION"


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("canceller", ["card0", "card1"])
def test_either_side_may_cancel(make_world, kind, canceller) -> None:
    world = make_world()
    world.a.fill(1)
    world.b.fill(1)
    world.up()
    world.start("t", 8 * MIB, kind=kind)
    for _ in range(30):
        world.turn()
    card = world.a if canceller == "card0" else world.b
    card.engine.cancel("t", world.now_ns)
    info = world.finish("t")
    assert (info.state, info.error) == (TransferState.CANCELLED, TransferError.CANCELLED)
    assert canceller in info.error_detail
    world.turn()
    assert world.a.events[-1] == "TRANSFER_CANCELLED"
    world.run(lambda: not world.a.engine.transfers.active and not world.b.engine.transfers.active)
    for card in (world.a, world.b):
        card.engine.windows.unregister(1)
    # The link is none the worse.
    for card in (world.a, world.b):
        card.engine.windows.register(MemoryWindow(1, 0xBEEF, MIB, 8 * MIB))
    world.start("next", MIB)
    assert world.finish("next").state == TransferState.DONE


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_bytes_that_the_far_card_dropped_are_not_told_as_good(make_world, seed, links) -> None:
    """It ends the transfer and takes the rest from the link; its word is lost with the link."""
    world = make_world(seed=seed, links=links, mtu=65535)
    world.a.fill(1)
    world.up()
    world.start("t", 8 * MIB, deadline_s=0.001)
    sink = None
    for _ in range(2 + seed):
        world.turn()
        sink = world.b.engine.transfers.sinks.get("t", sink)
    assert sink is not None
    if world.b.engine.transfers.active:
        world.b.engine.cancel("t", world.now_ns)
    for port in world.b.ports:
        port._outbound._messages.clear()  # the END does not leave before the link is gone
    for _ in range(3):
        world.turn()
        assert world.info("t").good_bytes <= sink.good_bytes
    world.down()
    assert world.finish("t").good_bytes <= sink.good_bytes


def test_a_cancel_during_an_outage_reaches_the_far_card_later(make_world) -> None:
    world = make_world()
    world.up()
    world.start("t", 8 * MIB)
    for _ in range(20):
        world.turn()
    world.down()
    world.a.engine.cancel("t", world.now_ns)
    assert world.b.engine.transfers.active
    world.up()
    world.run(lambda: not world.b.engine.transfers.active)


def test_an_ended_transfer_is_kept_until_acknowledged(make_world) -> None:
    world = make_world()
    world.up()
    world.start("t", 100)
    with pytest.raises(EngineRefusal):
        world.a.engine.jobs.acknowledge("t")
    world.finish("t")
    with pytest.raises(EngineRefusal) as refusal:
        world.a.engine.cancel("t", 0)
    assert refusal.value.code == "BAD_STATE"
    world.a.engine.jobs.acknowledge("t")
    with pytest.raises(EngineRefusal):
        world.info("t")


def test_a_reset_card_ends_what_it_does_at_both_ends(make_world) -> None:
    world = make_world()
    world.up()
    world.start("mine", 8 * MIB)
    world.start("theirs", 4 * MIB, card=world.b)
    for _ in range(20):
        world.turn()
    world.a.engine.reset(world.now_ns)
    assert world.info("mine").error == TransferError.CARD_RESET
    assert world.finish("theirs", world.b).error == TransferError.REMOTE_RESET
    world.run(lambda: not world.b.engine.transfers.active)


def test_a_reset_target_holds_no_region_for_a_transfer_that_its_reset_ended(make_world) -> None:
    world = make_world(links=2)
    world.up()
    world.start("t", 8 * MIB)
    for _ in range(20):
        world.turn()
    world.down()
    (window,) = world.b.engine.windows.all()
    world.b.engine.reset(world.now_ns)
    world.b.engine.windows.register(window)
    # The end is told over the first link that is up, whose far end is late; meanwhile the source
    # asks over the other one to go on.
    world.b.ports[1].link_up(77, PeerId("c" * 16, "card0", 1), world.credits, world.now_ns)
    world.up(0)
    world.turn()
    world.a.ports[1].link_up(77, PeerId("c" * 16, "card1", 1), world.credits, world.now_ns)
    assert world.finish("t").error == TransferError.REMOTE_RESET
    world.run(lambda: not world.b.engine.transfers.active)
    world.b.engine.windows.unregister(window.region_id)


def test_memory_that_cannot_be_backed_ends_the_transfer(make_world) -> None:
    world = make_world()
    world.up()
    view = world.pairs[0].b

    def refuse(parts):
        view.discard()
        raise OSError(14, "Bad address")

    receive = world.fibres[0][1].receive_into
    world.fibres[0][1].receive_into = lambda parts: (
        refuse(parts) if len(parts) > 1 and len(parts[1]) > 4000 else receive(parts)
    )
    world.start("t", MIB)
    info = world.finish("t")
    assert info.error == TransferError.MEMORY_FAULT
    assert world.a.ports[0].up  # the link is not to blame


# ---- inside one card -----------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), [(0, 4 * MIB), (5, MIB + 3), (MIB, 100), (7, 7)])
def test_a_local_copy_is_exact_also_where_it_overlaps(make_world, source, target) -> None:
    world = make_world()
    data = world.a.fill(1)
    length = 3 * MIB + 11
    world.start("t", length, kind=LOCAL, local_offset=source, remote_offset=target)
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert info.crc32c == crc32c(data[source : source + length])
    assert world.a.read(length, target) == data[source : source + length]


def test_local_copies_take_turns(make_world) -> None:
    world = make_world()
    world.start("long", 4 * MIB, kind=LOCAL, remote_offset=4 * MIB)
    world.start("short", 1000, kind=LOCAL, remote_offset=MIB)
    world.a.engine.pump(0)
    assert world.info("short").state == TransferState.DONE
    assert world.info("long").state == TransferState.RUNNING


def test_a_hole_in_the_source_is_zeros(make_world) -> None:
    world = make_world()
    world.b.fill(1)
    os.truncate(world.a.fd, 0)
    os.truncate(world.a.fd, 16 * MIB)
    world.up()
    world.start("t", MIB)
    assert world.finish("t").state == TransferState.DONE
    assert world.b.read(MIB) == bytes(MIB)


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_memory_is_prepared_before_each_extent_lands_and_no_further_than_its_range(
    make_world, kind, monkeypatch
) -> None:
    world = make_world(links=2, mtu=65535)
    source, target = source_and_target(world, kind)
    length = 4 * MIB + 5
    data = source.fill(1)
    prepared = record_prepare(monkeypatch)
    world.up()
    world.start("t", length, kind=kind, remote_offset=MIB, local_offset=MIB)
    world.finish("t")
    assert {(fd, *whole) for fd, _, _, *whole in prepared} == {
        (target.fd, 2 * MIB, 2 * MIB + length)
    }
    asked = [(start, end) for _, start, end, *_ in prepared]
    assert (min(asked)[0], max(end for _, end in asked)) == (2 * MIB, 2 * MIB + length)
    extents = {n for start, end in asked for n in range(start // EXTENT_BYTES, extents_to(end))}
    assert extents == {1, 2, 3}
    assert target.read(length, MIB) == data[MIB : MIB + length]


@pytest.mark.parametrize(("source", "target"), [(0, 3), (3, 0)])
def test_memory_is_prepared_before_each_slice_of_a_local_copy(
    make_world, source, target, monkeypatch
) -> None:
    world = make_world()
    prepared = record_prepare(monkeypatch)
    world.up()
    world.start("t", 2 * MIB, kind=LOCAL, local_offset=source * MIB, remote_offset=target * MIB)
    world.finish("t")
    low = MIB + target * MIB
    assert sorted(prepared) == [
        (world.a.fd, start, start + MIB, low, low + 2 * MIB) for start in (low, low + MIB)
    ]


def record_prepare(monkeypatch) -> list[tuple[int, ...]]:
    asked: list[tuple[int, ...]] = []

    def prepare(self: Hbm, start: int, end: int, low: int, high: int) -> int:
        asked.append((self.fd, start, end, low, high))
        return extents_to(end) * EXTENT_BYTES

    monkeypatch.setattr(Hbm, "prepare", prepare)
    return asked


def extents_to(end: int) -> int:
    return -(-end // EXTENT_BYTES)
