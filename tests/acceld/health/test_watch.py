"""Changes of health become events: each once, of what is the cause, and none while in grace."""

from __future__ import annotations

from typing import Any

import pytest

from acceld.errors import NotFound, Unavailable
from acceld.health.history import Now
from acceld.health.report import HOST, HealthState, Kind, Place
from acceld.host.hardware import Hardware
from acceld.host.health import HealthWatch
from accelhw.interface import tables
from accelhw.model.event import Severity
from accelhw.model.link import DownReason

from .conftest import EPOCH_NS, Rack

LINK = Place(Kind.LINK, "card0/oe0")


class Told:
    """Takes the place of the event log."""

    def __init__(self) -> None:
        self.events: list[tuple[Severity, str, str, str, dict[str, Any]]] = []

    def report(
        self, severity: Severity, kind: str, message: str, subject: str = "", **detail: Any
    ) -> None:
        assert kind == "HEALTH_CHANGED"
        self.events.append((severity, subject, detail["object_kind"], message, detail))

    def take(self) -> list[tuple[str, str, str]]:
        """Severity, kind and object of each since the last time."""
        events, self.events = self.events, []
        return [(severity.name, kind, subject) for severity, subject, kind, _, _ in events]


class Watched:
    def __init__(self, rack: Rack) -> None:
        self.rack, self.told = rack, Told()
        self.watch = HealthWatch(
            rack.snapshot,
            Hardware(),
            self.told,
            lambda: Now(EPOCH_NS + rack.mono_ns, rack.mono_ns),  # type: ignore[arg-type]
        )
        self.watch.look()

    def pass_s(self, seconds: int) -> list[tuple[str, str, str]]:
        for _ in range(seconds):
            self.rack.mono_ns += 10**9
            self.rack.beat_ns = self.rack.mono_ns
            self.watch.look()
        return self.told.take()


@pytest.fixture
def watched(rack: Rack) -> Watched:
    return Watched(rack)


def test_a_cut_fibre_is_told_of_one_end_its_card_and_the_host(watched: Watched) -> None:
    assert watched.pass_s(2) == []
    watched.rack.cut()
    told = watched.pass_s(10)
    assert told == [
        ("ERROR", "host", "host"),
        ("ERROR", "card", "card0"),
        ("ERROR", "link", "card0/oe0"),
    ]
    watched.rack.up("card0/oe0")
    watched.rack.up("card1/oe0")
    assert [one[0] for one in watched.pass_s(2)] == ["INFO"] * 3


def test_the_event_has_the_cause_and_what_to_do(watched: Watched) -> None:
    watched.rack.cut()
    for _ in range(10):
        watched.rack.mono_ns += 10**9
        watched.rack.beat_ns = watched.rack.mono_ns
        watched.watch.look()
    card = next(one for one in watched.told.events if one[2] == "card")
    assert card[3].startswith("card card0 is CRITICAL: card0/oe0: SEEKING: the light of a link")
    link = next(one for one in watched.told.events if one[2] == "link")
    assert link[3].startswith("link card0/oe0 is CRITICAL: SEEKING: the light of a link")
    assert link[4]["reason"] == "SIGNAL_LOST"
    assert link[4]["cause"] == "card0/oe0"
    assert link[4]["next_action"] == (
        "check that the far card is on, then the fibre and its connectors"
    )
    assert link[4]["before"] == "HEALTHY"


def test_the_event_begins_with_what_is_worst(watched: Watched) -> None:
    watched.rack.card_flag("card0", "case_temp_high_warning")
    watched.rack.card("card1", remap_failed=1)
    watched.watch.look()
    host = next(one for one in watched.told.events if one[2] == "host")
    assert host[3].startswith("host is CRITICAL: card1: ")
    assert host[4]["reason"] == "HBM_REMAP_FAILED"


def test_a_reset_and_a_link_switched_off_are_no_trouble(watched: Watched) -> None:
    rack = watched.rack
    rack.card("card0", state=tables.CARD_RESETTING, ready_since_ns=0)
    rack.down("card0/oe0", DownReason.CARD_RESET)
    rack.down("card1/oe0", DownReason.SIGNAL_LOST)
    assert watched.pass_s(5) == []
    rack.card("card0", state=tables.CARD_READY, ready_since_ns=EPOCH_NS + rack.mono_ns)
    rack.up("card0/oe0")
    rack.up("card1/oe0")
    assert watched.pass_s(5) == []
    rack.rows["card0/oe0"]["admin_up"] = 0
    rack.down("card0/oe0", DownReason.ADMIN_DOWN)
    rack.down("card1/oe0", DownReason.SIGNAL_LOST)
    assert set(watched.pass_s(60)) == {("INFO", "link", "card0/oe0")}


def test_an_object_is_found_or_refused(watched: Watched) -> None:
    assert watched.watch.of(LINK).state is HealthState.HEALTHY
    assert watched.watch.of(HOST).place == HOST
    watched.rack.attached = False
    with pytest.raises(Unavailable):
        watched.watch.of(LINK)


def test_an_unknown_object_meets_its_nearest_name(watched: Watched) -> None:
    watched.watch._hardware.attachment = object()  # type: ignore[assignment]
    with pytest.raises(NotFound, match="did you mean card0"):
        watched.watch.of(Place(Kind.CARD, "crad0"))


async def test_a_watcher_sees_all_once_and_then_what_changed(watched: Watched) -> None:
    stream = watched.watch.watch(HOST)
    everything = len(list(watched.watch.report.walk()))
    first = [(await anext(stream)).place for _ in range(everything)]
    assert first[0] == HOST
    assert LINK in first
    watched.rack.card("card1", rows_pending=1)
    watched.pass_s(1)
    changed = [(await anext(stream)) for _ in range(2)]
    assert [(one.place.address, one.state.name) for one in changed] == [
        ("host", "WARNING"),
        ("card1", "WARNING"),
    ]
    await stream.aclose()


async def test_a_watch_of_what_went_away_ends(watched: Watched) -> None:
    stream = watched.watch.watch(LINK)
    assert (await anext(stream)).place == LINK
    watched.rack.attached = False
    watched.pass_s(1)
    with pytest.raises(Unavailable):
        await anext(stream)
