"""The whole host's health from one snapshot: `judge`."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.health import card
from acceld.health.history import CHASSIS_NS, History, Now, S
from acceld.health.reasons import CRITICAL, TRAINING, WARNING, reason
from acceld.health.report import DAEMON, HOST, Health, Kind, Place, Reason, whole
from acceld.health.scene import RECENT_TEXT, Scene
from acceld.host.snapshot import HostSnapshot, WorkerSnapshot


def judge(snapshot: HostSnapshot, history: History, now: Now) -> Health:
    """`history` must have taken in this snapshot: `advance` it first."""
    scene = Scene(snapshot, history, now)
    parts = (
        whole(DAEMON, tuple(_daemon(snapshot))),
        *(_worker(worker, scene) for worker in snapshot.workers),
        *(card.health(one, scene) for one in snapshot.cards),
    )
    return whole(HOST, tuple(_host(scene)), parts)


def _host(scene: Scene) -> Iterator[Reason]:
    since_ns = scene.history.since_ns
    if scene.snapshot.attached or since_ns is None:
        return
    for_ns = scene.now.mono_ns - since_ns
    state = TRAINING if for_ns < CHASSIS_NS else CRITICAL
    yield reason("CHASSIS_GONE", state, HOST, f"no answer for {for_ns / S:.0f} s")


def _daemon(snapshot: HostSnapshot) -> Iterator[Reason]:
    if not snapshot.store_durable:
        text = "the store is in memory only and ends with the daemon"
        yield reason("STORE_NOT_DURABLE", WARNING, DAEMON, text)


def _worker(worker: WorkerSnapshot, scene: Scene) -> Health:
    at = Place(Kind.WORKER, f"worker{worker.index}")
    found = []
    if (stale := scene.stale(worker.index)) is not None:
        silent_s = scene.silent_ns(worker.index) / S
        text = f"no sign of life for {silent_s:.0f} s; carries {', '.join(worker.cards)}"
        found.append(reason("TELEMETRY_STALE", stale, at, text))
    before = scene.history.before
    again = worker.restarts - before.restarts.get(worker.index, 0) if before else 0
    if again > 0:
        times = "once" if again == 1 else f"{again} times"
        text = f"started again {times} in {RECENT_TEXT}"
        found.append(reason("WORKER_RESTARTED", WARNING, at, text))
    return whole(at, tuple(found))
