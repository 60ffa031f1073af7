"""accel_port_*: what crossed the interface of each port with a fibre, and the retry layer."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge

# Family (with accel_port_ and _total) and column of the row, and what it counts.
COUNTERS = (
    ("tx_frames", "Frames sent, of all types."),
    ("tx_bytes", "Bytes of frames sent, of all types."),
    ("rx_frames", "Frames received, of all types."),
    ("rx_bytes", "Bytes of frames received, of all types."),
    ("tx_payload_bytes", "HBM bytes sent for the first time."),
    ("rx_payload_bytes", "HBM bytes accepted."),
    ("replayed_frames", "Frames sent again."),
    ("acks_sent", "Acknowledgements sent."),
    ("acks_received", "Acknowledgements received."),
    ("nacks_sent", "Requests for replay sent."),
    ("nacks_received", "Requests for replay received."),
    ("crc_errors", "Frames whose header or payload checksum differed."),
    ("malformed_frames", "Frames of our EtherType that are none of ours."),
    ("foreign_frames", "Frames of another EtherType."),
    ("stale_frames", "Frames of another life of the link."),
    ("duplicate_frames", "Frames that had come already."),
    ("missing_frames", "Gaps seen in the sequence."),
    ("replay_timeouts", "Replays because no acknowledgement came."),
    ("tx_stalls", "Times that the interface or the credits held data back."),
)


def collect(snapshot: HostSnapshot) -> list[Family]:
    ports = [p for c in snapshot.cards for p in c.ports if p.info.fibre is not None]
    labels = [port.labels for port in ports]
    families = []
    for column, text in COUNTERS:
        family = counter(f"accel_port_{column}_total", text)
        family.add_all(labels, [int(port.row[column]) for port in ports])
        families.append(family)
    in_flight = gauge("accel_port_in_flight_frames", "Frames sent and not yet acknowledged.")
    in_flight.add_all(labels, [int(port.row["in_flight_frames"]) for port in ports])
    credit = gauge("accel_port_credit_frames", "Frames that the far end allows to be in flight.")
    credit.add_all(labels, [int(port.row["credit_frames"]) for port in ports])
    return [*families, in_flight, credit]
