"""One scrape: every collector over one snapshot, so that its figures agree with each other."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry import card, daemon, fault, hbm, lane, link, port, transfer, worker
from acceld.telemetry.exposition import render

COLLECTORS = (
    daemon.collect,
    card.collect,
    hbm.collect,
    link.collect,
    port.collect,
    lane.collect,
    transfer.collect,
    fault.collect,
    worker.collect,
)


def scrape(snapshot: HostSnapshot) -> str:
    return "".join(render(collect(snapshot)) for collect in COLLECTORS)
