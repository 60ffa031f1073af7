"""Health of the host as it goes on: looked at again and again, its changes told as events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from acceld.errors import NotFound, suggestion
from acceld.health.history import History, Now, advance
from acceld.health.judge import judge
from acceld.health.report import HOST, Health, HealthState, Kind, Place, Reason
from acceld.health.values import health_samples
from acceld.host.events import EventLog
from acceld.host.hardware import Hardware
from acceld.host.notice import Notice
from acceld.host.snapshot import HealthSample, HostSnapshot
from accelhw.model.event import Severity

LOOK_S = 1.0  # the longest time between two looks
PAUSE_S = 0.1  # the shortest; a training changes its link many times a second
PAUSES_PER_LOOK = (
    4  # a pause is so many times as long as its look, which takes longer on large racks
)
REASONS_TOLD = 20  # of one event; the report has them all
TOLD_KINDS = (Kind.HOST, Kind.CARD, Kind.LINK)
SEVERITIES = {HealthState.CRITICAL: Severity.ERROR, HealthState.WARNING: Severity.WARNING}


def clock() -> Now:
    return Now(time.time_ns(), time.monotonic_ns())


class HealthWatch:
    """`report` is the newest; whoever reads it from another thread gets one whole value."""

    def __init__(
        self,
        snapshot: Callable[[], HostSnapshot],
        hardware: Hardware,
        events: EventLog,
        now: Callable[[], Now] = clock,
    ) -> None:
        self._snapshot = snapshot
        self._hardware = hardware
        self._events = events
        self._now = now
        self._history = History()
        self._told: dict[Place, HealthState] = {}
        self.changed = Notice()
        self.report = Health(HOST, HealthState.HEALTHY)
        self.samples: tuple[HealthSample, ...] = ()

    def look(self) -> Health:
        """Judge what is now."""
        snapshot, now = self._snapshot(), self._now()
        self._history = advance(self._history, snapshot, now)
        before, self.report = self.report, judge(snapshot, self._history, now)
        self.samples = health_samples(self.report)
        self._tell()
        if self.report != before:
            self.changed.ring()
        return self.report

    async def run(self, moved: Notice) -> None:
        """Look once a second, and soon after something `moved`, until cancelled."""
        while True:
            seen, began_ns = moved.count, self._now().mono_ns
            self.look()
            took_s = (self._now().mono_ns - began_ns) / 1e9
            pause_s = min(max(PAUSE_S, PAUSES_PER_LOOK * took_s), LOOK_S)
            await asyncio.sleep(pause_s)
            await moved.past(seen, LOOK_S - pause_s)

    def of(self, place: Place) -> Health:
        """Health of an object now. Raises NotFound, Unavailable."""
        report = self.look()
        found = report.find(place)
        if found is not None:
            return found
        if place.kind not in (Kind.HOST, Kind.DAEMON):
            _ = self._hardware.now  # Without hardware nothing can be said of it: this raises.
        known = [one.place.address for one in report.walk() if one.place.kind is place.kind]
        hint = suggestion(place.address, known, f"such {place.kind}")
        raise NotFound(
            "OBJECT_NOT_FOUND", f"there is no {place.kind} {place.address!r}; {hint}", object=place
        )

    async def watch(self, place: Place) -> AsyncIterator[Health]:
        """Each object of a tree once, without its parts; then each whose state or reasons changed.

        Raises NotFound, Unavailable, also later: when the object went away.
        """
        known: dict[Place, tuple[HealthState, tuple[tuple[str, HealthState], ...]]] = {}
        self.look()
        while True:
            seen = self.changed.count
            tree = self.report.find(place) or self.of(place)
            for one in tree.walk():
                told = one.state, tuple((reason.code, reason.state) for reason in one.reasons)
                if known.get(one.place) != told:
                    known[one.place] = told
                    yield one
            await self.changed.past(seen)

    # ---- telling --------------------------------------------------------------------------------

    def _tell(self) -> None:
        """An event for each change that counts: not for grace, which is meant to pass unseen, and
        not for what another object explains."""
        for one in self.report.walk():
            if one.place.kind not in TOLD_KINDS or one.state is HealthState.TRAINING:
                continue
            if one.cause is not None and one.state is not HealthState.HEALTHY:
                continue
            before = self._told.get(one.place)
            self._told[one.place] = one.state
            if before is None and not one.state.is_unwell:
                continue  # Seen for the first time, and as it should be.
            if before is not one.state:
                self._report(one, before)

    def _report(self, health: Health, before: HealthState | None) -> None:
        reasons = list(health.reasons)
        if health.state.is_unwell:
            reasons = [one for one in health.all_reasons() if one.state.is_unwell]
            reasons.sort(key=lambda one: -one.state.rank)
        text = "; ".join(_said(one, health.place) for one in reasons[:3])
        more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        kind = "" if health.place == HOST else f"{health.place.kind} "
        detail: dict[str, str | int | float | bool] = {
            "object_kind": health.place.kind.value,
            "state": health.state.name,
            "reasons": " ".join(f"{one.place}={one.code}" for one in reasons[:REASONS_TOLD]),
        }
        if before is not None:
            detail["before"] = before.name
        if reasons:
            detail |= _top(reasons[0])
        self._events.report(
            SEVERITIES.get(health.state, Severity.INFO),
            "HEALTH_CHANGED",
            f"{kind}{health.place} is {health.state.name}{': ' if text else ''}{text}{more}",
            health.place.address,
            **detail,
        )


def _said(reason: Reason, of: Place) -> str:
    """With the place that it is about, unless that is the one spoken of."""
    return reason.text if reason.place == of else f"{reason.place}: {reason.text}"


def _top(reason: Reason) -> dict[str, str]:
    return {
        "reason": reason.code,
        "cause": reason.place.address,
        "next_action": reason.next_action,
    }
