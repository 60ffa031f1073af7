"""`accelctl bench p2p`: every pair measured, and nothing left behind however it ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from accel.v1 import card_pb2, link_pb2

from .conftest import Accelctl
from .fake_state import State

pytestmark = pytest.mark.usefixtures("daemon")

QUICK = ("bench", "p2p", "--sizes", "4K,1M", "--repeat", "1")


def measured(accelctl: Accelctl, *more: str) -> list[dict[str, Any]]:
    outcome = accelctl(*QUICK, *more, "-o", "json")
    assert (outcome.code, outcome.err) == (0, "")
    rows: list[dict[str, Any]] = json.loads(outcome.out)
    return rows


def regions_left(state: State) -> list[str]:
    return [name for name in state.regions if "/regions/p2p-" in name]


def test_each_pair_and_size_has_a_row_with_figures_of_the_hardware(
    accelctl: Accelctl, state: State
) -> None:
    rows = measured(accelctl)
    assert [(row["source_card"], row["target_card"], row["size_bytes"]) for row in rows] == [
        ("card0", "card1", 4096), ("card0", "card1", 1 << 20),
        ("card1", "card0", 4096), ("card1", "card0", 1 << 20),
    ]  # fmt: skip
    large = rows[1]
    assert large["wall_gbyte_per_s"] == pytest.approx(2.097152)  # the fake needs 0.5 ms for all
    assert large["latency_us_p50"] == large["latency_us_p99"] == 500
    assert large["modelled_gbyte_per_s"] == pytest.approx((1 << 20) / 21.4 / 1e3, rel=1e-5)
    assert large["call_us_p50"] > 0
    assert [row["rounds"] for row in rows] == [20, 1, 20, 1]
    assert regions_left(state) == []


def test_both_directions_at_once_are_one_measurement_of_both_their_bytes(
    accelctl: Accelctl, state: State
) -> None:
    (_, large) = measured(accelctl, "--bidirectional")
    assert (large["source_card"], large["target_card"]) == ("card0", "card1")
    # From the fake's first start to its last end it is a second, whatever its 0.5 ms say.
    assert large["wall_gbyte_per_s"] == pytest.approx(2 * (1 << 20) / 1e9, rel=1e-5)
    ways = {(t.source.region.split("/")[1], t.target.region.split("/")[1])
            for t in state.transfers[:2]}  # fmt: skip
    assert ways == {("card0", "card1"), ("card1", "card0")}
    assert regions_left(state) == []


def test_cards_without_a_link_between_them_are_shown_without_figures(
    accelctl: Accelctl, terminal: Accelctl, state: State
) -> None:
    state.cards.append(card_pb2.Card(name="cards/card2"))
    lone = [row for row in measured(accelctl) if "card2" in row["name"]]
    assert len(lone) == 4
    assert all(row["links_up_count"] == 0 and "wall_gbyte_per_s" not in row for row in lone)
    grid = terminal(*QUICK).out.split("GB/s here")[1].splitlines()
    assert [line.split() for line in grid[1:5]] == [
        ["card0", "card1", "card2"],
        ["card0", ".", "2.10", "-"],
        ["card1", "2.10", ".", "-"],
        ["card2", "-", "-", "."],
    ]


def test_wide_names_every_pair_and_size(accelctl: Accelctl) -> None:
    rows = accelctl(*QUICK, "-o", "wide").out.split("FROM")[1].splitlines()[1:]
    assert [line.split()[:4] for line in rows] == [
        ["card0", "card1", "4", "KiB"], ["card0", "card1", "1", "MiB"],
        ["card1", "card0", "4", "KiB"], ["card1", "card0", "1", "MiB"],
    ]  # fmt: skip


def test_lines_of_json_come_as_they_are_measured(accelctl: Accelctl) -> None:
    lines = [json.loads(line) for line in accelctl(*QUICK, "-o", "jsonl").out.splitlines()]
    assert [line["name"] for line in lines] == 2 * ["card0-card1"] + 2 * ["card1-card0"]


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def hang_and_interrupt(state: State) -> None:
    state.transfer_end = "HANG"
    state.on_answer["CreateTransfer"] = interrupt


def interrupt_the_second_allocation(state: State) -> None:
    answers = iter((int, interrupt))
    state.on_answer["CreateRegion"] = lambda: next(answers)()


def refuse_transfers(state: State) -> None:
    state.refuse["CreateTransfer"] = ("FAILED_PRECONDITION", "CARD_LOST", "card1 fell off the bus")


def let_transfers_fail(state: State) -> None:
    state.transfer_end = "FAILED"


def be_busy(state: State) -> None:
    state.busy_answers = 2


@pytest.mark.parametrize(
    ("trouble", "code", "says"),
    [
        (hang_and_interrupt, 130, "interrupted; what it had allocated is freed again"),
        (interrupt_the_second_allocation, 130, "interrupted"),
        (refuse_transfers, 6, "card1 fell off the bus"),
        (let_transfers_fail, 7, "no usable link for 30 s"),
        (be_busy, 0, ""),
    ],
)
def test_its_regions_are_freed_however_it_ends(
    trouble: Callable[[State], None], code: int, says: str, accelctl: Accelctl, state: State
) -> None:
    trouble(state)
    outcome = accelctl(*QUICK)
    assert (outcome.code, says in outcome.err) == (code, True)
    assert regions_left(state) == []
    assert not any(one.state < 3 for one in state.transfers if "p2p-" in one.source.region)


def no_link(state: State) -> None:
    for link in state.links:
        link.state = link_pb2.LINK_STATE_DOWN


def nothing(state: State) -> None:
    pass


@pytest.mark.parametrize(
    ("trouble", "words", "code", "says"),
    [
        (no_link, (), 6, "no link is up between card0 and card1; 'accelctl link list' says why"),
        (nothing, ("--cards", "card0,card7"), 3, "no card card7; there is card0, card1"),
        (nothing, ("--cards", "card0"), 2, "it takes two cards, not only card0"),
        (nothing, ("--cards", "card0,"), 2, "'' is not a card"),
        (nothing, ("--sizes", "4K,none"), 2, "'none' is not a size"),
        (nothing, ("--sizes", "0"), 2, "a transfer moves at least one byte"),
        (nothing, ("--repeat", "0"), 2, "nothing is measured in no rounds"),
        (nothing, ("--sizes", "8G"), 6, "beyond the host's budget"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    trouble: Callable[[State], None],
    words: Sequence[str],
    code: int,
    says: str,
    accelctl: Accelctl,
    state: State,
) -> None:
    trouble(state)
    outcome = accelctl(*QUICK, *words)
    assert (outcome.code, says in outcome.err) == (code, True), outcome
    assert len(outcome.err.splitlines()) == 1
    assert regions_left(state) == []
