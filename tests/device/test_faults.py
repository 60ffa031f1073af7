"""Faults on a card: aimed at a BER, added up, kept over a worker's death; and rows of HBM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from accelhw.device.ecc import ROW_BYTES, SPARE_ROWS, Ecc, RowState
from accelhw.device.refusal import EngineRefusal
from accelhw.model.link import LinkState
from accelhw.model.region import MemoryWindow
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.sim.cardworld import CardWorld

SIZE = 4 << 20
Worlds = Callable[..., CardWorld]


@pytest.fixture
def worlds() -> Iterator[Worlds]:
    made: list[CardWorld] = []

    def make(profile: str = "dr8") -> CardWorld:
        world = CardWorld(profile)
        made.append(world)
        world.power_on()
        assert world.run(60, until=lambda: world.states == {LinkState.UP})
        world.run(1)
        return world

    yield make
    for world in made:
        world.close()


def bers(world: CardWorld, end: int = 0) -> list[float]:
    return world.ports[end].optics.ber.tolist()


# ---- aiming --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "kind", "target"),
    [
        ("dr8", "dirty_connector_bad", 1e-5),
        ("dr8", "esd_rx", 3e-7),
        ("dr8", "bent_fibre", 2e-4),
        ("oio", "dirty_connector_mild", 1e-13),
        ("single", "ber_creep", 1e-9),
    ],
)
def test_a_fault_is_aimed_at_a_ber_on_each_lane(
    worlds: Worlds, profile: str, kind: str, target: float
) -> None:
    world = worlds(profile)
    name = world.inject(kind, target_ber=target, shape="step")
    info = world.faults[name]
    assert [bers(world)[lane] for lane in info.lanes] == pytest.approx(
        [target] * len(info.lanes), rel=0.02
    )
    assert len(info.lane_scales) == len(info.lanes)


def test_only_the_named_lanes_are_aimed_at(worlds: Worlds) -> None:
    world = worlds()
    before = bers(world)
    world.inject("dirty_connector_bad", lanes=(2, 5), target_ber=1e-6)
    now = bers(world)
    assert [now[2], now[5]] == pytest.approx([1e-6, 1e-6], rel=0.02)
    assert [now[i] for i in (0, 1, 3, 4, 6, 7)] == [before[i] for i in (0, 1, 3, 4, 6, 7)]


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ({"target_ber": 1e-12}, "BAD_FAULT", "never below 1.0e-10"),
        ({"target_ber": 3e-10}, "BAD_FAULT", "already; aim above that"),
        ({"target_ber": 0.3}, "BAD_FAULT", None),
        ({"subject": "card0/oe1", "target_ber": 1e-5}, "BAD_STATE", "none is plugged"),
    ],
)
def test_a_ber_that_loss_cannot_make_is_refused(
    worlds: Worlds, how: dict[str, object], code: str, says: str | None
) -> None:
    world = worlds()
    before = bers(world)
    if says is None:  # Far beyond what a receiver takes for light, yet a BER there is.
        world.inject("dirty_connector_bad", **how)
        return
    with pytest.raises(EngineRefusal) as refused:
        world.inject("dirty_connector_bad", **how)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert says in refused.value.detail
    assert bers(world) == before
    assert world.faults == {}


# ---- adding up and taking away -------------------------------------------------------------------


def test_faults_on_one_lane_add_up_and_go_one_by_one(worlds: Worlds) -> None:
    world = worlds()
    optics = world.ports[0].optics
    healthy = optics.margin_db.copy()
    first = world.inject("dirty_connector_mild", lanes=(1,))
    one = optics.margin_db.copy()
    second = world.inject("esd_rx", lanes=(1,))
    assert optics.margin_db[1] == pytest.approx(healthy[1] - 2.3 - 4.0)
    world.clear(second)
    assert optics.margin_db.tolist() == one.tolist()
    world.clear(first)
    assert optics.margin_db.tolist() == healthy.tolist()


def test_a_fault_ends_by_itself_and_says_so(worlds: Worlds) -> None:
    world = worlds()
    world.inject("laser_fail", lanes=(3,), duration_s=2.0)
    world.run(1.9)
    assert not world.ports[0].optics.transmitter(world.now_ns)[0] >> 3 & 1
    world.run(0.2)
    assert world.faults == {}
    assert [kind for kind, _ in world.events if kind.startswith("FAULT")] == [
        "FAULT_INJECTED", "FAULT_ENDED",
    ]  # fmt: skip
    assert world.run(90, until=lambda: world.states == {LinkState.UP})


def test_a_fault_is_carried_out_before_the_next_frame(worlds: Worlds) -> None:
    world = worlds()
    world.inject("fibre_cut")
    assert not world.ports[0].optics.lit.any()


def test_an_unknown_fault_cannot_be_cleared(worlds: Worlds) -> None:
    world = worlds()
    with pytest.raises(EngineRefusal, match="UNKNOWN_FAULT"):
        world.cards[0].faults.clear("f99", world.now_ns)


def test_no_ber_can_be_aimed_at_in_the_dark(worlds: Worlds) -> None:
    world = worlds()
    world.inject("fibre_cut")
    with pytest.raises(EngineRefusal, match="no light arrives"):
        world.inject("dirty_connector_bad", target_ber=1e-5)


@pytest.mark.parametrize(
    "kind", ["lane_swap_reversal", "fibre_cut", "dirty_connector_mild", "ber_creep"]
)
def test_a_fault_of_a_fibre_needs_one(worlds: Worlds, kind: str) -> None:
    world = worlds()
    with pytest.raises(EngineRefusal) as refused:
        world.inject(kind, "card0/oe1")
    assert refused.value.code == "BAD_STATE"
    assert "none is plugged into card0/oe1; plugged are card0/oe0;" in refused.value.detail
    assert "laser_fail" in refused.value.detail
    assert not world.faults


def test_a_fault_of_the_engine_needs_no_fibre(worlds: Worlds) -> None:
    world = worlds()
    world.inject("laser_fail", "card0/oe1", lanes=(3,))
    assert [info.subject for info in world.faults.values()] == ["card0/oe1"]


# ---- a worker's death ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("dirty_connector_mild", {}),
        ("dirty_connector_bad", {"target_ber": 1e-6}),
        ("polarity_swap", {"lanes": (4,)}),
        ("ber_creep", {"ramp_s": 60.0}),
        ("laser_fail", {"lanes": (2,)}),
    ],
)
def test_a_fault_goes_on_in_the_workers_next_life(
    worlds: Worlds, kind: str, how: dict[str, object]
) -> None:
    world = worlds()
    name = world.inject(kind, **how)
    info = world.faults[name]
    world.run(5)
    world.replace(0)
    assert world.faults == {name: info}
    trained = {LinkState.DEGRADED} if kind == "laser_fail" else {LinkState.UP}
    assert world.run(60, until=lambda: world.states == trained)
    if "target_ber" in how:
        assert bers(world) == pytest.approx([how["target_ber"]] * 8, rel=0.02)
    if kind == "polarity_swap":
        world.cards[0].write_rows()
        rows = world.tables.lane["inverted"][:8].tolist()
        assert rows == [0, 0, 0, 0, 1, 0, 0, 0]
    world.clear(name)
    assert world.run(90, until=lambda: world.states == {LinkState.UP})


def test_a_fault_whose_time_passed_meanwhile_ends_at_once(worlds: Worlds) -> None:
    world = worlds()
    world.inject("fibre_cut", duration_s=0.5)
    world.now_ns += 10**9
    world.replace(0)
    assert world.faults == {}
    assert world.events[-1][0] != "FAULT_INJECTED"


# ---- rows of HBM ---------------------------------------------------------------------------------


def moved(world: CardWorld, name: str, **how: object) -> TransferState:
    world.start(name, SIZE, **how)  # type: ignore[arg-type]
    assert world.run(60, until=lambda: world.ended(name))
    return TransferState(world.info(name).state)


def test_a_bad_row_fails_who_reads_it_and_nobody_else(worlds: Worlds) -> None:
    world = worlds()
    world.store(0, os.urandom(2 * SIZE))
    world.inject("hbm_dbe", "card0", address=SIZE + 5000)
    assert ("HBM_ROW_BAD", "card0") in world.events
    assert moved(world, "beside", at=0) is TransferState.DONE
    assert moved(world, "through", at=SIZE) is TransferState.FAILED
    info = world.info("through")
    assert TransferError(info.error) is TransferError.HBM_ERROR
    assert f"card0 at 0x{SIZE + 4096:x}" in info.error_detail
    assert moved(world, "local", kind=TransferKind.LOCAL, at=SIZE) is TransferState.FAILED
    assert world.states == {LinkState.UP}


def test_a_far_card_that_cannot_read_tells_why(worlds: Worlds) -> None:
    world = worlds()
    world.inject("hbm_dbe", "card1", address=100)
    assert moved(world, "pulled", kind=TransferKind.READ) is TransferState.FAILED
    assert TransferError(world.info("pulled").error) is TransferError.HBM_ERROR


def test_a_reset_puts_a_spare_row_there(worlds: Worlds) -> None:
    world = worlds()
    world.store(0, b"\xa5" * SIZE)
    name = world.inject("hbm_dbe", "card0", address=5000)
    card = world.cards[0]
    card.write_rows()
    row = world.tables.card[0]
    assert (row["ecc_dbe"], row["rows_pending"], row["rows_remapped"]) == (1, 1, 0)
    world.clear(name)
    assert moved(world, "before") is TransferState.FAILED  # cleared is not repaired
    card.reset(world.now_ns)
    card.power_on(world.now_ns)
    card.write_rows()
    assert (row["ecc_dbe"], row["rows_pending"], row["rows_remapped"]) == (1, 0, 1)
    assert ("HBM_ROWS_REMAPPED", "card0") in world.events
    assert world.load(0, ROW_BYTES, 4096) == bytes(ROW_BYTES)  # its content is lost
    assert world.load(0, 1, 4095) == b"\xa5"
    assert world.run(60, until=lambda: world.states == {LinkState.UP})
    assert moved(world, "after") is TransferState.DONE


def test_a_bank_without_spare_rows_keeps_the_bad_one(worlds: Worlds) -> None:
    world = worlds()
    world.inject("hbm_remap_exhausted", "card0", address=0)
    card = world.cards[0]
    card.reset(world.now_ns)
    card.power_on(world.now_ns)
    card.write_rows()
    row = world.tables.card[0]
    assert (row["rows_remapped"], row["remap_failed"]) == (SPARE_ROWS, 1)
    assert card.ecc.count(RowState.FAILED) == 1


def test_bad_rows_outlive_the_worker(worlds: Worlds) -> None:
    world = worlds()
    world.inject("hbm_dbe", "card0", address=5000)
    world.cards[0].write_rows()
    rows = dict(world.cards[0].ecc.rows)
    world.replace(0)
    assert world.cards[0].ecc.rows == rows == {4: RowState.PENDING}
    assert world.run(60, until=lambda: world.states == {LinkState.UP})
    assert moved(world, "later") is TransferState.FAILED


def test_without_an_address_the_row_lies_where_something_is_stored(worlds: Worlds) -> None:
    world = worlds()
    world.inject("hbm_dbe", "card0")
    (row,) = world.cards[0].ecc.rows
    assert 0 <= row * ROW_BYTES < 16 << 20  # the window


def test_corrected_errors_are_counted_at_their_rate(worlds: Worlds) -> None:
    world = worlds()
    world.inject("hbm_sbe_rate", "card0", scale=1000.0)
    world.run(20)
    world.cards[0].write_rows()
    assert world.tables.card[0]["ecc_sbe"] == pytest.approx(1000, rel=0.15)
    assert world.tables.card[1]["ecc_sbe"] <= 1
    assert world.tables.card[0]["ecc_dbe"] == 0


def test_a_healthy_card_has_a_few_corrected_errors_a_day() -> None:
    ecc = Ecc("card0", 80 << 30, 5, seed=3)
    ecc.advance(0, 0.0, 0.0)
    for hour in range(1, 24 * 100 + 1):
        assert ecc.advance(hour * 3600 * 10**9, 0.0, 0.0) == 0
    assert ecc.sbe / 100 == pytest.approx(2.0, abs=0.6)


def test_the_ninth_bad_row_of_a_bank_is_one_too_many() -> None:
    ecc = Ecc("card0", 80 << 30, 5, seed=3)
    rows = ecc.bank_rows(1234, SPARE_ROWS + 1)
    assert len({ecc.bank_of(row) for row in rows}) == 1
    states = [ecc.strike(row) for row in rows]
    assert states == [RowState.PENDING] * SPARE_ROWS + [RowState.FAILED]
    assert ecc.strike(rows[0]) is RowState.PENDING  # hit again before the reset
    ecc.reset()
    assert ecc.strike(rows[0]) is RowState.FAILED  # the spare row, too
    assert ecc.dbe == SPARE_ROWS + 3


def test_rows_are_drawn_from_what_is_stored() -> None:
    ecc = Ecc("card0", 80 << 30, 5, seed=3)
    windows = [MemoryWindow(1, 1, 1 << 30, 1 << 20), MemoryWindow(2, 1, 5 << 30, 4096)]
    for row in ecc.draw_rows(20, windows):
        address = row * ROW_BYTES
        assert any(w.base <= address < w.base + w.length for w in windows)
