"""Tables in which every figure is another, so that no two can be taken for each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from accelhw.model.flag import (
    CARD_FLAGS,
    CARD_QUANTITIES,
    LANE_FLAGS,
    LANE_QUANTITIES,
    LEVELS,
)
from accelhw.model.link import DownReason, LinkMode, LinkState
from accelhw.model.profile import load_profile

from ..fake_hardware import EPOCH_NS, FakeHardware

KEPT = {  # words and places, that must stay what they are
    "seq", "state", "phase", "reason", "reason_lane", "reason_lanes", "peer_reason",
    "peer_reason_lane", "peer_oe", "peer_chassis", "peer_card", "mode", "fec_t", "width",
    "admin_up", "peer_lane", "used", "fitted_margin", "worker", "ecc_rows", "ecc_row_states",
    "rx_power_dbm", "pre_fec_ber", "tx_on", "los", "lol", "inverted", "up_since_ns",
    "hbm_throttled", "remap_failed",
}  # fmt: skip


def fill(hardware: FakeHardware) -> None:
    """One link up in a mode of FEC, the other failed; flags up and down; every counter its own."""
    hardware.set_link("card0", 0, LinkState.UP, DownReason.NONE)
    hardware.set_link("card1", 0, LinkState.FAILED, DownReason.CDR_NO_LOCK)
    tables, number = hardware.tables, _numbers()
    for rows in (tables.card, tables.port, tables.lane):
        _fill(rows, number)
    tables.port["fec_t"][:-1] = 15
    tables.port["mode"][:-1] = LinkMode("kp4").number + 1
    tables.port["peer_reason"][2] = DownReason.LANE_MISSING
    tables.lane["heater_mw"][1] = np.nan
    tables.lane["tec_current_ratio"][3:] = np.nan
    tables.card["hbm_throttled"][1] = tables.card["remap_failed"][0] = 1
    for flags, names in ((tables.lane_flag, LANE_FLAGS), (tables.card_flag, CARD_FLAGS)):
        flags["count"] = np.arange(flags.size).reshape(flags.shape) % 7
        flags["count"][:, [not _is_watched(name) for name in names]] = 0
        flags["active"] = flags["count"] % 2
        flags["latched"] = flags["count"] > 4
        for column in ("first_set_ns", "last_set_ns", "last_clear_ns"):
            flags[column] = EPOCH_NS + flags["count"] * np.uint64(10**9)


def _is_watched(flag: str) -> bool:
    """Whether a card of this profile can raise it."""
    quantities = {stem: column for column, stem in (LANE_QUANTITIES | CARD_QUANTITIES).items()}
    for place, level in enumerate(LEVELS):
        if (column := quantities.get(flag.removesuffix(f"_{level}"))) is not None:
            levels = load_profile("dr8").thresholds.get(column)
            return levels is not None and np.isfinite(levels[place])
    return True


def _numbers() -> Iterator[int]:
    yield from range(101, 1 << 20)


def _fill(rows: NDArray[np.void], number: Iterator[int]) -> None:
    for name in rows.dtype.names or ():
        column = rows[name]
        if name in KEPT or name.startswith("_"):
            continue
        for place in np.ndindex(column.shape):
            value = next(number)
            if name.endswith("_since_ns"):
                column[place] = EPOCH_NS + value * 10**9
            elif column.dtype.kind == "f":
                column[place] = value / 8
            else:
                column[place] = value % 250 if column.dtype.itemsize == 1 else value
