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
    api: str = ""  # its field in the API, where that is not its name
    judged: bool = True  # a scenario may expect something of it

    @property
    def key(self) -> str:
        return self.api or self.name


def _lane(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    family = f"accel_lane_{family}" if family else ""
    return Figure(name, Level.LANE, column or name, family, help_, **more)  # type: ignore[arg-type]


def _port(name: str, family: str, help_: str, column: str = "", **more: object) -> Figure:
    family = f"accel_link_{family}"
    return Figure(name, Level.PORT, column or name, family, help_, **more)  # type: ignore[arg-type]


def _engine(name: str, family: str, help_: str, **more: object) -> Figure:
    more |= {"judged": False}  # what is judged is a link
    return Figure(name, Level.PORT, name, f"accel_oe_{family}", help_, **more)  # type: ignore[arg-type]


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
    _lane("snr_db", "snr_db", "Signal over noise at the receiver; absent in the dark.", **_LIT),
    _lane(
        "pre_fec_ber",
        "pre_fec_error_ratio",
        "Bit errors per bit before FEC; absent in the dark.",
        **_LIT,
    ),
    _lane("laser_temp_c", "laser_temperature_celsius", "Temperature of the lane's laser."),
    _lane(
        "laser_wear_ratio",
        "laser_wear_ratio",
        "How much of the way to its bias limit the laser has gone: 1 is worn out.",
    ),
    _lane(
        "tec_current_ratio",
        "tec_current_ratio",
        "Current of the laser's cooler over its limit; negative heats.",
    ),
    _lane("heater_mw", "heater_watts", "Power of the ring modulator's heater.", factor=1e-3),
    _lane("tx_on", "tx_on", "1 while the laser is on."),
    _lane("los", "los", "1 while no light arrives."),
    _lane("lol", "lol", "1 while the receiver has no lock."),
    _lane("carries_data", "used", "1 while the lane carries data.", "used"),
    _lane(
        "rx_bits_total",
        "rx_bytes_total",
        "Bytes of the line received, idle or not.",
        "rx_bits",
        counter=True,
        factor=1 / 8,
    ),
    _lane(
        "pre_fec_errors_total",
        "pre_fec_errors_total",
        "Bit errors before FEC.",
        "pre_fec_errors",
        **_COUNT,
    ),
    _lane("los_total", "los_events_total", "Times the light was lost.", "los_count", **_COUNT),
    _lane("lol_total", "lol_events_total", "Times the lock was lost.", "lol_count", **_COUNT),
    _engine("fitted_lanes", "lanes", "Lanes of the engine."),
    _engine("lanes_lit_count", "lanes_lit", "Lanes that receive light."),
    _engine("flags_active_count", "flags_active", "Flags of its lanes that are on now."),
    _engine(
        "flags_latched_count",
        "flags_latched",
        "Flags of its lanes that were on since they were last cleared by command.",
    ),
    _engine(
        "flag_changes_total",
        "flag_changes_total",
        "Changes of all flags of its lanes, on and off alike.",
        **_COUNT,
    ),
    _port("admin_up", "admin_up", "1 when the link is switched on."),
    _port("width_lanes", "width_lanes", "Lanes that carry data.", "width"),
    _port(
        "full_width_lanes",
        "full_width_lanes",
        "Lanes that carry data at full width; spare ones are not among them.",
    ),
    _port(
        "capacity_gbit_per_s",
        "capacity_bytes_per_second",
        "Data rate of the lanes that carry data.",
        factor=1e9 / 8,
    ),
    _port("margin_min_db", "margin_min_db", "Margin of the worst lane; absent in the dark."),
    _port(
        "pre_fec_ber_max",
        "pre_fec_error_max_ratio",
        "Bit errors per bit before FEC of the worst lane; absent in the dark.",
    ),
    _port("trainings_total", "trainings_total", "Successful trainings.", "trainings", **_COUNT),
    _port(
        "training_failures_total",
        "training_failures_total",
        "Trainings that gave up.",
        "training_failures",
        **_COUNT,
    ),
    _port("downs_total", "downs_total", "Times the link stopped carrying data.", "downs", **_COUNT),
    _port(
        "recoveries_total",
        "recoveries_total",
        "Troubles that the link came through without going down.",
        "recoveries",
        **_COUNT,
    ),
    _port(
        "recovery_failures_total",
        "recovery_failures_total",
        "Troubles that it tried to come through, and that took it down.",
        "recovery_failures",
        **_COUNT,
    ),
    _port(
        "flaps_total",
        "flaps_total",
        "Times that light or errors failed it, recovered from, damped or not.",
        "flaps",
        **_COUNT,
    ),
    _port(
        "flaps_damped_total",
        "flaps_damped_total",
        "Flaps after which it was held down until it was quiet.",
        "flaps_damped",
        **_COUNT,
    ),
    _port(
        "fallbacks_total",
        "fallbacks_total",
        "Trainings that failed and were repeated in a slower mode.",
        "fallbacks",
        **_COUNT,
    ),
    _port(
        "fec_codewords_total",
        "fec_codewords_total",
        "Codewords received while the link was up, at the line rate.",
        "fec_codewords",
        api="codewords_total",
        **_COUNT,
    ),
    _port(
        "fec_corrected_bits_total",
        "fec_corrected_bit_errors_total",
        "Bit errors that FEC corrected.",
        "fec_corrected_bits",
        api="corrected_bits_total",
        **_COUNT,
    ),
    _port(
        "fec_corrected_symbols_total",
        "fec_corrected_symbols_total",
        "Symbols that FEC corrected.",
        "fec_corrected_symbols",
        api="corrected_symbols_total",
        **_COUNT,
    ),
    _port(
        "fec_uncorrectable_total",
        "fec_uncorrectable_codewords_total",
        "Codewords with more wrong symbols than FEC corrects.",
        "fec_uncorrectable",
        api="uncorrectable_codewords_total",
        **_COUNT,
    ),
    _port(
        "fec_lock_losses_total",
        "fec_lock_losses_total",
        "Times that three uncorrectable codewords in a row lost the lock.",
        "fec_lock_losses",
        api="lock_losses_total",
        **_COUNT,
    ),
    _port(
        "fec_correctable_symbols",
        "fec_correctable_symbols",
        "Symbols in a codeword that FEC corrects; absent without FEC.",
        "fec_t",
        present="fec_t",
        api="correctable_symbols",
    ),
    _card("links_up_count", "links_up", "Links of the card that carry data."),
    _card("resets_total", "resets_total", "Resets by command.", "resets", **_COUNT),
    _card(
        "case_temp_c",
        "case_temperature_celsius",
        "Temperature of the network module and its engines, at the case.",
    ),
    _card("supply_v", "supply_volts", "Supply voltage of the optics."),
    _card("power_w", "power_watts", "Power that optics and HBM take."),
    _hbm("hbm_temp_c", "temperature_celsius", "Temperature of the HBM."),
    _hbm(
        "hbm_refresh_ratio",
        "refresh_ratio",
        "Refresh rate over the usual one: 2 while the HBM is hot.",
        api="refresh_ratio",
    ),
    _hbm("hbm_throttled", "throttled", "1 while heat slows the HBM down.", api="throttled"),
    _hbm(
        "ecc_sbe_total",
        "corrected_errors_total",
        "Single-bit errors, corrected.",
        "ecc_sbe",
        api="corrected_errors_total",
        **_COUNT,
    ),
    _hbm(
        "ecc_dbe_total",
        "uncorrectable_errors_total",
        "Double-bit errors, detected.",
        "ecc_dbe",
        api="uncorrectable_errors_total",
        **_COUNT,
    ),
    _hbm("rows_remapped", "rows_remapped", "Rows that a spare one stands in for."),
    _hbm("rows_pending", "rows_pending", "Bad rows, out of use until the next reset."),
    _hbm("remap_failed", "remap_failed", "1 when a bank had no spare row left."),
)

BY_NAME: dict[str, Figure] = {figure.name: figure for figure in FIGURES if figure.judged}
LEVELS: dict[str, Level] = {name: figure.level for name, figure in BY_NAME.items()}


def of_level(level: Level) -> tuple[Figure, ...]:
    return tuple(figure for figure in FIGURES if figure.level is level)
