"""Rules for a lane: its flags and its laser."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acceld.health.reasons import CRITICAL, WARNING, reason
from acceld.health.report import HealthState, Kind, Place, Reason
from acceld.host.snapshot import PortSnapshot
from accelhw.model.flag import CONDITIONS, LANE_FLAGS, LANE_QUANTITIES, LEVELS
from accelhw.model.ids import LaneId

WORN_RATIO = 0.8  # of the way to the bias limit
WORN_OUT_RATIO = 0.95
COOLER_RATIO = 0.9  # of the cooler's limit

# What an operator calls a quantity, and how a figure of it is written.
FIGURES = {
    "tx_power": ("launches", "dBm", ".2f"),
    "rx_power": ("receives", "dBm", ".2f"),
    "tx_bias": ("its bias is", "mA", ".1f"),
    "laser_temp": ("its laser has", "degC", ".1f"),
    "heater": ("its heater takes", "mW", ".1f"),
    "pre_fec_ber": ("its bit error ratio is", "", ".1e"),
}
COLUMN = {stem: column for column, stem in LANE_QUANTITIES.items()}
# One trouble has many signs. The left one is named, the right ones go with it.
SIGNS: dict[str, frozenset[str]] = {
    "TX_FAULT": frozenset({"TX_POWER_LOW", "TX_BIAS_LOW", "TX_BIAS_HIGH", "LASER_WORN"}),
    "LASER_WORN": frozenset({"TX_BIAS_HIGH", "TX_POWER_LOW"}),
    "COOLER_AT_LIMIT": frozenset({"LASER_TEMP_HIGH"}),
    "LOS": frozenset({"LOL", "RX_POWER_LOW", "PRE_FEC_BER_HIGH"}),
    "LOL": frozenset({"PRE_FEC_BER_HIGH"}),
    "RX_POWER_LOW": frozenset({"PRE_FEC_BER_HIGH", "LOL"}),
    "RX_POWER_HIGH": frozenset({"PRE_FEC_BER_HIGH", "LOL"}),
}
RECEIVING = frozenset({"LOS", "LOL", "RX_POWER_LOW", "RX_POWER_HIGH", "PRE_FEC_BER_HIGH"})
OF_HEAT = frozenset({"LASER_TEMP_HIGH", "HEATER_HIGH", "HEATER_LOW", "COOLER_AT_LIMIT"})


def place(port: PortSnapshot, index: int) -> Place:
    return Place(Kind.LANE, str(LaneId(port.id, index)))


def troubled(port: PortSnapshot) -> list[int]:
    """Lanes that may have a reason; a look at all of them at once, since most have none."""
    lanes = port.lanes
    with np.errstate(invalid="ignore"):
        found = (
            (port.flags["active"] != 0).any(axis=1)
            | (lanes["laser_wear_ratio"] >= WORN_RATIO)
            | (lanes["tec_current_ratio"] >= COOLER_RATIO)
        )
    return [int(index) for index in np.flatnonzero(found)]


def reasons(port: PortSnapshot, index: int) -> list[Reason]:
    """Of a lane by itself, one per trouble."""
    found: dict[str, Reason] = {}
    for one in _all(port, index):
        known = found.get(one.code)
        if known is None or one.state.rank > known.state.rank:
            found[one.code] = one
    return _without_signs(found)


def _all(port: PortSnapshot, index: int) -> Iterator[Reason]:
    row, at = port.lanes[index], place(port, index)
    active = port.flags[index]["active"]
    for number in np.flatnonzero(active):
        name = LANE_FLAGS[int(number)]
        if name in CONDITIONS:
            yield _condition(name, port, index)
        elif row["tx_on"] or not name.startswith("tx_"):
            yield _beyond(name, port, index)
    wear = float(row["laser_wear_ratio"])
    if wear >= WORN_RATIO:
        state = CRITICAL if wear >= WORN_OUT_RATIO else WARNING
        text = f"wear took {wear:.0%} of the way to the bias limit; {row['tx_bias_ma']:.1f} mA now"
        yield reason("LASER_WORN", state, at, text)
    cooler = float(row["tec_current_ratio"])
    if cooler >= COOLER_RATIO:
        yield reason(
            "COOLER_AT_LIMIT", WARNING, at, f"its cooler runs at {cooler:.0%} of its limit"
        )


def _condition(name: str, port: PortSnapshot, index: int) -> Reason:
    rx_dbm = port.lanes[index]["rx_power_dbm"]
    text = {
        "tx_fault": "its laser failed",
        "los": f"no light: {rx_dbm:.2f} dBm",
        "lol": f"no lock at {rx_dbm:.2f} dBm",
    }[name]
    return reason(name.upper(), CRITICAL, place(port, index), text)


def _beyond(flag: str, port: PortSnapshot, index: int) -> Reason:
    level = next(level for level in LEVELS if flag.endswith(level))
    stem = flag.removesuffix(f"_{level}")
    side, degree = level.split("_")
    verb, unit, form = FIGURES[stem]
    column = COLUMN[stem]
    value = float(port.lanes[index][column])
    threshold = port.profile.thresholds[column][LEVELS.index(level)]
    than = "above" if side == "high" else "below"
    figure = f"{verb} {value:{form}} {unit}".rstrip()
    text = f"{figure}, {than} the {degree} level of {threshold:{form}} {unit}".rstrip()
    state = CRITICAL if degree == "alarm" else WARNING
    return reason(f"{stem}_{side}".upper(), state, place(port, index), text)


def _without_signs(found: dict[str, Reason]) -> list[Reason]:
    hidden = {sign for code in found for sign in SIGNS.get(code, ())}
    return [
        _as_bad_as(one, [found[s] for s in SIGNS.get(code, ()) if s in found])
        for code, one in found.items()
        if code not in hidden
    ]


def _as_bad_as(one: Reason, signs: list[Reason]) -> Reason:
    return counted_as(
        one, max([one.state, *(s.state for s in signs)], key=lambda state: state.rank)
    )


def counted_as(one: Reason, state: HealthState) -> Reason:
    """The same reason, counted otherwise."""
    return Reason(one.code, state, one.place, one.text, one.next_action)
