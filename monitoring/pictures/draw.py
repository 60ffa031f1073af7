"""Panels as pictures, in the places that a board gives them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import Locator, MaxNLocator, MultipleLocator, NullLocator

from boards import grafana
from pictures.answers import Answered, Cell, Table, table
from pictures.prometheus import Series
from pictures.units import written

matplotlib.use("Agg")

DPI = 100
WIDTH_PX, UNIT_PX, GAP_PX, HEAD_PX = 1320, 32, 6, 64
COLUMNS = 24
PAPER, CARD, LINE, INK, FAINT = "#f4f5f5", "#ffffff", "#d8d9dd", "#24292e", "#6e7680"
COLOURS = {
    "green": "#37872d", "red": "#c4162a", "orange": "#e0752d", "blue": "#1f60c4",
    "purple": "#8f3bb8", "text": "#3b4045", "transparent": "#00000000",
}  # fmt: skip
SERIES = (
    "#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8", "#19730e", "#1f60c4",
    "#c4162a", "#fa6400", "#7c2ea3", "#37872d", "#96d98d", "#8ab8ff", "#ffa6b0", "#ca95e5",
)  # fmt: skip
SMALL, NORMAL, LARGE = 7.0, 8.5, 19.0  # points
LEGEND_LINE_PX, LEGEND_KEY_PX, LEGEND_GAP_PX = 13, 14, 10
AXIS_PX, RIGHT_PX = 54, 14  # room for the values of an axis, and for the end of its last time
TIME_STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
BINARY_UNITS = frozenset({"bytes", "binBps"})


def draw(answered: Answered) -> Figure:
    """The whole board, all rows of panels one below the other."""
    board = answered.board
    units = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"])
    height_px = HEAD_PX + units * UNIT_PX + GAP_PX
    figure = Figure(figsize=(WIDTH_PX / DPI, height_px / DPI), dpi=DPI, facecolor=PAPER)
    sheet = Sheet(figure, height_px)
    _head(sheet, answered)
    for panel in board["panels"]:
        box = Box.of(panel["gridPos"])
        if panel["type"] == "row":
            title = grafana.put_in(panel["title"], board, answered.chosen, answered.span)
            sheet.text(box.x + 4, box.y + box.h / 2 + 4, f"⌄ {title}", size=10, weight="bold")
            continue
        sheet.frame(box)
        sheet.text(box.x + 8, box.y + 15, panel["title"], size=NORMAL, weight="bold")
        PANELS[panel["type"]](sheet, box.inside(), panel, answered)
    return figure


class Box:
    """Pixels, from the top left."""

    def __init__(self, x: float, y: float, w: float, h: float) -> None:
        self.x, self.y, self.w, self.h = x, y, w, h

    @classmethod
    def of(cls, place: Mapping[str, int]) -> Box:
        column = (WIDTH_PX - GAP_PX) / COLUMNS
        return cls(
            GAP_PX + place["x"] * column,
            HEAD_PX + place["y"] * UNIT_PX,
            place["w"] * column - GAP_PX,
            place["h"] * UNIT_PX - GAP_PX,
        )

    def inside(self) -> Box:
        """Below the title."""
        return Box(self.x + 8, self.y + 24, self.w - 16, self.h - 30)


class Sheet:
    """The figure, in pixels from the top left."""

    def __init__(self, figure: Figure, height_px: float) -> None:
        self.figure, self.height_px = figure, height_px

    def axes(self, box: Box) -> Axes:
        left, bottom = box.x / WIDTH_PX, 1 - (box.y + box.h) / self.height_px
        axes = self.figure.add_axes((left, bottom, box.w / WIDTH_PX, box.h / self.height_px))
        axes.set_facecolor(CARD)
        axes.tick_params(labelsize=SMALL, colors=FAINT, length=2)
        for spine in axes.spines.values():
            spine.set_color(LINE)
        return axes

    def frame(self, box: Box) -> None:
        self._rectangle(box, CARD, LINE)

    def block(self, x: float, y: float, w: float, h: float, colour: str) -> None:
        self._rectangle(Box(x, y, w, h), colour, colour)

    def line(self, x: float, y: float, w: float) -> None:
        """As thin as all others, wherever it falls between pixels."""
        height = 1 - round(y) / self.height_px
        ends = [x / WIDTH_PX, (x + w) / WIDTH_PX]
        self.figure.add_artist(Line2D(ends, [height, height], color=LINE, linewidth=0.6))

    def _rectangle(self, box: Box, face: str, edge: str) -> None:
        low_left = box.x / WIDTH_PX, 1 - (box.y + box.h) / self.height_px
        size = box.w / WIDTH_PX, box.h / self.height_px
        self.figure.add_artist(
            Rectangle(
                low_left, *size, facecolor=face, edgecolor=edge, linewidth=0.8,
                transform=self.figure.transFigure, zorder=-1,
            )
        )  # fmt: skip

    def text(self, x: float, y: float, text: str, **look: Any) -> None:
        look = {"color": INK, "size": SMALL, "va": "baseline", **look}
        self.figure.text(x / WIDTH_PX, 1 - y / self.height_px, text, parse_math=False, **look)


@cache
def _width_px(text: str, points: float = SMALL, weight: str = "normal") -> float:
    """Of a text as it will be drawn."""
    if not text.strip():
        return points * 0.3 * len(text)
    path = TextPath((0, 0), text, size=points, prop=FontProperties(weight=weight))
    return float(path.get_extents().x1) * DPI / 72


def _head(sheet: Sheet, answered: Answered) -> None:
    sheet.text(GAP_PX + 4, 24, answered.board["title"], size=14, weight="bold")
    shown = []
    for variable in grafana.variables(answered.board):
        value = answered.chosen[variable["name"]]
        if variable.get("hide") != 2:
            text = "All" if value is grafana.ALL else value
            text = text if isinstance(text, str) else " + ".join(text)
            shown.append(f"{variable['label']}: {text}")
    sheet.text(GAP_PX + 4, 46, "    ".join(shown), size=NORMAL, color=FAINT)
    begin, end = (f"{_clock(t)}" for t in (answered.span.start_s, answered.span.end_s))
    sheet.text(WIDTH_PX - GAP_PX - 4, 24, f"{begin} to {end} UTC", size=NORMAL, ha="right")
    x = WIDTH_PX - GAP_PX - 4.0
    for mark in reversed(answered.board["annotations"]["list"]):
        sheet.text(x, 46, mark["name"], color=FAINT, ha="right")
        x -= _width_px(mark["name"]) + 14
        sheet.block(x + 2, 39, 7, 7, COLOURS[mark["iconColor"]])
        x -= 10


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S")


# ---- colours and names of values ----------------------------------------------------------------


def _options(panel: Mapping[str, Any], column: str = "") -> dict[str, Any]:
    """Defaults of the fields, with what is overridden for that one."""
    found = dict(panel["fieldConfig"]["defaults"])
    for override in panel["fieldConfig"]["overrides"]:
        matcher = override["matcher"]
        wanted = matcher["options"]
        if wanted == column or (
            matcher["id"] == "byRegexp" and column and re.search(wanted.strip("/"), column)
        ):
            found.update({look["id"]: look.get("value") for look in override["properties"]})
    return found


def _said(value: float, options: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a value and its colour, by mappings and thresholds."""
    for mapping in options.get("mappings", ()):
        if found := mapping["options"].get(f"{value:g}"):
            return found["text"], COLOURS[found["color"]]
    colour = "text"
    for step in options.get("thresholds", {}).get("steps", ()):
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return written(value, options["unit"]), COLOURS[colour]


