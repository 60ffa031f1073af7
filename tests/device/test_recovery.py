"""A link's troubles while bytes cross it: whether it recovers or goes down, none is lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from accelhw.link import patience
from accelhw.link.moves import Phase
from accelhw.model.link import DownReason, LinkState
from accelhw.model.transfer import TransferState
from accelhw.sim.cardworld import CardWorld
from accelhw.wire.frame import HEADER_BYTES, FrameType, decode_header

if TYPE_CHECKING:
    from typing_extensions import Buffer

LENGTH = (3 << 20) + 12345


def moving(seed: int = 1, **faults: float) -> tuple[CardWorld, bytes]:
    """Two cards in the middle of a transfer."""
    world = CardWorld(seed=seed, **faults)  # type: ignore[arg-type]
    world.power_on()
    assert world.run(60, lambda: world.states == {LinkState.UP})
    data = random.Random(seed).randbytes(LENGTH)
    world.store(0, data)
    world.start("w", LENGTH, deadline_s=300)
    assert world.run(10, lambda: world.info("w").good_bytes > LENGTH // 8)
    assert not world.ended("w")
    return world, data


def change(world: CardWorld, index: int, cause: str, lane: int, amount: float) -> None:
    optics = world.ports[index].optics
    optics.causes.array(cause)[lane] = amount
    optics.light_moved(world.now_ns)
    world.ports[index]._look_at_light(world.now_ns)


def whole(world: CardWorld, data: bytes) -> None:
    """Every byte crossed, under one life of the link."""
    assert world.run(100, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == data
    assert "LINK_DOWN" not in {kind for kind, _ in world.events}


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("faults", [{}, {"loss_ratio": 0.1, "reorder_ratio": 0.05}])
def test_a_clock_that_slips_holds_bytes_back_and_loses_none(
    index: int, faults: dict[str, float]
) -> None:
    world, data = moving(**faults)
    epochs = [port.trainer.epoch for port in world.ports]
    change(world, index, "cdr_unlocked", 3, 1)
    assert world.run(0.05, lambda: all(p.trainer.phase is Phase.RECOVERY for p in world.ports))
    world.run(0.03)
    sent = [port.counters.tx_payload_bytes for port in world.ports]
    replayed = [port.counters.replayed_frames for port in world.ports]
    world.run(0.1)
    assert [port.counters.tx_payload_bytes for port in world.ports] == sent
    assert [port.counters.replayed_frames for port in world.ports] == replayed
    assert world.states == {LinkState.UP}
    change(world, index, "cdr_unlocked", 3, 0)
    whole(world, data)
    assert [port.trainer.epoch for port in world.ports] == epochs
    assert world.events.count(("LINK_RECOVERED", f"card{index}/oe0")) == 1
    world.run(1)
    row = world.tables.port[index * world.profile.oes]
    assert (row["recoveries"], row["recovery_failures"], row["downs"]) == (1, 0, 0)
    assert row["flaps"] == 1
    world.close()


def test_lanes_fail_one_at_a_time_and_come_back_under_one_transfer() -> None:
    world, data = moving()
    for lane in (1, 4):
        change(world, 1, "rx_path_loss_db", lane, 30.0)
        world.run(0.002)
        assert world.run(2, lambda: all(p.trainer.phase is Phase.ACTIVE for p in world.ports))
        assert world.states == {LinkState.DEGRADED}
    assert {port.trainer.width for port in world.ports} == {4}
    assert world.events.count(("LINK_WIDTH_CHANGED", "card1/oe0")) == 1  # the second costs none
    for lane in (1, 4):
        change(world, 1, "rx_path_loss_db", lane, 0.0)
    whole(world, data)
    assert world.run(20, lambda: world.states == {LinkState.UP})
    assert {port.trainer.width for port in world.ports} == {8}
    assert "LINK_DOWN" not in {kind for kind, _ in world.events}
    world.run(1)
    assert (world.tables.lane["used"][:8] == 1).all()
    world.close()


def test_narrower_links_have_a_longer_modelled_time() -> None:
    world, data = moving()
    change(world, 0, "rx_path_loss_db", 0, 30.0)
    whole(world, data)
    narrow_ns = world.info("w").modelled_ns
    world.start("again", LENGTH)
    assert world.run(60, lambda: world.ended("again"))
    fresh, _ = moving()
    assert fresh.run(60, lambda: fresh.ended("w"))
    assert world.info("again").modelled_ns > 1.8 * fresh.info("w").modelled_ns
    assert narrow_ns >= fresh.info("w").modelled_ns


@pytest.mark.parametrize("seed", range(20))
def test_troubles_at_any_time_under_a_bad_fibre_change_no_byte(seed: int) -> None:
    chance = random.Random(seed)
    world, data = moving(
        seed, loss_ratio=0.1, duplicate_ratio=0.05, reorder_ratio=0.05, corrupt_ratio=0.02
    )
    for _ in range(4):
        index, lane = chance.randrange(2), chance.randrange(8)
        cause, amount = chance.choice((("cdr_unlocked", 1.0), ("rx_path_loss_db", 30.0)))
        change(world, index, cause, lane, amount)
        world.run(chance.random() * 0.8)
        change(world, index, cause, lane, 0.0)
        world.run(chance.random() * 0.2)
    assert world.run(300, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == data
    world.close()


@pytest.mark.parametrize("early_s", [0.0, 0.3, 0.6])
def test_the_way_back_to_the_own_mode_changes_no_byte(early_s: float) -> None:
    world = CardWorld()
    every = range(world.profile.lanes_per_oe)
    world.power_on()
    assert world.run(60, lambda: world.states == {LinkState.UP})
    for lane in every:
        spare_db = float(world.ports[0].optics.margin_db[lane])
        change(world, 0, "rx_penalty_db", lane, spare_db - 0.3)  # enough to stay, not to come up
    world.run(1)
    world.ports[0].retrain(world.now_ns)
    assert world.run(60, lambda: world.states == {LinkState.DEGRADED})
    assert {str(port.trainer.mode) for port in world.ports} == {"kp4/2"}
    assert world.events.count(("LINK_MODE_CHANGED", "card0/oe0")) == 1
    for lane in every:
        change(world, 0, "rx_penalty_db", lane, 0.0)
    ups = world.events.count(("LINK_UP", "card0/oe0"))
    world.run(patience.BETTER_NS / 1e9 - early_s)
    data = random.Random(1).randbytes(LENGTH)
    world.store(0, data)
    world.start("w", LENGTH, deadline_s=300)
    assert world.run(100, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == data
    assert world.run(100, lambda: world.states == {LinkState.UP})
    assert {str(port.trainer.mode) for port in world.ports} == {"kp4"}
    for index in (0, 1):
        assert world.events.count(("LINK_MODE_CHANGED", f"card{index}/oe0")) == 2
        assert world.events.count(("LINK_UP", f"card{index}/oe0")) == ups + 1
    world.close()


def swallow_data(world: CardWorld, index: int) -> Callable[[bool], None]:
    """Frames of data from this end get lost from now on, or pass again; all others pass."""
    faulty, swallows = world.faulty[index], [True]
    send = faulty.send

    def sift(parts: Sequence[Buffer]) -> bool:
        nbytes = sum(len(memoryview(part)) for part in parts)
        frame_type = decode_header(bytes(parts[0])[:HEADER_BYTES], nbytes).type
        sequenced = frame_type in (FrameType.DATA, FrameType.MESSAGE)
        return True if swallows[0] and sequenced else send(parts)

    cable = world.ports[index].transport
    cable._inner.send = sift
    cable._bind()
    return lambda on: swallows.__setitem__(0, on)


def test_replays_without_end_are_recovered_from_where_the_light_is_well() -> None:
    world, data = moving()
    swallow = swallow_data(world, 0)
    assert world.run(30, lambda: world.ports[0].trainer.phase is Phase.RECOVERY)
    assert world.ports[0].trainer.reason.code is DownReason.REPLAY_EXHAUSTED
    swallow(False)
    whole(world, data)
    assert world.events.count(("LINK_RECOVERED", "card0/oe0")) == 1
    world.close()


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("ends", [(0,), (1,), (0, 1)], ids=["near", "far", "both"])
def test_an_outage_at_any_call_downs_the_link_and_changes_no_byte(
    seed: int, ends: tuple[int, ...]
) -> None:
    world, data = moving(seed, loss_ratio=0.02, reorder_ratio=0.02)
    for ratio, seconds in ((0.005, 0.05), (0.02, 0.05), (0.2, 2.0)):
        for end in ends:
            world.faulty[end].outage_ratio = ratio
        world.run(seconds)
        for end in ends:
            world.faulty[end].outage_ratio = 0.0
        assert world.run(60, lambda: world.states == {LinkState.UP})
    assert ("LINK_DOWN", f"card{ends[0]}/oe0") in world.events
    assert world.run(100, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == data
    world.close()


def test_what_a_recovery_does_not_mend_takes_the_link_down() -> None:
    world, data = moving()
    swallow = swallow_data(world, 0)
    assert world.run(60, lambda: ("LINK_DOWN", "card0/oe0") in world.events)
    assert world.events.count(("LINK_RECOVERED", "card0/oe0")) == 1
    swallow(False)
    assert world.run(100, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == data
    world.close()
