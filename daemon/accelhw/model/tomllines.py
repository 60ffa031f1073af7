"""Where in a TOML text each key stands: what `tomllib` does not tell.

The text must have passed `tomllib`; so this scanner only has to find keys, not mistakes.
"""

from __future__ import annotations

import tomllib

Path = tuple[str | int, ...]  # ("card", 0, "profile"): the profile of the first [[card]]

_BARE_END = frozenset(" \t\r\n=.],}#")


def key_lines(text: str) -> dict[Path, int]:
    """The line, counted from 1, of every table, key and array element; () is line 1."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text + "\n"
        self._at = 0
        self._line_at, self._line_now = 0, 1
        self._lines: dict[Path, int] = {(): 1}
        self._counts: dict[Path, int] = {}  # of arrays of tables, so far

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_blank():
            line = self._line()
            if self._take("[["):
                array = self._resolve(self._key())
                number = self._counts.get(array, 0)
                self._counts[array] = number + 1
                table = (*array, number)
                self._lines.setdefault(array, line)
                self._lines[table] = line
            elif self._take("["):
                table = self._resolve(self._key())
                self._lines[table] = line
            else:
                self._pair(table)
                continue
            self._to_line_end()
        return self._lines

    def _resolve(self, key: tuple[str, ...]) -> Path:
        """A header's key as a path: through arrays of tables it means the newest element."""
        path: Path = ()
        for depth, part in enumerate(key):
            path = (*path, part)
            self._lines.setdefault(path, self._line())
            if path in self._counts and depth < len(key) - 1:
                path = (*path, self._counts[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._skip_spaces()
        self._take("=")
        self._value(path)

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self._skip_spaces()
            if self._text[self._at] in "\"'":
                start = self._at
                self._string()
                literal = self._text[start : self._at]
                parts.append(tomllib.loads(f"k = {literal}")["k"])
            else:
                start = self._at
                while self._text[self._at] not in _BARE_END:
                    self._at += 1
                parts.append(self._text[start : self._at])
            self._skip_spaces()
            if not self._take("."):
                return tuple(parts)

    def _value(self, path: Path) -> None:
        self._skip_spaces()
        if self._text[self._at] in "\"'":
            self._string()
        elif self._take("["):
            number = 0
            while self._skip_blank() and not self._take("]"):
                self._lines[(*path, number)] = self._line()
                self._value((*path, number))
                self._skip_blank()
                self._take(",")
                number += 1
        elif self._take("{"):
            while self._skip_blank() and not self._take("}"):
                self._pair(path)
                self._skip_blank()
                self._take(",")
        else:
            while self._text[self._at] not in ",]}#\r\n":
                self._at += 1

    def _string(self) -> None:
        quote = self._text[self._at]
        end = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._at += len(end)
        while not self._text.startswith(end, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(end)
        while len(end) == 3 and self._text[self._at] == quote:  # """a quote at the end""""
            self._at += 1

    def _skip_spaces(self) -> None:
        while self._text[self._at] in " \t":
            self._at += 1

    def _skip_blank(self) -> bool:
        """Past blanks, line ends and comments; False at the end of the text."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                self._to_line_end()
            elif self._text[self._at] in " \t\r\n":
                self._at += 1
            else:
                return True
        return False

    def _to_line_end(self) -> None:
        self._at = self._text.index("\n", self._at)

    def _take(self, token: str) -> bool:
        if self._text.startswith(token, self._at):
            self._at += len(token)
            return True
        return False

    def _line(self) -> int:
        """Of the place where it is; counted on from where it was asked last, for long texts."""
        self._line_now += self._text.count("\n", self._line_at, self._at)
        self._line_at = self._at
        return self._line_now
