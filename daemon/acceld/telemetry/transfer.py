"""accel_transfer_*: transfers, counted by the card that they were posted to."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    running = gauge("accel_transfer_running", "Transfers that have not ended.")
    running.add("", snapshot.transfers_running)
    done = counter("accel_transfer_done_total", "Transfers that ended with every byte checked.")
    failed = counter("accel_transfer_failed_total", "Transfers that ended without all bytes.")
    for card in snapshot.cards:
        at = label("card", card.name)
        done.add(at, int(card.row["transfers_done"]))
        failed.add(at, int(card.row["transfers_failed"]))
    return [running, done, failed]
