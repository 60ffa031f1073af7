"""A link: both its ends side by side, joined by what each says of its peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    drill,
    figure,
    heat,
    lines,
    logarithmic,
    states,
    with_levels,
)
from boards.page import FAULTS, HOSTS, PORTS, Mark, Shelf, Variable, Wide, board, counted_up
from boards.words import (
    ANY_IS_BAD,
    FRAME_LOSS,
    HOST,
    LINK_STATES,
    MARGIN_DB,
    PER_PORT,
    PORT,
    RATE,
    RECEIVER,
    THERE,
    counted,
    state_number,
)

UID = "accel-link"
NEAR, FAR = PORT, f'{HOST},card=~"$peer_card",oe=~"$peer_oe"'

INFO = f"accel_link_info{{{PORT}}}"
VARIABLES = (
    *(
        replace(variable, many=False) if variable not in HOSTS[:1] else variable
        for variable in PORTS
    ),
    Variable("peer_card", "Peer", f"label_values({INFO}, peer_card)", many=False, hidden=True),
    Variable("peer_oe", "Peer OE", f"label_values({INFO}, peer_oe)", many=False, hidden=True),
)
DOWNS: Mark = counted_up("This link went down", f"accel_link_downs_total{{{PORT}}}", "red")

# With card and OE chosen alike, the peer of cross-wired cards is no end of this link: each end is
# asked for by itself, and named.
EACH = "{{card}}/{{oe}}"


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "link",
        "Both ends of one link side by side: what this end launches, the other receives. Choose"
        " one end; the other follows from what it says of its peer. Emulated cards.",
        VARIABLES,
        (DOWNS, FAULTS),
        (
            Shelf(4, _both(_figures), "Here: $card/$oe. There: $peer_card/$peer_oe"),
            Shelf(6, (_states(), _reasons()), "State"),
            Shelf(9, _both(_rx), "Light: here, there"),
            Shelf(8, _both(_loss)),
            Shelf(5, _both(_receivers)),
            Shelf(8, _both(_errors), "Errors: here, there"),
            Shelf(8, _both(_fec)),
            Shelf(8, (_payload(), _repair(), _training()), "Frames of both ends"),
        ),
    )


def _both(panels: Callable[[str, str, str], list[object]]) -> list[object]:
    return [*panels("Here", NEAR, FAR), *panels("There", FAR, NEAR)]


def _figures(end: str, here: str, _there: str) -> list[object]:
    return [
        figure(
            f"{end}: state",
            "UP carries data with all lanes, DEGRADED with fewer. Down for more than a second or"
            " two, see the reasons below.",
            state_number("accel_link_state", here, LINK_STATES, PER_PORT),
            "none",
            names=LINK_STATES,
        ),
        figure(
            f"{end}: lanes",
            "Lanes that carry data now. Full width stands on the card's data sheet: 8 for dr8, 16"
            " for oio.",
            f"accel_link_width_lanes{{{here}}}",
            "short",
        ),
        figure(
            f"{end}: margin",
            "Of the worst lane of this receiver; 'none' in the dark.",
            f"accel_link_margin_min_db{{{here}}}",
            "dB",
            MARGIN_DB,
        ),
        figure(
            f"{end}: predicted loss",
            "Chance that a frame of the largest size is damaged on its way to this end, from the"
            " bit errors of its lanes now. Above 1e-6, clean or exchange before it is felt.",
            f"accel_link_predicted_frame_loss_ratio{{{here}}}",
            "sci",
            FRAME_LOSS,
        ),
    ]


def _states() -> object:
    return states(
        "Both ends",
        "They come up and go down together; when one is up alone, frames cross one way only.",
        " or ".join(
            state_number("accel_link_state", where, LINK_STATES, PER_PORT) for where in (NEAR, FAR)
        ),
        EACH,
        LINK_STATES,
    )


def _reasons() -> object:
    return states(
        "Why it was not up",
        "Reasons of both ends in the time shown; none while the link is up. `accelctl link show`"
        " adds the lane and what to do next.",
        f"accel_link_down_reason{{{NEAR}}} or accel_link_down_reason{{{FAR}}}",
        "{{card}}/{{oe}} {{reason}}",
        THERE,
    )


def _rx(end: str, here: str, _there: str) -> list[object]:
    return [
        with_levels(
            lines(
                f"{end}: Rx power",
                "Light received on each lane against the module's levels. Low at one end only:"
                " that end's connector, or the far lasers. Low at both: the cable. Dark lanes are"
                " left out.",
                "dBm",
                (f"accel_lane_rx_power_dbm{{{here}}} > -39", "{{lane}}"),
            ).data_links([drill("This lane", "accel-lanes", "instance", "card", "oe", "lane")]),
            "accel_oe_rx_power_threshold_dbm",
            here,
        )
    ]


def _loss(end: str, here: str, there: str) -> list[object]:
    launched = f"accel_lane_tx_power_dbm{{{there}}}"
    heard = f'label_replace({launched}, "peer_lane", "$1", "lane", "(.+)")'
    return [
        lines(
            f"{end}: loss on the way",
            "What the other end launches minus what this end receives, lane by lane, matched by"
            " the far lane that each one hears. More than fibre and connectors explain is dirt or"
            " a bend.",
            "dB",
            (
                f"sum by (lane) (accel_lane_info{{{here}}} * on (peer_lane) group_left () "
                f"max by (peer_lane) ({heard}))"
                f" - on (lane) (accel_lane_rx_power_dbm{{{here}}} > -39)",
                "{{lane}}",
            ),
            (f"accel_link_fibre_loss_db{{{here}}}", "fibre and connectors"),
        )
    ]


def _receivers(end: str, here: str, _there: str) -> list[object]:
    return [
        states(
            f"{end}: receivers",
            "Each lane's receiver: locked, light without lock, or dark. One lane dark is its"
            " laser at the other end or its own connector; all dark is the fibre.",
            f"accel_lane_los{{{here}}} + accel_lane_lol{{{here}}}",
            "{{lane}}",
            RECEIVER,
        )
    ]


def _errors(end: str, here: str, _there: str) -> list[object]:
    return [
        logarithmic(
            lines(
                f"{end}: error ratio before FEC",
                "Bit errors per bit of each lane that arrives here. One lane high is that lane;"
                " all high with normal Rx are echoes or the receiver.",
                "sci",
                (f"accel_lane_pre_fec_error_ratio{{{here}}} > 1e-15", "{{lane}}"),
            )
        )
    ]


def _fec(end: str, here: str, _there: str) -> list[object]:
    return [
        Wide(
            9,
            heat(
                f"{end}: codewords by corrected symbols",
                "Codewords a second with so many wrong symbols, as a power of ten. A tail that"
                " grows upward comes close to what FEC corrects. Empty on a link without FEC.",
                "log10(sum by (bin) (label_replace(rate(accel_link_fec_bin_codewords_total"
                f'{{{here}}}[{RATE}]), "bin", "0$1", "bin", "(.)")) > 0)',
                "{{bin}}",
            ),
        ),
        Wide(
            3,
            figure(
                f"{end}: uncorrectable",
                "Codewords in the time shown with more wrong symbols than FEC corrects; each may"
                " have damaged a frame, which was then sent again.",
                counted("accel_link_fec_uncorrectable_codewords_total", here),
                "short",
                ANY_IS_BAD,
            ),
        ),
    ]


def _payload() -> object:
    return lines(
        "Payload arriving",
        "HBM bytes accepted at each end, replays not counted.",
        "binBps",
        *((f"rate(accel_port_rx_payload_bytes_total{{{where}}}[{RATE}])", EACH)
          for where in (NEAR, FAR)),
    )  # fmt: skip


def _repair() -> object:
    return lines(
        "Damage and repair",
        "A frame with a wrong checksum at one end is sent again by the other. Replays without"
        " damage: acknowledgements got lost, or the interface drops frames.",
        "cps",
        *(
            (f"rate({metric}{{{where}}}[{RATE}])", f"{EACH} {what}")
            for metric, what in (
                ("accel_port_crc_errors_total", "CRC errors"),
                ("accel_port_replayed_frames_total", "replays"),
            )
            for where in (NEAR, FAR)
        ),
    )


def _training() -> object:
    return lines(
        "Trainings and troubles",
        "Counts since the card exists: a step is a training, a failed one, or a trouble that the"
        " link came through.",
        "short",
        (f"accel_link_trainings_total{{{NEAR}}}", "trainings"),
        (f"accel_link_training_failures_total{{{NEAR}}}", "failed trainings"),
        (f"accel_link_downs_total{{{NEAR}}}", "downs"),
        (f"accel_link_recoveries_total{{{NEAR}}}", "recoveries"),
    )
