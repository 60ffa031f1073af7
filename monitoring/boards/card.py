"""A card: its state, heat, supply, bus and links."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    drill,
    figure,
    lines,
    states,
    with_levels,
    worst_first,
)
from boards.page import CARDS, DOWNS_OF_CARDS, FAULTS, POWER_CYCLES, RESETS, Shelf, Wide, board
from boards.words import (
    ALL_IS_GOOD,
    ANY_IS_ODD,
    CARD,
    CARD_STATES,
    EACH_CARD,
    HEALTH,
    LINK_STATES,
    MARGIN_DB,
    PER_CARD,
    PER_PORT,
    RATE,
    state_number,
)

UID = "accel-card"


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "card",
        "State, heat, supply and links of the chosen cards. Emulated cards.",
        CARDS,
        (DOWNS_OF_CARDS, RESETS, FAULTS, POWER_CYCLES),
        (
            Shelf(4, _figures()),
            Shelf(7, (Wide(14, _cards()), _flags()), "Which card"),
            Shelf(7, _states()),
            Shelf(8, _heat(), "Heat and supply"),
            Shelf(8, _work(), "What it does"),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Cards ready",
            "Of the chosen ones. A card that is not ready is being reset, or fell off the bus.",
            f'sum(accel_card_state{{{CARD},state="READY"}}) / count(accel_card_info{{{CARD}}})',
            "percentunit",
            ALL_IS_GOOD,
        ),
        figure(
            "Link ends up",
            "Ends of links of these cards that carry data.",
            f"sum(accel_card_links_up{{{CARD}}})",
            "short",
        ),
        figure(
            "Warmest case",
            "Of these cards; its levels are in the panel of case temperatures.",
            f"max(accel_card_case_temperature_celsius{{{CARD}}})",
            "celsius",
        ),
        figure(
            "Warmest HBM",
            "Of these cards. Refresh doubles at 85 °C, and at 95 °C the HBM slows down.",
            f"max(accel_hbm_temperature_celsius{{{CARD}}})",
            "celsius",
            ((None, "green"), (85, "orange"), (95, "red")),
        ),
        figure(
            "Power of all",
            "What optics and HBM of these cards take together.",
            f"sum(accel_card_power_watts{{{CARD}}})",
            "watt",
        ),
        figure(
            "Card flags on",
            "Figures of a card that are beyond a level now: heat and supply. The table names them.",
            f"sum(accel_card_flag_active{{{CARD}}})",
            "short",
            ANY_IS_ODD,
        ),
    ]


def _cards() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_CARD}) ({metric}{{{CARD}}})"

    return worst_first(
        "Cards",
        "A line for each card, the worst health first, with all that belongs to the card.",
        ("instance", "card"),
        [
            Column(
                "health",
                f'max by ({PER_CARD}) (accel_health_state{{{CARD},kind!~"host|daemon"}})',
                "none",
                names=HEALTH,
            ),
            Column(
                "state",
                state_number("accel_card_state", CARD, CARD_STATES, PER_CARD),
                "none",
                names=CARD_STATES,
            ),
            Column("links up", of("accel_card_links_up")),
            Column(
                "worst margin",
                f"min by ({PER_CARD}) (accel_link_margin_min_db{{{CARD}}})",
                "dB",
                MARGIN_DB,
            ),
            Column("case", of("accel_card_case_temperature_celsius"), "celsius"),
            Column("power", of("accel_card_power_watts"), "watt"),
            Column("resets", of("accel_card_resets_total")),
            Column("ready for", f"time() - {of('accel_card_ready_time_seconds')}", "s"),
        ],
        links=(("card", "Its lanes", "accel-lanes"),),
    )


def _flags() -> object:
    return worst_first(
        "Flags of cards",
        "Figures of a card beyond a level now (2), or since the flags were last cleared (1):"
        " `accelctl oe show` and `accelctl card show` name the level.",
        ("instance", "card", "flag"),
        [
            Column(
                "on or latched",
                f"accel_card_flag_active{{{CARD}}} + accel_card_flag_latched{{{CARD}}} > 0",
                "none",
                names={1: ("latched", "orange"), 2: ("on", "red")},
            )
        ],
        links=(("card", "Its lanes", "accel-lanes"),),
    )


def _states() -> list[object]:
    return [
        states(
            "State of cards",
            "A card that fell off the bus has lost the worker that carries it; it comes back by"
            " itself and trains its links again.",
            state_number("accel_card_state", CARD, CARD_STATES, PER_CARD),
            EACH_CARD,
            CARD_STATES,
        ),
        states(
            "Links of these cards",
            "The state of each end. Click a row to see the link with both its ends.",
            state_number("accel_link_state", CARD, LINK_STATES, PER_PORT),
            "{{card}}/{{oe}}",
            LINK_STATES,
        ).data_links([drill("This link", "accel-link", "instance", "card", "oe")]),
    ]


def _heat() -> list[object]:
    return [
        with_levels(
            lines(
                "Case temperature",
                "Of the network module and its engines. All cards together: the air. One card:"
                " its air path or its load. Lasers ask for more bias when it is warm.",
                "celsius",
                (f"accel_card_case_temperature_celsius{{{CARD}}}", EACH_CARD),
            ),
            "accel_card_case_temperature_threshold_celsius",
            CARD,
        ),
        with_levels(
            lines(
                "Supply",
                "Supply voltage of the optics. Beyond a level, look at the power supply and its"
                " connector before you look at the light.",
                "volt",
                (f"accel_card_supply_volts{{{CARD}}}", EACH_CARD),
            ),
            "accel_card_supply_threshold_volts",
            CARD,
        ),
        lines(
            "Power",
            "What optics and HBM take. Lit lanes make the base, moved bytes the rest.",
            "watt",
            (f"accel_card_power_watts{{{CARD}}}", EACH_CARD),
        ),
    ]


def _work() -> list[object]:
    return [
        lines(
            "Internal bus",
            "Bytes between HBM and the network module. Read is what leaves by light, written is"
            " what arrives.",
            "binBps",
            (f"rate(accel_card_bus_read_bytes_total{{{CARD}}}[{RATE}])", EACH_CARD + " read"),
            (f"rate(accel_card_bus_written_bytes_total{{{CARD}}}[{RATE}])", EACH_CARD + " written"),
        ),
        lines(
            "Signal lines in use",
            "Share of the network module's lines whose lane carries data. Engines without a fibre"
            " keep theirs unused; a drop is a link that went down or lost lanes.",
            "percentunit",
            (
                f"accel_network_signal_lines_used{{{CARD}}} / accel_network_signal_lines{{{CARD}}}",
                EACH_CARD,
            ),
        ),
        lines(
            "Links up",
            "Links of each card that carry data. A step down with a mark beside it tells the"
            " cause.",
            "short",
            (f"accel_card_links_up{{{CARD}}}", EACH_CARD),
        ),
    ]
