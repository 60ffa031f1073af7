"""Two whole cards: light, training and data path together."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelhw.model.link import DownReason, LinkState
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.sim.cardworld import CardWorld

UP = {LinkState.UP}
LENGTH = (3 << 20) + 12345


def payload(seed: int, length: int = LENGTH) -> bytes:
    return random.Random(seed).randbytes(length)


def up_world(**how: object) -> CardWorld:
    world = CardWorld(**how)  # type: ignore[arg-type]
    world.power_on()
    assert world.run(60, lambda: world.states == UP)
    return world


def test_a_write_puts_the_very_bytes_into_the_far_hbm():
    world = up_world()
    world.store(0, payload(1))
    world.start("w", LENGTH, to=4096)
    assert world.run(60, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH, at=4096) == payload(1)


def test_a_read_fetches_the_very_bytes():
    world = up_world()
    world.store(1, payload(2))
    world.start("r", LENGTH, kind=TransferKind.READ)
    assert world.run(60, lambda: world.ended("r"))
    assert world.info("r").state == TransferState.DONE
    assert world.load(0, LENGTH) == payload(2)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.permutations(range(8)), st.sets(st.integers(0, 7)), st.integers(0, 2**16))
def test_any_lane_order_and_polarity_gives_the_same_payload(order, inverted, seed):
    world = CardWorld(lane_map=order, inverted_lanes=inverted, seed=seed)
    world.power_on()
    assert world.run(60, lambda: world.states == UP)
    far = world.ports[1].trainer
    assert [far.lane_map[order[lane]] for lane in range(8)] == list(range(8))
    assert far.inverted == sum(1 << order[lane] for lane in inverted)
    data = payload(seed, 40_000)
    world.store(0, data)
    world.start("w", len(data))
    assert world.run(60, lambda: world.ended("w"))
    assert world.load(1, len(data)) == data
    world.close()


@pytest.mark.parametrize("seed", range(150))
def test_a_fibre_that_loses_doubles_and_damages_frames_changes_no_byte(seed):
    world = CardWorld(
        seed=seed, loss_ratio=0.1, duplicate_ratio=0.05, reorder_ratio=0.05, corrupt_ratio=0.02
    )
    world.power_on()
    assert world.run(120, lambda: world.states == UP)
    data = payload(seed, 400_000)
    world.store(0, data)
    world.start("w", len(data), deadline_s=300)
    assert world.run(600, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, len(data)) == data
    world.close()


@pytest.mark.parametrize("who", [0, 1])
def test_a_worker_that_dies_in_the_middle_costs_time_and_no_byte(who):
    world = up_world()
    world.store(0, payload(3))
    world.start("w", LENGTH)
    command = world.cards[0].memory.jobs["w"].command
    assert world.run(10, lambda: world.info("w").good_bytes > 0)
    assert not world.ended("w")
    earlier = world.info("w")
    world.replace(who)
    if who == 0:
        world.cards[0].memory.resume(command, earlier, world.now_ns)
    assert world.run(60, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == payload(3)
    assert ("LINK_DOWN", f"card{1 - who}/oe0") in world.events


def test_counters_go_on_in_the_next_life_of_a_worker():
    world = up_world()
    world.store(0, payload(3))
    world.start("w", LENGTH)
    assert world.run(60, lambda: world.ended("w"))
    world.run(2)
    before = world.tables.port.copy()
    world.replace(1)
    world.run(20, lambda: world.states == UP)
    world.run(2)
    after = world.tables.port
    for name in ("rx_frames", "rx_bytes", "rx_payload_bytes", "trainings", "downs"):
        assert (after[name] >= before[name]).all(), name
    assert after["downs"][world.profile.oes] == 1


def test_a_commanded_change_of_the_channel_map_loses_nothing():
    world = up_world()
    world.store(0, payload(4))
    world.start("w", LENGTH)
    assert world.run(10, lambda: world.info("w").good_bytes > 0)
    card = world.cards[0]
    entries = list(card.channel_map)
    first, last = entries[0], entries[7]
    entries[0] = type(first)(0, last.signal_line, last.oe, last.lane)
    entries[7] = type(first)(7, first.signal_line, first.oe, first.lane)
    card.set_channel_map(entries, world.now_ns)
    assert world.states != UP  # it trains again
    assert world.run(60, lambda: world.ended("w"))
    assert world.info("w").state == TransferState.DONE
    assert world.load(1, LENGTH) == payload(4)


def test_a_port_switched_off_tells_the_far_end_why():
    world = up_world()
    world.ports[0].set_admin(False, world.now_ns)
    world.run(5)
    assert world.ports[0].trainer.state is LinkState.DOWN
    assert world.ports[1].trainer.state is LinkState.SEEKING
    assert world.ports[1].trainer.reason.code is DownReason.PEER_DOWN
    assert (world.tables.lane["rx_power_dbm"][16:24] == -40.0).all()
    world.ports[0].set_admin(True, world.now_ns)
    assert world.run(60, lambda: world.states == UP)


def test_a_reset_card_comes_back_with_its_memory_and_its_transfers_ended():
    world = up_world()
    world.store(0, payload(5))
    world.start("w", LENGTH)
    assert world.run(10, lambda: world.info("w").good_bytes > 0)
    world.cards[0].reset(world.now_ns)
    assert world.info("w").error == TransferError.CARD_RESET
    world.run(1)
    world.cards[0].power_on(world.now_ns)
    assert world.run(60, lambda: world.states == UP)
    assert world.load(0, LENGTH) == payload(5)
    world.start("again", LENGTH)  # its windows are still registered
    assert world.run(60, lambda: world.ended("again"))
    assert world.load(1, LENGTH) == payload(5)


def test_a_longer_fibre_brings_less_light_and_more_errors():
    near, far = up_world(length_m=10), up_world(length_m=2000)
    for world in (near, far):
        world.run(2)
    loss_db = far.fibre.loss_db - near.fibre.loss_db
    difference = near.tables.lane["rx_power_dbm"][:8] - far.tables.lane["rx_power_dbm"][:8]
    assert np.allclose(difference, loss_db, atol=0.7)  # the monitors' noise, at both
    assert (far.tables.lane["pre_fec_ber"][:8] > near.tables.lane["pre_fec_ber"][:8]).all()


def test_too_much_loss_is_refused_with_the_reason_at_both_ends():
    world = CardWorld(extra_loss_db=9.0)
    world.power_on()
    world.run(20)
    assert not any(state.carries_data for state in world.states)
    codes = {port.trainer.reason.code for port in world.ports}
    assert codes <= {DownReason.BER_TOO_HIGH, DownReason.CDR_NO_LOCK, DownReason.PEER_SILENT}
    assert codes & {DownReason.BER_TOO_HIGH, DownReason.CDR_NO_LOCK}


@pytest.mark.parametrize("seed", range(20))
def test_noise_on_the_fibre_is_counted_and_touches_no_memory(seed):
    world = up_world(seed=seed)
    before = world.load(1, 16 << 20)
    dice = random.Random(seed)
    port = world.ports[1]
    frames = [dice.randbytes(dice.randrange(0, 2000)) for _ in range(200)]
    header = bytes.fromhex("03acce1d000002acce1d000088b5")
    frames += [header + dice.randbytes(dice.randrange(0, 200)) for _ in range(200)]
    counters = port.counters
    noise = counters.foreign_frames + counters.malformed_frames + counters.crc_errors
    for frame in frames:
        assert world.faulty[0].send([frame])
        world.run(0.001)
    counted = counters.foreign_frames + counters.malformed_frames + counters.crc_errors - noise
    assert counted == len(frames)
    assert world.load(1, 16 << 20) == before
    assert world.states == UP


def test_all_events_of_a_link_come_in_order():
    world = up_world()
    kinds = [kind for kind, port in world.events if port == "card0/oe0"]
    assert kinds == ["LINK_TRAINING", "LINK_UP"]
    steps = [step for port, step in world.steps if port == "card0/oe0"]
    assert {step.lane for step in steps if step.lane is not None} == {*range(8)}


def test_each_step_of_a_training_names_the_phase_it_belongs_to():
    told = {
        step.text.split(" ")[0]: step.phase.name
        for port, step in up_world().steps
        if port == "card0/oe0" and step.lane is not None
    }
    assert told == {
        "locked": "LOCK",
        "settled": "EQ_TRAIN",
        "hears": "MAP",
        "BER": "BER_CHECK",
    }


def test_a_copy_inside_a_card_tells_the_time_it_took():
    world = CardWorld()
    world.store(0, payload(6, 1 << 20))
    world.start("l", 1 << 20, kind=TransferKind.LOCAL, to=4 << 20)
    assert world.run(1, lambda: world.ended("l"))
    assert world.info("l").wall_ns > 0
    assert world.load(0, 1 << 20, at=4 << 20) == payload(6, 1 << 20)
