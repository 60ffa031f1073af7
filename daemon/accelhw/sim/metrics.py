"""metrics.om: samples of a simulated run as OpenMetrics with timestamps.

OpenMetrics wants all samples of a series together, and a run brings all series of a sample
together. So figures, which are there at each sample, wait in a file until the end; what says more
with its labels than with its value (states of flags, identities, faults) waits as the stretches of
samples over which it was so.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from accelhw.sim.metricfamilies import FAULT, Family, Mark, families
from accelhw.sim.samples import SECOND_NS, ReadColumn, Things

SERIES_AT_ONCE = 4096
LINE_BYTES = 27  # beyond names and labels: braces, blanks, a time of 14 digits, and a usual value

Stretch = list[float]  # first sample, last sample, value


class Metrics:
    """Samples go to a file of their own until `finish`."""

    def __init__(self, file: IO[str], things: Things, folder: Path) -> None:
        self._file = file
        self._families = families(things)
        self._width = sum(len(family.series) for family in self._families)
        # A file without a name: gone with the process, whatever ends it.
        self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._times: list[str] = []
        self._at_ns: list[int] = []
        self._marks: dict[Family, dict[str, list[Stretch]]] = {}

    def names(self) -> Iterator[tuple[str, str]]:
        """Families and labels of the figures."""
        return ((family.name, labels) for family in self._families for labels in family.series)

    def fault(self, labels: Sequence[str], from_ns: int, until_ns: int | None) -> None:
        """A fault that was there, on each of these places."""
        first = bisect_left(self._at_ns, from_ns)
        behind = len(self._at_ns) if until_ns is None else bisect_left(self._at_ns, until_ns)
        if behind > first:
            of_place = self._marks.setdefault(FAULT, {})
            for place in labels:
                of_place.setdefault(place, []).append([first, behind - 1, 1.0])

    def write(self, time_ns: int, read: ReadColumn, marks: Iterable[Mark]) -> None:
        row = np.concatenate([family.values(read) for family in self._families])
        self._spool.write(np.asarray(row, "<f8").tobytes())
        now = len(self._times)
        for family, labels, value in marks:
            stretches = self._marks.setdefault(family, {}).setdefault(labels, [])
            if stretches and stretches[-1][1] == now - 1 and stretches[-1][2] == value:
                stretches[-1][1] = now
            else:
                stretches.append([now, now, value])
        self._times.append(metric_time(time_ns))
        self._at_ns.append(time_ns)

    def finish(self) -> None:
        self._spool.flush()
        count = len(self._times)
        first = 0
        for family in self._families:
            self._write_head(family)
            for start in range(0, len(family.series), SERIES_AT_ONCE):
                names = family.series[start : start + SERIES_AT_ONCE]
                block = self._block(first + start, len(names), count)
                for name, values in zip(names, block.T.tolist(), strict=True):
                    self._write_series(f"{family.name}{{{name}}}", values)
            first += len(family.series)
        for family in sorted({FAULT, *self._marks}, key=lambda family: family.name):
            self._write_head(family)
            for labels, stretches in sorted(self._marks.get(family, {}).items()):
                self._write_stretches(f"{family.name}{{{labels}}}", stretches)
        self._file.write("# EOF\n")
        self.close()

    def close(self) -> None:
        self._spool.close()

    def _write_head(self, family: Family) -> None:
        self._file.write(f"# HELP {family.base} {family.help}\n")
        self._file.write(f"# TYPE {family.base} {family.kind}\n")

    def _block(self, first: int, width: int, count: int) -> NDArray[np.float64]:
        """Columns of the spool, all samples."""
        if not count or not width:
            return np.zeros((count, width))
        whole = np.memmap(self._spool, "<f8", "r", shape=(count, self._width))
        return np.array(whole[:, first : first + width])

    def _write_series(self, name: str, values: list[float]) -> None:
        self._file.write(
            "".join(
                f"{name} {_number(value)} {time}\n"
                for value, time in zip(values, self._times, strict=True)
                if value == value  # nan: there is no value, and none is made up
            )
        )

    def _write_stretches(self, name: str, stretches: Iterable[Stretch]) -> None:
        values = {
            place: value
            for first, last, value in stretches
            for place in range(int(first), int(last) + 1)
        }
        self._file.writelines(
            f"{name} {_number(values[place])} {self._times[place]}\n" for place in sorted(values)
        )


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"


def metric_time(time_ns: int) -> str:
    return f"{time_ns / SECOND_NS:.3f}"
