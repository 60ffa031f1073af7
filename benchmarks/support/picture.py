"""The ratios of all benchmarks as one SVG: a dot per line, its spread, and the goal."""

from __future__ import annotations

import math
from typing import Any

from accelctl.pictures.svg import (
    BLUE,
    FRAME,
    GREEN,
    GRID,
    INK,
    RED,
    SOFT,
    Axis,
    Canvas,
    Chart,
    footnote,
    heading,
    steps,
)

WIDTH, LEFT, RIGHT, TOP, ROW = 980.0, 430.0, 60.0, 92.0, 24.0
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def draw(result: dict[str, Any]) -> str:
    """Of `result` as tools/bench.py keeps it; lines without a peer are in the table alone."""
    rows = [
        (name, line)
        for name, answer in result["answers"].items()
        for line in answer["lines"]
        if "ratio" in line
    ]
    height = TOP + ROW * max(len(rows), 1) + 70
    canvas = Canvas(WIDTH, height, "acceld beside its peers")
    machine = result["machine"]
    heading(
        canvas,
        "acceld beside its peers",
        f"ratio of medians of one run, with its spread over the rounds; {machine['cpu']},"
        f" {machine['cpus']} CPUs, {machine['time'][:10]}",
    )
    low, high = _range(rows)

    def x(value: float) -> float:
        share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    bottom = TOP + ROW * len(rows)
    for tick in TICKS:
        if low <= tick <= high:
            heavy = tick == 1.0
            canvas.line((x(tick), TOP - 6), (x(tick), bottom), FRAME if heavy else GRID)
            canvas.text(x(tick), bottom + 17, f"{tick:g}", size=11.5, colour=SOFT, anchor="middle")
    for index, (name, line) in enumerate(rows):
        _row(canvas, TOP + ROW * (index + 0.5), name, line, x)
    footnote(
        canvas,
        "dot: ours over the peer's (green: goal met, red: missed, blue: no goal)"
        "   hook: the goal, and which side of it is good",
    )
    return canvas.to_text()


def draw_scale(answer: dict[str, Any], machine: dict[str, Any]) -> str:
    """What a rack at rest costs by its ports: of `benchmarks/scale.py`, whose points these are."""
    points = sorted(answer["points"], key=lambda point: point["ports"])
    canvas = Canvas(WIDTH, 430, "What a rack costs at rest")
    heading(
        canvas,
        "What a rack costs at rest",
        "daemon, chassis and workers, all links up; "
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['time'][:10]}",
    )
    for left, key, label in (
        (90.0, "cpu_percent", "CPU, % of a core"),
        (570.0, "pss_mib", "memory, MiB PSS"),
    ):
        _curve(canvas, left, points, key, label)
    footnote(canvas, "filled: oio cards, 4 ports of 16 lanes each; hollow: dr8, 2 ports of 8 lanes")
    return canvas.to_text()


def _curve(canvas: Canvas, left: float, points: list[dict[str, Any]], key: str, label: str) -> None:
    most_x = max(point["ports"] for point in points) * 1.05
    most_y = max(point[key] for point in points) * 1.15
    chart = Chart(
        canvas, left, 80, 370, 270,
        Axis(0, most_x, "ports", steps(0, most_x)), Axis(0, most_y, label, steps(0, most_y)),
    )  # fmt: skip
    chart.ground()
    chart.curve([(p["ports"], p[key]) for p in points if p["profile"] == "oio"], BLUE)
    for point in points:
        chart.dot(point["ports"], point[key], BLUE, 4.5, hollow=point["profile"] != "oio")
    chart.frame()


def _row(canvas: Canvas, y: float, name: str, line: dict[str, Any], x: Any) -> None:
    colour = {None: BLUE, True: GREEN, False: RED}[line.get("met")]
    canvas.text(LEFT - 14, y + 4, f"{line['what']} : {line['peer_name']}", size=11.5,
                anchor="end", colour=INK)  # fmt: skip
    canvas.line((x(line["ratio_min"]), y), (x(line["ratio_max"]), y), colour, 2)
    if "goal" in line:
        at, side = x(line["goal"]), 6 if line["better"] == "more" else -6
        canvas.line((at, y - 9), (at, y + 9), INK, 1.6)
        canvas.line((at, y - 9), (at + side, y - 9), INK, 1.6)
    canvas.add(f'<circle cx="{x(line["ratio"]):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
    canvas.text(WIDTH - RIGHT + 8, y + 4, f"{line['ratio']:.2f}", size=11.5, colour=SOFT)


def _range(rows: list[tuple[str, dict[str, Any]]]) -> tuple[float, float]:
    """From a tick to a tick, so that every dot and goal lies between."""
    values = [1.0]
    for _, line in rows:
        values += [line["ratio_min"], line["ratio_max"], line.get("goal", 1.0)]
    values = [value for value in values if value > 0]
    low = max((tick for tick in TICKS if tick <= min(values)), default=TICKS[0])
    high = min((tick for tick in TICKS if tick >= max(values)), default=TICKS[-1])
    return min(low, 0.5), max(high, 2.0)
