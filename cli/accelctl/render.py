"""Text for people: tables, details, units, colours. Pure: values in, lines out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

STYLES = {
    "good": "32",
    "warn": "33",
    "bad": "31;1",
    "busy": "36",
    "dim": "2",
    "head": "1",
}
STATE_STYLES = {
    "HEALTHY": "good",
    "UP": "good",
    "READY": "good",
    "DONE": "good",
    "ACTIVE": "good",
    "DEGRADED": "warn",
    "WARNING": "warn",
    "WAITING": "warn",
    "RESETTING": "warn",
    "CANCELLED": "warn",
    "SEEKING": "busy",
    "TRAINING": "busy",
    "RUNNING": "busy",
    "QUEUED": "busy",
    "CRITICAL": "bad",
    "FAILED": "bad",
    "ERROR": "bad",
    "FELL_OFF_BUS": "bad",
    "ABSENT": "dim",
    "DOWN": "dim",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
GAP = "  "
ELLIPSIS = "…"
NARROW = 30  # a column of sentences that has less than this gets lines of its own
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    style: str = ""


def state(text: str) -> Cell:
    return Cell(text, STATE_STYLES.get(text, ""))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a heading with its unit, and how a row fills it."""

    heading: str
    get: Callable[[Any], Cell | str]
    right: bool = False
    wide: bool = False  # only with -o wide
    flexible: bool = False  # may be cut to the terminal's width
    droppable: bool = False  # goes first where the terminal is too narrow
    spare: bool = False  # left out when every row is empty
    wraps: bool = False  # the last column, of sentences: goes on below instead of being cut


def paint(text: str, style: str, colored: bool) -> str:
    code = STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if colored and code and text else text


def clean(text: str) -> str:
    """No control characters: what another host sent must not steer this terminal."""
    return _CONTROL.sub("?", text)


def table(
    rows: Iterable[Any],
    columns: Sequence[Column],
    *,
    wide: bool = False,
    colored: bool = False,
    width: int | None = None,
) -> list[str]:
    """Lines of a table, heading first. `width` cuts or wraps what may be; None cuts nothing."""
    shown = [column for column in columns if wide or not column.wide]
    cells = [[_cell(column.get(row)) for column in shown] for row in rows]
    kept = [
        index
        for index, column in enumerate(shown)
        if not column.spare or any(line[index].text for line in cells)
    ]
    shown = [shown[index] for index in kept]
    cells = [[line[index] for index in kept] for line in cells]
    widths = [
        max([len(column.heading), *(len(line[index].text) for line in cells)])
        for index, column in enumerate(shown)
    ]
    if width is not None:
        kept = _fitting(widths, shown, width)
        shown = [shown[index] for index in kept]
        cells = [[line[index] for index in kept] for line in cells]
        widths = [widths[index] for index in kept]
        _squeeze(widths, shown, width)
    lines = [_line([Cell(column.heading, "head") for column in shown], shown, widths, colored)]
    for line in cells:
        for part in _folded(line, shown, widths, width):
            lines.append(_line(part, shown, widths, colored) if len(part) > 1 else part[0].text)
    return lines


def _folded(
    line: list[Cell], columns: Sequence[Column], widths: list[int], width: int | None
) -> list[list[Cell]]:
    """A row as rows, the first with all cells but the sentence's rest. A row of one cell is a line
    across the table."""
    sentence = line[-1]
    if width is None or not columns[-1].wraps or _total(widths) <= width:
        return [line]
    before = [*line[:-1]]
    room = width - _total(widths[:-1]) - len(GAP)
    if room >= NARROW:
        first, *rest = _wrapped(sentence.text, room)
        blank = [Cell("") for _ in before]
        return [[*before, Cell(first)], *([*blank, Cell(part)] for part in rest)]
    below = _wrapped(sentence.text, width - len(INDENT)) if sentence.text else []
    return [[*before, Cell("")], *([Cell(INDENT + part)] for part in below)]


def _cell(value: Cell | str) -> Cell:
    cell = value if isinstance(value, Cell) else Cell(value)
    return Cell(clean(cell.text), cell.style)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitting(widths: Sequence[int], columns: Sequence[Column], width: int) -> list[int]:
    """Which columns stay: droppable ones go, the last first, until the rest fits."""
    kept = list(range(len(columns)))
    for index in reversed(range(len(columns))):
        if columns[index].droppable and _total([widths[i] for i in kept]) > width:
            kept.remove(index)
    return kept


