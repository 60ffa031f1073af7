"""Pictures of block characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

SHADES = " .:-=+*#%@"  # which every terminal has
EIGHTHS = " ▏▎▍▌▋▊▉█"
DECADES = 3.0  # of an eye's density that are shown
DENSITY_DECADES = 15.0


def bar(share: float, width: int) -> str:
    """A bar of so much of the width, in eighths of a character."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def eye(eye_: Any, width: int, height: int) -> list[str]:
    """Two unit intervals wide; rarer than a thousandth of the most frequent is blank."""
    columns, rows = eye_.density_columns, eye_.density_rows
    density = eye_.density
    lines = []
    for y in range(height):
        row = (2 * y + 1) * rows // (2 * height) * columns
        places = ((2 * x + 1) * columns // (2 * width) for x in range(width))
        lines.append("".join(_shade(density[row + column]) for column in places))
    return lines


def _shade(value: int) -> str:
    if not value:
        return SHADES[0]
    share = 1.0 - (1.0 - value / 255.0) * DENSITY_DECADES / DECADES
    return SHADES[max(0, math.ceil(share * (len(SHADES) - 1)))]


def framed(lines: Sequence[str], labels: dict[int, str], below: str) -> list[str]:
    """With a frame, labels left of some rows, and a line below."""
    room = max((len(label) for label in labels.values()), default=0)
    width = len(lines[0]) if lines else 0
    rule = " " * (room + 1) + "+" + "-" * width + "+"
    body = [
        f"{labels.get(index, ''):>{room}} |{line}|" if room else f" |{line}|"
        for index, line in enumerate(lines)
    ]
    return [rule, *body, rule, " " * (room + 2) + below]
