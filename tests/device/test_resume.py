"""Links die and come back, workers restart: a transfer goes on, or says where it stopped."""

from __future__ import annotations

import msgspec
import pytest

from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.wire.checksum import crc32c

WRITE, READ = TransferKind.WRITE, TransferKind.READ
MIB = 1 << 20
LENGTH = 6 * MIB + 123


def begun(make_world, kind, good=2 * MIB, **more):
    """A world in the middle of transfer `t` from `source` to `target`."""
    world = make_world(mtu=65535, credits_=8, **more)
    source, target = (world.a, world.b) if kind is WRITE else (world.b, world.a)
    data = source.fill(1)
    world.up()
    world.start("t", LENGTH, kind=kind)
    world.run(lambda: world.info("t").good_bytes >= good)
    assert world.info("t").state == TransferState.RUNNING
    return world, target, data[:LENGTH]


def payload_sent(world) -> int:
    return sum(p.counters.tx_payload_bytes for card in (world.a, world.b) for p in card.ports)


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_a_cut_link_is_waited_for_and_only_the_rest_is_sent(make_world, kind) -> None:
    world, target, data = begun(make_world, kind)
    world.down()
    waiting = world.info("t")
    assert waiting.state == TransferState.WAITING
    assert 2 * MIB <= waiting.good_bytes < LENGTH
    for _ in range(100):
        world.turn()
    before = payload_sent(world)
    world.up()
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert info.crc32c == crc32c(data)
    assert target.read(LENGTH) == data
    # At most a chunk that was cut, and one whose end was proved at one side only.
    assert payload_sent(world) - before <= LENGTH - waiting.good_bytes + MIB
    assert world.a.events == [
        "TRANSFER_STARTED", "TRANSFER_WAITING", "TRANSFER_RESUMED", "TRANSFER_DONE",
    ]  # fmt: skip
    assert info.wall_ns == info.ended_ns - info.started_ns > waiting.wall_ns  # the wait counts


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_one_of_two_links_may_die_unnoticed(make_world, kind) -> None:
    world, target, data = begun(make_world, kind, good=MIB, links=2)
    world.down(0)
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert target.read(LENGTH) == data
    assert "TRANSFER_WAITING" not in world.a.events


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_a_deadline_without_a_link_tells_what_is_good(make_world, kind) -> None:
    world = make_world(mtu=65535, credits_=8)
    source, target = (world.a, world.b) if kind is WRITE else (world.b, world.a)
    data = source.fill(1)
    world.up()
    world.start("t", LENGTH, kind=kind, deadline_s=0.5)
    world.run(lambda: world.info("t").good_bytes >= 2 * MIB)
    world.down()
    down_ns = world.now_ns
    info = world.finish("t")
    assert (info.state, info.error) == (TransferState.FAILED, TransferError.LINK_DEADLINE)
    assert world.now_ns - down_ns == pytest.approx(500_000_000, rel=0.01)
    assert 2 * MIB <= info.first_gap_offset <= info.good_bytes < LENGTH
    assert target.read(info.first_gap_offset) == data[: info.first_gap_offset]
    assert str(info.good_bytes) in info.error_detail
    # The far card lets go too, also if no link ever comes back.
    world.now_ns += 6_000_000_000
    world.run(lambda: not world.b.engine.transfers.active)


def test_a_transfer_posted_before_its_link_waits_for_it(make_world) -> None:
    world = make_world()
    data = world.a.fill(1)
    world.start("t", 50_000)
    world.turn()
    assert world.a.events == ["TRANSFER_STARTED", "TRANSFER_WAITING"]
    world.up()
    assert world.finish("t").state == TransferState.DONE
    assert world.b.read(50_000) == data[:50_000]


def restart(world, card, side) -> None:
    """A worker died and came back: its far end notices, both train."""
    world.down()
    card.start()
    world.plug(card, side)


@pytest.mark.parametrize("kind", [WRITE, READ])
@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_either_worker_may_restart(make_world, kind, who) -> None:
    world, target, data = begun(make_world, kind)
    source = world.a if target is world.b else world.b
    card = source if who == "sender" else target
    earlier = world.info("t")
    restart(world, card, 0 if card is world.a else 1)
    before = payload_sent(world)
    if card is world.a:
        world.resume(earlier)
    world.up()
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert info.crc32c == crc32c(data)
    assert target.read(LENGTH) == data
    if who == "sender":
        assert payload_sent(world) - before < LENGTH  # what is there is not sent again
    world.run(lambda: not world.a.engine.transfers.active and not world.b.engine.transfers.active)


@pytest.mark.parametrize("kind", [WRITE, READ])
def test_one_clock_runs_over_two_lives_of_a_worker(make_world, kind) -> None:
    world, _, _ = begun(make_world, kind)
    started_ns, links = world.info("t").started_ns, world.info("t").links
    earlier = world.info("t")
    restart(world, world.a, 0)
    world.now_ns += 700_000_000  # dead, and trains
    world.resume(earlier)
    world.up()
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert (info.started_ns, info.begun_ns) == (started_ns, earlier.begun_ns)
    assert info.ended_ns - info.started_ns == info.wall_ns >= earlier.wall_ns + 700_000_000
    assert info.links == links
    assert "TRANSFER_STARTED" not in world.a.events  # of this life: it was told before
    assert world.a.told[-1].wall_ns == info.wall_ns


