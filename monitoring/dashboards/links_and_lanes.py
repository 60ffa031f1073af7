"""The dashboard "Links and lanes" as code: `make dashboards` writes links_and_lanes.json.

Built with grafana-foundation-sdk, so a misspelt option fails here and not in Grafana.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    ScaleDistributionConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    GridPos,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)

TARGET = Path(__file__).with_suffix(".json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
PORTS = 'instance=~"$instance",card=~"$card"'
RATE = "$__rate_interval"
EACH_PORT = "{{card}}/{{oe}}"
EACH_LANE = "{{card}}/{{oe}}/{{lane}}"


def query(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    """A query of a panel; those of one panel need different `ref`s."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SOURCE)


def at(x: int, y: int, width: int, height: int) -> GridPos:
    """A place on Grafana's grid of 24 columns."""
    return GridPos(h=height, w=width, x=x, y=y)


def above(*levels: tuple[float | None, str]) -> dashboard.ThresholdsConfig:
    """Colours from each level upward; the first level is None, from the bottom."""
    steps = [Threshold(value=value, color=colour) for value, colour in levels]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def figure(title: str, why: str, expr: str, unit: str, place: GridPos) -> stat.Panel:
    return (
        stat.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .grid_pos(place)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(query(expr, ""))
    )


def lines(title: str, why: str, unit: str, place: GridPos) -> timeseries.Panel:
    return (
        timeseries.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .grid_pos(place)
        .line_width(1)
        .fill_opacity(0)
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )


LINK_STATES = {
    "1": ("DOWN", "text"),
    "2": ("SEEKING", "purple"),
    "3": ("TRAINING", "blue"),
    "4": ("UP", "green"),
    "5": ("DEGRADED", "orange"),
    "6": ("FAILED", "red"),
}


def state_names() -> ValueMap:
    return ValueMap(
        options={
            value: ValueMappingResult(text=text, color=colour, index=index)
            for index, (value, (text, colour)) in enumerate(LINK_STATES.items())
        }
    )


def state_number() -> str:
    """The one state of each link as its number: the metric has a series for each state."""
    series = (
        f'accel_link_state{{{PORTS},state="{name}"}} * {number}'
        for number, (name, _) in LINK_STATES.items()
    )
    return f"sum by (instance, card, oe) ({' or '.join(series)})"


def choice(name: str, label: str, values: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(values)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
    )


def build() -> dashboard.Dashboard:
    page = (
        dashboard.Dashboard("Accelerator cards: links and lanes")
        .uid("accel-links-and-lanes")
        .description("From a link that is down to the lane and the light that explain it.")
        .tags(["acceld"])
        .refresh("15s")
        .time("now-1h", "now")
        .timezone("browser")
        .readonly()
        .tooltip(1)  # a shared crosshair
        .with_variable(dashboard.DatasourceVariable("source").label("Source").type("prometheus"))
        .with_variable(choice("instance", "Host", "label_values(accel_link_up, instance)"))
        .with_variable(
            choice("card", "Card", 'label_values(accel_link_up{instance=~"$instance"}, card)')
        )
    )
    for panel in (*links(), *frames(), *lanes()):
        page.with_panel(panel)
    return page


def links() -> list[object]:
    """Is every link up, and how fast?"""
    return [
        figure(
            "Links up",
            "Ends of links that carry data, of all that have a fibre.",
            f"sum(accel_link_up{{{PORTS}}}) / count(accel_link_up{{{PORTS}}})",
            "percentunit",
            at(0, 0, 6, 4),
        ).thresholds(above((None, "red"), (1.0, "green"))),
        figure(
            "Capacity",
            "Sum over the ends that are up, by the lanes that carry data.",
            f"sum(accel_link_capacity_bytes_per_second{{{PORTS}}}) * 8",
            "bps",
            at(6, 0, 6, 4),
        ),
        figure(
            "Smallest margin",
            "The lane with the least light to spare; below 0 dB its receiver cannot lock.",
            f"min(accel_link_margin_min_db{{{PORTS}}})",
            "dB",
            at(12, 0, 6, 4),
        ).thresholds(above((None, "red"), (1.0, "orange"), (2.0, "green"))),
        figure(
            "Lanes in the dark",
            "Receivers of ports with a fibre that report loss of signal.",
            f"sum(accel_lane_los{{{PORTS}}} and on (instance, card, oe) accel_link_up{{{PORTS}}})",
            "short",
            at(18, 0, 6, 4),
        ).thresholds(above((None, "green"), (1.0, "red"))),
        statetimeline.Panel()
        .title("State of each link")
        .description("A row for each end. `accelctl link show` names the reason and what to do.")
        .datasource(SOURCE)
        .grid_pos(at(0, 4, 24, 7))
        .mappings([state_names()])
        .merge_values(True)
        .show_value(VisibilityMode.NEVER)
        .with_target(query(state_number(), EACH_PORT)),
    ]


def frames() -> list[object]:
    """What crosses the fibre, and what has to cross it again."""
    return [
        lines(
            "Payload received",
            "HBM bytes accepted, replays not counted.",
            "binBps",
            at(0, 11, 12, 8),
        ).with_target(
            query(f"rate(accel_port_rx_payload_bytes_total{{{PORTS}}}[{RATE}])", EACH_PORT)
        ),
        lines(
            "Damage and repair",
            "A frame that bit errors hit fails its CRC here and is replayed by the far end.",
            "ops",
            at(12, 11, 12, 8),
        )
        .with_target(
            query(
                f"rate(accel_port_crc_errors_total{{{PORTS}}}[{RATE}])",
                "{{card}}/{{oe}} CRC errors",
            )
        )
        .with_target(
            query(
                f"rate(accel_port_replayed_frames_total{{{PORTS}}}[{RATE}])",
                "{{card}}/{{oe}} replays",
                "B",
            )
        )
        .with_target(
            query(
                f"rate(accel_port_missing_frames_total{{{PORTS}}}[{RATE}])",
                "{{card}}/{{oe}} missing",
                "C",
            )
        ),
    ]


def lanes() -> list[object]:
    """Why: the light of each lane."""
    return [
        lines(
            "Rx power",
            "Light received: the far laser's power minus the fibre's loss.",
            "dBm",
            at(0, 19, 12, 9),
        ).with_target(query(f"accel_lane_rx_power_dbm{{{PORTS}}}", EACH_LANE)),
        lines(
            "Margin",
            "Light to spare above what the receiver needs. Absent in the dark.",
            "dB",
            at(12, 19, 12, 9),
        )
        .thresholds(above((None, "red"), (1.0, "orange"), (2.0, "transparent")))
        .with_target(query(f"accel_lane_margin_db{{{PORTS}}}", EACH_LANE)),
        lines(
            "Bit error ratio before FEC",
            "From each lane's signal over noise.",
            "sci",
            at(0, 28, 12, 9),
        )
        .scale_distribution(ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10))
        .with_target(query(f"accel_lane_pre_fec_error_ratio{{{PORTS}}} > 0", EACH_LANE)),
        lines(
            "Laser bias",
            "A bias that climbs at constant power is a laser that ages.",
            "mamp",
            at(12, 28, 12, 9),
        ).with_target(query(f"accel_lane_tx_bias_amperes{{{PORTS}}} * 1000", EACH_LANE)),
    ]


def main() -> int:
    TARGET.write_text(text())
    return 0


def text() -> str:
    return str(JSONEncoder(sort_keys=True, indent=2).encode(build().build())) + "\n"


if __name__ == "__main__":
    sys.exit(main())
