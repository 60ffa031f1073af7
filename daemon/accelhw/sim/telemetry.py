"""Telemetry of a simulated run as a table: each lane at each sample, with the truth beside it.

The labels are for whoever trains a predictor: the faults that act on a lane, at its own end and at
the far one, and how much of each cause there is at that moment. As CSV or Parquet, alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import Level
from accelhw.fault.scenariofigures import of_level
from accelhw.model.link import LinkState
from accelhw.sim.samples import SECOND_NS, ReadColumn, Things, figure_values

Column = NDArray[Any]
CSV_BYTES = 6  # of a column, usually


@dataclass(frozen=True, slots=True)
class Row:
    """What a column holds: `form` is its number format in CSV; empty: words."""

    name: str
    form: str = ""


@dataclass(frozen=True, slots=True)
class Truths:
    """`near` and `far`: the faults that act on each lane, at this end and at the other; `causes`:
    how much of each."""

    near: Sequence[str]
    far: Sequence[str]
    causes: Mapping[str, Column]


class Sink(Protocol):
    """A file of telemetry."""

    def write(self, columns: Sequence[Column]) -> None:
        """Some rows; nan is a value that is not there."""

    @property
    def bytes_each(self) -> int:
        """About how many a row takes."""

    def close(self) -> None: ...


class Telemetry:
    """Rows in the order of `things.lanes`. `causes` are those that the scenario can change."""

    def __init__(self, things: Things, causes: Sequence[str]) -> None:
        self._causes = tuple(causes)
        self._figures = of_level(Level.LANE)
        self._ports = np.array([str(lane.port) for lane in things.lanes])
        self._lanes = np.array([f"lane{lane.index}" for lane in things.lanes])
        places = {port: place for place, port in enumerate(things.ports)}
        self._port_of = np.array([places[lane.port] for lane in things.lanes], np.intp)
        cards = {card: place for place, card in enumerate(things.cards)}
        self._card_of = np.array([cards[lane.port.card] for lane in things.lanes], np.intp)
        self._names = np.array(["", *(LinkState(n).name for n in range(1, len(LinkState) + 1))])
        self.rows = (
            Row("time_s", "%.3f"), Row("port"), Row("lane"), Row("link_state"),
            Row("width_lanes", "%d"),
            # BER, and what is absent in the dark, needs more digits than a register of light.
            *(Row(figure.name, "%d" if figure.counter else "%.6g") for figure in self._figures),
            Row("case_temp_c", "%.6g"), Row("fault"), Row("far_fault"),
            *(Row(f"cause_{name}", "%.6g") for name in self._causes),
        )  # fmt: skip

    def columns(self, time_ns: int, read: ReadColumn, truths: Truths) -> list[Column]:
        """One sample, a column for each of `rows`."""
        return [
            np.full(len(self._ports), time_ns / SECOND_NS),
            self._ports,
            self._lanes,
            self._names[read(Level.PORT, "state")[self._port_of]],
            read(Level.PORT, "width")[self._port_of],
            *(figure_values(figure, read) for figure in self._figures),
            read(Level.CARD, "case_temp_c")[self._card_of],
            np.array(truths.near),
            np.array(truths.far),
            *(truths.causes[name] for name in self._causes),
        ]


class CsvTable:
    """telemetry.csv. What is not there is empty."""

    def __init__(self, file: IO[str], rows: Sequence[Row]) -> None:
        self._file = file
        self._form = ",".join(row.form or "%s" for row in rows) + "\n"
        file.write(",".join(row.name for row in rows) + "\n")

    def write(self, columns: Sequence[Column]) -> None:
        form = self._form
        lists = (column.tolist() for column in columns)
        lines = [form % values for values in zip(*lists, strict=True)]
        self._file.write("".join(lines).replace("nan", ""))

    @property
    def bytes_each(self) -> int:
        return self._form.count(",") * CSV_BYTES

    def close(self) -> None:
        self._file.close()
