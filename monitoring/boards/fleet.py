"""The fleet: is every host, card and link well, and which to look at first?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    drill,
    figure,
    lines,
    states,
    worst_first,
)
from boards.page import (
    CARDS,
    DAEMON_STARTS,
    DOWNS_OF_CARDS,
    FAULTS,
    POWER_CYCLES,
    Shelf,
    Wide,
    board,
)
from boards.words import (
    ALL_IS_GOOD,
    ANY_IS_BAD,
    ANY_IS_ODD,
    CARD,
    EACH_HOST,
    EACH_PORT,
    HEALTH,
    HOST,
    LINK_STATES,
    MARGIN_DB,
    PER_CARD,
    PER_HOST,
    PER_PORT,
    RATE,
    YES_NO,
    how_many,
    state_number,
)

UID = "accel-fleet"
OBJECT = "job, instance, kind, card, oe, lane"


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "fleet",
        "Is every host, card and link well, and which to look at first? Emulated cards.",
        CARDS,
        (DOWNS_OF_CARDS, FAULTS, DAEMON_STARTS, POWER_CYCLES),
        (
            Shelf(4, _figures()),
            Shelf(9, (Wide(14, _not_well()), _hosts()), "What is not well, worst first"),
            Shelf(8, (Wide(14, _links()), _health()), "Over time"),
            Shelf(8, _traffic()),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Hosts silent",
            "Daemons that Prometheus cannot scrape now. Their links may be well; look at"
            " `systemctl status acceld` there.",
            how_many(f"up{{{HOST}}} == 0", f"up{{{HOST}}}"),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Cards ready",
            "Cards that work, of all that the daemons report. The board of cards tells which is"
            " not.",
            f'sum(accel_card_state{{{CARD},state="READY"}}) / count(accel_card_info{{{CARD}}})',
            "percentunit",
            ALL_IS_GOOD,
        ),
        figure(
            "Link ends up",
            "Ends of links that carry data, of all that have a fibre. Those that do not stand in"
            " the table below, and on the board of training with their reasons.",
            f"avg(accel_link_up{{{CARD}}})",
            "percentunit",
            ALL_IS_GOOD,
        ),
        figure(
            "Degraded ends",
            "Links that are up at less than full width. Look at the lanes of that engine.",
            how_many(
                f'accel_link_state{{{CARD},state="DEGRADED"}} == 1', f"accel_link_up{{{CARD}}}"
            ),
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Smallest margin",
            "The lane with the least light to spare; below 0 dB its receiver cannot lock. The"
            " board of lanes has them all, worst first.",
            f"min(accel_link_margin_min_db{{{CARD}}})",
            "dB",
            MARGIN_DB,
        ),
        figure(
            "Capacity",
            "Data rate of all lanes that carry data, both directions of a link counted. It falls"
            " with links that are down, narrow or in a slower mode.",
            f"sum(accel_link_capacity_bytes_per_second{{{CARD}}}) * 8",
            "bps",
        ),
        figure(
            "Critical",
            "Objects whose health is critical: cards, engines, links, lanes, hosts and daemons."
            " Each is in the table below with its reason.",
            how_many(f"accel_health_state{{{CARD}}} == 3", f"accel_health_state{{{CARD}}}"),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Injected faults",
            "What was made wrong by command, lane by lane: the truth beside what is seen. None on a"
            " rack that nobody plays with.",
            how_many(f"accel_fault_active{{{CARD}}}", f"accel_card_info{{{CARD}}}"),
            "short",
            ANY_IS_ODD,
        ),
    ]


def _not_well() -> object:
    return worst_first(
        "Not well, and why",
        "Each object that is not ok with each reason. The same with what to do next: `accelctl"
        " health show`. Click a card, an engine or a lane to see it.",
        ("instance", "kind", "card", "oe", "lane", "reason"),
        [
            Column(
                "health",
                f"accel_health_reason{{{CARD}}} * on ({OBJECT}) group_left ()"
                f" accel_health_state{{{CARD}}} > 0",
                "none",
                names=HEALTH,
            )
        ],
        links=(
            ("card", "This card", "accel-card"),
            ("oe", "This link", "accel-link"),
            ("lane", "This lane", "accel-lanes"),
        ),
    )


def _hosts() -> object:
    def total(metric: str) -> str:
        return f"sum by ({PER_HOST}) ({metric}{{{HOST}}})"

    return worst_first(
        "Hosts",
        "A line for each daemon, the worst health first. Not attached: the emulated hardware does"
        " not answer, see `systemctl status accel-chassis`.",
        ("instance",),
        [
            Column("health", f'max by ({PER_HOST}) (accel_health_state{{{HOST},kind="host"}})',
                   "none", names=HEALTH),
            Column("attached", total("accel_daemon_chassis_attached"), "none", names=YES_NO),
            Column("cards", f"count by ({PER_HOST}) (accel_card_info{{{HOST}}})"),
            Column("ends up", total("accel_link_up")),
            Column("of", f"count by ({PER_HOST}) (accel_link_up{{{HOST}}})"),
            Column("power", total("accel_card_power_watts"), "watt"),
        ],
        links=(("instance", "Its daemon", "accel-daemon"),),
    )  # fmt: skip


def _links() -> object:
    return states(
        "Links",
        "The state of each end; both ends of a link change together. Click a row to see the link"
        " with both its ends.",
        state_number("accel_link_state", CARD, LINK_STATES, PER_PORT),
        EACH_PORT,
        LINK_STATES,
    ).data_links([drill("This link", "accel-link", "instance", "card", "oe")])


def _health() -> object:
    return states(
        "Health of cards",
        "Each card with all that belongs to it: the worst of its engines, links and lanes. Grace is"
        " training that was asked for, and no trouble.",
        f'max by ({PER_CARD}) (accel_health_state{{{CARD},kind!~"host|daemon"}})',
        "{{instance}} {{card}}",
        HEALTH,
    ).data_links([drill("This card", "accel-card", "instance", "card")])


def _traffic() -> list[object]:
    return [
        lines(
            "Payload by light",
            "HBM bytes that arrived by light, replays not counted. These are real bytes on this"
            " machine's interfaces; the capacity above is that of the emulated lanes.",
            "binBps",
            (f"sum by ({PER_HOST}) (rate(accel_port_rx_payload_bytes_total{{{CARD}}}[{RATE}]))",
             EACH_HOST),
        ),
        lines(
            "Repair",
            "Damaged frames and what was sent again because of them, per second. Steady repair"
            " means a link with little light: look at the smallest margin.",
            "cps",
            (f"sum by ({PER_HOST}) (rate(accel_port_crc_errors_total{{{CARD}}}[{RATE}]))",
             "{{instance}} CRC errors"),
            (f"sum by ({PER_HOST}) (rate(accel_port_replayed_frames_total{{{CARD}}}[{RATE}]))",
             "{{instance}} replays"),
        ),
        lines(
            "Power",
            "What optics and HBM of all chosen cards take. It follows lit lanes and moved bytes.",
            "watt",
            (f"sum by ({PER_HOST}) (accel_card_power_watts{{{CARD}}})", EACH_HOST),
        ),
    ]  # fmt: skip
