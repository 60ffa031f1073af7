"""A progress bar on a terminal, silence elsewhere. rich is imported only to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

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


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
