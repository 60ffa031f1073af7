"""What was made wrong by command, and what the rollup of health makes of what is seen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from acceld.fields.field import Field, Labelled, Labels, Noun, Sample, joined, label
from acceld.host.snapshot import HostSnapshot

HEALTH_SAMPLES_KEPT = 1 << 17
HEALTHY = (Noun.HOST, Noun.HOST, Noun.CARD, Noun.ENGINE, Noun.LINK)  # daemon and host


def _faults(host: HostSnapshot) -> Iterator[Sample]:
    seen: set[Labels] = set()
    for info in host.faults:
        card, _, oe = info.subject.partition("/")
        at = joined(label("kind", info.kind), label("card", card), label("oe", oe) if oe else "")
        for place in [joined(at, label("lane", f"lane{lane}")) for lane in info.lanes] or [at]:
            if place not in seen:  # Two faults of one kind may share a lane.
                seen.add(place)
                yield place, 1


@lru_cache(HEALTH_SAMPLES_KEPT)
def _place(kind: str, subject: str) -> Labels:
    """Labels of `card0/oe1/lane3`, each part by its own name; a host and a daemon have none."""
    names = ("card", "oe", "lane")
    parts = subject.split("/") if subject else []
    return joined(label("kind", kind), *(label(n, p) for n, p in zip(names, parts, strict=False)))


def _health(host: HostSnapshot) -> Iterator[Sample]:
    for one in host.health:
        yield _place(one.kind, one.subject), one.value


def _reasons(host: HostSnapshot) -> Iterator[Sample]:
    for one in host.health:
        for reason in one.reasons:
            yield joined(_place(one.kind, one.subject), label("reason", reason)), 1


FAULT_FIELDS = (
    Field(
        Noun.HOST, "fault", "accel_fault_active",
        "1 while a fault of that kind is injected there: the ground truth beside what is seen.",
        Labelled(_faults, ("kind", "card", "oe", "lane"), 0),
    ),
)  # fmt: skip

HEALTH_FIELDS = (
    Field(
        Noun.HOST, "health", "accel_health_state",
        "Health of each oe, link and card, of the host and of the daemon, as `kind` says: 0 ok, 1"
        " in training or grace, 2 warning, 3 critical. Of a lane only while it is not ok.",
        Labelled(_health, ("kind", "card", "oe", "lane"), 1), counted=HEALTHY,
    ),
    Field(
        Noun.HOST, "health", "accel_health_reason",
        "1 for each reason of an object that is not ok.",
        Labelled(_reasons, ("kind", "card", "oe", "lane", "reason"), 0),
    ),
)  # fmt: skip
