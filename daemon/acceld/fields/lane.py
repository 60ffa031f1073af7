"""Of a lane: its light, its laser and the bits that it receives, as its own end sees them."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.fields.field import (
    Column,
    Field,
    Kind,
    Labelled,
    Noun,
    Sample,
    joined,
    label,
)
from acceld.host.snapshot import PortSnapshot

LIT = "fitted_margin"  # there is light behind margin, Q, SNR and BER


def _lane(
    metric: str,
    text: str,
    column: str,
    key: str,
    unit: str = "",
    divisor: float = 1.0,
    *,
    kind: Kind = "gauge",
    when: str = "",
    fitted: str = "",
    group: str = "lane",
) -> Field:
    return Field(
        Noun.LANE, group, metric, text, Column(column, when), unit, divisor, kind,
        "Lane", key, fitted=fitted,
    )  # fmt: skip


def _info(port: PortSnapshot) -> Iterator[Sample]:
    kind = port.profile.lane
    peers: list[int] = port.lanes["peer_lane"].tolist()
    for lane, peer in enumerate(peers):
        wavelength_nm = kind.wavelength_nm + lane * kind.wavelength_step_nm
        yield (
            joined(
                label("lane", f"lane{lane}"),
                label("signal_line", port.signal_lines[lane]),
                label("channel", port.channels[lane]),
                label("peer_lane", f"lane{peer}" if peer >= 0 else ""),
                label("wavelength_nm", f"{wavelength_nm:g}"),
            ),
            1,
        )


LANE_FIELDS = (
    Field(
        Noun.ENGINE, "lane", "accel_lane_info",
        "The lane's signal line and channel, the far lane that it hears, its light; always 1.",
        Labelled(_info, ("lane", "signal_line", "channel", "peer_lane", "wavelength_nm"), 1),
        kind="info", counted=(Noun.LANE,),
    ),
    _lane("accel_lane_tx_power_dbm", "Light launched.", "tx_power_dbm", "tx_power_dbm", "dBm"),
    _lane(
        "accel_lane_rx_power_dbm", "Light received; -40 is the register's floor.",
        "rx_power_dbm", "rx_power_dbm", "dBm",
    ),
    _lane(
        "accel_lane_tx_bias_amperes", "Current through the laser.",
        "tx_bias_ma", "tx_bias_ma", "amperes", 1e3,
    ),
    _lane(
        "accel_lane_margin_db", "Light to spare; absent in the dark.",
        "margin_db", "margin_db", "dB", when=LIT,
    ),
    _lane("accel_lane_q_factor", "Quality of the eye; absent in the dark.", "q", "q", when=LIT),
    _lane(
        "accel_lane_snr_db", "Signal over noise at the receiver; absent in the dark.",
        "snr_db", "snr_db", "dB", when=LIT,
    ),
    _lane(
        "accel_lane_pre_fec_error_ratio", "Bit errors per bit before FEC; absent in the dark.",
        "pre_fec_ber", "pre_fec_ber", "ratio", when=LIT,
    ),
    _lane(
        "accel_lane_laser_temperature_celsius", "Temperature of the lane's laser.",
        "laser_temp_c", "laser_temp_c", "celsius",
    ),
    _lane(
        "accel_lane_laser_wear_ratio",
        "How much of the way to its bias limit the laser has gone: 1 is worn out.",
        "laser_wear_ratio", "laser_wear_ratio", "ratio",
    ),
    _lane(
        "accel_lane_tec_current_ratio",
        "Current of the laser's cooler over its limit; negative heats.",
        "tec_current_ratio", "tec_current_ratio", "ratio", fitted="cooled laser",
    ),
    _lane(
        "accel_lane_heater_watts", "Power of the ring modulator's heater.",
        "heater_mw", "heater_mw", "watts", 1e3, fitted="ring modulator",
    ),
    _lane("accel_lane_tx_on", "1 while the laser is on.", "tx_on", "tx_on"),
    _lane("accel_lane_los", "1 while no light arrives.", "los", "los"),
    _lane("accel_lane_lol", "1 while the receiver has no lock.", "lol", "lol"),
    _lane("accel_lane_used", "1 while the lane carries data.", "used", "carries_data"),
    _lane(
        "accel_lane_rx_bytes_total", "Bytes of the line received, idle or not.",
        "rx_bits", "rx_bits_total", "bytes", 8.0, kind="counter",
    ),
    _lane(
        "accel_lane_pre_fec_errors_total", "Bit errors before FEC.",
        "pre_fec_errors", "pre_fec_errors_total", kind="counter",
    ),
    _lane(
        "accel_lane_los_events_total", "Times the light was lost.",
        "los_count", "los_total", kind="counter",
    ),
    _lane(
        "accel_lane_lol_events_total", "Times the lock was lost.",
        "lol_count", "lol_total", kind="counter",
    ),
)  # fmt: skip
LANE_FEC_FIELDS = (
    _lane(
        "accel_lane_fec_corrected_symbols_total",
        "Symbols of this lane that FEC corrected; those of all lanes are the link's.",
        "fec_corrected_symbols", "fec_corrected_symbols_total", kind="counter", group="lane_fec",
    ),
)  # fmt: skip
