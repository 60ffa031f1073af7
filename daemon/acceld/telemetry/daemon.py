"""accel_daemon_* and accel_emulated: the daemon itself, and that all of this is software."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    emulated = gauge("accel_emulated", "Always 1: these cards are software.")
    emulated.add("", 1)
    build = gauge("accel_daemon_build_info", "Version of the daemon; always 1.")
    build.add(label("version", snapshot.version), 1)
    started = gauge("accel_daemon_start_time_seconds", "When the daemon started, Unix time.")
    started.add("", snapshot.daemon_started_ns / 1e9)
    attached = gauge("accel_daemon_chassis_attached", "1 while the emulated hardware answers.")
    attached.add("", int(snapshot.attached))
    durable = gauge("accel_daemon_store_durable", "1 while the store reaches the disk.")
    durable.add("", int(snapshot.store_durable))
    events = counter("accel_daemon_events_total", "Events over the life of the store.")
    events.add("", snapshot.newest_revision)
    return [emulated, build, started, attached, durable, events]
