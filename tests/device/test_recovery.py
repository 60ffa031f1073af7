"""A link's troubles while bytes cross it: what recovers without going down loses none of them."""

from __future__ import annotations

import random

import pytest

from accelhw.link.moves import Phase
from accelhw.model.link import LinkState
from accelhw.model.transfer import TransferState
from accelhw.sim.cardworld import CardWorld

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
