"""The FEC histogram as a picture: codewords by the symbols corrected in each."""

from __future__ import annotations

import math
from typing import Any

from accelctl.pictures.svg import (
    BLUE,
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


def to_svg(diag: Any, port: str) -> str:
    fec = diag.fec
    counts = [*fec.bins, fec.uncorrectable]
    top = max(math.ceil(math.log10(max([*counts, 10]))), 1) + 0.6
    canvas = Canvas(980, 520, f"FEC histogram of {port}")
    lost = "none lost" if not fec.uncorrectable else f"{fec.uncorrectable} lost"
    heading(
        canvas,
        f"Codewords of {port} by symbols corrected",
        f"{fec.code.upper()}, {scientific(fec.codewords)} codewords in {diag.duration_s:g} s,"
        f" {lost}; {grouped(fec.corrected_bits)} bits corrected",
    )
    names = [*(str(i) for i in range(len(fec.bins))), "lost"]
    every = max(1, math.ceil(top / 8))
    chart = Chart(
        canvas, 84, 78, 870, 370,
        Axis(-0.6, len(counts) - 0.4, "symbols corrected in a codeword", range(len(counts)),
             lambda i: names[round(i)]),
        Axis(-0.3, top, "codewords", list(range(0, math.floor(top) + 1, every)), power_of_ten),
    )  # fmt: skip
    canvas.rect(chart.x0, chart.y0, chart.width, chart.height, "#ffffff")
    for tick in chart.y.ticks:
        a, b = (chart.x0, chart.py(tick)), (chart.x0 + chart.width, chart.py(tick))
        canvas.line(a, b, "#e4e8ed")
    for index, count in enumerate(counts):
        if not count:
            continue
        left, right = chart.px(index - 0.36), chart.px(index + 0.36)
        y = chart.py(math.log10(count))
        colour = RED if index == len(counts) - 1 else BLUE
        canvas.rect(left, y, right - left, chart.y0 + chart.height - y, colour, round_=1.5)
        canvas.text((left + right) / 2, y - 6, _short(count), size=11, colour=SOFT, anchor="middle")
    chart.frame()
    footnote(canvas, "Logarithmic; a bin without a bar has no codeword.")
    return canvas.to_text()


def _short(count: int) -> str:
    return str(count) if count < 100_000 else f"{count:.1e}".replace("e+0", "e").replace("e+", "e")
