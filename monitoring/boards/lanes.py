"""Optical engines and lanes: the light behind a link, lane by lane, against its levels."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    drill,
    figure,
    heat,
    lines,
    logarithmic,
    states,
    with_levels,
    with_limits,
    worst_first,
)
from boards.page import DOWNS_OF_PORTS, FAULTS, LANES, RESETS, Shelf, Wide, board
from boards.words import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    EACH_LANE,
    LANE,
    MARGIN_DB,
    PER_LANE,
    PORT,
    RATE,
    RECEIVER,
    WEAR,
)

UID = "accel-lanes"
JOINED = "on (job, instance, card, oe)"
FIBRED = f"and {JOINED} accel_link_info{{{PORT}}}"  # an engine without a fibre is dark, and well


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "engines and lanes",
        "Light, lasers and bits of the chosen engines, lane by lane, against the thresholds that"
        " the modules report. Emulated cards.",
        LANES,
        (DOWNS_OF_PORTS, RESETS, FAULTS),
        (
            Shelf(4, _figures()),
            Shelf(10, (_table(),), "Worst margin first"),
            Shelf(9, _light(), "Light"),
            Shelf(8, (Wide(12, _margin()), _errors())),
            Shelf(11, (Wide(12, _receivers()), _flags()), "Receivers and flags"),
            Shelf(9, _fec(), "Error correction"),
            Shelf(8, _lasers(), "Lasers"),
            Shelf(7, _cooling()),
            Shelf(7, _external()),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Lanes lit",
            "Lanes of the chosen engines that receive light, of those whose engine has a fibre.",
            f"sum(accel_oe_lanes_lit{{{PORT}}} {FIBRED}) / sum(accel_oe_lanes{{{PORT}}} {FIBRED})",
            "percentunit",
            ((None, "red"), (1.0, "green")),
        ),
        figure(
            "Smallest margin",
            "The lane with the least light to spare; below 0 dB its receiver cannot lock.",
            f"min(accel_lane_margin_db{{{LANE}}})",
            "dB",
            MARGIN_DB,
        ),
        figure(
            "Worst error ratio",
            "Most bit errors per bit before FEC, of the lanes that see light.",
            f"max(accel_lane_pre_fec_error_ratio{{{LANE}}})",
            "sci",
        ),
        figure(
            "Lanes without lock",
            "Lanes with a fibre whose receiver has no lock, dark or not.",
            f"sum(accel_lane_lol{{{LANE}}} {FIBRED})",
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Lane flags on",
            "Figures of lanes that are beyond one of their levels now, engines with a fibre only.",
            f"sum(accel_oe_flags_active{{{PORT}}} {FIBRED})",
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Most worn laser",
            "How much of the way to its bias limit a laser has gone: at 100 % no current makes up"
            " for its age any more.",
            f"max(accel_lane_laser_wear_ratio{{{LANE}}})",
            "percentunit",
            WEAR,
        ),
    ]


def _table() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_LANE}) ({metric}{{{LANE}}} {FIBRED})"

    return worst_first(
        "Lanes",
        "The lane with the least light to spare on top, dark ones above all. Low Rx at normal far"
        " Tx is loss on the way: clean the connector. Bad errors at normal Rx are the receiver, or"
        " echoes.",
        ("instance", "card", "oe", "lane"),
        [
            Column("margin", of("accel_lane_margin_db"), "dB", MARGIN_DB),
            Column("Rx", of("accel_lane_rx_power_dbm"), "dBm"),
            Column("Tx", of("accel_lane_tx_power_dbm"), "dBm"),
            Column("error ratio", of("accel_lane_pre_fec_error_ratio"), "sci"),
            Column("Q", of("accel_lane_q_factor")),
            Column("SNR", of("accel_lane_snr_db"), "dB"),
            Column("bias", of("accel_lane_tx_bias_amperes"), "amp"),
            Column("wear", of("accel_lane_laser_wear_ratio"), "percentunit", WEAR),
            Column("carries data", of("accel_lane_used"), "none",
                   names={0: ("no", "orange"), 1: ("yes", "green")}),
        ],
        high=False,
        links=(("oe", "This link", "accel-link"), ("lane", "This lane alone", UID)),
    )  # fmt: skip


def _light() -> list[object]:
    return [
        with_levels(
            lines(
                "Rx power",
                "Light received: the far laser's power minus the loss on the way. Dashed: the"
                " levels of the modules, a set for each profile. Dark lanes (-40 dBm) are left out;"
                " they stand in the timeline of receivers.",
                "dBm",
                (f"accel_lane_rx_power_dbm{{{LANE}}} > -39 {FIBRED}", EACH_LANE),
            ).data_links([drill("This link", "accel-link", "instance", "card", "oe")]),
            "accel_oe_rx_power_threshold_dbm",
            PORT,
        ),
        with_levels(
            lines(
                "Tx power",
                "Light launched. Power control holds it while bias can rise; when it falls, the"
                " far end receives less. A dead laser (-40 dBm) is left out; look at its bias.",
                "dBm",
                (f"accel_lane_tx_power_dbm{{{LANE}}} > -39 {FIBRED}", EACH_LANE),
            ),
            "accel_oe_tx_power_threshold_dbm",
            PORT,
        ),
    ]


def _margin() -> object:
    return with_limits(
        lines(
            "Margin",
            "Light to spare above what the receiver needs: below 0 dB it cannot lock, below 1 dB it"
            " is time to clean. Absent in the dark.",
            "dB",
            (f"accel_lane_margin_db{{{LANE}}}", EACH_LANE),
        ),
        ((None, "transparent"), (0, "red"), (1, "orange")),
    )


def _errors() -> object:
    return logarithmic(
        with_levels(
            lines(
                "Bit error ratio before FEC",
                "From each lane's signal over noise. It moves by decades for a dB of light; above"
                " the dashed alarm, FEC no longer corrects all.",
                "sci",
                (f"accel_lane_pre_fec_error_ratio{{{LANE}}} > 1e-15", EACH_LANE),
            ),
            "accel_oe_pre_fec_error_threshold_ratio",
            PORT,
        )
    )


def _receivers() -> object:
    return states(
        "Receivers that had trouble",
        "Lanes that lost lock or light in the time shown. All lanes of an engine: the fibre or"
        " the far card. One lane: its connector or the far laser. Light without lock: too little"
        " of it, or the wrong kind.",
        f"(accel_lane_los{{{LANE}}} + accel_lane_lol{{{LANE}}})"
        f" and on ({PER_LANE}) (max_over_time(accel_lane_lol{{{LANE}}}[$__range] @ end()) > 0"
        f" {FIBRED})",
        EACH_LANE,
        RECEIVER,
    )


def _flags() -> object:
    return worst_first(
        "Which flags are on",
        "Figures of lanes beyond a level now, with the number of lanes of the engine that have it."
        " `accelctl oe show` tells the lanes; a latch stays until it is cleared by command.",
        ("instance", "card", "oe", "flag"),
        [
            Column(
                "lanes",
                "count by (job, instance, card, oe, flag)"
                f" (accel_lane_flag_active{{{LANE}}} {FIBRED})",
            )
        ],
        links=(("oe", "This link", "accel-link"),),
    )


def _fec() -> list[object]:
    return [
        heat(
            "Codewords by corrected symbols",
            "How many codewords a second had so many wrong symbols, as a power of ten: 3 is a"
            " thousand a second. A tail that grows upward comes close to what FEC corrects (15"
            " symbols with kp4, 7 with kr4); the top row is the last before frames are lost.",
            "log10(sum by (bin) (label_replace(rate(accel_link_fec_bin_codewords_total"
            f'{{{PORT}}}[{RATE}]), "bin", "0$1", "bin", "(.)")) > 0)',
            "{{bin}}",
        ),
        logarithmic(
            lines(
                "Corrected and uncorrectable",
                "Symbols that FEC corrected, and codewords that had more wrong ones than it can."
                " The second mean damaged frames and replays. Lines end where there are none.",
                "cps",
                (f"rate(accel_link_fec_corrected_symbols_total{{{PORT}}}[{RATE}]) > 0",
                 "{{card}}/{{oe}} corrected"),
                (f"rate(accel_link_fec_uncorrectable_codewords_total{{{PORT}}}[{RATE}]) > 0",
                 "{{card}}/{{oe}} uncorrectable"),
            )
        ),
    ]  # fmt: skip


def _lasers() -> list[object]:
    return [
        with_levels(
            lines(
                "Laser bias",
                "Current through each lane's laser. Climbing at constant Tx power it is age;"
                " climbing with the temperature it is heat; zero is a dead laser.",
                "amp",
                (f"accel_lane_tx_bias_amperes{{{LANE}}}", EACH_LANE),
            ),
            "accel_oe_tx_bias_threshold_amperes",
            PORT,
        ),
        lines(
            "Laser wear",
            "How much of the way to its bias limit each laser has gone. A straight line tells"
            " when it will be there.",
            "percentunit",
            (f"accel_lane_laser_wear_ratio{{{LANE}}}", EACH_LANE),
        ).min(0),
        with_levels(
            lines(
                "Laser temperature",
                "A cooled laser holds it whatever the case does; beyond a level its cooler has"
                " failed or is at its limit, and the wavelength drifts.",
                "celsius",
                (f"accel_lane_laser_temperature_celsius{{{LANE}}}", EACH_LANE),
            ),
            "accel_oe_laser_temperature_threshold_celsius",
            PORT,
        ),
    ]


def _cooling() -> list[object]:
    return [
        lines(
            "Cooler current",
            "Of each cooled laser, over its limit: at 100 % it cools no more, below zero it heats.",
            "percentunit",
            (f"accel_lane_tec_current_ratio{{{LANE}}}", EACH_LANE),
        ),
        with_levels(
            lines(
                "Ring heaters",
                "Power that keeps each ring modulator on its wavelength, where there are any. At"
                " its rail the ring has lost its resonance: errors rise at normal power.",
                "watt",
                (f"accel_lane_heater_watts{{{LANE}}} {FIBRED}", EACH_LANE),
            ),
            "accel_oe_heater_threshold_watts",
            PORT,
        ),
    ]


def _external() -> list[object]:
    each = "{{card}}/{{oe}}/{{laser}}"
    return [
        lines(
            "External lasers: bias",
            "Current through each laser that feeds several lanes, where there are any. Zero: all"
            " its lanes are dark at the far end.",
            "amp",
            (f"accel_els_bias_amperes{{{PORT}}} {FIBRED}", each),
        ),
        lines(
            "External lasers: wear",
            "How much of the way to its bias limit each external laser has gone.",
            "percentunit",
            (f"accel_els_wear_ratio{{{PORT}}} {FIBRED}", each),
        ).min(0),
        lines(
            "External lasers: temperature",
            "Of each external laser; it is cooled, so it moves only when the cooler does not hold"
            " it.",
            "celsius",
            (f"accel_els_temperature_celsius{{{PORT}}} {FIBRED}", each),
        ),
        lines(
            "External lasers: cooler",
            "Current of the cooler over its limit: at 100 % it cools no more, below zero it heats.",
            "percentunit",
            (f"accel_els_tec_current_ratio{{{PORT}}} {FIBRED}", each),
        ),
    ]
