"""Errors of HBM: corrected ones are counted, a row with an uncorrectable one is taken out of use.

As on accelerators of the field: an uncorrectable error is contained. Only who reads the row fails;
the row is noted for remapping (pending), and at the next reset of the card a spare row of its bank
stands in for it. What it held is lost. A bank without spare rows keeps the bad one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from accelhw.interface.tables import ECC_ROWS
from accelhw.model.region import MemoryWindow
from accelhw.wire.checksum import crc32c

ROW_BYTES = 1024  # of a pseudo channel
BANKS_PER_STACK = 128  # 640 on a part of five stacks
SPARE_ROWS = 8  # of each bank
SBE_PER_S = 2 / 86_400  # of a healthy card; operators see 0 to 10 a day


class RowState(IntEnum):
    PENDING = 1  # out of use; a spare row takes its place at the next reset
    REMAPPED = 2
    FAILED = 3  # out of use for good: its bank has no spare row left


class Ecc:
    """One card's HBM. Times are of the monotonic clock."""

    def __init__(self, card: str, hbm_bytes: int, stacks: int, seed: int) -> None:
        self.sbe = 0
        self.dbe = 0
        self.rows: dict[int, RowState] = {}
        self._count = hbm_bytes // ROW_BYTES
        self._banks = stacks * BANKS_PER_STACK
        words = (seed, crc32c(card.encode()), crc32c(b"ecc"))
        self._dice = np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
        self._bad: list[tuple[int, int]] = []  # address ranges that cannot be read
        self._counted_ns: int | None = None

    def advance(self, now_ns: int, extra_sbe_per_s: float, extra_dbe_per_s: float) -> int:
        """Draw the errors since the last time; the number of uncorrectable ones."""
        elapsed_ns = 0 if self._counted_ns is None else max(now_ns - self._counted_ns, 0)
        self._counted_ns = now_ns
        if not elapsed_ns:
            return 0
        elapsed_s = elapsed_ns / 1e9
        self.sbe += int(self._dice.poisson((SBE_PER_S + extra_sbe_per_s) * elapsed_s))
        return int(self._dice.poisson(extra_dbe_per_s * elapsed_s)) if extra_dbe_per_s else 0

    # ---- uncorrectable errors ----

    def row_of(self, address: int) -> int:
        return address // ROW_BYTES

    def bank_of(self, row: int) -> int:
        """Neighbouring rows lie in different banks, so that they can be open together."""
        return row % self._banks

    def strike(self, row: int) -> RowState:
        """An uncorrectable error in a row. Gives what becomes of it."""
        self.dbe += 1
        known = self.rows.get(row)
        if known in (RowState.PENDING, RowState.FAILED):
            return known
        taken = sum(self.bank_of(other) == self.bank_of(row) for other in self.rows)
        is_left = known is None and taken < SPARE_ROWS and len(self.rows) < ECC_ROWS
        state = RowState.PENDING if is_left else RowState.FAILED
        if known is not None or len(self.rows) < ECC_ROWS:
            self.rows[row] = state
        self._find_bad()
        return state

    def draw_rows(
        self, count: int, windows: Sequence[MemoryWindow], dice: np.random.Generator | None = None
    ) -> list[int]:
        """Rows for errors to come: where something is stored, for others nobody would notice."""
        dice = dice or self._dice
        places = [(w.base, w.length) for w in windows] or [(0, self._count * ROW_BYTES)]
        sizes = np.array([length for _, length in places], float)
        found: list[int] = []
        for _ in range(100 * count):
            base, length = places[int(dice.choice(len(places), p=sizes / sizes.sum()))]
            row = self.row_of(base + int(dice.integers(length)))
            if row not in found and row not in self.rows:
                found.append(row)
            if len(found) == count:
                break
        return found

    def bank_rows(self, row: int, count: int) -> list[int]:
        """So many healthy rows of the bank of `row`, itself the first."""
        beside = range(row, row + self._count, self._banks)
        found = (other % self._count for other in beside)
        rows = [other for other in found if self.bank_of(other) == self.bank_of(row)]
        return [other for other in rows if other not in self.rows][:count]

    def reset(self) -> list[tuple[int, int]]:
        """The card was reset: spare rows stand in. Address ranges whose content is lost."""
        fresh = [row for row, state in self.rows.items() if state is RowState.PENDING]
        for row in fresh:
            self.rows[row] = RowState.REMAPPED
        self._find_bad()
        return [(row * ROW_BYTES, ROW_BYTES) for row in fresh]

    def bad_address(self, start: int, length: int) -> int | None:
        """The first address from `start` on that cannot be read, if one of `length` bytes is so."""
        if not self._bad:
            return None
        hits = [max(a, start) for a, b in self._bad if a < start + length and b > start]
        return min(hits, default=None)

    def _find_bad(self) -> None:
        self._bad = [
            (row * ROW_BYTES, (row + 1) * ROW_BYTES)
            for row, state in self.rows.items()
            if state is not RowState.REMAPPED
        ]

    # ---- showing itself ----

    def count(self, state: RowState) -> int:
        return sum(one is state for one in self.rows.values())

    def write_row(self, row: np.void) -> None:
        row["ecc_sbe"] = self.sbe
        row["ecc_dbe"] = self.dbe
        row["rows_remapped"] = self.count(RowState.REMAPPED)
        row["rows_pending"] = self.count(RowState.PENDING)
        row["remap_failed"] = bool(self.count(RowState.FAILED))
        row["ecc_rows"][: len(self.rows)] = list(self.rows)
        row["ecc_row_states"][: len(self.rows)] = [int(s) for s in self.rows.values()]

    def resume(self, row: np.void) -> None:
        """Go on from what an earlier life of the worker left."""
        self.sbe = int(row["ecc_sbe"])
        self.dbe = int(row["ecc_dbe"])
        self.rows = {
            int(number): RowState(state)
            for number, state in zip(row["ecc_rows"], row["ecc_row_states"], strict=True)
            if state in RowState._value2member_map_
        }
        self._find_bad()
