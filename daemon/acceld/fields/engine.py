"""Of an optical engine: what it is, its thresholds, its external lasers, its flags in sum."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.fields.field import Derived, Field, Labelled, Noun, Sample, joined, label
from acceld.fields.thresholds import threshold
from acceld.host.snapshot import LaserSnapshot, PortSnapshot

ENGINE = Noun.ENGINE
EXTERNAL = "external laser"  # one that feeds several lanes


def _info(port: PortSnapshot) -> Iterator[Sample]:
    lane = port.profile.lane
    yield (
        joined(
            label("lane_type", lane.name),
            label("modulation", lane.modulation),
            label("connector", port.profile.connector),
        ),
        1,
    )


def _laser_info(laser: LaserSnapshot) -> Iterator[Sample]:
    yield label("lanes", f"{laser.lanes.start}-{laser.lanes.stop - 1}"), 1


def _laser(metric: str, text: str, column: str, unit: str, key: str, divisor: float = 1.0) -> Field:
    def worst(laser: LaserSnapshot) -> float | None:
        return laser.worst(column)

    return Field(
        Noun.LASER, "els", metric, text, Derived(worst), unit, divisor,
        message="ExternalLaser", key=key, fitted=EXTERNAL,
    )  # fmt: skip


ENGINE_FIELDS = (
    Field(
        ENGINE, "oe", "accel_oe_info", "The engine's lanes and connector; always 1.",
        Labelled(_info, ("lane_type", "modulation", "connector"), 1), kind="info",
    ),
    Field(
        ENGINE, "oe", "accel_oe_lanes", "Lanes of the engine.",
        Derived(lambda port: port.info.lanes), message="Engine", key="fitted_lanes",
    ),
    Field(
        ENGINE, "oe", "accel_oe_lanes_lit", "Lanes that receive light.",
        Derived(lambda port: port.lanes_lit), message="Engine", key="lanes_lit_count",
    ),
    threshold(
        ENGINE, "tx_power_dbm", "accel_oe_tx_power_threshold_dbm", "dBm",
        "Levels of the light launched, for each lane", group="oe",
    ),
    threshold(
        ENGINE, "rx_power_dbm", "accel_oe_rx_power_threshold_dbm", "dBm",
        "Levels of the light received, for each lane", group="oe",
    ),
    threshold(
        ENGINE, "tx_bias_ma", "accel_oe_tx_bias_threshold_amperes", "amperes",
        "Levels of the current through a laser", group="oe", divisor=1e3,
    ),
    threshold(
        ENGINE, "laser_temp_c", "accel_oe_laser_temperature_threshold_celsius", "celsius",
        "Levels of a laser's temperature", group="oe",
    ),
    threshold(
        ENGINE, "heater_mw", "accel_oe_heater_threshold_watts", "watts",
        "Levels of a ring heater's power", group="oe", divisor=1e3, fitted="ring modulator",
    ),
    threshold(
        ENGINE, "pre_fec_ber", "accel_oe_pre_fec_error_threshold_ratio", "ratio",
        "Levels of the bit errors before FEC", group="oe", count=2,
    ),
    Field(
        ENGINE, "flags", "accel_oe_flags_active", "Flags of its lanes that are on now.",
        Derived(lambda port: port.flags_active), message="Engine", key="flags_active_count",
    ),
    Field(
        ENGINE, "flags", "accel_oe_flags_latched",
        "Flags of its lanes that were on since they were last cleared by command.",
        Derived(lambda port: port.flags_latched), message="Engine", key="flags_latched_count",
    ),
    Field(
        ENGINE, "flags", "accel_oe_flag_changes_total",
        "Changes of all flags of its lanes, on and off alike.",
        Derived(lambda port: port.flag_changes), kind="counter",
        message="Engine", key="flag_changes_total",
    ),
)  # fmt: skip

LASER_FIELDS = (
    Field(
        Noun.LASER, "els", "accel_els_info",
        "An external laser and the lanes that it feeds; always 1.",
        Labelled(_laser_info, ("lanes",), 1), kind="info", fitted=EXTERNAL,
    ),
    _laser(
        "accel_els_temperature_celsius", "Temperature of the external laser.",
        "laser_temp_c", "celsius", "laser_temp_c",
    ),
    _laser(
        "accel_els_bias_amperes", "Current through the external laser.",
        "tx_bias_ma", "amperes", "tx_bias_ma", 1e3,
    ),
    _laser(
        "accel_els_wear_ratio",
        "How much of the way to its bias limit the external laser has gone: 1 is worn out.",
        "laser_wear_ratio", "ratio", "laser_wear_ratio",
    ),
    _laser(
        "accel_els_tec_current_ratio",
        "Current of the external laser's cooler over its limit; negative heats.",
        "tec_current_ratio", "ratio", "tec_current_ratio",
    ),
)  # fmt: skip
