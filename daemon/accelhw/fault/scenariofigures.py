"""The figures that a run knows of each lane, port and card, and what they are called where.

In a scenario and in CSV a figure has the name of its field in the API; in OpenMetrics it has the
name under which the daemon exports it, so that dashboards and alerts read simulated years as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.fault.scenario import Level


@dataclass(frozen=True, slots=True)
class Figure:
    """`column` is the one of the status tables; `present` one that says if there is one."""

    name: str
    level: Level
    column: str
    family: str = ""  # in OpenMetrics; empty: not there
    help: str = ""
    counter: bool = False
    factor: float = 1.0  # from the column to the family's unit
    present: str = ""


def _lane(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    family = f"accel_lane_{family}" if family else ""
    return Figure(name, Level.LANE, column or name, family, help_, **more)  # type: ignore[arg-type]


def _port(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    return Figure(name, Level.PORT, column or name, family, help_, **more)  # type: ignore[arg-type]


def _card(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    family = f"accel_card_{family}" if family else ""
    return Figure(name, Level.CARD, column or name, family, help_, **more)  # type: ignore[arg-type]


def _hbm(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    return Figure(name, Level.CARD, column or name, f"accel_hbm_{family}", help_, **more)  # type: ignore[arg-type]


_LIT = {"present": "fitted_margin"}
_COUNT = {"counter": True}

FIGURES: tuple[Figure, ...] = (
    _lane("tx_power_dbm", "tx_power_dbm", "Light launched."),
    _lane("rx_power_dbm", "rx_power_dbm", "Light received; -40 is the register's floor."),
    _lane("tx_bias_ma", "tx_bias_amperes", "Current through the laser.", factor=1e-3),
    _lane("margin_db", "margin_db", "Light to spare; absent in the dark.", **_LIT),
    _lane("q", "q_factor", "Quality of the eye; absent in the dark.", **_LIT),
    _lane("pre_fec_ber", "pre_fec_error_ratio", "Bit errors per bit before FEC.", **_LIT),
    _lane("laser_temp_c", "laser_temperature_celsius", "Temperature of the laser."),
    _lane("tx_on", "tx_on", "1 while the laser is on."),
    _lane("los", "los", "1 while no light arrives."),
    _lane("lol", "lol", "1 while the receiver has no lock."),
    _lane("carries_data", "used", "1 while the lane carries data.", "used"),
    _lane(
        "rx_bits_total", "rx_bytes_total", "Bytes of the line received, idle or not.", "rx_bits",
        counter=True, factor=1 / 8,
    ),
    _lane(
        "pre_fec_errors_total", "pre_fec_errors_total", "Bit errors before FEC.",
        "pre_fec_errors", **_COUNT,
    ),
    _lane("los_total", "los_events_total", "Times the light was lost.", "los_count", **_COUNT),
    _lane("lol_total", "lol_events_total", "Times the lock was lost.", "lol_count", **_COUNT),
    _port("width_lanes", "accel_link_width_lanes", "Lanes that carry data.", "width"),
    _port("trainings_total", "accel_link_trainings_total", "Successful trainings.", "trainings",
          **_COUNT),
    _port("training_failures_total", "accel_link_training_failures_total",
          "Trainings that gave up.", "training_failures", **_COUNT),
    _port("downs_total", "accel_link_downs_total", "Times the link stopped carrying data.",
          "downs", **_COUNT),
    _port("fec_codewords_total", "accel_port_fec_codewords_total", "Codewords received.",
          "fec_codewords", **_COUNT),
    _port("fec_corrected_bits_total", "accel_port_fec_corrected_bits_total",
          "Bits that FEC corrected.", "fec_corrected_bits", **_COUNT),
    _port("fec_uncorrectable_total", "accel_port_fec_uncorrectable_total",
          "Codewords that FEC could not correct.", "fec_uncorrectable", **_COUNT),
    _card("case_temp_c", "case_temperature_celsius", "Temperature of the module's case."),
    _card("supply_v", "supply_volts", "Supply of the optics."),
    _hbm("hbm_temp_c", "temperature_celsius", "Temperature of the HBM."),
    _hbm("ecc_sbe_total", "corrected_errors_total", "Single-bit errors, corrected.", "ecc_sbe",
         **_COUNT),
    _hbm("ecc_dbe_total", "uncorrectable_errors_total", "Double-bit errors, detected.",
         "ecc_dbe", **_COUNT),
)  # fmt: skip

BY_NAME: dict[str, Figure] = {figure.name: figure for figure in FIGURES}
LEVELS: dict[str, Level] = {figure.name: figure.level for figure in FIGURES}


def of_level(level: Level) -> tuple[Figure, ...]:
    return tuple(figure for figure in FIGURES if figure.level is level)
