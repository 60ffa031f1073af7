"""accel_lane_*: light and bits of every lane, as its own end sees them."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge


def collect(snapshot: HostSnapshot) -> list[Family]:
    tx_power = gauge("accel_lane_tx_power_dbm", "Light launched.")
    rx_power = gauge("accel_lane_rx_power_dbm", "Light received; -40 is the register's floor.")
    bias = gauge("accel_lane_tx_bias_amperes", "Current through the laser.")
    margin = gauge("accel_lane_margin_db", "Light to spare; absent in the dark.")
    q = gauge("accel_lane_q_factor", "Quality of the eye; absent in the dark.")
    ber = gauge("accel_lane_pre_fec_error_ratio", "Bit errors per bit before FEC.")
    tx_on = gauge("accel_lane_tx_on", "1 while the laser is on.")
    los = gauge("accel_lane_los", "1 while no light arrives.")
    lol = gauge("accel_lane_lol", "1 while the receiver has no lock.")
    used = gauge("accel_lane_used", "1 while the lane carries data.")
    received = counter("accel_lane_rx_bytes_total", "Bytes of the line received, idle or not.")
    errors = counter("accel_lane_pre_fec_errors_total", "Bit errors before FEC.")
    los_count = counter("accel_lane_los_events_total", "Times the light was lost.")
    lol_count = counter("accel_lane_lol_events_total", "Times the lock was lost.")
    for port in (p for c in snapshot.cards for p in c.ports):
        at, rows = port.lane_labels, port.lanes
        lit = rows["fitted_margin"].tolist()
        tx_power.add_all(at, rows["tx_power_dbm"].tolist())
        rx_power.add_all(at, rows["rx_power_dbm"].tolist())
        bias.add_all(at, [round(ma / 1e3, 9) for ma in rows["tx_bias_ma"].tolist()])
        margin.add_present(at, rows["margin_db"].tolist(), lit)
        q.add_present(at, rows["q"].tolist(), lit)
        ber.add_present(at, rows["pre_fec_ber"].tolist(), lit)
        tx_on.add_all(at, rows["tx_on"].tolist())
        los.add_all(at, rows["los"].tolist())
        lol.add_all(at, rows["lol"].tolist())
        used.add_all(at, rows["used"].tolist())
        received.add_all(at, (rows["rx_bits"] / 8).tolist())
        errors.add_all(at, rows["pre_fec_errors"].tolist())
        los_count.add_all(at, rows["los_count"].tolist())
        lol_count.add_all(at, rows["lol_count"].tolist())
    return [
        tx_power, rx_power, bias, margin, q, ber, tx_on, los, lol, used,
        received, errors, los_count, lol_count,
    ]  # fmt: skip
