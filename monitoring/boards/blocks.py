"""Panels that explain themselves, and the ways from one board to the next.

Built with grafana-foundation-sdk, so a misspelt option fails here and not in Grafana.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsConfig,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from accelhw.model.profile import profile_names
from boards.words import HOST, LEVELS, PER_CARD, PLAIN, Names, Steps

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
FROM_ZERO = frozenset({"binBps", "bytes", "cps", "s", "short"})  # units of what is never negative


def steps_of(steps: Steps) -> ThresholdsConfig:
    return ThresholdsConfig(
        mode=ThresholdsMode.ABSOLUTE,
        steps=[Threshold(value=value, color=colour) for value, colour in steps],
    )


def names_of(names: Names) -> ValueMap:
    return ValueMap(
        options={
            f"{value:g}": ValueMappingResult(text=text, color=colour, index=index)
            for index, (value, (text, colour)) in enumerate(names.items())
        }
    )


# ---- from a board to the next -------------------------------------------------------------------


def way(board: str, *handed: str, table: bool = False) -> str:
    """The address of another board with this one's variables and time, and the labels `handed` of
    the series, or of the table's row, that was clicked."""
    row = "${__data.fields.%s}" if table else "${__field.labels.%s}"
    variables = [f"${{{name}:queryparam}}" for name in ("datasource", "job")]
    variables += [f"var-{name}={row % name}" for name in handed]
    return f"/d/{board}?{'&'.join(variables)}&${{__url_time_range}}"


def drill(title: str, board: str, *handed: str) -> dashboard.DashboardLink:
    address = way(board, *handed)
    return dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(address)


# ---- panels -------------------------------------------------------------------------------------


def query(expr: str, legend: str = "", ref: str = "A") -> prometheus.Dataquery:
    """Over the time shown; those of one panel need different `ref`s."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SOURCE)


def now(expr: str, ref: str = "A") -> prometheus.Dataquery:
    """At the end of the time shown."""
    return query(expr, "", ref).instant()


def figure(
    title: str, why: str, expr: str, unit: str, steps: Steps = PLAIN, names: Names | None = None
) -> stat.Panel:
    """One number, as it is now."""
    panel = (
        stat.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .thresholds(_Made(steps_of(steps)))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .no_value("none")
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(now(expr))
    )
    return panel.mappings([names_of(names)]) if names else panel


def lines(title: str, why: str, unit: str, *queries: tuple[str, str]) -> timeseries.Panel:
    """Series over time, from pairs of an expression and the legend of its series."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .line_width(1)
        .fill_opacity(0)
        .show_points(VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(TooltipDisplayMode.MULTI)
            .sort(SortOrder.DESCENDING)
        )
    )  # fmt: skip
    for ref, (expr, legend) in zip(ascii_uppercase, queries, strict=False):
        panel.with_target(query(expr, legend, ref))
    return panel.min(0) if unit in FROM_ZERO else panel


def with_levels(panel: timeseries.Panel, metric: str, where: str) -> timeseries.Panel:
    """Adds the thresholds that the daemon exports, as dashed lines with bands between warning and
    alarm. Cards of one profile share theirs, so there is a set for each profile."""
    expr = (
        f"max by (profile, level) ({metric}{{{where}}}"
        f" * on ({PER_CARD}) group_left (profile) accel_card_info{{{HOST}}})"
    )
    panel.with_target(query(expr, "{{profile}} {{level}}", "Z"))
    for kind, colour in LEVELS.items():
        panel.override_by_regexp(
            f"/ (low|high)_{kind}$/",
            [
                DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour}),
                DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
            ],
        )
    for profile in profile_names():
        for upper, lower in (("low_warning", "low_alarm"), ("high_alarm", "high_warning")):
            panel.override_by_name(
                f"{profile} {upper}",
                [
                    DynamicConfigValue("custom.fillBelowTo", f"{profile} {lower}"),
                    DynamicConfigValue("custom.fillOpacity", 12),
                ],
            )
    return panel


def with_limits(panel: timeseries.Panel, steps: Steps) -> timeseries.Panel:
    """Dashed lines at fixed values."""
    return panel.thresholds(_Made(steps_of(steps))).thresholds_style(
        common.GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
    )


def logarithmic(panel: timeseries.Panel) -> timeseries.Panel:
    return panel.scale_distribution(
        common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10)
    )


def states(title: str, why: str, expr: str, legend: str, names: Names) -> statetimeline.Panel:
    """A row for each series, coloured by its state."""
    return (
        statetimeline.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("none")
        .mappings([names_of(names)])
        .line_width(0)
        .fill_opacity(80)
        .merge_values(True)
        .show_value(VisibilityMode.NEVER)
        .no_value("none in this time")
        .with_target(query(expr, legend))
    )


def heat(title: str, why: str, expr: str, legend: str) -> heatmap.Panel:
    """A row for each series, from the bottom in the order of their labels."""
    return (
        heatmap.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("short")
        .calculate(False)
        .hide_from(common.HideSeriesConfig())
        .color(
            heatmap.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Turbo")
            .scale(HeatmapColorScale.LINEAR)
            .steps(64)
        )
        .with_target(query(expr, legend))
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of each row of a table."""

    name: str
    expr: str
    unit: str = "short"
    steps: Steps = PLAIN
    names: Names | None = None


def worst_first(
    title: str,
    why: str,
    keys: Sequence[str],
    columns: Sequence[Column],
    *,
    high: bool = True,
    links: Sequence[tuple[str, str, str]] = (),
) -> table.Panel:
    """A row for each set of the labels `keys`, sorted by the first column: the highest value first,
    or the lowest; what has none is at the lowest. `links` say which key leads to which board."""
    panel = (
        table.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("short")
        .no_value("none")
        .sort_by([common.TableSortByFieldState().display_name(columns[0].name).desc(high)])
        .with_transformation(DataTransformerConfig("merge", options={}))
    )
    renamed = {}
    for ref, column in zip(ascii_uppercase, columns, strict=False):
        panel.with_target(now(column.expr, ref).format(PromQueryFormat.TABLE))
        renamed["Value" if len(columns) == 1 else f"Value #{ref}"] = column.name
        panel.override_by_name(column.name, _cell(column))
    order = [*keys, *renamed]
    panel.with_transformation(
        DataTransformerConfig(
            "organize",
            options={
                "excludeByName": {"Time": True, "job": True},
                "indexByName": {name: place for place, name in enumerate(order)},
                "renameByName": renamed,
            },
        )
    )
    for key, text, board in links:
        handed = [name for name in ("instance", "card", "oe", "lane") if name in keys]
        handed = handed[: handed.index(key) + 1]
        link = {"title": text, "url": way(board, *handed, table=True)}
        panel.override_by_name(key, [DynamicConfigValue("links", [link])])
    return panel


def _cell(column: Column) -> list[DynamicConfigValue]:
    look: list[DynamicConfigValue] = [DynamicConfigValue("unit", column.unit)]
    if column.names:
        look.append(DynamicConfigValue("mappings", [names_of(column.names)]))
    if column.names or len(column.steps) > 1:
        look.append(DynamicConfigValue("thresholds", steps_of(column.steps)))
        look.append(DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
    return look


class _Made:
    """What a builder's method takes where the value is there already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def build(self) -> Any:
        return self._value
