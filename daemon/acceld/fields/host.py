"""Of the daemon, its store and scrapes, the chassis, and its workers."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.fields.field import Derived, Field, Labelled, Noun, Sample, label
from acceld.host.snapshot import HostSnapshot, WorkerSnapshot

HOST, WORKER = Noun.HOST, Noun.WORKER


def _build(host: HostSnapshot) -> Iterator[Sample]:
    yield label("version", host.version), 1


def _chassis(host: HostSnapshot) -> Iterator[Sample]:
    if host.attached:
        yield label("boot_id", host.boot_id), 1


def _budget(host: HostSnapshot) -> int | None:
    return host.hbm_budget_bytes if host.attached else None


def _scrape_s(host: HostSnapshot) -> float | None:
    return host.scrapes.last_s if host.scrapes.count else None


def _scrape_samples(host: HostSnapshot) -> int | None:
    return host.scrapes.last_samples if host.scrapes.count else None


def _beat_age(worker: WorkerSnapshot) -> float | None:
    return worker.beat_age_s


HOST_FIELDS = (
    Field(
        HOST, "daemon", "accel_emulated", "Always 1: these cards are software.",
        Derived(lambda host: 1), message="Host", key="emulated",
    ),
    Field(
        HOST, "daemon", "accel_daemon_build_info", "Version of the daemon; always 1.",
        Labelled(_build, ("version",), 1), kind="info",
    ),
    Field(
        HOST, "daemon", "accel_daemon_start_time_seconds", "When the daemon started, Unix time.",
        Derived(lambda host: host.daemon_started_ns), "seconds", 1e9,
        message="Host", key="daemon_start_time",
    ),
    Field(
        HOST, "daemon", "accel_daemon_chassis_attached",
        "1 while the emulated hardware answers.",
        Derived(lambda host: host.attached), message="Host", key="chassis_attached",
    ),
    Field(
        HOST, "daemon", "accel_daemon_store_durable", "1 while the store reaches the disk.",
        Derived(lambda host: host.store_durable), message="Host", key="store_durable",
    ),
    Field(
        HOST, "daemon", "accel_daemon_store_size_bytes",
        "Size of the store with its log of writes; absent when it is in memory only.",
        Derived(lambda host: host.store_bytes), "bytes", message="Host", key="store_bytes",
    ),
    Field(
        HOST, "daemon", "accel_daemon_events_total",
        "Events over the life of the store; also the revision of the newest.",
        Derived(lambda host: host.newest_revision), kind="counter",
        message="Host", key="newest_event_revision",
    ),
    Field(
        HOST, "daemon", "accel_daemon_scrapes_total",
        "Scrapes that this daemon has answered since it started.",
        Derived(lambda host: host.scrapes.count), kind="counter",
        message="Host", key="scrapes_total",
    ),
    Field(
        HOST, "daemon", "accel_daemon_scrape_duration_seconds",
        "How long the scrape before this one took to write.",
        Derived(_scrape_s), "seconds", message="Host", key="scrape_s",
    ),
    Field(
        HOST, "daemon", "accel_daemon_scrape_samples",
        "Samples of the scrape before this one.",
        Derived(_scrape_samples), message="Host", key="scrape_samples",
    ),
    Field(
        HOST, "daemon", "accel_chassis_info",
        "The life of the emulated hardware: another boot_id is a power cycle; always 1.",
        Labelled(_chassis, ("boot_id",), 1), kind="info",
    ),
    Field(
        HOST, "daemon", "accel_chassis_start_time_seconds",
        "When the emulated hardware was powered on, Unix time.",
        Derived(lambda host: host.chassis_started_ns or None), "seconds", 1e9,
        message="Host", key="chassis_start_time",
    ),
    Field(
        HOST, "hbm", "accel_hbm_budget_bytes",
        "HBM that all cards together may allocate on this machine.",
        Derived(_budget), "bytes", message="Host", key="hbm_budget_bytes",
    ),
    Field(
        HOST, "transfer", "accel_transfer_running", "Transfers that have not ended.",
        Derived(lambda host: host.transfers_running),
        message="Host", key="transfers_running_count",
    ),
)  # fmt: skip

WORKER_FIELDS = (
    Field(
        WORKER, "worker", "accel_worker_alive", "1 while the worker runs.",
        Derived(lambda worker: worker.alive), message="Worker", key="alive",
    ),
    Field(
        WORKER, "worker", "accel_worker_cards", "Cards that the worker carries.",
        Derived(lambda worker: len(worker.cards)),
    ),
    Field(
        WORKER, "worker", "accel_worker_beat_age_seconds",
        "Time since the worker's last tick, which comes every second: how old its figures are.",
        Derived(_beat_age), "seconds", message="Worker", key="beat_age_s",
    ),
    Field(
        WORKER, "worker", "accel_worker_restarts_total", "Times the worker was started again.",
        Derived(lambda worker: worker.restarts), kind="counter",
        message="Worker", key="restarts_total",
    ),
    Field(
        WORKER, "worker", "accel_worker_tick_overruns_total",
        "Ticks of the optics that came more than a tick too late.",
        Derived(lambda worker: worker.tick_overruns), kind="counter",
        message="Worker", key="tick_overruns_total",
    ),
)  # fmt: skip
