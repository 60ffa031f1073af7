"""What a simulated run leaves behind: events, telemetry with the truth beside it, metrics.

    events.jsonl    an event a line, with the keys of the API
    faults.csv      each fault that was injected: where, when, what
    telemetry.csv   each lane at each sample, labelled with the faults that act on it
    metrics.om      the same as OpenMetrics with timestamps: promtool tsdb create-blocks-from
    summary.json    the run in figures, and what became of its expectations

All bytes follow from the scenario and the seed. OpenMetrics wants all samples of a series together
and a run brings all series of a sample together; so samples wait in a file until the end.
"""

from __future__ import annotations

import json
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import Level
from accelhw.fault.scenariofigures import Figure, of_level
from accelhw.interface.messages import FaultInfo
from accelhw.model.ids import LaneId, PortId
from accelhw.model.link import LinkState

SECOND_NS = 1_000_000_000
ROWS_MAX = 2_000_000  # of telemetry.csv; ten times as many lines of metrics
SERIES_AT_ONCE = 4096
LINK_STATES = tuple(LinkState)

Column = NDArray[Any]
# A table column of some rows: `read(level, "rx_power_dbm")`.
ReadColumn = Callable[[Level, str], Column]


@dataclass(frozen=True, slots=True)
class Things:
    """What telemetry is written of, in the order of its columns."""

    cards: tuple[str, ...]
    ports: tuple[PortId, ...]
    lanes: tuple[LaneId, ...]


