"""Every event says why, who is to blame, who is at the far end, and what to do."""

from __future__ import annotations

import pytest

from acceld.host.eventfields import COLLAPSE_NS, completed
from acceld.host.eventkinds import ACTIONS, COLLAPSING, KINDS, action_of
from acceld.records import NewEvent, StoredEvent
from accelhw.model.event import EVENT_KINDS
from accelhw.model.ids import PortId
from accelhw.model.link import NEXT_ACTION, DownReason, Reason

HERE, FAR = PortId("card0", 0), PortId("card1", 0)
Detail = dict[str, str | int | float | bool]


def made(kind: str, subject: str, detail: Detail) -> NewEvent:
    event = NewEvent(1, 2, kind, subject, "It happened.", detail)
    return completed(event, {HERE: FAR, FAR: HERE}.get)


@pytest.mark.parametrize(
    ("kind", "subject", "detail", "reason", "cause", "peer"),
    [
        ("LINK_UP", "card0/oe0", {"peer": "card7/oe3"}, "", "", "card7/oe3"),
        ("LINK_DOWN", "card0/oe0", {"reason": "SIGNAL_LOST"}, "SIGNAL_LOST", "", "card1/oe0"),
        (
            "LINK_DOWN", "card0/oe0", {"reason": "CDR_NO_LOCK", "lane": 3},
            "CDR_NO_LOCK", "card0/oe0/lane3", "card1/oe0",
        ),
        (
            "LINK_DOWN", "card0/oe0", {"reason": "PEER_DOWN", "lane": 0},
            "PEER_DOWN", "card1/oe0", "card1/oe0",
        ),
        ("LINK_DOWN", "card9/oe0", {"reason": "NO_SIGNAL"}, "NO_SIGNAL", "", ""),
        ("FELL_OFF_BUS", "card0", {"worker": 1}, "", "worker1", ""),
        (
            "FAULT_INJECTED", "card0/oe0", {"fault_kind": "bent_fibre"},
            "bent_fibre", "", "card1/oe0",
        ),
        ("HBM_ROW_BAD", "card0", {"remap": "PENDING"}, "PENDING", "", ""),
        (
            "HEALTH_CHANGED", "card0", {"reason": "CARD_LOST", "cause": "card0"},
            "CARD_LOST", "card0", "",
        ),
    ],
)  # fmt: skip
def test_what_an_event_is_about(
    kind: str, subject: str, detail: Detail, reason: str, cause: str, peer: str
) -> None:
    event = made(kind, subject, detail)
    assert (event.reason, event.cause, event.peer) == (reason, cause, peer)


def test_what_collapses_is_what_repeats_without_saying_more() -> None:
    assert made("LINK_DOWN", "card0/oe0", {}).collapse_ns == COLLAPSE_NS
    for kind in ("TRANSFER_DONE", "FAULT_INJECTED", "HBM_ROW_BAD", "WORKER_DIED", "UNHEARD_OF"):
        assert made(kind, "card0", {}).collapse_ns == 0


def test_the_table_knows_every_kind_and_no_other() -> None:
    assert set(EVENT_KINDS) <= set(KINDS)
    assert set(ACTIONS) <= set(KINDS)
    assert set(COLLAPSING) <= set(KINDS)


def test_message_ids_are_unique_and_stay() -> None:
    ids = [kind.message_id for kind in KINDS.values()]
    assert len(set(ids)) == len(ids)
    assert all(len(one) == 32 and int(one, 16) for one in ids)
    assert (
        KINDS["LINK_DOWN"].message_id == "47b50247dfdf5f6d9a50def33e9f1f24"
    )  # Others filter by it.


def test_the_next_action_is_the_links_own_for_every_reason() -> None:
    for code in DownReason:
        told = Reason(code).next_action("card0/oe0", "eth0")
        event = StoredEvent(
            1, 1, 2, "LINK_DOWN", "card0/oe0", "Down.", {"next_action": told} if told else {}
        )
        wanted = NEXT_ACTION[code].format(port="card0/oe0", interface="eth0")
        assert action_of(event) == (wanted or "see why: accelctl health show card0/oe0")
