"""Names of what is watched on a lane and on a card, and of the flags that follow.

A watched quantity has four levels; a condition (no light, no clock, a broken transmitter) has none.
Thresholds stand in the profile under the quantities' names.
"""

from __future__ import annotations

LEVELS = ("high_alarm", "high_warning", "low_warning", "low_alarm")
# Columns of the status tables, with the stem of their flags' names: `tx_power_high_alarm`.
LANE_QUANTITIES = {
    "tx_power_dbm": "tx_power",
    "rx_power_dbm": "rx_power",
    "tx_bias_ma": "tx_bias",
    "laser_temp_c": "laser_temp",
    "heater_mw": "heater",
    "pre_fec_ber": "pre_fec_ber",
}
CARD_QUANTITIES = {"case_temp_c": "case_temp", "supply_v": "supply", "hbm_temp_c": "hbm_temp"}
CONDITIONS = ("tx_fault", "los", "lol")
LANE_FLAGS = (
    *(f"{stem}_{level}" for stem in LANE_QUANTITIES.values() for level in LEVELS),
    *CONDITIONS,
)
CARD_FLAGS = tuple(f"{stem}_{level}" for stem in CARD_QUANTITIES.values() for level in LEVELS)
