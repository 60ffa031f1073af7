"""What the tables show of a card whose worker is gone: dark and down, its counters untouched."""

import os

import pytest

from accelhw.chassis.memory import make_shared
from accelhw.chassis.plan import make_plan
from accelhw.chassis.status import StatusRows
from accelhw.interface.tables import CARD_FELL_OFF_BUS, CARD_READY, Tables, table_bytes
from accelhw.model.config import Card, Config
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import load_profile


@pytest.fixture
def rack():
    profile = load_profile("oio")
    plan = make_plan(Config((Card("a", profile, 1), Card("b", profile, 1)), ()), 2)
    fd = make_shared("tables", table_bytes(plan.table_rows))
    rows = StatusRows(fd, plan.table_rows)
    for place in plan.cards:
        rows.place(place)
    yield plan, rows, Tables.attach(fd, plan.table_rows, writable=True)
    os.close(fd)


def test_a_lost_card_is_dark_and_down_and_the_other_is_not(rack):
    plan, rows, seen = rack
    seen.card["state"] = CARD_READY
    seen.port["state"] = LinkState.UP
    seen.port["state"][1] = LinkState.SEEKING
    seen.port["tx_bytes"] = 77
    seen.lane["tx_on"] = seen.lane["used"] = 1
    rows.card_lost(plan.cards[0])
    assert list(seen.card["state"]) == [CARD_FELL_OFF_BUS, CARD_READY]
    assert set(seen.port["state"][:4]) == {LinkState.DOWN}
    assert set(seen.port["state"][4:]) == {LinkState.UP}
    assert set(seen.port["reason"][:4]) == {DownReason.CARD_RESET}
    assert list(seen.port["downs"]) == [1, 0, 1, 1, 0, 0, 0, 0]
    assert set(seen.port["tx_bytes"]) == {77}
    assert not seen.lane["tx_on"][:64].any()
    assert seen.lane["tx_on"][64:].all()


def test_a_writer_killed_amid_writing_leaves_no_locked_row(rack):
    plan, rows, seen = rack
    seen.card["seq"][0] += 1  # It died holding the lock.
    rows.card_lost(plan.cards[0])
    assert seen.card["seq"][0] % 2 == 0


def test_nothing_is_known_of_a_peer_at_power_on(rack):
    _, _, seen = rack
    assert set(seen.port["peer_oe"]) == {-1}
    assert set(seen.lane["peer_lane"]) == {-1}
    assert set(seen.port["state"]) == {LinkState.DOWN}


def test_ports_are_switched_on_from_the_start(rack):
    """A driver that attaches while the cards boot compares this with what it has been told."""
    _, _, seen = rack
    assert set(seen.port["admin_up"]) == {1}
