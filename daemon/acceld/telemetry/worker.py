"""accel_worker_*: the processes that carry the cards."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    alive = gauge("accel_worker_alive", "1 while the worker runs.")
    cards = gauge("accel_worker_cards", "Cards that the worker carries.")
    restarts = counter("accel_worker_restarts_total", "Times the worker was started again.")
    overruns = counter("accel_worker_tick_overruns_total", "Optics ticks that came too late.")
    for worker in snapshot.workers:
        at = label("worker", worker.index)
        alive.add(at, int(worker.alive))
        cards.add(at, len(worker.cards))
        restarts.add(at, worker.restarts)
        overruns.add(at, worker.tick_overruns)
    return [alive, cards, restarts, overruns]
