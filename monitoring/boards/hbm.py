"""HBM: use, heat, errors and spare rows."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    figure,
    lines,
    with_levels,
    worst_first,
)
from boards.page import CARDS, FAULTS, POWER_CYCLES, RESETS, Shelf, board
from boards.words import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    CARD,
    EACH_CARD,
    EACH_HOST,
    HOST,
    PER_CARD,
    PER_HOST,
    RATE,
    counted,
)

UID = "accel-hbm"


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "HBM",
        "Use, heat, errors and spare rows of the cards' memory. Emulated cards.",
        CARDS,
        (RESETS, FAULTS, POWER_CYCLES),
        (
            Shelf(4, _figures()),
            Shelf(8, (_table(),), "Most errors first"),
            Shelf(8, _errors(), "Errors and heat"),
            Shelf(8, _use(), "Use"),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Uncorrectable",
            "Double-bit errors in the time shown. Transfers that read such a row fail; `accelctl"
            " card reset` puts a spare row in its place.",
            f"sum({counted('accel_hbm_uncorrectable_errors_total', CARD)})",
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Corrected",
            "Single-bit errors in the time shown, corrected: nothing was lost. Above ten an hour"
            " on one card, plan to exchange it.",
            f"sum({counted('accel_hbm_corrected_errors_total', CARD)})",
            "short",
        ),
        figure(
            "Rows pending",
            "Bad rows that wait for a reset of their card.",
            f"sum(accel_hbm_rows_pending{{{CARD}}})",
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Cards without spare rows",
            "Cards where a bank had none left: exchange them.",
            f"sum(accel_hbm_remap_failed{{{CARD}}})",
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Throttled",
            "Cards whose HBM is slowed down by heat. Look at the air path.",
            f"sum(accel_hbm_throttled{{{CARD}}})",
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Budget in use",
            "HBM in regions, of what this machine can back for all cards. Beyond it, new regions"
            " are refused.",
            f"sum(accel_hbm_allocated_bytes{{{CARD}}}) / sum(accel_hbm_budget_bytes{{{HOST}}})",
            "percentunit",
            ((None, "green"), (0.8, "orange"), (0.95, "red")),
        ),
    ]


def _table() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_CARD}) ({metric}{{{CARD}}})"

    return worst_first(
        "HBM of each card",
        "Counts since the card exists. Uncorrectable errors and pending rows: reset the card. Remap"
        " failed: exchange it. Corrected ones that grow: watch.",
        ("instance", "card"),
        [
            Column("uncorrectable", of("accel_hbm_uncorrectable_errors_total"), steps=ANY_IS_BAD),
            Column("corrected", of("accel_hbm_corrected_errors_total"), steps=ANY_IS_ODD),
            Column("rows pending", of("accel_hbm_rows_pending"), steps=ANY_IS_ODD),
            Column("rows remapped", of("accel_hbm_rows_remapped")),
            Column("remap failed", of("accel_hbm_remap_failed"), "none",
                   names={0: ("no", "green"), 1: ("yes", "red")}),
            Column("temperature", of("accel_hbm_temperature_celsius"), "celsius",
                   ((None, "green"), (85, "orange"), (95, "red"))),
            Column("refresh", of("accel_hbm_refresh_ratio")),
            Column("size", of("accel_hbm_size_bytes"), "bytes"),
            Column("allocated", of("accel_hbm_allocated_bytes"), "bytes"),
            Column("regions", of("accel_hbm_regions")),
        ],
        links=(("card", "This card", "accel-card"),),
    )  # fmt: skip


def _errors() -> list[object]:
    return [
        lines(
            "Errors",
            "Per second. Corrected ones cost nothing but are a warning; uncorrectable ones end the"
            " transfers that read them.",
            "cps",
            (f"rate(accel_hbm_corrected_errors_total{{{CARD}}}[{RATE}])", EACH_CARD + " corrected"),
            (f"rate(accel_hbm_uncorrectable_errors_total{{{CARD}}}[{RATE}])",
             EACH_CARD + " uncorrectable"),
        ),
        lines(
            "Bad rows",
            "Remapped rows are replaced by spares; pending ones wait for a reset.",
            "short",
            (f"accel_hbm_rows_remapped{{{CARD}}}", EACH_CARD + " remapped"),
            (f"accel_hbm_rows_pending{{{CARD}}}", EACH_CARD + " pending"),
        ),
        with_levels(
            lines(
                "Temperature",
                "Refresh doubles at 85 °C; at 95 °C the HBM slows down. All cards: the air. One:"
                " its load or its heat sink.",
                "celsius",
                (f"accel_hbm_temperature_celsius{{{CARD}}}", EACH_CARD),
            ),
            "accel_hbm_temperature_threshold_celsius",
            CARD,
        ),
        lines(
            "Refresh",
            "Refresh rate over the usual one: 2 while the HBM is hot, which takes bandwidth.",
            "short",
            (f"accel_hbm_refresh_ratio{{{CARD}}}", EACH_CARD),
        ),
    ]  # fmt: skip


def _use() -> list[object]:
    return [
        lines(
            "Allocated",
            "HBM in regions. It stays when the owner is gone: `accelctl hbm list` names the"
            " owners.",
            "bytes",
            (f"accel_hbm_allocated_bytes{{{CARD}}}", EACH_CARD),
        ),
        lines(
            "Resident",
            "Memory of this machine that the emulated HBM takes: what was written, not what was"
            " allocated.",
            "bytes",
            (f"accel_hbm_resident_bytes{{{CARD}}}", EACH_CARD),
        ),
        lines(
            "Budget",
            "What this machine can back for all cards, and what is in regions.",
            "bytes",
            (f"accel_hbm_budget_bytes{{{HOST}}}", EACH_HOST + " budget"),
            (f"sum by ({PER_HOST}) (accel_hbm_allocated_bytes{{{HOST}}})",
             EACH_HOST + " allocated"),
        ),
        lines(
            "Regions",
            "Regions on each card. A number that only grows is a job that does not free.",
            "short",
            (f"accel_hbm_regions{{{CARD}}}", EACH_CARD),
        ),
    ]  # fmt: skip
