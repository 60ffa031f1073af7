"""An engine's figures follow from its light, and the errors in frames from the figures."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.device.engine import CARRIER_TIMEOUT_NS, OpticalEngine
from accelhw.interface.tables import CARD, FLAG, LANE, PORT
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS
from accelhw.model.link import LinkState, PeerId, Reason
from accelhw.model.profile import Profile, load_profile
from accelhw.optics import fec
from accelhw.optics.strikes import STRIPE_BITS
from accelhw.sim.linkpair import straight_fibre

SECOND = 1_000_000_000
A, B = PeerId("a" * 16, "card0", 0), PeerId("b" * 16, "card1", 0)


def narrow(name: str = "oio", lanes: int = 4, **changes: object) -> Profile:
    profile = load_profile(name)
    lane = msgspec.structs.replace(profile.lane, **changes)
    return msgspec.structs.replace(profile, lanes_per_oe=lanes, lane=lane)


class Facing:
    """An engine that hears another one."""

    def __init__(self, profile: Profile, seed: int = 1, length_m: float = 10.0) -> None:
        fibre = straight_fibre(length_m)
        self.now = SECOND
        self.far = OpticalEngine(profile, fibre, A, seed)
        self.near = OpticalEngine(profile, fibre, B, seed)
        self.far.set_transmit(True, self.now)
        self.hear()

    def hear(self) -> bool:
        self.now += 1
        message = self.far.carrier(self.now, 1, LinkState.SEEKING, Reason())
        return self.near.hear_carrier(message, self.now)

    def lose(self, lane: int, loss_db: float) -> None:
        self.near.path_extra_db[lane] = loss_db
        self.near.light_moved(self.now)

    def run(self, seconds: float, beat: float = 0.5) -> None:
        for _ in range(round(seconds / beat)):
            self.now += round(beat * SECOND)
            self.hear()
            self.near.advance(self.now)

    def use(self, lanes: int) -> None:
        self.near.set_lanes(lanes, tuple(range(self.near.lanes)), 0)


def test_received_power_is_launched_power_minus_loss() -> None:
    facing = Facing(narrow())
    loss = straight_fibre().loss_db
    assert facing.near.rx_dbm == pytest.approx(facing.far.launch_dbm - loss)
    facing.lose(2, 3.0)
    assert facing.near.rx_dbm[2] == pytest.approx(facing.far.launch_dbm[2] - loss - 3.0)


@given(st.floats(0, 30), st.floats(0.1, 5))
@settings(max_examples=40, deadline=None)
def test_more_loss_is_never_better(loss: float, more: float) -> None:
    facing = Facing(narrow())
    facing.lose(0, loss)
    before = facing.near.rx_dbm[0], facing.near.margin_db[0], -facing.near.ber[0]
    facing.lose(0, loss + more)
    after = facing.near.rx_dbm[0], facing.near.margin_db[0], -facing.near.ber[0]
    assert all(b <= a for a, b in zip(before, after, strict=True))


def test_parts_differ_by_card_and_seed_and_stay_themselves() -> None:
    make = lambda me, seed: OpticalEngine(narrow(lanes=16), None, me, seed).launch_dbm  # noqa: E731
    again = PeerId("f" * 16, A.card, A.oe)  # another power-on of the same card
    assert np.array_equal(make(A, 1), make(again, 1))
    assert not np.array_equal(make(A, 1), make(B, 1))
    assert not np.array_equal(make(A, 1), make(A, 2))
    assert 0.2 < np.std(make(A, 1)) < 1.0


def test_lasers_off_is_dark_at_both_ends() -> None:
    facing = Facing(narrow())
    assert facing.near.light(facing.now) == (0b1111, 0b1111)
    facing.far.set_transmit(False, facing.now)
    assert facing.hear()
    assert facing.near.light(facing.now) == (0, 0)
    assert facing.far.tx_dbm.tolist() == [-40.0] * 4
    assert facing.far.bias_ma.tolist() == [0.0] * 4
    assert facing.near.rx_dbm.tolist() == [-40.0] * 4
    assert facing.near.los_count.tolist() == [1] * 4


def test_silence_is_darkness_after_a_while_and_frames_prove_light() -> None:
    facing = Facing(narrow())
    heard = facing.now
    assert facing.near.dark_deadline_ns() == heard + CARRIER_TIMEOUT_NS
    facing.near.heard(heard + SECOND)
    assert facing.near.light(heard + CARRIER_TIMEOUT_NS) == (0b1111, 0b1111)
    assert facing.near.light(heard + SECOND + CARRIER_TIMEOUT_NS) == (0, 0)
    facing.now += 3 * SECOND
    assert facing.hear()
    assert facing.near.light(facing.now) == (0b1111, 0b1111)


def test_on_a_machine_that_is_too_busy_silence_means_less() -> None:
    facing = Facing(narrow())
    facing.near.bank.late_ns = 2 * SECOND
    facing.near.light_moved(facing.now)
    silent = facing.now + CARRIER_TIMEOUT_NS
    assert facing.near.light(silent + 5 * SECOND) == (0b1111, 0b1111)
    assert facing.near.light(silent + 6 * SECOND) == (0, 0)


def test_a_carrier_that_was_overtaken_is_ignored() -> None:
    facing = Facing(narrow())
    old = facing.far.carrier(facing.now, 1, LinkState.SEEKING, Reason())
    facing.far.set_transmit(False, facing.now)
    facing.hear()
    assert not facing.near.hear_carrier(old, facing.now)
    assert facing.near.light(facing.now) == (0, 0)


def test_loss_of_signal_has_hysteresis() -> None:
    facing = Facing(narrow())
    lane = facing.near.profile.lane
    arriving = float(facing.near.rx_dbm[0])
    between = (lane.los_assert_dbm + lane.los_deassert_dbm) / 2
    for level, lit in ((between, True), (lane.los_assert_dbm - 0.1, False), (between, False),
                       (lane.los_deassert_dbm + 0.1, True), (between, True)):  # fmt: skip
        facing.lose(0, arriving - level)
        assert facing.near.lit[0] == lit, level
    assert facing.near.los_count.tolist() == [1, 0, 0, 0]


def test_light_too_weak_for_the_clock_is_loss_of_lock_without_loss_of_signal() -> None:
    facing = Facing(narrow())
    facing.lose(1, float(facing.near.rx_dbm[1]) + 14.95)
    assert facing.near.light(facing.now) == (0b1111, 0b1101)
    assert facing.near.lol_count.tolist() == [0, 1, 0, 0]
    assert facing.near.los_count.sum() == 0


def test_idle_links_count_bits_at_line_rate_and_dark_ones_stop() -> None:
    facing = Facing(narrow())
    facing.near.advance(facing.now)
    start = facing.near.rx_bits.copy()
    facing.run(10)
    assert facing.near.rx_bits - start == pytest.approx(np.full(4, 32e9 * 10), rel=1e-6)
    facing.near.go_dark(facing.now)
    stopped = facing.near.rx_bits.copy()
    facing.now += 10 * SECOND
    facing.near.advance(facing.now)
    assert np.array_equal(facing.near.rx_bits, stopped)


@pytest.mark.parametrize("margin_ber", [1e-11, 3e-10, 1e-6])
def test_errors_come_as_often_as_the_ber_says(margin_ber: float) -> None:
    facing = Facing(narrow(lanes=16, ber_floor=margin_ber))
    facing.near.advance(facing.now)
    bits, errors = facing.near.rx_bits.copy(), facing.near.errors.copy()
    facing.run(200)
    expected = (facing.near.rx_bits - bits) * facing.near.ber
    drawn = (facing.near.errors - errors).astype(float)
    # chi-square of 16 Poisson counts: mean 16, sigma 5.7
    assert float(((drawn - expected) ** 2 / expected).sum()) < 16 + 4 * 5.7


def test_one_lanes_trouble_moves_no_other_lanes_dice() -> None:
    counts = []
    for loss in (0.0, 8.0):
        facing = Facing(narrow(ber_floor=1e-10))
        facing.lose(0, loss)
        facing.run(30)
        counts.append(facing.near.errors.tolist())
    assert counts[0][1:] == counts[1][1:]
    assert counts[0][0] < counts[1][0]


def test_rows_show_the_light_and_a_later_life_goes_on_counting() -> None:
    facing = Facing(narrow())
    facing.use(0b0011)
    facing.lose(3, 40.0)
    facing.run(3)
    rows = np.zeros(6, LANE)
    facing.near.write_rows(rows[1:5])
    assert rows["rx_power_dbm"][1:4] == pytest.approx(facing.near.rx_dbm[:3], abs=0.6)
    assert not np.array_equal(rows["rx_power_dbm"][1:4], facing.near.rx_dbm[:3])  # a monitor errs
    assert rows["rx_power_dbm"][4] == -40.0
    assert rows["los"].tolist() == [0, 0, 0, 0, 1, 0]
    assert rows["used"].tolist() == [0, 1, 1, 0, 0, 0]
    assert rows["fitted_margin"].tolist() == [0, 1, 1, 1, 0, 0]
    assert rows["peer_lane"].tolist() == [0, 0, 1, 2, 3, 0]
    assert np.isfinite(rows["margin_db"]).all()
    assert rows[0] == rows[5] == np.zeros((), LANE)
    later = OpticalEngine(facing.near.profile, None, B, 1)
    later.resume(rows[1:5])
    for name in ("rx_bits", "errors", "los_count", "lol_count"):
        assert np.array_equal(getattr(later, name), getattr(facing.near, name))


def test_fec_flags_and_heat_reach_the_tables_and_outlive_a_life() -> None:
    facing = Facing(narrow("dr8", lanes=8, ber_floor=2e-5))
    facing.use(0xFF)
    facing.lose(3, 40.0)
    facing.lose(3, 0.0)
    facing.run(3)
    near = facing.near
    row, rows, flags = np.zeros((), PORT), np.zeros(8, LANE), np.zeros((8, len(LANE_FLAGS)), FLAG)
    near.write_rows(rows)
    near.write_port(row)
    near.write_flags(flags)
    assert row["fec_t"] == 15
    assert row["fec_codewords"] == row["fec_bins"].sum() + row["fec_uncorrectable"] > 1e8
    assert row["fec_corrected_symbols"] == row["fec_bins"] @ np.arange(16)
    assert rows["pre_fec_errors"].sum() >= row["fec_corrected_bits"] > 0
    assert rows["fec_corrected_symbols"].sum() == row["fec_corrected_symbols"] > 0
    assert flags["latched"][3, LANE_FLAGS.index("los")] == 1
    assert flags["active"][3, LANE_FLAGS.index("los")] == 0
    assert np.isfinite(rows["laser_temp_c"]).all()
    assert np.isnan(rows["heater_mw"]).all()  # no rings in it
    assert (rows["snr_db"] > 15).all()
    later = OpticalEngine(near.profile, None, B, 1)
    later.resume(rows, row, flags)
    again, flags_again = np.zeros((), PORT), np.zeros_like(flags)
    lanes_again = np.zeros(8, LANE)
    later.write_rows(lanes_again)
    assert np.array_equal(lanes_again["fec_corrected_symbols"], rows["fec_corrected_symbols"])
    later.write_port(again)
    later.bank.flags.stored_stale[:] = True
    later.write_flags(flags_again)
    assert again == row
    assert np.array_equal(flags_again, flags)
    card, card_flags = np.zeros((), CARD), np.zeros(len(CARD_FLAGS), FLAG)
    near.bank.write_card(near.card, card, card_flags)
    assert 35 < card["case_temp_c"] < 60
    assert (card["hbm_refresh_ratio"], card["hbm_throttled"]) == (1, 0)


def test_codewords_that_frames_met_are_counted_once() -> None:
    facing = Facing(narrow("dr8", lanes=8, ber_floor=8e-4))
    facing.use(0xFF)
    facing.near.advance(facing.now)
    counters = facing.near.bank.counters
    hit = sum(bool(facing.near.frames.strike(9216)) for _ in range(40_000))
    assert hit > 1
    before = int(counters.uncorrectable[0])
    facing.now += 1000  # no time for others
    facing.near.advance(facing.now)
    assert int(counters.uncorrectable[0]) - before >= hit
    assert counters.codewords[0] == counters.bins[0].sum() + counters.uncorrectable[0]


def test_faults_are_causes_by_name_and_all_at_once() -> None:
    facing = Facing(narrow())
    near, far = facing.near, facing.far
    assert near.afflict({"rx_path_loss_db": [0, 0, 2.0, 0]}, {"ambient_rise_c": 5.0}, facing.now)
    assert far.launch_dbm[2] - near.rx_dbm[2] == pytest.approx(straight_fibre().loss_db + 2.0)
    assert near.causes.ambient_rise_c.tolist() == [5.0]
    assert near.afflict({"tx_path_loss_db": [0, 3.0, 0, 0]}, {}, facing.now)  # the other is healed
    assert far.launch_dbm[2] - near.rx_dbm[2] == pytest.approx(straight_fibre().loss_db)
    assert near.causes.ambient_rise_c.tolist() == [0.0]
    assert far.afflict({"tx_path_loss_db": [0, 3.0, 0, 0]}, {}, facing.now)  # what leaves changed
    assert not far.afflict({"tx_path_loss_db": [0, 3.0, 0, 0]}, {}, facing.now)
    assert facing.hear()
    assert far.launch_dbm[1] - near.rx_dbm[1] == pytest.approx(straight_fibre().loss_db + 3.0)


def test_fec_that_loses_its_lock_says_when_and_that_it_did() -> None:
    facing = Facing(narrow("dr8", lanes=8))
    facing.use(0xFF)
    assert facing.near.lock_deadline_ns() is None
    facing.near.causes.rx_penalty_db[:] = facing.near.margin_db + 1.5  # locked, and beyond KP4
    facing.near.causes.rx_penalty_db[5] += 0.3
    facing.near.light_moved(facing.now)
    due = facing.near.lock_deadline_ns()
    assert due is not None
    assert due - facing.now < SECOND
    assert not facing.near.lost_lock(facing.now)
    assert facing.near.lost_lock(due + 1)
    assert not facing.near.lost_lock(due + 1)
    assert facing.near.worst_lane() == 5


# ---- strikes: errors in frames that really cross ----------------------------------------------


def test_a_clean_link_never_strikes() -> None:
    facing = Facing(narrow())
    facing.use(0b1111)
    assert not any(facing.near.frames.strike(65_000) for _ in range(10_000))


def test_a_link_without_lanes_never_strikes() -> None:
    facing = Facing(narrow(ber_floor=0.1))
    assert not any(facing.near.frames.strike(65_000) for _ in range(100))


@pytest.mark.parametrize("nbytes", [9000, 64])
def test_without_fec_bits_flip_as_often_as_the_ber_says(nbytes: int) -> None:
    ber = 2e-5
    facing = Facing(narrow(ber_floor=ber))
    facing.use(0b1111)
    frames = 4_000_000 // nbytes
    flips = 0
    for _ in range(frames):
        struck = facing.near.frames.strike(nbytes)
        assert all(0 <= bit < nbytes * 8 for bit in struck)
        assert list(struck) == sorted(set(struck))
        flips += len(struck)
    expected = frames * nbytes * 8 * ber
    assert abs(flips - expected) < 5 * math.sqrt(expected)
    assert int(facing.near.errors.sum()) == flips


def test_frames_are_lost_as_often_as_the_formula_says() -> None:
    ber, nbytes, frames = 1e-6, 9216, 20_000
    facing = Facing(narrow(ber_floor=ber))
    facing.use(0b1111)
    lost = sum(bool(facing.near.frames.strike(nbytes + fec.PREAMBLE_BYTES)) for _ in range(frames))
    expected = float(fec.frame_loss_without_fec(ber, nbytes)) * frames
    assert abs(lost - expected) < 5 * math.sqrt(expected)


def test_a_bad_lane_gets_its_errors_and_only_on_the_bits_it_carries() -> None:
    facing = Facing(narrow())
    facing.use(0b1101)  # lanes 0, 2, 3 in turn
    loss = float(facing.near.margin_db[2]) + 4.0
    facing.lose(2, loss)
    struck = [bit for _ in range(300) for bit in facing.near.frames.strike(9000)]
    assert len(struck) > 100
    assert {bit // STRIPE_BITS % 3 for bit in struck} == {1}
    assert facing.near.errors.tolist() == [0, 0, len(struck), 0]


def test_flips_are_not_counted_twice() -> None:
    ber = 1e-6
    facing = Facing(narrow(ber_floor=ber))
    facing.use(0b1111)
    facing.near.advance(facing.now)
    facing.near.errors[:] = 0
    bits = facing.near.rx_bits.copy()
    per_beat = int(32e9 * 4 / 8 * 0.001 * 0.9)  # frames fill nine tenths of the lanes
    for _ in range(200):
        sent = 0
        while sent < per_beat:
            facing.near.frames.strike(60_000)
            sent += 60_000
        facing.now += SECOND // 1000
        facing.near.advance(facing.now)
    expected = float(((facing.near.rx_bits - bits) * facing.near.ber).sum())
    assert abs(int(facing.near.errors.sum()) - expected) < 5 * math.sqrt(expected)


def test_with_fec_only_lost_codewords_show_and_they_show_many_bits() -> None:
    facing = Facing(narrow("dr8", lanes=8, ber_floor=2e-3))
    facing.use(0xFF)
    lost = fec.uncorrectable(facing.near.ber.tolist(), fec.KP4)
    assert 0.05 < lost < 0.2
    nbytes = fec.KP4.payload_bits * 4 // 8  # four codewords
    hit = Counter()
    frames = 3000
    for _ in range(frames):
        words = Counter(bit // fec.KP4.payload_bits for bit in facing.near.frames.strike(nbytes))
        assert all(count >= 2 for count in words.values())
        hit.update(words.keys())
    # Two words of interleave and four of length; a word may be struck twice.
    expected = frames * fec.codewords_touched(nbytes, 2) * -math.log1p(-lost)
    assert abs(sum(hit.values()) - expected) < 0.1 * expected
    assert set(hit) == {0, 1, 2, 3}


def test_a_codeword_that_can_be_corrected_reaches_no_frame() -> None:
    facing = Facing(narrow("dr8", lanes=8, ber_floor=1e-5))
    facing.use(0xFF)
    assert not any(facing.near.frames.strike(65_000) for _ in range(5000))


@given(st.integers(1, 300), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_strikes_stay_inside_any_frame(nbytes: int, which: int) -> None:
    profile = (
        narrow(ber_floor=3e-3),
        narrow(lanes=1, ber_floor=3e-3),
        narrow("dr8", ber_floor=9e-3),
        narrow("single", lanes=1, ber_floor=5e-3),
    )[which]
    facing = Facing(profile)
    facing.use((1 << profile.lanes_per_oe) - 1)
    for _ in range(50):
        struck = facing.near.frames.strike(nbytes)
        assert all(0 <= bit < nbytes * 8 for bit in struck)
