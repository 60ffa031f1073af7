"""A margin scan as a picture: BER over attenuation, measured and extrapolated."""

from __future__ import annotations

import math
from typing import Any

from accelctl.pictures.svg import (
    BLUE,
    FRAME,
    INK,
    ORANGE,
    RED,
    SOFT,
    Axis,
    Canvas,
    Chart,
    footnote,
    heading,
    power_of_ten,
    scientific,
    steps,
)

FLOOR = -18
OTHERS = "#93a4b8"
BARS_MAX = 32


def to_svg(diag: Any, port: str) -> str:
    lanes = list(diag.margins)
    known = [lane for lane in lanes if lane.HasField("margin_db")]
    worst = min(known, key=lambda lane: lane.margin_db, default=None)
    canvas = Canvas(980, 560, f"Margin of {port}")
    target = math.log10(diag.target_ber)
    summary = f"{len(lanes)} lanes attenuated step by step"
    if worst is not None:
        summary += f"; the least margin is {worst.margin_db:.2f} dB, on lane{worst.lane}"
    heading(canvas, f"Margin of {port} to a BER of {scientific(diag.target_ber)}", summary)
    seen = [math.log10(p.errors / p.bits) for lane in lanes for p in lane.points if p.errors]
    floor = max(FLOOR, 3 * math.floor(min([target, *seen]) / 3) - 3)
    end = max((p.attenuation_db for lane in lanes for p in lane.points), default=1.0)
    chart = Chart(
        canvas,
        84,
        78,
        610,
        400,
        Axis(0, end + 0.5, "attenuation, dB", steps(0, end + 0.5, 8)),
        Axis(floor, 0, "BER", list(range(floor, 1, 3)), power_of_ten),
    )
    chart.ground()
    for lane in sorted(lanes, key=lambda lane: lane is worst):
        _lane(chart, lane, RED if lane is worst else OTHERS, lane is worst)
    chart.level(target, ORANGE, f"wanted: {scientific(diag.target_ber)}")
    if worst is not None and 0 <= worst.margin_db <= end:
        _mark(chart, worst, target)
    chart.frame()
    _bars(canvas, lanes, worst, 742, 92)
    footnote(
        canvas,
        "Dots: errors counted at the line rate; open dots: none seen, at the 95 % upper bound."
        " Lines: thermal and laser noise fitted to the dots and carried on to no attenuation.",
    )
    return canvas.to_text()


def _lane(chart: Chart, lane: Any, colour: str, strong: bool) -> None:
    chart.curve(
        [(p.x, max(p.log10_ber, FLOOR - 4)) for p in lane.curve],
        colour,
        2.2 if strong else 1.2,
        opacity=1.0 if strong else 0.7,
    )
    for point in lane.points:
        if point.errors:
            y = math.log10(point.errors / point.bits)
            chart.dot(point.attenuation_db, y, colour, 3.6 if strong else 2.6)
        elif strong:
            chart.dot(point.attenuation_db, math.log10(3.0 / point.bits), colour, 3, hollow=True)


def _mark(chart: Chart, lane: Any, target: float) -> None:
    canvas, x, y = chart.canvas, chart.px(lane.margin_db), chart.py(target)
    canvas.line((x, y), (x, chart.y0 + chart.height), RED, 1.2, "3 3")
    text = f"{lane.margin_db:.2f} dB"
    anchor, gap = ("end", -7) if x > chart.x0 + chart.width * 0.7 else ("start", 7)
    base = chart.y0 + chart.height - 10
    canvas.text(x + gap, base, text, size=12.5, colour=RED, anchor=anchor, weight=600)


def _bars(canvas: Canvas, lanes: list[Any], worst: Any, x: float, y: float) -> None:
    """Margin of each lane, beside the curves."""
    shown = lanes[:BARS_MAX]
    high = min(22.0, 396.0 / max(len(shown), 1))
    canvas.text(x, y - 4, "margin per lane, dB", weight=600, size=13)
    top = max((lane.margin_db for lane in shown if lane.HasField("margin_db")), default=1.0)
    for index, lane in enumerate(shown):
        row = y + 10 + index * high
        size = min(12.0, high - 2)
        canvas.text(x, row + high * 0.62, f"lane{lane.lane}", size=size, colour=SOFT)
        if not lane.HasField("margin_db"):
            canvas.text(x + 52, row + high * 0.62, "no errors to fit", size=size, colour=SOFT)
            continue
        colour = RED if lane is worst else BLUE
        length = 120.0 * max(lane.margin_db, 0.0) / max(top, 0.1)
        canvas.rect(x + 52, row + high * 0.18, length, high * 0.56, colour, round_=2)
        text = f"{lane.margin_db:.2f}"
        canvas.text(x + 58 + length, row + high * 0.62, text, size=size, colour=INK)
    canvas.line((x + 52, y + 8), (x + 52, y + 12 + len(shown) * high), FRAME)
