"""The eye of a lane as a picture: density, openings, and both bathtubs beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accelctl.pictures import png
from accelctl.pictures.svg import (
    FRAME,
    GREEN,
    INK,
    ORANGE,
    SOFT,
    Axis,
    Canvas,
    Chart,
    footnote,
    heading,
    number,
    power_of_ten,
    scientific,
    steps,
)

# From nothing through rare to frequent: dark to light, as a scope's screen.
PALETTE = png.ramp(
    (
        (0.0, (13, 17, 28)),
        (0.2, (26, 38, 84)),
        (0.42, (58, 62, 158)),
        (0.6, (150, 55, 150)),
        (0.76, (232, 93, 84)),
        (0.9, (253, 180, 75)),
        (1.0, (252, 253, 191)),
    )
)
SHOWN_DECADES = 6.0  # rarer than that is no more light than the screen
DENSITY_DECADES = 15.0
BER_FLOOR = -16.0


def pixels(eye: Any) -> list[bytes]:
    """Rows of palette indices; the rarest decades fall into the dark."""
    table = bytes(
        max(0, round(255 * (1 - (1 - i / 255) * DENSITY_DECADES / SHOWN_DECADES))) if i else 0
        for i in range(256)
    )
    body = eye.density.translate(table)
    width = eye.density_columns
    return [body[i : i + width] for i in range(0, len(body), width)]


def to_png(eyes: Sequence[Any]) -> bytes:
    """Eyes beside each other, at most four in a row."""
    lit = [eye for eye in eyes if eye.lit]
    factor = 5 if len(lit) == 1 else 2
    across = min(len(lit), 4)
    rows: list[bytes] = []
    for start in range(0, len(lit), across):
        tiles = [png.enlarged(pixels(eye), factor) for eye in lit[start : start + across]]
        blank = [bytes(len(tiles[0][0]))] * len(tiles[0])
        tiles += [blank] * (across - len(tiles))
        gap = bytes(4) if across > 1 else b""
        rows += [gap.join(parts) for parts in zip(*tiles, strict=True)]
        rows += [bytes(len(rows[-1]))] * (4 if start + across < len(lit) else 0)
    return png.png(rows, PALETTE)


def name_of(eye: Any, port: str) -> str:
    return f"{port}/lane{eye.lane}"


def to_svg(eyes: Sequence[Any], port: str) -> str:
    lit = [eye for eye in eyes if eye.lit]
    return _single(lit[0], port) if len(lit) == 1 else _many(lit, port)


def _raster(chart: Chart, eye: Any) -> None:
    uri = png.data_uri(png.png(pixels(eye), PALETTE))
    chart.canvas.image(chart.x0, chart.y0, chart.width, chart.height, uri)


def _modulation(eye: Any) -> str:
    return "PAM4" if len(eye.levels_uw) == 4 else "NRZ"


def _openings(chart: Chart, eye: Any) -> None:
    """The box in which a sampler errs more seldom than each BER level."""
    swing = eye.levels_uw[-1] - eye.levels_uw[0]
    for opening in eye.openings:
        for index, dash in ((0, "5 3"), (1, "")):
            height, width = opening.heights[index] * swing, opening.widths_ui[index]
            if height <= 0 or width <= 0:
                continue
            # Levels are straight, openings are not: an ellipse shows height and width alike.
            rx = chart.px(width / 2) - chart.px(0)
            ry = chart.py(0) - chart.py(height / 2)
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            chart.canvas.add(
                f'<ellipse cx="{number(chart.px(0))}" cy="{number(chart.py(opening.threshold_uw))}"'
                f' rx="{number(rx)}" ry="{number(ry)}" fill="none" stroke="#7ee0b5"'
                f' stroke-width="1.6"{dashes}/>'
            )


def _single(eye: Any, port: str) -> str:
    canvas = Canvas(980, 800, f"Eye of {name_of(eye, port)}")
    gbd = 1000.0 / eye.symbol_ps
    heading(
        canvas,
        f"Eye of {name_of(eye, port)}",
        f"{_modulation(eye)} at {gbd:g} GBd, one symbol is {eye.symbol_ps:.2f} ps;"
        f" Q {eye.q:.2f}, BER {scientific(eye.ber)}",
    )
    amplitude = Axis(
        eye.low_uw, eye.high_uw, "received power, \u00b5W", steps(eye.low_uw, eye.high_uw, 7)
    )
    time = Axis(-1, 1, "", [-1, -0.5, 0, 0.5, 1])
    main = Chart(canvas, 84, 78, 600, 400, time, amplitude)
    main.ground(grid=False)
    _raster(main, eye)
    _openings(main, eye)
    main.frame(bottom=False)
    _levels(main, eye)
    _threshold_tub(canvas, main, eye)
    _time_tub(canvas, main, eye)
    _facts(canvas, eye, 716, 556)
    low, high = (power_of_ten(math.log10(level)) for level in eye.ber_levels)
    footnote(
        canvas,
        "Statistical eye: Gaussian noise as the lane's Q says, smooth edges, random and"
        " deterministic jitter. Colour: share of samples, six decades."
        f" Dashed: opening at {low}, solid: at {high}.",
    )
    return canvas.to_text()


def _levels(chart: Chart, eye: Any) -> None:
    right = chart.x0 + chart.width
    for index, level in enumerate(eye.levels_uw):
        y = chart.py(level)
        chart.canvas.line((right, y), (right + 5, y))
        chart.canvas.text(right + 9, y + 4, str(index), size=11.5, colour=SOFT)


def _threshold_tub(canvas: Canvas, main: Chart, eye: Any) -> None:
    """BER over the threshold, beside the eye at the same height."""
    axis = Axis(
        BER_FLOOR, 0, "BER in the middle of the symbol", [-16, -12, -8, -4, 0], power_of_ten
    )
    side = Chart(canvas, 716, main.y0, 220, main.height, axis, main.y)
    side.ground()
    for level in eye.ber_levels:
        x = side.px(math.log10(level))
        canvas.line((x, side.y0), (x, side.y0 + side.height), ORANGE, 1, "5 4")
    points = [(max(p.log10_ber, BER_FLOOR - 2), p.x) for p in eye.threshold_bathtub]
    side.curve(points, GREEN, 2)
    side.frame(left=False)


def _time_tub(canvas: Canvas, main: Chart, eye: Any) -> None:
    """BER over the sampling time, below the eye at the same place."""
    axis = Axis(BER_FLOOR, 0, "BER", [-16, -12, -8, -4, 0], power_of_ten)
    x = Axis(-1, 1, "sampling time, UI", [-1, -0.5, 0, 0.5, 1])
    below = Chart(canvas, main.x0, 510, main.width, 200, x, axis)
    below.ground()
    for level in eye.ber_levels:
        below.level(math.log10(level), ORANGE, power_of_ten(math.log10(level)), "5 4")
    points = [(p.x, max(p.log10_ber, BER_FLOOR - 2)) for p in eye.time_bathtub]
    below.curve(points, GREEN, 2)
    below.frame()


def _facts(canvas: Canvas, eye: Any, x: float, y: float) -> None:
    swing = eye.levels_uw[-1] - eye.levels_uw[0]
    low, high = (power_of_ten(math.log10(level)) for level in eye.ber_levels)
    canvas.text(x, y, "Opening of each eye", weight=600, size=13)
    columns = (x, x + 62, x + 118, x + 174)
    for column, text in zip(columns[1:], ("height", "height", "width"), strict=False):
        canvas.text(column + 44, y + 22, text, size=11, colour=SOFT, anchor="end")
    for column, text in zip(columns[1:], (low, high, high), strict=False):
        canvas.text(column + 44, y + 38, text, size=11, colour=SOFT, anchor="end")
    row = y + 58
    for index in reversed(range(len(eye.openings))):
        opening = eye.openings[index]
        canvas.text(x, row, _eye_name(index, len(eye.openings)), size=12)
        values = (
            _or_closed(opening.heights[0] * swing, "\u00b5W"),
            _or_closed(opening.heights[1] * swing, "\u00b5W"),
            _or_closed(opening.widths_ui[1], "UI", 2),
        )
        for column, text in zip(columns[1:], values, strict=True):
            canvas.text(column + 44, row, text, size=12, anchor="end")
        row += 20
    row += 10
    canvas.line((x, row - 14), (x + 220, row - 14), FRAME)
    for label, text in (
        ("outer amplitude", f"{swing:.0f} \u00b5W"),
        ("noise, rms", f"{eye.sigma_uw:.1f} \u00b5W"),
        ("Q of one eye", f"{eye.q:.2f}"),
    ):
        canvas.text(x, row + 6, label, size=12, colour=SOFT)
        canvas.text(x + 218, row + 6, text, size=12, colour=INK, anchor="end")
        row += 20


def _eye_name(index: int, count: int) -> str:
    return "eye" if count == 1 else ("lower", "middle", "upper")[index]


def _or_closed(value: float, unit: str, digits: int = 0) -> str:
    return f"{value:.{digits}f} {unit}" if value > 0 else "closed"


def _many(eyes: Sequence[Any], port: str) -> str:
    across = min(4, len(eyes))
    down = -(-len(eyes) // across)
    wide, high = 250.0, 200.0
    canvas = Canvas(48 + across * wide, 96 + down * high + 16, f"Eyes of {port}")
    first = eyes[0]
    heading(
        canvas,
        f"Eyes of {port}",
        f"{_modulation(first)} at {1000.0 / first.symbol_ps:g} GBd, two symbols wide"
        f" ({2 * first.symbol_ps:.1f} ps); the scale follows each lane's power",
    )
    for index, eye in enumerate(eyes):
        x = 24 + index % across * wide
        y = 74 + index // across * high
        chart = Chart(
            canvas, x, y + 22, wide - 16, high - 44, Axis(-1, 1), Axis(eye.low_uw, eye.high_uw)
        )
        _raster(chart, eye)
        _openings(chart, eye)
        canvas.rect(chart.x0, chart.y0, chart.width, chart.height, "none", FRAME)
        canvas.text(x, y + 15, f"lane{eye.lane}", size=12.5, weight=600)
        canvas.text(
            x + wide - 16, y + 15, f"Q {eye.q:.2f}   BER {scientific(eye.ber)}", size=11.5,
            colour=SOFT, anchor="end",
        )  # fmt: skip
    return canvas.to_text()
