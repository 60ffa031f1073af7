"""The paper that boards are drawn on: pixels from the top left, boxes, letters of known width."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

matplotlib.use("Agg")

DPI = 100
WIDTH_PX, UNIT_PX, GAP_PX, HEAD_PX = 1320, 32, 6, 64
COLUMNS = 24
PAPER, CARD, LINE, INK, FAINT = "#f4f5f5", "#ffffff", "#d8d9dd", "#24292e", "#6e7680"
SMALL, NORMAL, LARGE = 7.0, 8.5, 19.0  # points


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
def text_px(text: str, points: float = SMALL, weight: str = "normal") -> float:
    """Of a text as it will be drawn."""
    if not text.strip():
        return points * 0.3 * len(text)
    path = TextPath((0, 0), text, size=points, prop=FontProperties(weight=weight))
    return float(path.get_extents().x1) * DPI / 72
