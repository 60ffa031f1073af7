"""Of a link: every port with a fibre, as the end of a link that it is; its FEC and its frames."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.fields.field import (
    Column,
    Derived,
    Field,
    Labelled,
    Noun,
    Sample,
    each_label,
    joined,
    label,
)
from acceld.host.snapshot import PortSnapshot
from accelhw.model.link import DownReason, LinkState

LINK = Noun.LINK
STATES = tuple(LinkState)
STATE_LABELS = each_label("state", tuple(state.name for state in STATES))
FEC_BINS = 16
BIN_LABELS = each_label("bin", tuple(str(n) for n in range(FEC_BINS)))


def _info(port: PortSnapshot) -> Iterator[Sample]:
    fibre, peer, lane = port.info.fibre, port.peer, port.profile.lane
    if fibre is not None:
        yield (
            joined(
                label("fibre", fibre.name),
                label("transport", fibre.transport),
                label("peer_card", peer.card if peer else ""),
                label("peer_oe", f"oe{peer.oe}" if peer else ""),
                label("modulation", lane.modulation),
                label("fec", lane.fec),
            ),
            1,
        )


def _mode(port: PortSnapshot) -> Iterator[Sample]:
    if port.mode is not None:
        yield label("mode", port.mode), 1


def _state(port: PortSnapshot) -> Iterator[Sample]:
    for state, at in zip(STATES, STATE_LABELS, strict=True):
        yield at, int(port.state is state)


def _reason(code: int) -> Iterator[Sample]:
    if code and code in DownReason._value2member_map_:
        yield label("reason", DownReason(code).name), 1


def _own_reason(port: PortSnapshot) -> Iterator[Sample]:
    return _reason(0 if port.state.carries_data else int(port.row["reason"]))


def _peer_reason(port: PortSnapshot) -> Iterator[Sample]:
    return _reason(0 if port.state.carries_data else int(port.row["peer_reason"]))


def _bins(port: PortSnapshot) -> Iterator[Sample]:
    return zip(BIN_LABELS, port.fec_bins, strict=False)


def _loss(port: PortSnapshot) -> float | None:
    return None if port.info.fibre is None else port.info.fibre.loss_db


def _counter(group: str, metric: str, text: str, column: str, key: str, unit: str = "") -> Field:
    return Field(
        LINK, group, metric, text, Column(column), unit, kind="counter", message="Link", key=key
    )


LINK_FIELDS = (
    Field(
        LINK, "link", "accel_link_info",
        "The link's fibre, peer and kind of light; always 1.",
        Labelled(
            _info, ("fibre", "transport", "peer_card", "peer_oe", "modulation", "fec"), 1
        ), kind="info",
    ),
    Field(
        LINK, "link", "accel_link_mode_info",
        "The FEC and symbol rate that it trained in, as `kp4` or `kr4/2`; always 1.",
        Labelled(_mode, ("mode",), 1), kind="info", message="Link", key="mode",
    ),
    Field(
        LINK, "link", "accel_link_up",
        "1 while the link carries data, with all lanes or fewer.",
        Derived(lambda port: port.state.carries_data),
    ),
    Field(
        LINK, "link", "accel_link_state", "State of the link: 1 for the one it is in.",
        Labelled(_state, ("state",), len(STATES)), message="Link", key="state",
    ),
    Field(
        LINK, "link", "accel_link_admin_up", "1 when the link is switched on.",
        Column("admin_up"), message="Link", key="admin_up",
    ),
    Field(
        LINK, "link", "accel_link_down_reason", "Why the link is not up; absent when it is.",
        Labelled(_own_reason, ("reason",), 0), message="Link", key="reason",
    ),
    Field(
        LINK, "link", "accel_link_peer_down_reason",
        "Why the far end says that the link is not up; absent when it is.",
        Labelled(_peer_reason, ("reason",), 0), message="Link", key="peer_reason",
    ),
    Field(
        LINK, "link", "accel_link_up_time_seconds",
        "When the link came up, Unix time; absent while it is not.",
        Derived(lambda port: port.up_since_ns), "seconds", 1e9, message="Link", key="up_time",
    ),
    Field(
        LINK, "link", "accel_link_width_lanes", "Lanes that carry data.",
        Column("width"), message="Link", key="width_lanes",
    ),
    Field(
        LINK, "link", "accel_link_full_width_lanes",
        "Lanes that carry data at full width; spare ones are not among them.",
        Derived(lambda port: port.profile.data_lanes), message="Link", key="full_width_lanes",
    ),
    Field(
        LINK, "link", "accel_link_capacity_bytes_per_second",
        "Data rate of the lanes that carry data.",
        Derived(lambda port: port.capacity_gbit_per_s * 1e9 / 8), "bytes_per_second",
        message="Link", key="capacity_gbit_per_s", key_divisor=1e9 / 8,
    ),
    Field(
        LINK, "link", "accel_link_margin_min_db", "Margin of the worst lane; absent in the dark.",
        Derived(lambda port: port.margin_db_min), "dB", message="Link", key="margin_min_db",
    ),
    Field(
        LINK, "link", "accel_link_pre_fec_error_max_ratio",
        "Bit errors per bit before FEC of the worst lane; absent in the dark.",
        Derived(lambda port: port.pre_fec_ber_max), "ratio",
        message="Link", key="pre_fec_ber_max",
    ),
    Field(
        LINK, "link", "accel_link_fibre_loss_db", "Loss of the fibre with its connectors.",
        Derived(_loss), "dB", message="Link", key="fibre.loss_db",
    ),
    Field(
        LINK, "link", "accel_link_training_duration_seconds",
        "How long the last successful training took.",
        Column("training_ns", when="training_ns"), "seconds", 1e9,
        message="Link", key="training_ms", key_divisor=1e6,
    ),
    Field(
        LINK, "link", "accel_link_round_trip_seconds",
        "Round trip measured in training, on this host.",
        Column("rtt_ns", when="rtt_ns"), "seconds", 1e9,
        message="Link", key="rtt_us", key_divisor=1e3,
    ),
    _counter(
        "link", "accel_link_trainings_total", "Successful trainings.",
        "trainings", "trainings_total",
    ),
    _counter(
        "link", "accel_link_training_failures_total", "Trainings that gave up.",
        "training_failures", "training_failures_total",
    ),
    _counter(
        "link", "accel_link_downs_total", "Times the link stopped carrying data.",
        "downs", "downs_total",
    ),
    _counter(
        "link", "accel_link_recoveries_total",
        "Troubles that the link came through without going down.",
        "recoveries", "recoveries_total",
    ),
    _counter(
        "link", "accel_link_recovery_failures_total",
        "Troubles that it tried to come through, and that took it down.",
        "recovery_failures", "recovery_failures_total",
    ),
    _counter(
        "link", "accel_link_flaps_total",
        "Times that light or errors failed it, recovered from, damped or not.",
        "flaps", "flaps_total",
    ),
    _counter(
        "link", "accel_link_flaps_damped_total",
        "Flaps after which it was held down until it was quiet.",
        "flaps_damped", "flaps_damped_total",
    ),
    _counter(
        "link", "accel_link_fallbacks_total",
        "Trainings that failed and were repeated in a slower mode.",
        "fallbacks", "fallbacks_total",
    ),
    _counter(
        "link", "accel_link_equaliser_requests_total",
        "Requests to the far transmitters for other taps, over all lanes and trainings.",
        "equaliser_requests", "equaliser_requests_total",
    ),
)  # fmt: skip

FEC_FIELDS = (
    _counter(
        "fec", "accel_link_fec_codewords_total",
        "Codewords received while the link was up, at the line rate.",
        "fec_codewords", "fec_counters.codewords_total",
    ),
    _counter(
        "fec", "accel_link_fec_corrected_bit_errors_total", "Bit errors that FEC corrected.",
        "fec_corrected_bits", "fec_counters.corrected_bits_total",
    ),
    _counter(
        "fec", "accel_link_fec_corrected_symbols_total", "Symbols that FEC corrected.",
        "fec_corrected_symbols", "fec_counters.corrected_symbols_total",
    ),
    _counter(
        "fec", "accel_link_fec_uncorrectable_codewords_total",
        "Codewords with more wrong symbols than FEC corrects.",
        "fec_uncorrectable", "fec_counters.uncorrectable_codewords_total",
    ),
    _counter(
        "fec", "accel_link_fec_lock_losses_total",
        "Times that three uncorrectable codewords in a row lost the lock.",
        "fec_lock_losses", "fec_counters.lock_losses_total",
    ),
    Field(
        LINK, "fec", "accel_link_fec_correctable_symbols",
        "Symbols in a codeword that FEC corrects; absent without FEC.",
        Column("fec_t", when="fec_t"), message="Link", key="fec_counters.correctable_symbols",
    ),
    Field(
        LINK, "fec", "accel_link_fec_bin_codewords_total",
        "Codewords with exactly so many corrected symbols, as `bin` says; absent without FEC.",
        Labelled(_bins, ("bin",), FEC_BINS), kind="counter",
        message="Link", key="fec_counters.bins",
    ),
    Field(
        LINK, "fec", "accel_link_predicted_frame_loss_ratio",
        "Chance that the largest frame of the fibre meets an uncorrectable codeword (without FEC:"
        " any wrong bit), from the lanes' bit errors now; before replay. Absent while not up.",
        Derived(lambda port: port.predicted_frame_loss), "ratio",
        message="Link", key="fec_counters.predicted_frame_loss_ratio",
    ),
)  # fmt: skip

# Column of the row, which with accel_port_ and _total is the family, and what it counts.
PORT_COUNTERS = (
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
PORT_FIELDS = (
    *(
        _counter(
            "port", f"accel_port_{column}_total", text, column, f"counters.{column}_total",
            "bytes" if column.endswith("_bytes") else "",
        )
        for column, text in PORT_COUNTERS
    ),
    Field(
        LINK, "port", "accel_port_in_flight_frames", "Frames sent and not yet acknowledged.",
        Column("in_flight_frames"), message="Link", key="counters.in_flight_frames",
    ),
    Field(
        LINK, "port", "accel_port_credit_frames",
        "Frames that the far end allows to be in flight.",
        Column("credit_frames"), message="Link", key="counters.credit_frames",
    ),
)  # fmt: skip
