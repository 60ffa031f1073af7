"""Bit errors of lanes as a picture: each lane's BER with what is sure of it."""

from __future__ import annotations

import math
from typing import Any

from accel.plain import word
from accelctl.pictures.svg import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    SOFT,
    Axis,
    Canvas,
    Chart,
    footnote,
    grouped,
    heading,
    power_of_ten,
    scientific,
)

COLOURS = {"PASSED": GREEN, "FAILED": RED, "OPEN": BLUE}


def to_svg(diag: Any, port: str, title: str) -> str:
    lanes = list(diag.errors)
    rows = len(lanes)
    high = 24.0
    canvas = Canvas(980, 190 + rows * high, f"{title} on {port}")
    bits = sum(lane.bits for lane in lanes)
    errors = sum(lane.errors for lane in lanes)
    heading(
        canvas,
        f"{title} on {port}: {word(diag, 'verdict').lower() or word(diag, 'state').lower()}",
        f"{grouped(errors)} errors in {scientific(bits)} bits;"
        f" bars: {100 * diag.confidence_ratio:g} % confidence",
    )
    values = [lane.ber_high for lane in lanes if lane.bits] + [diag.target_ber]
    low = (
        math.floor(math.log10(min([*values, *(lane.ber_low for lane in lanes if lane.ber_low)])))
        - 1
    )
    top = min(math.ceil(math.log10(max(values))) + 1, 0)
    every = max(1, (top - low) // 10)
    chart = Chart(
        canvas, 110, 76, 620, rows * high + 12,
        Axis(low, top, "bit error ratio", list(range(low, top + 1, every)), power_of_ten),
        Axis(rows - 0.25, -0.75, "", range(rows), lambda i: f"lane{lanes[round(i)].lane}"),
    )  # fmt: skip
    chart.ground()
    x = chart.px(math.log10(diag.target_ber))
    canvas.line((x, chart.y0), (x, chart.y0 + chart.height), ORANGE, 1.4, "6 4")
    canvas.text(x, chart.y0 - 6, "wanted", size=11.5, colour=ORANGE, anchor="middle")
    for index, lane in enumerate(lanes):
        _lane(canvas, chart, index, lane, low)
    chart.frame()
    if any(lane.sampled_bits for lane in lanes):
        sampled = sum(lane.sampled_bits for lane in lanes)
        wrong = sum(lane.sampled_errors for lane in lanes)
        footnote(
            canvas,
            f"{grouped(sampled)} bits of {diag.pattern.upper()} were made, spoilt and checked one"
            f" by one ({wrong} wrong); the errors of the rest are drawn at each lane's BER.",
        )
    return canvas.to_text()


def _lane(canvas: Canvas, chart: Chart, index: int, lane: Any, low: float) -> None:
    y = chart.py(index)
    right = chart.x0 + chart.width + 14
    if not lane.locked:
        canvas.text(right, y + 4, "no lock" if lane.bits else "no light", size=12, colour=RED)
        return
    colour = COLOURS.get(word(lane, "verdict"), SOFT)
    end = chart.px(math.log10(lane.ber_high))
    begin = chart.px(math.log10(lane.ber_low)) if lane.ber_low else chart.x0
    canvas.line((begin, y), (end, y), colour, 2.4 if lane.ber_low else 1.4)
    canvas.line((end, y - 4), (end, y + 4), colour, 1.6)
    if lane.ber_low:
        canvas.line((begin, y - 4), (begin, y + 4), colour, 1.6)
    if lane.errors:
        chart.dot(math.log10(lane.ber), index, colour, 4)
    plural = "" if lane.errors == 1 else "s"
    text = f"{grouped(lane.errors)} error{plural}, {word(lane, 'verdict').lower()}"
    canvas.text(right, y + 4, text, size=12, colour=SOFT)