# ---- the kinds of panels ------------------------------------------------------------------------


def _stat(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    options = _options(panel)
    found = [series.last for _, series in answered.panels[panel["id"]]]
    said = [_said(value, options) for value in found] or [(options["noValue"], FAINT)]
    size = min(LARGE, SMALL * box.w / max(_width_px(text) for text, _ in said))
    for place, (text, colour) in enumerate(said):
        y = box.y + box.h * (place + 0.5) / len(said)
        middle = box.x + box.w / 2
        sheet.text(middle, y, text, size=size, color=colour, ha="center", va="center")


def _timeseries(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = answered.panels[panel["id"]]
    options = _options(panel)
    names = list(dict.fromkeys(name for name, _ in found))
    colours = {name: SERIES[place % len(SERIES)] for place, name in enumerate(names)}
    looks = {name: _options(panel, name) for name in names}
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
        return MaxNLocator(5)
    power = math.floor(math.log(range_, 1024))
    steps = (n * 1024**p for p in (power - 1, power) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500))
    return MultipleLocator(next(step for step in steps if range_ / step <= 6))


def _time_axis(axes: Axes, box: Box, answered: Answered) -> None:
    begin_s, end_s = answered.span.start_s, answered.span.end_s
    axes.set_xlim(begin_s, end_s)
    most = max(2.0, box.w / 80)
    fitting = (step for step in TIME_STEPS_S if (end_s - begin_s) / step <= most)
    axes.xaxis.set_major_locator(MultipleLocator(next(fitting, TIME_STEPS_S[-1])))
    axes.xaxis.set_major_formatter(lambda time_s, _: _clock(time_s))


def _marks(axes: Axes, answered: Answered) -> None:
    """A line where something begins."""
    colours = {m["name"]: COLOURS[m["iconColor"]] for m in answered.board["annotations"]["list"]}
    for name, found in answered.marks.items():
        for time_s in {series.points[0][0] for series in found}:
            axes.axvline(time_s, color=colours[name], linewidth=0.7, linestyle=":", zorder=1)


def _legend_lines(names: list[str], width_px: float, most: int = 2) -> list[list[str]]:
    """What fits; the last line ends with how many more there are."""
    lines: list[list[str]] = [[]]
    used = 0.0
    for place, name in enumerate(names):
        needs = _width_px(name) + LEGEND_KEY_PX + LEGEND_GAP_PX
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
            x += _width_px(name) + LEGEND_KEY_PX + LEGEND_GAP_PX


def _nothing(axes: Axes, options: Mapping[str, Any]) -> None:
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, options.get("noValue", "No data"), transform=axes.transAxes, color=FAINT,
        ha="center", va="center", size=NORMAL,
    )  # fmt: skip


