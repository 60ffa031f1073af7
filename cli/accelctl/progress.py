"""A progress bar on a terminal, silence elsewhere. rich is imported only to draw."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from accelctl import render
from accelctl.pictures import blocks
from accelctl.session import Session


class Bar:
    """Call it with (done, total) bytes as often as one likes. This one draws nothing."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def note(self, what: str) -> None:
        """Changes the words before the bar."""


class DrawnBar(Bar):
    def __init__(self, update: Callable[..., None], width: int) -> None:
        self._update = update
        self._width = width

    def __call__(self, done: int, total: int) -> None:
        self._update(completed=done, total=total)

    def note(self, what: str) -> None:
        self._update(description=_short(what, self._width))


@contextmanager
def bar(session: Session, what: str) -> Iterator[Bar]:
    if not session.live:
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True, no_color=not session.colored, highlight=False)
    narrow = console.width < 100
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16 if narrow else 40),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    ]
    with Progress(*columns, console=console, transient=True, refresh_per_second=10) as progress:
        width = 24 if narrow else 48
        task = progress.add_task(_short(what, width), total=None)
        yield DrawnBar(partial(progress.update, task), width)


ERASE = "\r\x1b[K"


@contextmanager
def rounds(session: Session) -> Iterator[Callable[[int, int, str], None]]:
    """A line for work that counts rounds, not bytes: (done, total, what). Silence elsewhere."""
    if not session.live:
        yield lambda done, total, what: None
        return

    def show(done: int, total: int, what: str) -> None:
        drawn = blocks.bar(done / max(total, 1), 20).ljust(20)
        text = render.clean(f"{drawn} {done}/{total}  {what}")
        sys.stderr.write(ERASE + render.cut(text, render.terminal_width() - 1))
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(ERASE)
        sys.stderr.flush()


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
