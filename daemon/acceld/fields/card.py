"""Of a card: its state, heat and power, its HBM, bus and network module."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.fields.field import (
    Column,
    Derived,
    Field,
    Labelled,
    Noun,
    Sample,
    each_label,
    joined,
    label,
)
from acceld.fields.thresholds import threshold
from acceld.host.snapshot import CARD_STATES, CardSnapshot

CARD = Noun.CARD
STATES = CARD_STATES[1:]


def _info(card: CardSnapshot) -> Iterator[Sample]:
    facts = card.facts.info
    yield (
        joined(
            label("profile", facts.profile),
            label("uid", facts.uid),
            label("worker", facts.worker),
        ),
        1,
    )


def _state(card: CardSnapshot) -> Iterator[Sample]:
    for name, at in zip(STATES, each_label("state", STATES), strict=True):
        yield at, int(card.state == name)


CARD_FIELDS = (
    Field(
        CARD, "card", "accel_card_info", "The card's profile, identity and worker; always 1.",
        Labelled(_info, ("profile", "uid", "worker"), 1), kind="info",
    ),
    Field(
        CARD, "card", "accel_card_state", "State of the card: 1 for the one it is in.",
        Labelled(_state, ("state",), len(STATES)), message="Card", key="state",
    ),
    Field(
        CARD, "card", "accel_card_ready_time_seconds",
        "When the card became ready, Unix time; absent while it is not.",
        Column("ready_since_ns", when="ready_since_ns"), "seconds", 1e9,
        message="Card", key="ready_time",
    ),
    Field(
        CARD, "card", "accel_card_links_up", "Links of the card that carry data.",
        Derived(lambda card: card.links_up), message="Card", key="links_up_count",
    ),
    Field(
        CARD, "card", "accel_card_resets_total", "Resets by command.",
        Column("resets"), kind="counter", message="Card", key="resets_total",
    ),
    Field(
        CARD, "card", "accel_card_case_temperature_celsius",
        "Temperature of the network module and its engines, at the case.",
        Column("case_temp_c"), "celsius", message="Card", key="case_temp_c",
    ),
    threshold(
        CARD, "case_temp_c", "accel_card_case_temperature_threshold_celsius", "celsius",
        "Levels of the case temperature", group="card",
    ),
    Field(
        CARD, "card", "accel_card_supply_volts", "Supply voltage of the optics.",
        Column("supply_v"), "volts", message="Card", key="supply_v",
    ),
    threshold(
        CARD, "supply_v", "accel_card_supply_threshold_volts", "volts",
        "Levels of the supply voltage", group="card",
    ),
    Field(
        CARD, "card", "accel_card_power_watts", "Power that optics and HBM take.",
        Column("power_w"), "watts", message="Card", key="power_w",
    ),
    Field(
        CARD, "bus", "accel_card_bus_read_bytes_total", "Bytes the internal bus took from HBM.",
        Column("bus_read_bytes"), "bytes", kind="counter",
        message="Card", key="bus_read_bytes_total",
    ),
    Field(
        CARD, "bus", "accel_card_bus_written_bytes_total", "Bytes the internal bus put into HBM.",
        Column("bus_written_bytes"), "bytes", kind="counter",
        message="Card", key="bus_written_bytes_total",
    ),
    Field(
        CARD, "network", "accel_network_signal_lines",
        "Signal lines of the network module; each belongs to one lane.",
        Derived(lambda card: card.signal_lines), message="Card", key="signal_line_count",
    ),
    Field(
        CARD, "network", "accel_network_signal_lines_used",
        "Signal lines whose lane carries data now.",
        Derived(lambda card: card.signal_lines_used),
        message="Card", key="signal_lines_used_count",
    ),
    Field(
        CARD, "transfer", "accel_transfer_done_total",
        "Transfers posted to the card that ended with every byte checked.",
        Derived(lambda card: card.transfer_ends.done), kind="counter",
        message="Card", key="transfers_done_total",
    ),
    Field(
        CARD, "transfer", "accel_transfer_failed_total",
        "Transfers posted to the card that failed; those that somebody cancelled did not.",
        Derived(lambda card: card.transfer_ends.failed), kind="counter",
        message="Card", key="transfers_failed_total",
    ),
    Field(
        CARD, "transfer", "accel_transfer_cancelled_total",
        "Transfers posted to the card that were cancelled.",
        Derived(lambda card: card.transfer_ends.cancelled), kind="counter",
        message="Card", key="transfers_cancelled_total",
    ),
)  # fmt: skip

HBM_FIELDS = (
    Field(
        CARD, "hbm", "accel_hbm_size_bytes", "HBM that the card has.",
        Derived(lambda card: card.facts.info.hbm_bytes), "bytes",
        message="Card", key="hbm_total_bytes",
    ),
    Field(
        CARD, "hbm", "accel_hbm_allocated_bytes", "HBM in regions.",
        Derived(lambda card: card.hbm_allocated_bytes), "bytes",
        message="Card", key="hbm_allocated_bytes",
    ),
    Field(
        CARD, "hbm", "accel_hbm_resident_bytes", "Memory of this machine that the HBM takes.",
        Derived(lambda card: card.hbm_resident_bytes), "bytes",
        message="Card", key="hbm_resident_bytes",
    ),
    Field(
        CARD, "hbm", "accel_hbm_regions", "Regions on the card.",
        Derived(lambda card: card.regions), message="Card", key="region_count",
    ),
    Field(
        CARD, "hbm", "accel_hbm_temperature_celsius", "Temperature of the HBM.",
        Column("hbm_temp_c"), "celsius", message="Card", key="hbm_temp_c",
    ),
    threshold(
        CARD, "hbm_temp_c", "accel_hbm_temperature_threshold_celsius", "celsius",
        "Levels of the HBM temperature", group="hbm",
    ),
    Field(
        CARD, "hbm", "accel_hbm_refresh_ratio",
        "Refresh rate over the usual one: 2 while the HBM is hot.",
        Column("hbm_refresh_ratio"), "ratio", message="Card", key="hbm_health.refresh_ratio",
    ),
    Field(
        CARD, "hbm", "accel_hbm_throttled", "1 while heat slows the HBM down.",
        Column("hbm_throttled"), message="Card", key="hbm_health.throttled",
    ),
    Field(
        CARD, "hbm", "accel_hbm_corrected_errors_total", "Single-bit errors, corrected.",
        Column("ecc_sbe"), kind="counter",
        message="Card", key="hbm_health.corrected_errors_total",
    ),
    Field(
        CARD, "hbm", "accel_hbm_uncorrectable_errors_total", "Double-bit errors, detected.",
        Column("ecc_dbe"), kind="counter",
        message="Card", key="hbm_health.uncorrectable_errors_total",
    ),
    Field(
        CARD, "hbm", "accel_hbm_rows_remapped", "Rows that a spare one stands in for.",
        Column("rows_remapped"), message="Card", key="hbm_health.rows_remapped",
    ),
    Field(
        CARD, "hbm", "accel_hbm_rows_pending", "Bad rows, out of use until the next reset.",
        Column("rows_pending"), message="Card", key="hbm_health.rows_pending",
    ),
    Field(
        CARD, "hbm", "accel_hbm_remap_failed", "1 when a bank had no spare row left.",
        Column("remap_failed"), message="Card", key="hbm_health.remap_failed",
    ),
)  # fmt: skip
