"""accel_hbm_*: the memory of the cards, and what this machine backs of it."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    size = gauge("accel_hbm_size_bytes", "HBM that the card has.")
    allocated = gauge("accel_hbm_allocated_bytes", "HBM in regions.")
    resident = gauge("accel_hbm_resident_bytes", "Memory of this machine that the HBM takes.")
    regions = gauge("accel_hbm_regions", "Regions on the card.")
    budget = gauge("accel_hbm_budget_bytes", "HBM that all cards together may allocate here.")
    corrected = counter("accel_hbm_corrected_errors_total", "Single-bit errors, corrected.")
    lost = counter("accel_hbm_uncorrectable_errors_total", "Double-bit errors, detected.")
    remapped = gauge("accel_hbm_rows_remapped", "Rows that a spare one stands in for.")
    pending = gauge("accel_hbm_rows_pending", "Bad rows, out of use until the next reset.")
    failed = gauge("accel_hbm_remap_failed", "1 when a bank had no spare row left.")
    for card in snapshot.cards:
        at = label("card", card.name)
        size.add(at, card.facts.info.hbm_bytes)
        allocated.add(at, card.hbm_allocated_bytes)
        resident.add(at, card.hbm_resident_bytes)
        regions.add(at, snapshot.regions.get(card.name, 0))
        row = card.row
        corrected.add(at, int(row["ecc_sbe"]))
        lost.add(at, int(row["ecc_dbe"]))
        remapped.add(at, int(row["rows_remapped"]))
        pending.add(at, int(row["rows_pending"]))
        failed.add(at, int(row["remap_failed"]))
    if snapshot.attached:
        budget.add("", snapshot.hbm_budget_bytes)
    return [
        size, allocated, resident, regions, budget, corrected, lost, remapped, pending, failed,
    ]  # fmt: skip
