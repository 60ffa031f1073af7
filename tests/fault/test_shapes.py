"""How faults come and go over time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelhw.fault.shapes import STANDARD, BadShape, Shape, ShapeKind, shaped

FLAP = Shape(ShapeKind.ON_OFF, on_s=2.0, off_s=120.0)
STRIKES = Shape(ShapeKind.POISSON, on_s=0.03, off_s=1800.0)
SHAPES = [*STANDARD.values(), FLAP, STRIKES]
times = st.floats(0.0, 1e6, allow_nan=False)


def test_a_step_is_there_at_once_and_stays() -> None:
    assert [Shape().strength(t) for t in (-0.1, 0.0, 1e9)] == [0.0, 1.0, 1.0]


def test_a_ramp_grows_evenly_to_its_end() -> None:
    ramp = Shape(ShapeKind.RAMP, rise_s=10.0)
    assert [ramp.strength(t) for t in (0.0, 2.5, 10.0, 99.0)] == [0.0, 0.25, 1.0, 1.0]
    assert ramp.next_change_s(10.0) == math.inf


def test_an_exponential_has_63_percent_after_its_time_constant() -> None:
    assert Shape(ShapeKind.EXP, rise_s=45.0).strength(45.0) == pytest.approx(1 - 1 / math.e)


def test_a_pulse_is_past_when_it_is_over() -> None:
    pulse = Shape(ShapeKind.PULSE, on_s=8.0)
    assert (pulse.strength(7.9), pulse.is_past(7.9)) == (1.0, False)
    assert (pulse.strength(8.0), pulse.is_past(8.0)) == (0.0, True)


def test_a_burst_comes_like_a_clock() -> None:
    burst = Shape(ShapeKind.BURST, on_s=1.0, off_s=3.0)
    assert [burst.strength(t) for t in (0.0, 0.5, 1.0, 3.9, 4.0, 5.5)] == [1, 1, 0, 0, 1, 0]


def test_no_edge_of_a_burst_is_missed_for_a_rounding_error() -> None:
    burst = STANDARD[ShapeKind.BURST]
    at, seen = 0.0, []
    for _ in range(2000):
        seen.append(burst.strength(at))
        at = burst.next_change_s(at)
    assert seen == [1.0, 0.0] * 1000
    assert at == pytest.approx(1000.0)


@pytest.mark.parametrize("shape", [FLAP, STRIKES], ids=lambda s: s.kind)
def test_what_comes_at_random_keeps_its_averages(shape: Shape) -> None:
    at = there_s = 0.0
    comes = 0
    while comes < 4000:
        after = shape.next_change_s(at, seed=7)
        if shape.strength(at, seed=7):
            there_s += after - at
            comes += 1
        at = after
    spread = 4 / math.sqrt(comes)
    assert there_s / comes == pytest.approx(shape.on_s, rel=spread)
    assert (at - there_s) / comes == pytest.approx(shape.off_s, rel=spread)


@pytest.mark.parametrize("shape", [FLAP, STRIKES], ids=lambda s: s.kind)
def test_what_comes_at_random_is_there_when_it_is_injected(shape: Shape) -> None:
    assert all(shape.strength(0.0, seed) == 1.0 for seed in range(20))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.kind)
@settings(max_examples=30, deadline=None)
@given(elapsed_s=times, seed=st.integers(0, 3))
def test_the_order_of_asking_changes_nothing(shape: Shape, elapsed_s: float, seed: int) -> None:
    late = shape.strength(elapsed_s, seed)
    shape.strength(2e6, seed)
    assert shape.strength(elapsed_s, seed) == late
    assert 0.0 <= late <= 1.0


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.kind)
@settings(max_examples=30, deadline=None)
@given(elapsed_s=times)
def test_between_two_changes_the_strength_hardly_moves(shape: Shape, elapsed_s: float) -> None:
    after = shape.next_change_s(elapsed_s)
    assert after > elapsed_s
    if after - elapsed_s < 1e-6:
        return  # no time between them to look at
    middle = elapsed_s + (min(after, 2 * elapsed_s + 1) - elapsed_s) / 2
    assert shape.strength(middle) == pytest.approx(shape.strength(elapsed_s), abs=0.02)


def test_another_seed_is_another_story() -> None:
    assert FLAP.next_change_s(0.0, 1) != FLAP.next_change_s(0.0, 2)


def test_a_kind_keeps_its_own_times_when_its_shape_is_named() -> None:
    assert shaped(FLAP, "on_off") == FLAP
    assert shaped(FLAP) == FLAP
    assert shaped(FLAP, "step") == Shape()


def test_a_ramp_can_be_asked_for_by_its_length_alone() -> None:
    assert shaped(Shape(), ramp_s=30.0) == Shape(ShapeKind.RAMP, rise_s=30.0)
    assert shaped(Shape(ShapeKind.EXP, rise_s=45.0), ramp_s=5.0).rise_s == 5.0


@pytest.mark.parametrize(
    ("name", "ramp_s", "says"),
    [
        ("ramps", 0.0, "use one of step, ramp"),
        ("burst", 3.0, "has no ramp"),
        ("ramp", -1.0, "above 0"),
        ("ramp", math.inf, "above 0"),
        ("ramp", math.nan, "above 0"),
    ],
)
def test_a_bad_shape_is_named(name: str, ramp_s: float, says: str) -> None:
    with pytest.raises(BadShape, match=says):
        shaped(Shape(), name, ramp_s)


def test_a_shape_needs_its_times() -> None:
    with pytest.raises(BadShape, match="on_s"):
        Shape(ShapeKind.PULSE)