def _timeline(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = answered.panels[panel["id"]]
    options = _options(panel)
    size = min(SMALL, (box.h - 32) / max(len(found), 1) * 0.6)
    left = min(max((_width_px(name, size) for name, _ in found), default=0) + 8, box.w * 0.45)
    plot = Box(box.x + left, box.y, box.w - left - RIGHT_PX, box.h - 32)
    axes = sheet.axes(plot)
    _time_axis(axes, plot, answered)
    if not found:
        _nothing(axes, options)
        return
    states: dict[str, str] = {}
    for row, (_, series) in enumerate(found):
        for begin_s, end_s, value in _spells(series, answered.span.step_s):
            text, colour = _said(value, options)
            states[text] = colour
            axes.barh(-row, end_s - begin_s, 0.8, begin_s, align="center", color=colour, alpha=0.8)
    axes.set_yticks([-row for row in range(len(found))], [name for name, _ in found], size=size)
    axes.set_ylim(-len(found) + 0.5, 0.5)
    axes.set_xlim(answered.span.start_s, answered.span.end_s)
    _legend(sheet, box, [list(states)], states)


def _spells(series: Series, step_s: float) -> list[tuple[float, float, float]]:
    """Begin, end and value of each time without a change."""
    spells: list[tuple[float, float, float]] = []
    for time_s, value in series.points:
        if spells and spells[-1][2] == value and time_s - spells[-1][1] < step_s / 2:
            spells[-1] = spells[-1][0], time_s + step_s, value
        else:
            spells.append((time_s, time_s + step_s, value))
    return spells


def _heatmap(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    found = sorted(answered.panels[panel["id"]], key=lambda pair: pair[0])
    options = _options(panel)
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


def _table(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    shown = table(panel, answered.panels[panel["id"]])
    line_px = 17.0
    room = int((box.h - 4) / line_px) - 1
    widths = _widths(panel, shown, box.w)
    (by,) = panel["options"]["sortBy"]
    x = box.x
    for column, width in zip(shown.columns, widths, strict=True):
        arrow = (" ↓" if by.get("desc") else " ↑") if column == by["displayName"] else ""
        sheet.text(x, box.y + 10, column + arrow, color=COLOURS["blue"], weight="bold")
        x += width
    if not shown.rows:
        sheet.text(box.x + box.w / 2, box.y + box.h / 2, _options(panel)["noValue"], color=FAINT)
    more = len(shown.rows) - room
    for place, row in enumerate(shown.rows[: room - (more > 0)]):
        x, y = box.x, box.y + 10 + line_px * (place + 1)
        sheet.line(box.x, y - 12, box.w)
        for column, width, cell in zip(shown.columns, widths, row, strict=True):
            text, colour = _cell(cell, _options(panel, column))
            sheet.text(x, y, text, color=colour)
            x += width
    if more > 0:
        y = box.y + 10 + line_px * room
        sheet.text(box.x, y, f"{more + 1} more rows below", color=FAINT)


def _cell(cell: Cell, options: Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(cell, float):
        return _said(cell, options)
    return cell or "", INK


def _widths(panel: Mapping[str, Any], shown: Table, width_px: float) -> list[float]:
    """By the longest text of each column, stretched to the panel's width."""
    widest = []
    for place, column in enumerate(shown.columns):
        texts = [_cell(row[place], _options(panel, column))[0] for row in shown.rows]
        head = _width_px(f"{column} ↓", SMALL, "bold")
        widest.append(max([head, *map(_width_px, texts)]) + 12)
    return [width_px * width / sum(widest) for width in widest]


PANELS: dict[str, Callable[[Sheet, Box, Mapping[str, Any], Answered], None]] = {
    "stat": _stat,
    "timeseries": _timeseries,
    "state-timeline": _timeline,
    "heatmap": _heatmap,
    "table": _table,
}
