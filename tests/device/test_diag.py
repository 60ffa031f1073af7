"""Tests of a link measure what its light says, and leave it as they found it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelhw.device.diag import LinkTest
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.messages import DiagInfo, DiagProgress, StartDiag, decode, encode
from accelhw.model.diag import DiagKind, DiagState, Verdict
from accelhw.model.link import DownReason, LinkState
from accelhw.optics import fec
from accelhw.sim.cardworld import CardWorld

UP = {LinkState.UP}


def up_world(profile: str = "dr8", **how: object) -> CardWorld:
    world = CardWorld(profile, **how)  # type: ignore[arg-type]
    world.power_on()
    assert world.run(60, lambda: world.states == UP)
    return world


def make(world: CardWorld, kind: DiagKind, index: int = 0, **how: object) -> LinkTest:
    command = StartDiag(1, f"d{kind}", int(kind), f"card{index}", 0, **how)  # type: ignore[arg-type]
    return LinkTest(
        world.ports[index],
        command,
        seed=world.seed,
        wall_ns=lambda: world.now_ns,
        read_row=lambda: world.tables.port[index * world.profile.oes],
    )


def step(world: CardWorld, *tests: LinkTest) -> None:
    due = [ns for test in tests if (ns := test.next_deadline_ns()) is not None]
    world.run((max(min(due) - world.now_ns, 0) + 1_000) / 1e9)
    for test in tests:
        test.on_deadline(world.now_ns)


def run(world: CardWorld, kind: DiagKind, index: int = 0, **how: object) -> DiagInfo:
    test = make(world, kind, index, **how)
    test.start(world.now_ns)
    while not test.ended:
        step(world, test)
    info = test.info()
    assert decode(encode(DiagProgress(info))) == DiagProgress(info)  # It can be sent.
    return info


def back_up(world: CardWorld) -> bool:
    return world.run(60, lambda: world.states == UP)


# ---- a pattern on the line -----------------------------------------------------------------------


@pytest.mark.parametrize("checker", ["seeded", "self-sync"])
def test_prbs_finds_the_lanes_their_polarity_and_their_errors(checker: str):
    order = (3, 0, 1, 2, 7, 6, 5, 4)
    world = up_world(lane_map=order, inverted_lanes={2}, extra_loss_db=4.0)
    info = run(world, DiagKind.PRBS, 1, duration_s=1.0, checker=checker)
    assert (info.state, info.verdict) == (DiagState.DONE, Verdict.PASSED)
    assert info.pattern == "prbs31q"
    optics = world.ports[1].optics
    for lane in info.errors:
        assert lane.locked
        assert order[lane.far_lane] == lane.lane
        assert lane.inverted == (lane.far_lane == 2)
        assert lane.bits == pytest.approx(106.25e9, rel=1e-3)
        expected = lane.bits * float(optics.ber[lane.lane])
        assert abs(lane.errors - expected) < 6 * math.sqrt(expected) + 3
        assert lane.ber_low < lane.errors / lane.bits < lane.ber_high
        assert lane.sampled_bits >= 5 * 32_768


def test_sampled_bits_are_wrong_as_often_as_the_light_says():
    world = up_world("oio")
    optics = world.ports[0].optics
    test = make(world, DiagKind.PRBS, duration_s=4.0, lanes=(5,))
    test.start(world.now_ns)
    step(world, test)
    margin_db = float(optics.margin_db[5])
    optics.path_extra_db[5] += margin_db + 4.0  # errors by the hundred in a sample
    optics.light_moved(world.now_ns)
    assert optics.locked[5]
    while not test.ended:
        step(world, test)
    (lane,) = test.info().errors
    expected = lane.sampled_bits * float(optics.ber[5])
    assert expected > 100
    assert abs(lane.sampled_errors - expected) < 5 * math.sqrt(expected)
    assert lane.verdict == Verdict.FAILED


def test_the_link_is_down_with_its_reason_and_trains_again():
    world = up_world()
    test = make(world, DiagKind.PRBS, duration_s=1.0)
    test.start(world.now_ns)
    world.run(0.5)
    near, far = (port.trainer for port in world.ports)
    assert (near.state, near.reason.code) == (LinkState.DOWN, DownReason.TEST)
    assert (far.state, far.reason.code) == (LinkState.SEEKING, DownReason.PEER_TEST)
    assert far.peer_reason.code is DownReason.TEST
    assert world.ports[0].optics.laser_on.all()
    while not test.ended:
        step(world, test)
    assert back_up(world)


def test_a_transfer_waits_for_a_test_and_goes_on():
    world = up_world()
    world.store(0, bytes(range(256)) * 8192)
    world.start("w", 256 * 8192, to=0)
    assert world.run(5, lambda: world.cards[0].memory.transfers.moving_with("card1") == 1)
    assert not world.ended("w")
    assert world.cards[0].memory.transfers.moving_with("card1") == 1
    run(world, DiagKind.PRBS, duration_s=0.5)
    assert world.run(60, lambda: world.ended("w"))
    assert world.load(1, 256 * 8192) == bytes(range(256)) * 8192


def test_cancelling_keeps_what_was_measured():
    world = up_world()
    test = make(world, DiagKind.PRBS, duration_s=3600.0)
    test.start(world.now_ns)
    while not test.info().errors or not test.info().errors[0].bits:
        step(world, test)
    test.cancel(world.now_ns)
    info = test.info()
    assert info.state == DiagState.CANCELLED
    assert info.errors[0].bits > 0
    assert back_up(world)


def test_a_dark_lane_is_a_result():
    world = up_world("oio")
    world.ports[0].optics.path_extra_db[3] = 40.0
    world.ports[0].optics.light_moved(world.now_ns)
    info = run(world, DiagKind.PRBS, duration_s=0.5)
    dark = info.errors[3]
    assert (dark.locked, dark.bits, dark.verdict) == (False, 0.0, Verdict.FAILED)
    assert info.verdict == Verdict.FAILED
    assert info.errors[4].locked


# ---- in service ----------------------------------------------------------------------------------


def test_ber_in_service_ends_as_soon_as_it_is_proven():
    world = up_world("oio")
    before = world.ports[0].trainer.session
    info = run(world, DiagKind.BER, duration_s=60.0, target_ber=1e-9, stop_early=True)
    assert info.verdict == Verdict.PASSED
    assert info.done_ratio == 1.0
    assert 3e9 < info.errors[0].bits < 1.3e10  # 3/BER, and a look every 0.2 s
    assert info.errors[0].sampled_bits == 0
    assert world.states == UP
    assert world.ports[0].trainer.session == before


def test_too_few_bits_leave_a_ber_open():
    info = run(up_world("oio"), DiagKind.BER, duration_s=1.0)
    assert info.target_ber == 1e-12
    assert info.verdict == Verdict.OPEN


def test_eyes_agree_with_their_lanes():
    world = up_world()
    info = run(world, DiagKind.EYE)
    optics = world.ports[0].optics
    assert [eye.lane for eye in info.eyes] == list(range(8))
    for eye in info.eyes:
        assert eye.q == optics.q[eye.lane]
        assert len(eye.density) == eye.rows * eye.columns
        average = 1000.0 * 10.0 ** (float(optics.rx_dbm[eye.lane]) / 10.0)
        assert np.mean(eye.levels_uw) == pytest.approx(average, rel=1e-6)
        assert len(eye.openings) == 3
    assert world.states == UP


def test_codewords_fall_into_bins_as_the_lanes_err():
    world = up_world(extra_loss_db=4.0)
    world.run(2.0)
    info = run(world, DiagKind.FEC, duration_s=4.0)
    assert info.fec is not None
    assert info.fec.codewords > 1e8
    assert sum(info.fec.bins) + info.fec.uncorrectable == info.fec.codewords
    pmf = fec.symbol_error_pmf(world.ports[0].optics.ber.tolist(), fec.KP4)
    expected = info.fec.codewords * pmf[1]
    assert info.fec.bins[1] == pytest.approx(expected, rel=0.05)
    assert info.verdict == Verdict.PASSED


# ---- margin --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["dr8", "oio"])
def test_the_margin_found_is_the_margin_there_is(profile: str):
    world = up_world(profile)
    optics = world.ports[0].optics
    there = np.array(optics.margin_db, float)
    info = run(world, DiagKind.MARGIN, duration_s=0.05)
    found = [lane.margin_db for lane in info.margins]
    np.testing.assert_allclose(found, there, atol=0.1)  # shot noise is not fitted
    assert info.verdict == Verdict.PASSED
    assert not np.any(optics.path_extra_db)
    np.testing.assert_allclose(optics.margin_db, there)
    assert back_up(world)


def test_a_cancelled_scan_gives_the_light_back():
    world = up_world()
    optics = world.ports[0].optics
    before = np.array(optics.rx_dbm, float)
    test = make(world, DiagKind.MARGIN, duration_s=0.05, lanes=(1, 2))
    test.start(world.now_ns)
    for _ in range(8):
        step(world, test)
    assert optics.rx_dbm[1] < before[1] - 1.0
    assert optics.rx_dbm[0] == before[0]
    test.cancel(world.now_ns)
    np.testing.assert_allclose(optics.rx_dbm, before)
    assert len(test.info().margins) == 2


# ---- loops ---------------------------------------------------------------------------------------


def test_the_near_loop_tests_the_port_without_its_fibre():
    world = up_world("oio")
    port = world.ports[0]
    port.optics.causes.rx_path_loss_db[:] = 40.0  # the connector is dark
    port.optics.light_moved(world.now_ns)
    info = run(world, DiagKind.LOOPBACK_NEAR, duration_s=0.5)
    assert all(lane.locked for lane in info.errors)
    assert [lane.far_lane for lane in info.errors] == list(range(16))
    assert not port.optics.lit.any()
    port.optics.causes.rx_path_loss_db[:] = 0.0
    port.optics.light_moved(world.now_ns)
    assert back_up(world)


def test_nothing_that_is_wrong_with_the_path_reaches_the_near_loop():
    world = up_world("oio")
    clean = run(world, DiagKind.LOOPBACK_NEAR, duration_s=0.5)
    margin_db = looped_margin_db(world)
    assert back_up(world)
    causes = world.ports[0].optics.causes
    for name, amount in {
        "tx_path_loss_db": 130.0,
        "rx_path_loss_db": 130.0,
        "mpi_penalty_db": 3.0,
    }.items():
        causes.array(name)[:] = amount
    world.ports[0].optics.light_moved(world.now_ns)
    info = run(world, DiagKind.LOOPBACK_NEAR, duration_s=0.5)
    assert (info.state, info.verdict, info.error) == (clean.state, clean.verdict, "")
    assert all(lane.locked for lane in info.errors)
    np.testing.assert_allclose(looped_margin_db(world), margin_db, atol=0.02)
    assert not world.ports[0].optics.lit.any()  # the fibre is as dark as before
    causes.array("rx_penalty_db")[5] = 2.0  # but its own receiver counts
    world.ports[0].optics.light_moved(world.now_ns)
    worse_db = margin_db - looped_margin_db(world)
    np.testing.assert_allclose(worse_db, [2.0 * (lane == 5) for lane in range(16)], atol=0.02)


def looped_margin_db(world):
    """The margins while the loop is closed."""
    test = make(world, DiagKind.LOOPBACK_NEAR, 0, duration_s=60.0)
    test.start(world.now_ns)
    for _ in range(5):
        step(world, test)
    margin_db = world.ports[0].optics.margin_db.copy()
    test.cancel(world.now_ns)
    return margin_db


def test_the_far_loop_goes_through_the_fibre_twice():
    world = up_world("oio", extra_loss_db=0.6)
    once = np.array(world.ports[1].optics.rx_dbm, float)
    reflector = make(world, DiagKind.REFLECT, 1, duration_s=60.0)
    reflector.start(world.now_ns)
    test = make(world, DiagKind.LOOPBACK_FAR, duration_s=0.5)
    test.start(world.now_ns)
    while not test.ended:
        step(world, test, reflector)
    info = test.info()
    assert info.state == DiagState.DONE
    assert all(lane.locked for lane in info.errors)
    twice = world.ports[0].optics.rx_dbm
    np.testing.assert_allclose(twice, once - world.fibre.loss_db, atol=0.03)
    # In normal mode a port that hears itself says so.
    assert world.run(10, lambda: world.ports[0].trainer.reason.code is DownReason.LOOPED_TO_SELF)
    reflector.cancel(world.now_ns)
    assert back_up(world)


def test_a_far_loop_that_nobody_closes_is_told():
    world = up_world()
    info = run(world, DiagKind.LOOPBACK_FAR, duration_s=0.5)
    assert (info.state, info.error) == (DiagState.FAILED, "NO_LOOP")
    assert back_up(world)


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "how", "text"),
    [
        (DiagKind.PRBS, {"lanes": (16,)}, "not lane16"),
        (DiagKind.PRBS, {"pattern": "prbs32"}, "no pattern"),
        (DiagKind.PRBS, {"pattern": "prbs31q"}, "try prbs31"),
        (DiagKind.PRBS, {"checker": "guess"}, "no checker"),
        (DiagKind.PRBS, {"duration_s": 0.0}, "no time"),
        (DiagKind.PRBS, {"duration_s": 1e9}, "no time"),
        (DiagKind.BER, {"target_ber": 0.7}, "BER is"),
        (DiagKind.BER, {"confidence": 1.0}, "confidence"),
        (DiagKind.FEC, {}, "no FEC"),
        (99, {}, "no kind"),
    ],
)
def test_what_cannot_be_tested_is_refused_before_anything_starts(kind, how, text: str):
    world = CardWorld("oio")
    with pytest.raises(EngineRefusal, match=text):
        make(world, kind, **how)


def test_a_port_that_is_off_or_has_no_fibre_is_refused():
    world = CardWorld("oio")
    world.ports[0].admin_up = False
    with pytest.raises(EngineRefusal, match="switched off"):
        make(world, DiagKind.PRBS)
    command = StartDiag(1, "d", int(DiagKind.PRBS), "card0", 1)
    with pytest.raises(EngineRefusal, match="no fibre"):
        LinkTest(world.cards[0].ports[1], command, seed=1, wall_ns=lambda: 0, read_row=lambda: None)


def test_the_same_seed_measures_the_same():
    first, second = (run(up_world(seed=9), DiagKind.MARGIN, duration_s=0.05) for _ in range(2))
    assert first.margins == second.margins
