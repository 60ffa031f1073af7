"""How many bits prove a BER."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.confidence import ENOUGH, confidence
from accelhw.link.events import LaneQuality
from accelhw.link.moves import Phase
from accelhw.link.receiver import Receiver
from accelhw.model.link import DownReason
from accelhw.sim.linkpair import LinkPair

VECTORS = Path(__file__).parents[1] / "vectors" / "ber_confidence.json"


def test_three_over_the_limit_without_an_error_is_enough() -> None:
    assert confidence(3.0e12, 0, 1e-12) == pytest.approx(0.9502, abs=1e-4)
    assert confidence(2.9e12, 0, 1e-12) < ENOUGH


@given(st.floats(0.1, 5000.0), st.integers(0, 6000))
def test_more_bits_make_surer_and_more_errors_less_sure(expected: float, errors: int) -> None:
    limit = 1e-6
    bits = expected / limit
    sure = confidence(bits, errors, limit)
    assert 0.0 <= sure <= 1.0
    assert confidence(bits * 1.1, errors, limit) >= sure - 1e-3
    assert confidence(bits, errors + 1, limit) <= sure + 1e-3


def test_both_laws_meet_where_one_takes_over() -> None:
    for errors in (340, 380, 400):
        below, above = (confidence(n, errors, 1.0) for n in (399.9, 400.1))
        assert below == pytest.approx(above, abs=0.01)


def test_a_lane_near_the_limit_takes_longer_to_prove_than_a_clean_one() -> None:
    receiver = Receiver("none", 32.0)
    receiver.measure(LaneQuality((2.0, 2.0, 2.0), (1e-18, 8e-9, 2e-8)))
    assert receiver.proved(5_000_000) == 0b000
    assert receiver.proved(10_000_000) == 0b001  # 3.2e8 bits
    assert receiver.proved(900_000_000) == 0b011


def test_margin_and_not_waiting_qualifies_a_link_without_fec() -> None:
    receiver = Receiver("none", 32.0)
    receiver.measure(LaneQuality((0.9, 1.1), (1e-15, 1e-15)))
    assert receiver.proved(10**12) == 0b10


class Marginal(LinkPair):
    """Lane 1 of `a` is just under the limit."""

    ber = 9.9e-9

    def feed(self, name: str, event: object) -> None:
        if name == "a" and isinstance(event, LaneQuality):
            ber = list(event.ber)
            ber[1] = self.ber
            event = LaneQuality(event.margin_db, tuple(ber))
        super().feed(name, event)  # type: ignore[arg-type]


def test_what_cannot_be_proved_in_time_is_left_out_with_its_figures() -> None:
    pair = Marginal()
    pair.enable()
    assert pair.run_until(lambda: pair.a.trainer.phase is Phase.BER_CHECK, 5)
    entered = pair.now_ns
    assert pair.run_until(pair.both_agree, 10)
    assert pair.now_ns - entered >= 2e9
    reason = pair.a.trainer.reason
    assert (reason.code, reason.lane) == (DownReason.BER_TOO_HIGH, 1)
    assert "9.9e-09" in reason.detail
    assert "% sure" in reason.detail


@pytest.mark.parametrize("row", json.loads(VECTORS.read_text())["rows"])
def test_figures_agree_with_the_published_dwell(row: dict[str, float]) -> None:
    sure = confidence(row["bits_needed"], row["errors_allowed"], row["ber_target_ratio"])
    assert sure == pytest.approx(row["confidence_ratio"], abs=1e-9)
