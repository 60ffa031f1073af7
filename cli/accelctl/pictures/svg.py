"""A small writer of SVG charts: axes with units, lines, bars, marks. Text in, text out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

INK = "#1f2933"
SOFT = "#5f6c7b"
GRID = "#e4e8ed"
FRAME = "#9aa5b1"
PAPER = "#ffffff"
# Told apart by people who see colours otherwise, too (Okabe and Ito's set).
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7",
)  # fmt: skip
FONT = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)

Point = tuple[float, float]


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Canvas:
    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self._title = title
        self._parts: list[str] = []
        self._clips = 0

    def add(self, part: str) -> None:
        self._parts.append(part)

    def text(
        self, x: float, y: float, text: str, *, size: float = 12, colour: str = INK,
        anchor: str = "start", weight: int = 400, turned: bool = False,
    ) -> None:  # fmt: skip
        turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self.add(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{colour}"'
            f' text-anchor="{anchor}" font-weight="{weight}"{turn}>{superscripts(text)}</text>'
        )

    def line(
        self, a: Point, b: Point, colour: str = FRAME, width: float = 1, dash: str = ""
    ) -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<line x1="{number(a[0])}" y1="{number(a[1])}" x2="{number(b[0])}"'
            f' y2="{number(b[1])}" stroke="{colour}" stroke-width="{number(width)}"{dashes}/>'
        )

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str,
        stroke: str = "none", dash: str = "", opacity: float = 1.0, round_: float = 0,
    ) -> None:  # fmt: skip
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        soft = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        corner = f' rx="{number(round_)}"' if round_ else ""
        self.add(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}"'
            f' height="{number(max(height, 0))}" fill="{fill}" stroke="{stroke}"'
            f"{dashes}{soft}{corner}/>"
        )

    def image(self, x: float, y: float, width: float, height: float, data_uri: str) -> None:
        self.add(
            f'<image x="{number(x)}" y="{number(y)}" width="{number(width)}"'
            f' height="{number(height)}" preserveAspectRatio="none"'
            f' style="image-rendering:auto" href="{data_uri}"/>'
        )

    def clip(self, x: float, y: float, width: float, height: float) -> str:
        """The name of a window that drawing may be kept inside."""
        self._clips += 1
        name = f"clip{self._clips}"
        self.add(
            f'<clipPath id="{name}"><rect x="{number(x)}" y="{number(y)}"'
            f' width="{number(width)}" height="{number(height)}"/></clipPath>'
        )
        return name

    def to_text(self) -> str:
        w, h = number(self.width), number(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}"'
            f' viewBox="0 0 {w} {h}" font-family="{FONT}" role="img">\n'
            f"<title>{escape(self._title)}</title>\n"
            f'<rect width="{w}" height="{h}" fill="{PAPER}"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def scientific(value: float) -> str:
    """`2.4\u00d710^-4`, `10^-12`, `0`."""
    if value <= 0.0:
        return "0"
    exponent = math.floor(math.log10(value) + 1e-12)
    head = value / 10.0**exponent
    return f"10^{exponent}" if abs(head - 1.0) < 1e-9 else f"{head:.1f}\u00d710^{exponent}"


def grouped(count: int) -> str:
    """Thousands apart."""
    return f"{count:,}".replace(",", "\u202f")


def superscripts(text: str) -> str:
    """`10^-12` with its exponent raised, in letters that every reader of SVG knows."""
    return re.sub(r"\^(-?[0-9]+)", lambda match: match[1].translate(RAISED), escape(text))


@dataclass
class Axis:
    """A scale over a range, with its ticks."""

    low: float
    high: float
    label: str = ""
    ticks: Sequence[float] = ()
    form: Callable[[float], str] = number

    def place(self, value: float, start: float, end: float) -> float:
        return start + (value - self.low) / (self.high - self.low) * (end - start)


def steps(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers between two ends."""
    raw = (high - low) / max(wanted, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = min((m * size for m in (1, 2, 5, 10) if m * size >= raw), default=raw)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def power_of_ten(exponent: float) -> str:
    return f"10^{round(exponent)}"


@dataclass
class Chart:
    """A frame on a canvas. Values go in, the axes place them."""

    canvas: Canvas
    x0: float
    y0: float
    width: float
    height: float
    x: Axis
    y: Axis
    _clip: str = field(default="", init=False)

    def px(self, x: float) -> float:
        return self.x.place(x, self.x0, self.x0 + self.width)

    def py(self, y: float) -> float:
        return self.y.place(y, self.y0 + self.height, self.y0)

    def ground(self, fill: str = PAPER, grid: bool = True) -> None:
        canvas = self.canvas
        canvas.rect(self.x0, self.y0, self.width, self.height, fill)
        if grid:
            for tick in self.x.ticks:
                canvas.line((self.px(tick), self.y0), (self.px(tick), self.y0 + self.height), GRID)
            for tick in self.y.ticks:
                canvas.line((self.x0, self.py(tick)), (self.x0 + self.width, self.py(tick)), GRID)

    def frame(self, *, left: bool = True, bottom: bool = True) -> None:
        """Frame, ticks and labels, over what was drawn."""
        canvas, base = self.canvas, self.y0 + self.height
        canvas.rect(self.x0, self.y0, self.width, self.height, "none", FRAME)
        if bottom:
            for tick in self.x.ticks:
                canvas.line((self.px(tick), base), (self.px(tick), base + 5))
                canvas.text(
                    self.px(tick),
                    base + 19,
                    self.x.form(tick),
                    size=11.5,
                    colour=SOFT,
                    anchor="middle",
                )
            canvas.text(self.x0 + self.width / 2, base + 40, self.x.label, anchor="middle")
        if left:
            for tick in self.y.ticks:
                canvas.line((self.x0 - 5, self.py(tick)), (self.x0, self.py(tick)))
                canvas.text(
                    self.x0 - 9,
                    self.py(tick) + 4,
                    self.y.form(tick),
                    size=11.5,
                    colour=SOFT,
                    anchor="end",
                )
            canvas.text(
                self.x0 - 52, self.y0 + self.height / 2, self.y.label, anchor="middle", turned=True
            )

    def inside(self) -> str:
        if not self._clip:
            self._clip = self.canvas.clip(self.x0, self.y0, self.width, self.height)
        return self._clip

    def curve(
        self,
        points: Iterable[Point],
        colour: str,
        width: float = 1.8,
        dash: str = "",
        opacity: float = 1.0,
    ) -> None:
        path = "".join(
            f"{'L' if i else 'M'}{number(self.px(x))} {number(self.py(y))}"
            for i, (x, y) in enumerate(points)
        )
        if not path:
            return
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        soft = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self.canvas.add(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{number(width)}"'
            f' stroke-linejoin="round"{dashes}{soft} clip-path="url(#{self.inside()})"/>'
        )

    def dot(
        self,
        x: float,
        y: float,
        colour: str,
        radius: float = 3,
        hollow: bool = False,
        opacity: float = 1.0,
    ) -> None:
        fill, stroke = (PAPER, colour) if hollow else (colour, PAPER)
        soft = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self.canvas.add(
            f'<circle cx="{number(self.px(x))}" cy="{number(self.py(y))}" r="{number(radius)}"'
            f' fill="{fill}" stroke="{stroke}" stroke-width="1"{soft}'
            f' clip-path="url(#{self.inside()})"/>'
        )

    def level(self, y: float, colour: str, text: str, dash: str = "6 4") -> None:
        """A line across, with its name at the right end inside."""
        self.canvas.line(
            (self.x0, self.py(y)), (self.x0 + self.width, self.py(y)), colour, 1.2, dash
        )
        self.canvas.text(
            self.x0 + self.width - 6, self.py(y) - 6, text, size=11.5, colour=colour, anchor="end"
        )


def heading(canvas: Canvas, title: str, subtitle: str, x: float = 24) -> None:
    canvas.text(x, 32, title, size=18, weight=600)
    canvas.text(x, 53, subtitle, size=12.5, colour=SOFT)


def footnote(canvas: Canvas, text: str, x: float = 24) -> None:
    canvas.text(x, canvas.height - 12, text, size=10.5, colour=SOFT)