def test_a_transfer_whose_start_was_never_told_is_told_by_the_next_life(make_world) -> None:
    world, _, _ = begun(make_world, WRITE)
    earlier = msgspec.structs.replace(
        world.info("t"), started_ns=0, begun_ns=0, wall_ns=0, good_bytes=0, first_gap_offset=0
    )
    restart(world, world.a, 0)
    world.resume(earlier)
    world.up()
    info = world.finish("t")
    assert world.a.events[0] == "TRANSFER_STARTED"
    assert info.ended_ns - info.started_ns == info.wall_ns < world.now_ns - 1_000_000_000


def test_what_an_earlier_life_proved_good_stays_told(make_world) -> None:
    world, target, data = begun(make_world, WRITE)
    earlier = world.info("t")
    restart(world, world.a, 0)
    world.resume(earlier)
    world.turn()
    assert world.a.events == ["TRANSFER_WAITING"]
    assert world.a.told[0].good_bytes == earlier.good_bytes >= 2 * MIB
    assert world.a.told[0].first_gap_offset == earlier.first_gap_offset
    world.up()
    told = [earlier.good_bytes]

    def watched() -> bool:
        told.append(world.info("t").good_bytes)
        return bool(world.info("t").ended_ns)

    world.run(watched)
    assert told == sorted(told)
    assert target.read(LENGTH) == data


def test_a_deadline_of_a_later_life_tells_what_the_earlier_one_proved(make_world) -> None:
    world, target, data = begun(make_world, WRITE)
    earlier = world.info("t")
    restart(world, world.a, 0)
    world.resume(earlier)
    world.now_ns += 31_000_000_000
    info = world.finish("t")
    assert info.error == TransferError.LINK_DEADLINE
    assert info.first_gap_offset == earlier.first_gap_offset <= info.good_bytes < LENGTH
    assert f"{info.good_bytes} of {LENGTH} bytes are good" in info.error_detail
    assert target.read(info.first_gap_offset) == data[: info.first_gap_offset]


def test_a_far_card_that_forgot_all_is_believed(make_world) -> None:
    """Both workers died: nothing that was proved before counts once the far card has answered."""
    world, target, data = begun(make_world, WRITE)
    earlier = world.info("t")
    restart(world, world.b, 1)
    restart(world, world.a, 0)
    world.resume(earlier)
    assert world.info("t").good_bytes == earlier.good_bytes
    world.up()
    world.run(lambda: world.info("t").good_bytes < earlier.good_bytes)
    assert world.finish("t").state == TransferState.DONE
    assert target.read(LENGTH) == data


def test_an_end_that_was_not_heard_is_told_again(make_world) -> None:
    """The receiver finished, but the link died under its answer, and then the sender too."""
    world = make_world(mtu=65535)
    data = world.a.fill(1)
    world.up()
    world.start("t", 2 * MIB + 5)
    world.run(lambda: "t" in world.b.engine.transfers.ended)
    restart(world, world.a, 0)
    world.start("t", 2 * MIB + 5)
    world.up()
    info = world.finish("t")
    assert info.state == TransferState.DONE
    assert info.crc32c == crc32c(data[: 2 * MIB + 5])


def test_a_restarted_sender_with_other_bytes_is_told(make_world) -> None:
    world, _, _ = begun(make_world, WRITE)
    restart(world, world.a, 0)
    world.a.fill(2)
    world.start("t", LENGTH)
    world.up()
    assert world.finish("t").error == TransferError.CHECKSUM_DIFFERS


@pytest.mark.parametrize("seed", range(100))
def test_links_that_come_and_go_never_make_a_wrong_byte(make_world, seed) -> None:
    world = make_world(
        seed=seed, links=1 + seed % 3, mtu=9000, loss_ratio=0.02, duplicate_ratio=0.02,
        reorder_ratio=0.02, corrupt_ratio=0.02, delay_ns=seed % 3 * 100_000,
    )  # fmt: skip
    data, back = world.a.fill(seed), world.b.fill(seed + 1000)
    world.up()
    length = 3 * MIB + seed
    world.start("there", length, remote_offset=4 * MIB)
    world.start("here", length, kind=READ, local_offset=4 * MIB)
    for _ in range(8):
        for _ in range(world.random.randrange(60)):
            world.turn()
        link = world.random.randrange(world.links)
        world.down(link)
        for _ in range(world.random.randrange(20)):
            world.turn()
        if world.random.random() < 0.2:
            card, side = world.random.choice([(world.a, 0), (world.b, 1)])
            ended = {i.transfer_id for i in card.engine.jobs.infos(0) if i.ended_ns}
            restart(world, card, side)
            world.up()
            if side == 0:
                for name, more in (
                    ("there", {"remote_offset": 4 * MIB}),
                    ("here", {"kind": READ, "local_offset": 4 * MIB}),
                ):
                    if name not in ended:
                        world.start(name, length, **more)
        else:
            world.up(link)
    known = {info.transfer_id for info in world.a.engine.jobs.infos(0)}
    world.run(lambda: all(i.ended_ns for i in world.a.engine.jobs.infos(0)), turns=100_000)
    assert {i.state for i in world.a.engine.jobs.infos(0)} <= {TransferState.DONE}
    assert known or seed
    assert world.b.read(length, 4 * MIB) == data[:length]
    assert world.a.read(length, 4 * MIB) == back[:length]
    world.run(lambda: not world.a.engine.transfers.active and not world.b.engine.transfers.active)
