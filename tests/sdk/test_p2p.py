"""Figures of pairs of cards, from rounds and links alone."""

from __future__ import annotations

import pytest

from accel.p2p import Measured, Pair, Round, pairs
from accel.v1 import link_pb2


def link(here: str, peer: str, state: int = link_pb2.LINK_STATE_UP) -> link_pb2.Link:
    def name(port: str) -> str:
        card, oe = port.split("/")
        return f"cards/{card}/links/{oe}"

    return link_pb2.Link(name=name(here), peer=name(peer) if peer else "", state=state)


def test_links_that_carry_data_are_counted_in_their_direction() -> None:
    links = [
        link("card0/oe0", "card1/oe0"),
        link("card0/oe1", "card1/oe1", link_pb2.LINK_STATE_DEGRADED),
        link("card0/oe2", "card1/oe2", link_pb2.LINK_STATE_TRAINING),
        link("card0/oe3", ""),
        link("card1/oe0", "card0/oe0"),
    ]
    assert pairs(["card0", "card1", "card2"], links) == [
        Pair("card0", "card1", 2), Pair("card0", "card2", 0),
        Pair("card1", "card0", 1), Pair("card1", "card2", 0),
        Pair("card2", "card0", 0), Pair("card2", "card1", 0),
    ]  # fmt: skip


def rounds(*walls_us: float) -> list[Round]:
    return [Round(wall_us, 2 * wall_us, 10.0, 1) for wall_us in walls_us]


def test_the_bandwidth_is_that_of_the_median_round() -> None:
    one = Measured(Pair("a", "b", 1), 1_000_000, False, rounds(1000, 500, 2000))
    assert one.wall_gbyte_per_s == pytest.approx(1.0)
    assert one.modelled_gbyte_per_s == pytest.approx(100.0)
    row = one.plain()
    assert (row["wall_gbyte_per_s_min"], row["wall_gbyte_per_s_max"]) == (0.5, 2.0)
    assert row["replayed_frames_total"] == 3


def test_the_tail_of_the_latency_is_seen() -> None:
    one = Measured(Pair("a", "b", 1), 4096, False, rounds(*[100.0] * 98, 900.0, 1000.0))
    assert one.latency_us(50) == 100
    assert one.latency_us(99) == pytest.approx(901)
    assert one.call_us(99) == pytest.approx(1802)


def test_both_directions_count_the_bytes_of_both() -> None:
    one = Measured(Pair("a", "b", 1), 1_000_000, True, rounds(1000))
    assert one.wall_gbyte_per_s == pytest.approx(2.0)
