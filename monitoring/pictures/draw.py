"""A board as a picture: its head, and each panel in the place that the board gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from boards import grafana
from pictures.answers import Answered, Cell, Table, table
from pictures.charts import heatmap, timeline, timeseries
from pictures.looks import COLOURS, clock, options_of, said
from pictures.sheet import (
    DPI,
    FAINT,
    GAP_PX,
    HEAD_PX,
    INK,
    LARGE,
    NORMAL,
    PAPER,
    SMALL,
    UNIT_PX,
    WIDTH_PX,
    Box,
    Sheet,
    text_px,
)

ORIGIN = "emulated cards; drawn from the board's JSON and a real Prometheus, not by Grafana"


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


def _head(sheet: Sheet, answered: Answered) -> None:
    title = answered.board["title"]
    sheet.text(GAP_PX + 4, 24, title, size=14, weight="bold")
    sheet.text(GAP_PX + 24 + text_px(title, 14, "bold"), 24, ORIGIN, color=FAINT)
    shown = []
    for variable in grafana.variables(answered.board):
        value = answered.chosen[variable["name"]]
        if variable.get("hide") != 2:
            text = "All" if value is grafana.ALL else value
            text = text if isinstance(text, str) else " + ".join(text)
            shown.append(f"{variable['label']}: {text}")
    sheet.text(GAP_PX + 4, 46, "    ".join(shown), size=NORMAL, color=FAINT)
    begin, end = (f"{clock(t)}" for t in (answered.span.start_s, answered.span.end_s))
    sheet.text(WIDTH_PX - GAP_PX - 4, 24, f"{begin} to {end} UTC", size=NORMAL, ha="right")
    x = WIDTH_PX - GAP_PX - 4.0
    for mark in reversed(answered.board["annotations"]["list"]):
        sheet.text(x, 46, mark["name"], color=FAINT, ha="right")
        x -= text_px(mark["name"]) + 14
        sheet.block(x + 2, 39, 7, 7, COLOURS[mark["iconColor"]])
        x -= 10


def _stat(sheet: Sheet, box: Box, panel: Mapping[str, Any], answered: Answered) -> None:
    options = options_of(panel)
    found = [series.last for _, series in answered.panels[panel["id"]]]
    shown = [said(value, options) for value in found] or [(options["noValue"], FAINT)]
    size = min(LARGE, SMALL * box.w / max(text_px(text) for text, _ in shown))
    for place, (text, colour) in enumerate(shown):
        y = box.y + box.h * (place + 0.5) / len(shown)
        middle = box.x + box.w / 2
        sheet.text(middle, y, text, size=size, color=colour, ha="center", va="center")


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
        sheet.text(box.x + box.w / 2, box.y + box.h / 2, options_of(panel)["noValue"], color=FAINT)
    more = len(shown.rows) - room
    for place, row in enumerate(shown.rows[: room - (more > 0)]):
        x, y = box.x, box.y + 10 + line_px * (place + 1)
        sheet.line(box.x, y - 12, box.w)
        for column, width, cell in zip(shown.columns, widths, row, strict=True):
            text, colour = _cell(cell, options_of(panel, column))
            sheet.text(x, y, text, color=colour)
            x += width
    if more > 0:
        y = box.y + 10 + line_px * room
        sheet.text(box.x, y, f"{more + 1} more rows below", color=FAINT)


def _cell(cell: Cell, options: Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(cell, float):
        return said(cell, options)
    return cell or "", INK


def _widths(panel: Mapping[str, Any], shown: Table, width_px: float) -> list[float]:
    """By the longest text of each column, stretched to the panel's width."""
    widest = []
    for place, column in enumerate(shown.columns):
        texts = [_cell(row[place], options_of(panel, column))[0] for row in shown.rows]
        head = text_px(f"{column} ↓", SMALL, "bold")
        widest.append(max([head, *map(text_px, texts)]) + 12)
    return [width_px * width / sum(widest) for width in widest]


PANELS: dict[str, Callable[[Sheet, Box, Mapping[str, Any], Answered], None]] = {
    "stat": _stat,
    "timeseries": timeseries,
    "state-timeline": timeline,
    "heatmap": heatmap,
    "table": _table,
}
