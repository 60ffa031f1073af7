"""Transfers: what moves, how fast, what it takes on the wire, and what fails."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    drill,
    figure,
    lines,
    worst_first,
)
from boards.page import DOWNS_OF_PORTS, FAULTS, PORTS, RESETS, Shelf, Wide, board
from boards.words import (
    ANY_IS_BAD,
    EACH_CARD,
    EACH_PORT,
    HOST,
    PER_CARD,
    PER_HOST,
    PER_PORT,
    PORT,
    RATE,
    counted,
)

UID = "accel-transfers"
CARD_ONLY = f'{HOST},card=~"$card"'


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "transfers",
        "What moves between cards, how fast, what it takes on the wire, and what fails. The bytes"
        " are real, on interfaces of this machine; the cards are emulated.",
        PORTS,
        (DOWNS_OF_PORTS, RESETS, FAULTS),
        (
            Shelf(4, _figures()),
            Shelf(8, _rates(), "Bytes"),
            Shelf(8, (Wide(14, _table()), _ended()), "What failed"),
            Shelf(8, _wire(), "On the wire"),
            Shelf(8, _flow()),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Running",
            "Transfers that have not ended, all hosts chosen. One that stays while no payload"
            " moves waits for a link.",
            f"sum(accel_transfer_running{{{HOST}}})",
            "short",
        ),
        figure(
            "Done",
            "Transfers in the time shown that ended with every byte checked.",
            f"sum({counted('accel_transfer_done_total', CARD_ONLY)})",
            "short",
        ),
        figure(
            "Failed",
            "Transfers in the time shown that ended without all bytes. Where and why: `accelctl"
            " event list`.",
            f"sum({counted('accel_transfer_failed_total', CARD_ONLY)})",
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Moved by light",
            "HBM bytes that arrived by light in the time shown.",
            f"sum(increase(accel_port_rx_payload_bytes_total{{{PORT}}}[$__range]))",
            "bytes",
        ),
        figure(
            "Share of payload",
            "HBM bytes of all bytes sent in the time shown: the rest are headers, training, idle"
            " beats and replays.",
            f"sum(increase(accel_port_tx_payload_bytes_total{{{PORT}}}[$__range]))"
            f" / sum(increase(accel_port_tx_bytes_total{{{PORT}}}[$__range]))",
            "percentunit",
        ),
        figure(
            "Sent again",
            "Frames that were replayed, of all sent in the time shown. More than a percent costs"
            " speed: look at margins and at the host's drop counters.",
            f"sum(increase(accel_port_replayed_frames_total{{{PORT}}}[$__range]))"
            f" / sum(increase(accel_port_tx_frames_total{{{PORT}}}[$__range]))",
            "percentunit",
            ((None, "green"), (0.01, "orange"), (0.1, "red")),
        ),
    ]


def _rates() -> list[object]:
    return [
        lines(
            "Payload sent by each end",
            "HBM bytes sent for the first time. A copy between two cards is spread over all links"
            " between them; one that lags is narrow, slow or busy repairing.",
            "binBps",
            (f"rate(accel_port_tx_payload_bytes_total{{{PORT}}}[{RATE}])", EACH_PORT),
        ).data_links([drill("This link", "accel-link", "instance", "card", "oe")]),
        lines(
            "Payload received by each end",
            "HBM bytes accepted, replays not counted. Less than its peer sent: frames are lost.",
            "binBps",
            (f"rate(accel_port_rx_payload_bytes_total{{{PORT}}}[{RATE}])", EACH_PORT),
        ).data_links([drill("This link", "accel-link", "instance", "card", "oe")]),
        lines(
            "Internal bus",
            "Bytes that each card's bus took from HBM and put into it: copies inside a card too.",
            "binBps",
            (f"rate(accel_card_bus_read_bytes_total{{{CARD_ONLY}}}[{RATE}])",
             EACH_CARD + " read"),
            (f"rate(accel_card_bus_written_bytes_total{{{CARD_ONLY}}}[{RATE}])",
             EACH_CARD + " written"),
        ),
    ]  # fmt: skip


def _table() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_CARD}) ({counted(metric, CARD_ONLY)})"

    return worst_first(
        "Cards that transfers were posted to",
        "Counts in the time shown, most failures first. A card fails many when its links are down"
        " for longer than transfers wait, or a row of its HBM is bad.",
        ("instance", "card"),
        [
            Column("failed", of("accel_transfer_failed_total"), steps=ANY_IS_BAD),
            Column("done", of("accel_transfer_done_total")),
            Column("bus read", of("accel_card_bus_read_bytes_total"), "bytes"),
            Column("bus written", of("accel_card_bus_written_bytes_total"), "bytes"),
        ],
        links=(("card", "This card", "accel-card"),),
    )


def _ended() -> object:
    return lines(
        "Running, and ended",
        "Running is a number; done, failed and cancelled are per second.",
        "short",
        (f"sum by ({PER_HOST}) (accel_transfer_running{{{HOST}}})", "{{instance}} running"),
        (f"sum by ({PER_HOST}) (rate(accel_transfer_done_total{{{CARD_ONLY}}}[{RATE}]))",
         "{{instance}} done"),
        (f"sum by ({PER_HOST}) (rate(accel_transfer_failed_total{{{CARD_ONLY}}}[{RATE}]))",
         "{{instance}} failed"),
        (f"sum by ({PER_HOST}) (rate(accel_transfer_cancelled_total{{{CARD_ONLY}}}[{RATE}]))",
         "{{instance}} cancelled"),
    )  # fmt: skip


def _sum(metric: str) -> str:
    return f"sum(rate({metric}{{{PORT}}}[{RATE}]))"


def _wire() -> list[object]:
    return [
        lines(
            "Frames",
            "Of all types and all chosen ends. The beat of light and acknowledgements go on"
            " without any transfer.",
            "cps",
            (_sum("accel_port_tx_frames_total"), "sent"),
            (_sum("accel_port_rx_frames_total"), "received"),
            (_sum("accel_port_acks_sent_total"), "acknowledgements"),
        ),
        lines(
            "Damage",
            "What receivers refused: checksum (bit errors), gaps in the sequence (lost frames),"
            " frames of an earlier life of the link, and frames that are not ours.",
            "cps",
            (_sum("accel_port_crc_errors_total"), "CRC errors"),
            (_sum("accel_port_missing_frames_total"), "gaps"),
            (_sum("accel_port_duplicate_frames_total"), "duplicates"),
            (_sum("accel_port_stale_frames_total"), "of an earlier life"),
            (_sum("accel_port_malformed_frames_total"), "malformed"),
            (_sum("accel_port_foreign_frames_total"), "foreign"),
        ),
        lines(
            "Repair",
            "What was sent again, and why: asked for by the far end, or because it stayed silent.",
            "cps",
            (_sum("accel_port_replayed_frames_total"), "frames sent again"),
            (_sum("accel_port_nacks_sent_total"), "asked for"),
            (_sum("accel_port_replay_timeouts_total"), "no answer"),
        ),
    ]


def _flow() -> list[object]:
    return [
        lines(
            "Frames in flight",
            "Sent and not yet acknowledged, the most of each card's ends. At the credit the"
            " sender waits for the far end.",
            "short",
            (f"max by ({PER_CARD}) (accel_port_in_flight_frames{{{PORT}}})", EACH_CARD),
            (f"max(accel_port_credit_frames{{{PORT}}})", "credit"),
        ),
        lines(
            "Held back",
            "Times per second that the interface or the credits held data back: the wire is the"
            " limit, not the cards.",
            "cps",
            (f"sum by ({PER_PORT}) (rate(accel_port_tx_stalls_total{{{PORT}}}[{RATE}]))",
             EACH_PORT),
        ),
        lines(
            "Capacity of the links",
            "What the emulated lanes would carry, in both directions. Payload above is limited by"
            " this machine and not by these.",
            "bps",
            (f"sum by ({PER_HOST}) (accel_link_capacity_bytes_per_second{{{PORT}}}) * 8",
             "{{instance}}"),
        ),
    ]  # fmt: skip