def _squeeze(widths: list[int], columns: Sequence[Column], width: int) -> None:
    over = _total(widths) - width
    for index in reversed(range(len(columns))):
        if over <= 0:
            return
        if columns[index].flexible:
            cut = min(over, widths[index] - max(len(columns[index].heading), 8))
            if cut > 0:
                widths[index] -= cut
                over -= cut


def _line(
    cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], colored: bool
) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = cut(cell.text, width)
        padding = " " * (width - len(text))
        painted = paint(text, cell.style, colored)
        parts.append(padding + painted if column.right else painted + padding)
    return GAP.join(parts).rstrip()


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + ELLIPSIS


Field = tuple[str, Cell | str]


def detail(
    title: str, fields: Iterable[Field], *, colored: bool = False, width: int | None = None
) -> list[str]:
    """A title and `label: value` lines, aligned; empty values are left out.

    `width` wraps long values under themselves; None wraps nothing.
    """
    shown = [(label, _cell(value)) for label, value in fields]
    shown = [(label, cell) for label, cell in shown if cell.text]
    indent = max((len(label) for label, _ in shown), default=0) + 1
    lines = [paint(clean(title), "head", colored)]
    for label, cell in shown:
        head = f"  {(label + ':').ljust(indent)}  "
        for part in _wrapped(cell.text, None if width is None else width - len(head)):
            lines.append(head + paint(part, cell.style, colored))
            head = " " * len(head)
    return lines


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or len(text) <= max(width, 20):
        return [text]
    import textwrap

    return textwrap.wrap(text, max(width, 20))


def flow(parts: Iterable[str], width: int) -> list[str]:
    """Parts side by side, on as many lines as they need; none is broken."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}{GAP}{part}" if lines else part
        if lines and len(_STYLE.sub("", joined)) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def terminal_width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


# ---- units ---------------------------------------------------------------------------------------


def size(count: int) -> str:
    """Bytes in steps of 1024: `512 B`, `1.50 MiB`, `96 GiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    if value == int(value):
        return f"{int(value)} {unit}"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def exact(count: int) -> str:
    """Bytes in both ways: `1 MiB (1048576 bytes)`; few are told once."""
    return size(count) if count < 1024 else f"{size(count)} ({count} bytes)"


def byte_count(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def rate(gbyte_per_s: float) -> str:
    """GB/s: `12.34`, and of what is slow two figures, as `0.0039`: it is not nothing."""
    return f"{gbyte_per_s:.2f}" if gbyte_per_s >= 0.1 else f"{gbyte_per_s:.2g}"


def time_us(value: float) -> str:
    """Microseconds as people say them: `850 ns`, `12.3 us`, `4.56 ms`, `2.1 s`."""
    for unit, factor in (("ns", 1e3), ("us", 1.0), ("ms", 1e-3), ("s", 1e-6)):
        scaled = value * factor
        if scaled < 1000 or unit == "s":
            break
    return f"{scaled:.3g} {unit}" if scaled < 1000 else f"{scaled:.0f} {unit}"


def time_s(value: float) -> str:
    """Seconds as an age: `5 s`, `3 min`, `2 h 5 min`, `4 d 1 h`."""
    seconds = int(max(value, 0))
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 24:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def count(value: float) -> str:
    """A count, thousands apart."""
    return f"{int(value):,}".replace(",", " ")


def number(value: float, digits: int = 2) -> str:
    """A figure without needless zeros: `512`, `106.25`."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ber(value: float) -> str:
    """A bit error ratio: `1.2e-08`; exactly none is `0`."""
    return f"{value:.1e}" if value else "0"


def crc(value: int) -> str:
    return f"0x{value:08x}"


def optional(message: Any, field: str, form: Callable[[Any], str]) -> str:
    """A field through its form, or nothing when it is absent."""
    return form(getattr(message, field)) if message.HasField(field) else ""


def local_time(timestamp: Any) -> str:
    """A Timestamp on the wall clock of whoever looks."""
    return _local(timestamp).strftime("%Y-%m-%d %H:%M:%S")


def near_time(timestamp: Any) -> str:
    """As `local_time`, without the date where that is today's."""
    moment = _local(timestamp)
    if moment.date() == datetime.fromtimestamp(now_s()).date():
        return moment.strftime("%H:%M:%S")
    return local_time(timestamp)


def _local(timestamp: Any) -> datetime:
    return datetime.fromtimestamp(timestamp.seconds + timestamp.nanos / 1e9)


def now_s() -> float:
    """Seconds since the epoch; a name of its own so that a test can hold it still."""
    import time

    return time.time()


def since(timestamp: Any) -> str:
    return time_s(now_s() - timestamp.seconds)
