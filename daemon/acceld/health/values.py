"""Health as numbers, for a scrape."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.health.report import Health, HealthState, Kind
from acceld.host.snapshot import HealthSample

# 0 is well. What is absent has no value.
VALUES = {
    HealthState.HEALTHY: 0,
    HealthState.TRAINING: 1,
    HealthState.WARNING: 2,
    HealthState.CRITICAL: 3,
}
NAMELESS = (Kind.HOST, Kind.DAEMON)


def health_samples(report: Health) -> tuple[HealthSample, ...]:
    """Of every object but lanes that are well, or whose trouble another object names. What is
    wrong with a worker is told of the host."""
    return tuple(_samples(report))


def _samples(report: Health) -> Iterator[HealthSample]:
    for health in report.walk():
        kind = health.place.kind
        if health.state not in VALUES or kind is Kind.WORKER:
            continue
        if kind is Kind.LANE and not (health.reasons and health.state.is_unwell):
            continue
        subject = "" if kind in NAMELESS else health.place.address
        yield HealthSample(kind.value, subject, VALUES[health.state], _codes(health))


def _codes(health: Health) -> tuple[str, ...]:
    told = [health] if health.place.kind is not Kind.HOST else [health, *_workers(health)]
    codes = [
        one.code for each in told for one in each.reasons if one.state is not HealthState.ABSENT
    ]
    return tuple(dict.fromkeys(codes))


def _workers(host: Health) -> list[Health]:
    return [part for part in host.parts if part.place.kind is Kind.WORKER]
