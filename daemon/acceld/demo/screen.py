"""Lines for people: progress moves on a terminal; elsewhere each step is one line."""

from __future__ import annotations

import os
import time
from typing import TextIO

BAR = 28
WIDTH = 100
INDENT = " " * 6


class Screen:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._colour = self._terminal and "NO_COLOR" not in os.environ
        self._moving = False
        self._shown_at = 0.0

    def head(self, text: str) -> None:
        self.line()
        self.line(f"\x1b[1m{text}\x1b[0m" if self._colour else text)

    def line(self, text: str = "") -> None:
        if self._moving:
            self._out.write("\r\x1b[K")
            self._moving = False
        self._out.write(text + "\n")
        self._out.flush()

    def progress(self, what: str, done: int, total: int, seconds: float) -> None:
        now = time.monotonic()
        if not self._terminal or now - self._shown_at < 0.05:
            return
        self._shown_at = now
        share = done / total if total else 1.0
        bar = ("━" * round(BAR * share)).ljust(BAR, "╌")
        self._out.write(f"\r\x1b[K  {what:<24} {bar} {share:4.0%}  {rate(done, seconds)}")
        self._out.flush()
        self._moving = True


class Columns:
    """Short texts side by side, a line as soon as it is full."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._row = ""
        self._cell = 0

    def add(self, text: str) -> None:
        self._cell = max(self._cell, len(text) + 3)
        cell = text.ljust(self._cell)
        if len(INDENT + self._row + cell) > WIDTH:
            self.end()
        self._row += cell

    def end(self) -> None:
        if self._row:
            self._screen.line(INDENT + self._row.rstrip())
        self._row = ""

    def finish(self) -> None:
        """The next texts are of another kind, and of another width."""
        self.end()
        self._cell = 0


def size(count: float) -> str:
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} GiB"


def rate(count: float, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9) / 1e9:.2f} GB/s"


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"
