"""Health as numbers, for a scrape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceld.health.report import Health, HealthState, Kind

# 0 is well. What is absent has no value.
VALUES = {
    HealthState.HEALTHY: 0,
    HealthState.TRAINING: 1,
    HealthState.WARNING: 2,
    HealthState.CRITICAL: 3,
}


@dataclass(frozen=True, slots=True)
class HealthValue:
    labels: tuple[tuple[str, str], ...]  # kind, then card, oe, lane or worker
    value: int


def health_values(report: Health) -> Iterator[HealthValue]:
    """Of every object but lanes that are well, or whose trouble another object names."""
    for health in report.walk():
        if health.state not in VALUES:
            continue
        if health.place.kind is Kind.LANE and not (health.reasons and health.state.is_unwell):
            continue
        yield HealthValue(_labels(health), VALUES[health.state])


def _labels(health: Health) -> tuple[tuple[str, str], ...]:
    kind, address = health.place.kind, health.place.address
    if kind is Kind.WORKER:
        return ("kind", kind.value), ("worker", address.removeprefix("worker"))
    if kind in (Kind.HOST, Kind.DAEMON):
        return (("kind", kind.value),)
    names = ("card", "oe", "lane")
    return ("kind", kind.value), *zip(names, address.split("/"), strict=False)
