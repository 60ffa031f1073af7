"""Training and flaps: which links are restless, why, and what coming up costs."""

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
from boards.page import DOWNS_OF_PORTS, FAULTS, PORTS, RESETS, Shelf, Wide, board
from boards.words import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    EACH_PORT,
    LINK_STATES,
    PER_PORT,
    PORT,
    RATE,
    THERE,
    counted,
    how_many,
    state_number,
)

UID = "accel-training"


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "training and flaps",
        "Which links are restless, why they were not up, and what it takes to bring them up."
        " Emulated cards.",
        PORTS,
        (DOWNS_OF_PORTS, RESETS, FAULTS),
        (
            Shelf(4, _figures()),
            Shelf(9, (_table(),), "Most restless first"),
            Shelf(8, (Wide(12, _states()), _reasons()), "When and why"),
            Shelf(8, _over_time(), "What it takes"),
            Shelf(8, (Wide(12, _modes()), _uptime())),
        ),
    )


def _increase(metric: str) -> str:
    return counted(metric, PORT)


def _figures() -> list[object]:
    return [
        figure(
            "Ends not up",
            "Ends of links that are switched on and carry no data now.",
            how_many(
                f"accel_link_up{{{PORT}}} == 0 and accel_link_admin_up{{{PORT}}} == 1",
                f"accel_link_up{{{PORT}}}",
            ),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Downs",
            "Times that ends stopped carrying data in the time shown, planned or not. Each link"
            " counts at both its ends.",
            f"sum({_increase('accel_link_downs_total')})",
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Trainings",
            "Successful trainings in the time shown. As many as downs is well.",
            f"sum({_increase('accel_link_trainings_total')})",
            "short",
        ),
        figure(
            "Failed trainings",
            "Trainings that gave up in the time shown: they saw light or a peer, and something"
            " did not fit. The reasons are below.",
            f"sum({_increase('accel_link_training_failures_total')})",
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Flaps",
            "Times that light or errors failed a link in the time shown, recovered from or not.",
            f"sum({_increase('accel_link_flaps_total')})",
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "In a slower mode",
            "Ends that trained in half the symbol rate, because the full one bore too many errors.",
            how_many(
                f'accel_link_mode_info{{{PORT},mode=~".*/2"}}', f"accel_link_mode_info{{{PORT}}}"
            ),
            "short",
            ANY_IS_ODD,
        ),
    ]


def _table() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_PORT}) ({_increase(metric)})"

    return worst_first(
        "Links",
        "Counts over the time shown. Many downs with few failures: a loose plug. Many failures:"
        " levels or kinds that do not fit. Damped: held down until quiet, so that others do not"
        " suffer.",
        ("instance", "card", "oe"),
        [
            Column("downs", of("accel_link_downs_total"), steps=ANY_IS_ODD),
            Column("state", state_number("accel_link_state", PORT, LINK_STATES, PER_PORT), "none",
                   names=LINK_STATES),
            Column("flaps", of("accel_link_flaps_total")),
            Column("damped", of("accel_link_flaps_damped_total")),
            Column("trainings", of("accel_link_trainings_total")),
            Column("failed", of("accel_link_training_failures_total"), steps=ANY_IS_ODD),
            Column("recovered", of("accel_link_recoveries_total")),
            Column("not recovered", of("accel_link_recovery_failures_total"), steps=ANY_IS_ODD),
            Column("fallbacks", of("accel_link_fallbacks_total")),
            Column("up for", f"time() - max by ({PER_PORT}) (accel_link_up_time_seconds{{{PORT}}})",
                   "s"),
        ],
        links=(("oe", "This link", "accel-link"),),
    )  # fmt: skip


def _states() -> object:
    return states(
        "State of each end",
        "Purple looks for light, blue trains, orange is up with fewer lanes.",
        state_number("accel_link_state", PORT, LINK_STATES, PER_PORT),
        EACH_PORT,
        LINK_STATES,
    ).data_links([drill("This link", "accel-link", "instance", "card", "oe")])


def _reasons() -> object:
    return states(
        "Why ends were not up",
        "A row for each end and reason. ADMIN_DOWN, RETRAIN_COMMANDED and CARD_RESET were wanted."
        " PEER_DOWN sends you to the other end. What to do: `accelctl link show`.",
        f"accel_link_down_reason{{{PORT}}}",
        "{{card}}/{{oe}} {{reason}}",
        THERE,
    )


def _over_time() -> list[object]:
    return [
        lines(
            "Duration of the last training",
            "How long it took to come up, on this machine. Longer than its fellows: more tries to"
            " lock or to equalise.",
            "s",
            (f"accel_link_training_duration_seconds{{{PORT}}}", EACH_PORT),
        ),
        lines(
            "Equaliser requests",
            "Requests for other taps to the far transmitters, per second: training at work.",
            "cps",
            (f"rate(accel_link_equaliser_requests_total{{{PORT}}}[{RATE}])", EACH_PORT),
        ),
        lines(
            "Downs and recoveries",
            "Per second, all chosen ends. Recoveries are troubles that nobody above the link"
            " noticed.",
            "cps",
            (f"sum(rate(accel_link_downs_total{{{PORT}}}[{RATE}]))", "downs"),
            (f"sum(rate(accel_link_recoveries_total{{{PORT}}}[{RATE}]))", "recoveries"),
            (
                f"sum(rate(accel_link_training_failures_total{{{PORT}}}[{RATE}]))",
                "failed trainings",
            ),
        ),
    ]


def _modes() -> object:
    return worst_first(
        "Modes",
        "FEC and symbol rate that each end trained in; /2 is half the rate. A fallback comes back"
        " by itself when both ends would bear the better mode. Lowest share of full width first.",
        ("instance", "card", "oe", "mode"),
        [
            Column(
                "width",
                f"accel_link_mode_info{{{PORT}}} * on ({PER_PORT}) group_left ()"
                f" (accel_link_width_lanes{{{PORT}}} / accel_link_full_width_lanes{{{PORT}}})",
                "percentunit",
                ((None, "red"), (0.01, "orange"), (1.0, "green")),
            )
        ],
        high=False,
        links=(("oe", "This link", "accel-link"),),
    )


def _uptime() -> object:
    return lines(
        "Round trip",
        "Measured in training, on this host: interfaces and processes, not light. A step up is a"
        " busy host.",
        "s",
        (f"accel_link_round_trip_seconds{{{PORT}}}", EACH_PORT),
    )
