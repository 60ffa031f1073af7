"""accel_link_*: every port with a fibre, as the end of a link that it is."""

from __future__ import annotations

from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Family, counter, gauge, joined, label
from accelhw.model.link import DownReason, LinkState


def collect(snapshot: HostSnapshot) -> list[Family]:
    info = gauge("accel_link_info", "The link's fibre, peer and kind of light; always 1.")
    up = gauge("accel_link_up", "1 while the link carries data, with all lanes or fewer.")
    state = gauge("accel_link_state", "State of the link: 1 for the one it is in.")
    admin = gauge("accel_link_admin_up", "1 when the link is switched on.")
    reason = gauge("accel_link_down_reason", "Why the link is not up; absent when it is.")
    width = gauge("accel_link_width_lanes", "Lanes that carry data.")
    capacity = gauge(
        "accel_link_capacity_bytes_per_second", "Data rate of the lanes that carry data."
    )
    margin = gauge("accel_link_margin_min_db", "Margin of the worst lane; absent in the dark.")
    loss = gauge("accel_link_fibre_loss_db", "Loss of the fibre with its connectors.")
    training = gauge(
        "accel_link_training_duration_seconds", "How long the last successful training took."
    )
    trip = gauge("accel_link_round_trip_seconds", "Round trip measured in training, on this host.")
    trainings = counter("accel_link_trainings_total", "Successful trainings.")
    failures = counter("accel_link_training_failures_total", "Trainings that gave up.")
    downs = counter("accel_link_downs_total", "Times the link stopped carrying data.")
    for port in (p for c in snapshot.cards for p in c.ports):
        fibre = port.info.fibre
        if fibre is None:
            continue
        at, row, lane = port.labels, port.row, port.profile.lane
        peer = port.peer
        info.add(
            joined(
                at,
                label("fibre", fibre.name),
                label("transport", fibre.transport),
                label("peer_card", peer.card if peer else ""),
                label("peer_oe", f"oe{peer.oe}" if peer else ""),
                label("modulation", lane.modulation),
                label("fec", lane.fec),
            ),
            1,
        )
        up.add(at, int(port.state.carries_data))
        for possible in LinkState:
            state.add(joined(at, label("state", possible.name)), int(port.state is possible))
        admin.add(at, int(row["admin_up"]))
        code = int(row["reason"])
        if code and not port.state.carries_data and code in DownReason._value2member_map_:
            reason.add(joined(at, label("reason", DownReason(code).name)), 1)
        width.add(at, int(row["width"]))
        capacity.add(at, port.capacity_gbit_per_s * 1e9 / 8)
        if (worst := port.margin_db_min) is not None:
            margin.add(at, worst)
        loss.add(at, fibre.loss_db)
        if row["trainings"]:
            training.add(at, int(row["training_ns"]) / 1e9)
        if row["rtt_ns"]:
            trip.add(at, int(row["rtt_ns"]) / 1e9)
        trainings.add(at, int(row["trainings"]))
        failures.add(at, int(row["training_failures"]))
        downs.add(at, int(row["downs"]))
    return [
        info, up, state, admin, reason, width, capacity, margin, loss, training, trip,
        trainings, failures, downs,
    ]  # fmt: skip
