"""accel_card_*: the cards and their internal bus."""

from __future__ import annotations

from acceld.host.snapshot import CARD_STATES, HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, joined, label


def collect(snapshot: HostSnapshot) -> list[Family]:
    info = gauge("accel_card_info", "The card's profile, identity and worker; always 1.")
    state = gauge("accel_card_state", "State of the card: 1 for the one it is in.")
    ready = gauge("accel_card_ready_time_seconds", "When the card became ready, Unix time.")
    links_up = gauge("accel_card_links_up", "Links of the card that carry data.")
    resets = counter("accel_card_resets_total", "Resets by command.")
    read = counter("accel_card_bus_read_bytes_total", "Bytes the internal bus took from HBM.")
    written = counter("accel_card_bus_written_bytes_total", "Bytes the internal bus put into HBM.")
    for card in snapshot.cards:
        at, row, facts = label("card", card.name), card.row, card.facts.info
        info.add(
            joined(
                at,
                label("profile", facts.profile),
                label("uid", facts.uid),
                label("worker", facts.worker),
            ),
            1,
        )
        for name in CARD_STATES[1:]:
            state.add(joined(at, label("state", name)), int(card.state == name))
        if row["ready_since_ns"]:
            ready.add(at, int(row["ready_since_ns"]) / 1e9)
        links_up.add(at, card.links_up)
        resets.add(at, int(row["resets"]))
        read.add(at, int(row["bus_read_bytes"]))
        written.add(at, int(row["bus_written_bytes"]))
    return [info, state, ready, links_up, resets, read, written]
