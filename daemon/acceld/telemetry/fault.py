"""accel_fault_*: what was made wrong by command: the ground truth beside what is seen of it."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, gauge, joined, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    active = gauge("accel_fault_active", "1 while a fault of that kind is injected there.")
    seen: set[str] = set()
    for info in snapshot.faults:
        card, _, oe = info.subject.partition("/")
        at = joined(label("kind", info.kind), label("card", card), label("oe", oe) if oe else "")
        for place in [joined(at, label("lane", f"lane{lane}")) for lane in info.lanes] or [at]:
            if place not in seen:  # Two faults of one kind may share a lane.
                seen.add(place)
                active.add(place, 1)
    return [active]