def stamp(time_ns: int) -> str:
    """`2026-01-01T00:00:00.000Z`, as the API writes it."""
    seconds, rest = divmod(time_ns, SECOND_NS)
    when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{when}.{rest // 1_000_000:03d}Z"


class Events:
    """events.jsonl."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._revision = 0

    def write(
        self,
        time_ns: int,
        severity: str,
        kind: str,
        subject: str,
        message: str,
        detail: Mapping[str, object],
    ) -> None:
        self._revision += 1
        row = {
            "revision": self._revision,
            "time": stamp(time_ns),
            "severity": severity,
            "kind": kind,
            "subject": subject,
            "message": message,
            "detail": dict(detail),
        }
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")


class TelemetryTable:
    """telemetry.csv. `causes` are those that the scenario's faults can change."""

    def __init__(self, file: IO[str], things: Things, causes: Sequence[str]) -> None:
        self._file = file
        self._things = things
        self._causes = tuple(causes)
        figures = of_level(Level.LANE)
        # BER, and what is absent in the dark, needs more digits than a register of light.
        self._figures = figures
        form = ",".join("%.6g" if not figure.counter else "%d" for figure in figures)
        truth = ",".join("%.6g" for _ in self._causes)
        self._row = f"%s,%s,%s,%d,{form},%.6g,%s,%s{',' + truth if truth else ''}\n"
        self._names = [f"{lane.port},lane{lane.index}" for lane in things.lanes]
        places = {port: place for place, port in enumerate(things.ports)}
        self._port_of = np.array([places[lane.port] for lane in things.lanes], np.intp)
        cards = {card: place for place, card in enumerate(things.cards)}
        self._card_of = np.array([cards[lane.port.card] for lane in things.lanes], np.intp)
        header = [
            *("time_s", "port", "lane", "link_state", "width_lanes"),
            *(figure.name for figure in figures),
            *("case_temp_c", "fault", "far_fault"),
            *(f"cause_{name}" for name in self._causes),
        ]
        file.write(",".join(header) + "\n")

    def write(
        self,
        time_ns: int,
        read: ReadColumn,
        near: Sequence[str],
        far: Sequence[str],
        causes: Mapping[str, Column],
    ) -> None:
        """`near` and `far`: the faults that act on each lane, at this end and at the other."""
        at = f"{time_ns / SECOND_NS:.3f}"
        states = read(Level.PORT, "state")[self._port_of].tolist()
        columns: list[Iterable[Any]] = [
            [at] * len(self._names),
            self._names,
            [LinkState(state).name if state else "" for state in states],
            read(Level.PORT, "width")[self._port_of].tolist(),
        ]
        columns += (_values(figure, read).tolist() for figure in self._figures)
        columns += (read(Level.CARD, "case_temp_c")[self._card_of].tolist(), near, far)
        columns += (causes[name].tolist() for name in self._causes)
        row = self._row
        lines = [row % values for values in zip(*columns, strict=True)]
        self._file.write("".join(lines).replace("nan", ""))


def _values(figure: Figure, read: ReadColumn) -> NDArray[np.float64]:
    """The figure's values in its own unit; nan where there is none."""
    values = np.asarray(read(figure.level, figure.column), np.float64)
    if figure.present:
        return np.where(read(figure.level, figure.present) != 0, values, np.nan)
    return values


@dataclass(frozen=True, slots=True)
class Family:
    """An OpenMetrics family; `series` are the labels of each, in the order of the values."""

    name: str
    kind: str
    help: str
    series: tuple[str, ...]
    values: Callable[[ReadColumn], NDArray[np.float64]]


class Metrics:
    """metrics.om. Samples go to a file of their own until `finish`."""

    def __init__(self, file: IO[str], things: Things, folder: Path) -> None:
        self._file = file
        self._families = _families(things)
        self._width = sum(len(family.series) for family in self._families)
        # A file without a name: gone with the process, whatever ends it.
        self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._times: list[str] = []
        self._at_ns: list[int] = []
        self._faults: list[tuple[str, int, int | None]] = []  # labels, from and until

    def fault(self, labels: Sequence[str], from_ns: int, until_ns: int | None) -> None:
        """A fault that was there, on each of these places."""
        self._faults += ((each, from_ns, until_ns) for each in labels)

    def write(self, time_ns: int, read: ReadColumn) -> None:
        row = np.concatenate([family.values(read) for family in self._families])
        self._spool.write(np.asarray(row, "<f8").tobytes())
        self._times.append(_metric_time(time_ns))
        self._at_ns.append(time_ns)

    def finish(self) -> None:
        self._spool.flush()
        count = len(self._times)
        first = 0
        for family in self._families:
            self._file.write(f"# HELP {_base(family)} {family.help}\n")
            self._file.write(f"# TYPE {_base(family)} {family.kind}\n")
            for start in range(0, len(family.series), SERIES_AT_ONCE):
                names = family.series[start : start + SERIES_AT_ONCE]
                block = self._block(first + start, len(names), count)
                for name, values in zip(names, block.T.tolist(), strict=True):
                    self._write_series(f"{family.name}{{{name}}}", values)
            first += len(family.series)
        self._write_faults()
        self._file.write("# EOF\n")
        self._spool.close()

    def _write_faults(self) -> None:
        """accel_fault_active, at the samples at which it was so."""
        name = "accel_fault_active"
        self._file.write(f"# HELP {name} 1 while a fault of that kind is injected there.\n")
        self._file.write(f"# TYPE {name} gauge\n")
        there: dict[str, set[int]] = {}
        for labels, from_ns, until_ns in self._faults:
            places = there.setdefault(labels, set())
            first = bisect_left(self._at_ns, from_ns)
            last = len(self._at_ns) if until_ns is None else bisect_left(self._at_ns, until_ns)
            places.update(range(first, last))
        for labels in sorted(there):
            self._file.writelines(
                f"{name}{{{labels}}} 1 {self._times[place]}\n" for place in sorted(there[labels])
            )

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


def _families(things: Things) -> list[Family]:
    labels = {
        Level.CARD: tuple(f'card="{card}"' for card in things.cards),
        Level.PORT: tuple(_port_labels(port) for port in things.ports),
        Level.LANE: tuple(
            f'{_port_labels(lane.port)},lane="lane{lane.index}"' for lane in things.lanes
        ),
    }
    families = [
        Family("accel_link_up", "gauge", "1 while the link carries data.", labels[Level.PORT], _up)
    ]
    for state in LINK_STATES:
        series = tuple(f'{at},state="{state.name}"' for at in labels[Level.PORT])
        text = "State of the link: 1 for the one it is in."
        families.append(Family("accel_link_state", "gauge", text, series, _is_state(state)))
    families = [families[0], _joined(families[1:])]
    for level in Level:
        for figure in of_level(level):
            if figure.family:
                kind = "counter" if figure.counter else "gauge"
                families.append(
                    Family(figure.family, kind, figure.help, labels[level], _scaled(figure))
                )
    return families


def _joined(families: Sequence[Family]) -> Family:
    """Several of one name as one, so that its samples stand together."""
    first = families[0]
    series = tuple(name for family in families for name in family.series)
    return Family(
        first.name,
        first.kind,
        first.help,
        series,
        lambda read: np.concatenate([family.values(read) for family in families]),
    )


def _port_labels(port: PortId) -> str:
    return f'card="{port.card}",oe="oe{port.oe}"'


def _fault_labels(info: FaultInfo) -> list[str]:
    """As the daemon's exporter has them."""
    card, _, oe = info.subject.partition("/")
    at = f'kind="{info.kind}",card="{card}"' + (f',oe="{oe}"' if oe else "")
    return [f'{at},lane="lane{lane}"' for lane in info.lanes] or [at]


def _up(read: ReadColumn) -> NDArray[np.float64]:
    up = [state.value for state in LINK_STATES if state.carries_data]
    return np.isin(read(Level.PORT, "state"), up).astype(np.float64)


def _is_state(state: LinkState) -> Callable[[ReadColumn], NDArray[np.float64]]:
    return lambda read: (read(Level.PORT, "state") == state.value).astype(np.float64)


def _scaled(figure: Figure) -> Callable[[ReadColumn], NDArray[np.float64]]:
    return lambda read: _values(figure, read) * figure.factor


def _base(family: Family) -> str:
    """OpenMetrics names a counter's family without the _total of its samples."""
    return family.name.removesuffix("_total") if family.kind == "counter" else family.name


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"


def _metric_time(time_ns: int) -> str:
    return f"{time_ns / SECOND_NS:.3f}"


class Outputs:
    """The files of a run, in a folder that is made when it is not there."""

    def __init__(self, folder: Path, things: Things, causes: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._files = {
            name: (folder / name).open("w", encoding="utf-8", newline="\n")
            for name in ("events.jsonl", "faults.csv", "telemetry.csv", "metrics.om")
        }
        self.events = Events(self._files["events.jsonl"])
        self._faults = self._files["faults.csv"]
        self._faults.write(
            "fault,kind,subject,lanes,shape,scale,ramp_s,begun_s,ended_s,end,scenario_line\n"
        )
        self._table = TelemetryTable(self._files["telemetry.csv"], things, causes)
        self._metrics = Metrics(self._files["metrics.om"], things, folder)

    def sample(
        self,
        time_ns: int,
        read: ReadColumn,
        near: Sequence[str],
        far: Sequence[str],
        causes: Mapping[str, Column],
    ) -> None:
        self._table.write(time_ns, read, near, far, causes)
        self._metrics.write(time_ns, read)

    def fault(
        self, info: FaultInfo, until_ns: int | None, end: str, scenario_line: int | None
    ) -> None:
        """A fault that is over, or (`until_ns` None) lasts beyond the end. Times of the wall."""
        lanes = " ".join(map(str, info.lanes))
        ramp = f"{info.ramp_s:g}" if info.ramp_s else ""
        until = "" if until_ns is None else _metric_time(until_ns)
        self._faults.write(
            f"{info.fault_id},{info.kind},{info.subject},{lanes},{info.shape},{info.scale:g},{ramp},"
            f"{_metric_time(info.started_ns)},{until},{end},{scenario_line or ''}\n"
        )
        self._metrics.fault(_fault_labels(info), info.started_ns, until_ns)

    def finish(self, summary: Mapping[str, object]) -> None:
        self._metrics.finish()
        self.close()
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        (self.folder / "summary.json").write_text(text + "\n", encoding="utf-8")

    def close(self) -> None:
        for file in self._files.values():
            file.close()
