"""Counters and flags over the lives of the hardware.

The status tables count from power-on. What earlier lives have counted is the base that every copy
of a row gets added: then a counter never steps back, and a latch stays until somebody clears it.
Totals go to the store now and then, and when the hardware goes: its tables outlive it here, so
nothing is missing. At the next power-on they are the base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceld.records import Total
from acceld.store.store import Store
from accelhw.interface import tables
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS

Rows = NDArray[np.void]
Figures = NDArray[Any]
WHOLE = slice(None)

COUNTERS: dict[str, tuple[str, ...]] = {
    "worker": ("restarts", "tick_overruns"),
    "card": (
        "resets", "bus_read_bytes", "bus_written_bytes", "ecc_sbe", "ecc_dbe",
    ),
    "port": (
        "trainings", "training_failures", "downs", "tx_frames", "tx_bytes", "rx_frames", "rx_bytes",
        "tx_payload_bytes", "rx_payload_bytes", "replayed_frames", "acks_sent", "acks_received",
        "nacks_sent", "nacks_received", "crc_errors", "malformed_frames", "foreign_frames",
        "stale_frames", "duplicate_frames", "missing_frames", "replay_timeouts", "tx_stalls",
        "fec_codewords", "fec_corrected_bits", "fec_corrected_symbols", "fec_uncorrectable",
        "fec_bins", "fec_lock_losses", "recoveries", "recovery_failures", "flaps", "flaps_damped",
        "fallbacks", "equaliser_requests",
    ),
    "lane": ("rx_bits", "pre_fec_errors", "fec_corrected_symbols", "los_count", "lol_count"),
    "card_flag": ("count",),
    "lane_flag": ("count",),
}  # fmt: skip
FLAG_STATE = ("latched", "first_set_ns", "last_set_ns", "last_clear_ns")
NOBODY = ""  # workers belong to no card


@dataclass(frozen=True, slots=True)
class CardRows:
    """Copies of a card's rows, and of those of its ports and lanes."""

    card: Rows
    port: Rows
    lane: Rows
    card_flag: Rows
    lane_flag: Rows

    def parts(self) -> Iterator[tuple[str, Rows]]:
        for part in ("card", "port", "lane", "card_flag", "lane_flag"):
            yield part, getattr(self, part)


Base = Mapping[tuple[str, str], Mapping[str, Figures]]  # by card and part, by column


class Ledger:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._base: Base = {}

    def take(self) -> None:
        """Attached: what earlier lives have counted is read anew."""
        base: dict[tuple[str, str], dict[str, Figures]] = {}
        for total in self._store.totals(base=True):
            if (figures := _figures(total)) is not None:
                base.setdefault((total.card, total.part), {})[total.column] = figures
        self._base = base

    def add_to(self, card: str, rows: CardRows, ports: slice = WHOLE, lanes: slice = WHOLE) -> None:
        """Add what earlier lives of a card have counted; `ports` and `lanes` say which of its rows
        these are."""
        places = {"port": ports, "lane": lanes, "lane_flag": lanes}
        for part, found in rows.parts():
            for column, figures in self._base.get((card, part), {}).items():
                earlier = figures[places.get(part, WHOLE)]
                if earlier.shape == found[column].shape:  # else its profile was another once
                    _merge(column, found, earlier)

    def add_to_workers(self, rows: Rows) -> None:
        """As `add_to`; there may be more or fewer of them in each life."""
        for column, figures in self._base.get((NOBODY, "worker"), {}).items():
            both = min(len(rows), len(figures))
            rows[column][:both] += figures[:both]

    def keep(self, cards: Mapping[str, CardRows], workers: Rows) -> None:
        """Store these totals: rows that the base was added to."""
        totals = list(_totals(NOBODY, "worker", workers))
        for card, rows in cards.items():
            for part, found in rows.parts():
                totals += _totals(card, part, found)
        self._store.put_totals(totals)

    def unlatch(self, card: str, part: str, rows: slice = WHOLE) -> None:
        """Latches of earlier lives were cleared by command; `rows` says of which."""
        columns = self._base.get((card, part), {})
        if "latched" in columns:
            latched = columns["latched"].copy()
            latched[rows] = 0
            self._base = {**self._base, (card, part): {**columns, "latched": latched}}
            self._store.put_totals([Total(card, part, "latched", latched.tobytes())], base=True)


def _merge(column: str, rows: Rows, earlier: Figures) -> None:
    now = rows[column]
    match column:
        case "latched":
            now |= earlier
        case "first_set_ns":
            rows[column] = np.where(earlier != 0, earlier, now)
        case "last_set_ns" | "last_clear_ns":
            rows[column] = np.where(now != 0, now, earlier)
        case _:
            now += earlier


def _totals(card: str, part: str, rows: Rows) -> Iterator[Total]:
    for column in COUNTERS[part] + (FLAG_STATE if part in FLAGS_EACH else ()):
        yield Total(card, part, column, np.ascontiguousarray(rows[column]).tobytes())


KINDS = {
    "worker": tables.WORKER, "card": tables.CARD, "port": tables.PORT, "lane": tables.LANE,
    "card_flag": tables.FLAG, "lane_flag": tables.FLAG,
}  # fmt: skip
FLAGS_EACH = {"card_flag": len(CARD_FLAGS), "lane_flag": len(LANE_FLAGS)}


def _figures(total: Total) -> Figures | None:
    """As rows of the tables have them; None for what another version has stored otherwise."""
    kind = KINDS.get(total.part)
    if kind is None or total.column not in (kind.names or ()):
        return None
    column = kind[total.column]
    each = (FLAGS_EACH["lane_flag"],) if total.part == "lane_flag" else column.shape
    if len(total.figures) % (column.base.itemsize * math.prod(each)):
        return None
    return np.frombuffer(total.figures, column.base).reshape(-1, *each)
