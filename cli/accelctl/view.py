"""Shows what a command fetched, in the form that was asked for, once or again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accel.errors import AccelError
from accelctl import formats, render
from accelctl.exits import Interrupted
from accelctl.render import Column
from accelctl.session import Session

HOME = "\x1b[H"
LINE_END = "\x1b[K\n"  # erases what the round before left in this line
REST = "\x1b[J"

Row = Any  # a message of the API, or a plain dict that a command made itself


class View:
    """Writes to stdout. Messages are fetched anew at each round of --watch."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._drawn = False

    # ---- lists and single things -----------------------------------------------------------------

    def rows(
        self,
        fetch: Callable[[], Iterable[Row]],
        columns: Sequence[Column],
        *,
        empty: str = "",
        kind: Callable[[], Any] | None = None,
    ) -> None:
        """A list. `empty` is what a person reads instead of an empty table; `kind` is the
        message's descriptor, for the header of an empty CSV."""

        def lines(rows: Sequence[Row]) -> list[str]:
            return self.table(rows, columns) if rows or not empty else [empty]

        self._rounds(lambda: self.text(list(fetch()), lines, kind))

    def listed(
        self,
        fetch: Callable[[], Iterable[Row]],
        lines: Callable[[Sequence[Row]], list[str]],
        kind: Callable[[], Any] | None = None,
    ) -> None:
        """A list that a person reads as more than one table."""
        self._rounds(lambda: self.text(list(fetch()), lines, kind))

    def one(self, fetch: Callable[[], Row], lines: Callable[[Row], Iterable[str]]) -> None:
        """A single thing; `lines` describes it to a person."""
        self._rounds(lambda: self.single(fetch(), lines))

    def table(self, rows: Iterable[Row], columns: Sequence[Column]) -> list[str]:
        return render.table(
            rows,
            columns,
            wide=self.session.output == "wide",
            colored=self.session.colored,
            width=None if self.session.output == "wide" else self._width(),
        )

    def fitted(self, rows: Iterable[Row], columns: Sequence[Column]) -> list[str]:
        """A table of a screen: always cut to the width, 80 columns where there is no terminal."""
        width = render.terminal_width()
        return render.table(rows, columns, colored=self.session.colored, width=width)

    def detail(self, title: str, fields: Iterable[render.Field]) -> list[str]:
        return render.detail(title, fields, colored=self.session.colored, width=self._width())

    @staticmethod
    def _width() -> int | None:
        """Nothing is cut or wrapped for a pipe: another program may read it."""
        return render.terminal_width() if sys.stdout.isatty() else None

    # ---- text in each form -----------------------------------------------------------------------

    def text(
        self, rows: Sequence[Row], lines: Callable[[Sequence[Row]], list[str]], kind: Any = None
    ) -> str:
        match self.session.output:
            case "json":
                return formats.to_json([plain(row) for row in rows])
            case "jsonl":
                return formats.to_jsonl(plain(row) for row in rows)
            case "yaml":
                return formats.to_yaml([plain(row) for row in rows])
            case "csv":
                return formats.to_csv([plain(row) for row in rows], header_of(rows, kind))
            case "name":
                return "".join(name_of(row) + "\n" for row in rows)
        return "".join(line + "\n" for line in lines(rows))

    def single(self, row: Row, lines: Callable[[Row], Iterable[str]]) -> str:
        match self.session.output:
            case "json":
                return formats.to_json(plain(row))
            case "yaml":
                return formats.to_yaml(plain(row))
        return self.text([row], lambda rows: list(lines(rows[0])))

    # ---- output ----------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """A line for people; programs that asked for data do not get it."""
        if self.session.human:
            self.write(text + "\n")

    def result(self, row: Row, sentence: str) -> None:
        """The outcome of a command that changed something: a sentence, or the thing itself."""
        self.write(self.single(row, lambda _: [sentence]))

    def results(self, rows: Sequence[Row], sentence: Callable[[Row], str]) -> None:
        """As `result` for several; one is an object, more are a list."""
        if len(rows) == 1:
            self.result(rows[0], sentence(rows[0]))
        elif rows:
            self.write(self.text(rows, lambda all_: [sentence(row) for row in all_]))

    def _rounds(self, produce: Callable[[], str]) -> None:
        every_s = self.session.watch_s
        if every_s is None:
            self.write(produce())
            return
        try:
            self._forever(produce, every_s)
        except KeyboardInterrupt:
            raise Interrupted("") from None  # The way to end it.

    def _frame(self, text: str, every_s: float) -> str:
        """One round on the screen, over the one before: no flicker, no scrolling."""
        head = f"every {render.number(every_s)} s, {time.strftime('%H:%M:%S')}, Ctrl-C ends"
        rows = max(shutil.get_terminal_size().lines - 3, 4)
        lines = [render.paint(head, "dim", self.session.colored), "", *_fitting_lines(text, rows)]
        start = "" if self._drawn else "\x1b[2J"
        self._drawn = True
        return start + HOME + LINE_END.join(lines) + LINE_END + REST

    def _forever(self, produce: Callable[[], str], every_s: float) -> None:
        on_screen = self.session.human and sys.stdout.isatty()
        while True:
            try:
                text = produce()
            except AccelError as error:
                if not on_screen:
                    raise
                text = f"accelctl: {error.message}\n"  # It may come back: go on looking.
            if on_screen:
                text = self._frame(text, every_s)
            elif self.session.human:
                text += "\n"
            self.write(text)
            time.sleep(every_s)


def _fitting_lines(text: str, rows: int) -> list[str]:
    lines = text.splitlines()
    return lines if len(lines) <= rows else [*lines[: rows - 1], "..."]


def plain(row: Row) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    if not hasattr(row, "DESCRIPTOR"):
        return dict(row.plain())
    from accel.plain import to_plain

    return to_plain(row)


def name_of(row: Row) -> str:
    from accel.address import short

    name = row.get("name", "") if isinstance(row, dict) else getattr(row, "name", "")
    if not name and not isinstance(row, dict):
        name = str(getattr(row, "revision", ""))
    return short(str(name))


def header_of(rows: Sequence[Row], kind: Any) -> list[str]:
    from accel.plain import columns

    descriptor = kind() if kind else getattr(rows[0], "DESCRIPTOR", None) if rows else None
    return columns(descriptor) if descriptor is not None else []
