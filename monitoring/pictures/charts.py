"""Panels with a time axis: lines, states and heat maps, with legends and marks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import Locator, MaxNLocator, MultipleLocator, NullLocator

from pictures.answers import Answered
from pictures.looks import COLOURS, clock, options_of, said
from pictures.prometheus import Series
from pictures.sheet import FAINT, LINE, NORMAL, SMALL, Box, Sheet, text_px
from pictures.units import written

SERIES = (
    "#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8", "#19730e", "#1f60c4",
    "#c4162a", "#fa6400", "#7c2ea3", "#37872d", "#96d98d", "#8ab8ff", "#ffa6b0", "#ca95e5",
)  # fmt: skip
LEGEND_LINE_PX, LEGEND_KEY_PX, LEGEND_GAP_PX = 13, 14, 10
AXIS_PX, RIGHT_PX = 54, 14  # room for the values of an axis, and for the end of its last time
TIME_STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
BINARY_UNITS = frozenset({"bytes", "binBps"})


def timeseries(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = answered.panels[panel["id"]]
    options = options_of(panel)
    names = list(dict.fromkeys(name for name, _ in found))
    colours = {name: SERIES[place % len(SERIES)] for place, name in enumerate(names)}
    looks = {name: options_of(panel, name) for name in names}
    for name, look in looks.items():
        if "color" in look and "fixedColor" in look["color"]:
            colours[name] = COLOURS[look["color"]["fixedColor"]]
    lines = _legend_lines(names, box.w)
    height_px = box.h - 18 - LEGEND_LINE_PX * len(lines)
    plot = Box(box.x + AXIS_PX, box.y, box.w - AXIS_PX - RIGHT_PX, height_px)
    axes = sheet.axes(plot)
    _time_axis(axes, plot, answered)
    if not found:
        _nothing(axes, options)
        return
    for name, series in found:
        dashed = "custom.lineStyle" in looks[name]
        times, values = _with_gaps(series, answered.span.step_s)
        axes.plot(
            times, values, color=colours[name], linewidth=1.0, zorder=3 if dashed else 2,
            linestyle=(0, (6, 4)) if dashed else "-", drawstyle="default",
        )  # fmt: skip
    _bands(axes, found, looks, colours)
    _value_axis(axes, options, found)
    _limits(axes, options)
    _marks(axes, answered)
    _legend(sheet, box, lines, colours)


def timeline(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = answered.panels[panel["id"]]
    options = options_of(panel)
    size = min(SMALL, (box.h - 32) / max(len(found), 1) * 0.6)
    left = min(max((text_px(name, size) for name, _ in found), default=0) + 8, box.w * 0.45)
    plot = Box(box.x + left, box.y, box.w - left - RIGHT_PX, box.h - 32)
    axes = sheet.axes(plot)
    _time_axis(axes, plot, answered)
    if not found:
        _nothing(axes, options)
        return
    states: dict[str, str] = {}
    for row, (_, series) in enumerate(found):
        for begin_s, end_s, value in spells(series, answered.span.step_s):
            text, colour = said(value, options)
            states[text] = colour
            axes.barh(-row, end_s - begin_s, 0.8, begin_s, align="center", color=colour, alpha=0.8)
    axes.set_yticks([-row for row in range(len(found))], [name for name, _ in found], size=size)
    axes.set_ylim(-len(found) + 0.5, 0.5)
    axes.set_xlim(answered.span.start_s, answered.span.end_s)
    _legend(sheet, box, [list(states)], states)


def heatmap(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = sorted(answered.panels[panel["id"]], key=lambda pair: pair[0])
    options = options_of(panel)
    plot = Box(box.x + 24, box.y, box.w - 80, box.h - 18)
    axes = sheet.axes(plot)
    _time_axis(axes, plot, answered)
    if not found:
        _nothing(axes, options)
        return
    span = answered.span
    cells = np.full((len(found), round((span.end_s - span.start_s) / span.step_s) + 1), np.nan)
    for row, (_, series) in enumerate(found):
        for time_s, value in series.points:
            cells[row, round((time_s - span.start_s) / span.step_s)] = value
    image = axes.imshow(
        cells, aspect="auto", origin="lower", cmap="turbo", interpolation="nearest",
        extent=(span.start_s, span.end_s, -0.5, len(found) - 0.5),
    )  # fmt: skip
    axes.set_yticks(range(len(found)), [name for name, _ in found])
    bar = sheet.axes(Box(plot.x + plot.w + 10, plot.y, 8, plot.h))
    sheet.figure.colorbar(image, cax=bar)
    bar.tick_params(labelsize=SMALL, colors=FAINT, length=2)
    _marks(axes, answered)


def _with_gaps(series: Series, step_s: float) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    for time_s, value in series.points:
        if times and time_s - times[-1] > 1.5 * step_s:
            times.append(time_s - step_s)
            values.append(math.nan)
        times.append(time_s)
        values.append(value)
    return times, values


def spells(series: Series, step_s: float) -> list[tuple[float, float, float]]:
    """Begin, end and value of each time without a change."""
    spells: list[tuple[float, float, float]] = []
    for time_s, value in series.points:
        if spells and spells[-1][2] == value and time_s - spells[-1][1] < step_s / 2:
            spells[-1] = spells[-1][0], time_s + step_s, value
        else:
            spells.append((time_s, time_s + step_s, value))
    return spells


def _bands(
    axes: Axes,
    found: list[tuple[str, Series]],
    looks: Mapping[str, Mapping[str, Any]],
    colours: Mapping[str, str],
) -> None:
    """From a threshold down to the one that it is filled to."""
    by_name = dict(found)
    for name, series in found:
        lower = by_name.get(looks[name].get("custom.fillBelowTo", ""))
        if lower is not None:
            times = [time_s for time_s, _ in series.points]
            axes.fill_between(
                times, series.last, lower.last, color=colours[name], alpha=0.12, linewidth=0
            )


def _limits(axes: Axes, options: Mapping[str, Any]) -> None:
    """Fixed values that the panel draws as lines."""
    style = options.get("custom", {}).get("thresholdsStyle", {}).get("mode", "off")
    for step in options["thresholds"]["steps"] if style != "off" else ():
        if step["value"] is not None:
            colour = COLOURS[step["color"]]
            axes.axhline(step["value"], color=colour, linewidth=1, linestyle=(0, (6, 4)))


def _value_axis(axes: Axes, options: Mapping[str, Any], found: list[tuple[str, Series]]) -> None:
    unit = options["unit"]
    if options.get("custom", {}).get("scaleDistribution", {}).get("type") == "log":
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        values = [value for _, series in found for _, value in series.points]
        low, high = min(values), max(values)
        low = min(low, options.get("min", low))
        room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        axes.set_ylim(low if "min" in options else low - room, high + room)
        axes.yaxis.set_major_locator(_value_ticks(high - low, unit))
    if unit == "sci":
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
    else:
        axes.yaxis.set_major_formatter(lambda value, _: written(value, unit))
    axes.grid(axis="y", color=LINE, linewidth=0.5)


def _value_ticks(range_: float, unit: str) -> Locator:
    if unit not in BINARY_UNITS or range_ <= 0:
        return MaxNLocator(6, steps=[1, 2, 5, 10])
    power = math.floor(math.log(range_, 1024))
    steps = (n * 1024**p for p in (power - 1, power) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500))
    return MultipleLocator(next(step for step in steps if range_ / step <= 6))


def _time_axis(axes: Axes, box: Box, answered: Answered) -> None:
    begin_s, end_s = answered.span.start_s, answered.span.end_s
    axes.set_xlim(begin_s, end_s)
    most = max(2.0, box.w / 80)
    fitting = (step for step in TIME_STEPS_S if (end_s - begin_s) / step <= most)
    axes.xaxis.set_major_locator(MultipleLocator(next(fitting, TIME_STEPS_S[-1])))
    axes.xaxis.set_major_formatter(lambda time_s, _: clock(time_s))


def _marks(axes: Axes, answered: Answered) -> None:
    """A line where something begins."""
    colours = {m["name"]: COLOURS[m["iconColor"]] for m in answered.board["annotations"]["list"]}
    for name, found in answered.marks.items():
        for time_s in {time_s for series in found for time_s in begins(series)}:
            axes.axvline(time_s, color=colours[name], linewidth=0.7, linestyle=":", zorder=1)


def begins(series: Series) -> list[float]:
    """When something was counted: the series begins, or is higher than just before."""
    values = [-math.inf, *(value for _, value in series.points)]
    return [
        time_s
        for (time_s, value), last in zip(series.points, values[:-1], strict=True)
        if value > last
    ]


def _legend_lines(names: list[str], width_px: float, most: int = 2) -> list[list[str]]:
    """What fits; the last line ends with how many more there are."""
    lines: list[list[str]] = [[]]
    used = 0.0
    for place, name in enumerate(names):
        needs = text_px(name) + LEGEND_KEY_PX + LEGEND_GAP_PX
        if used + needs > width_px - (60 if len(lines) == most else 0):
            if len(lines) == most:
                lines[-1].append(f"+{len(names) - place} more")
                return lines
            lines.append([])
            used = 0.0
        lines[-1].append(name)
        used += needs
    return lines


def _legend(sheet: Sheet, box: Box, lines: list[list[str]], colours: Mapping[str, str]) -> None:
    for place, names in enumerate(lines):
        y = box.y + box.h - LEGEND_LINE_PX * (len(lines) - 1 - place) + 1
        x = box.x
        for name in names:
            if name in colours:
                sheet.block(x, y - 4, 10, 1.5, colours[name])
            sheet.text(x + LEGEND_KEY_PX, y, name, color=FAINT)
            x += text_px(name) + LEGEND_KEY_PX + LEGEND_GAP_PX


def _nothing(axes: Axes, options: Mapping[str, Any]) -> None:
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, options.get("noValue", "No data"), transform=axes.transAxes, color=FAINT,
        ha="center", va="center", size=NORMAL,
    )  # fmt: skip
