"""What a simulated run leaves behind: events, telemetry with the truth beside it, metrics.

    events.jsonl        an event a line, with the keys of the API
    faults.csv          each fault that was injected: where, when, what
    telemetry.csv       each lane at each sample, labelled with the faults that act on it
    telemetry.parquet   the same, where it is asked for
    metrics.om          OpenMetrics with timestamps: promtool tsdb create-blocks-from
    summary.json        the run in figures, and what became of its expectations

All bytes follow from the scenario and the seed. Until the run is over they are named NAME.part: a
file with one of these names is whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from accelhw.interface.messages import FaultInfo
from accelhw.sim.metricfamilies import Mark, fault_labels
from accelhw.sim.metrics import LINE_BYTES, Metrics, metric_time
from accelhw.sim.parquet import ParquetTable
from accelhw.sim.samples import SECOND_NS, ReadColumn, Things
from accelhw.sim.telemetry import CsvTable, Sink, Telemetry, Truths

ROWS_MAX = 2_000_000  # of telemetry; ten times as many lines of metrics
FORMATS = ("csv", "parquet")
SUMMARY = "summary.json"


class Closeable(Protocol):
    def close(self) -> None: ...


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


class Outputs:
    """The files of a run, in a folder that is made when it is not there."""

    def __init__(
        self,
        folder: Path,
        things: Things,
        causes: Sequence[str],
        formats: Sequence[str] = FORMATS[:1],
    ) -> None:
        """`formats` of telemetry. Raises NoParquet, OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._names: list[str] = []
        self._files = {
            name: self._open(name) for name in ("events.jsonl", "faults.csv", "metrics.om")
        }
        self.events = Events(self._files["events.jsonl"])
        self._faults = self._files["faults.csv"]
        self._faults.write(
            "fault,kind,subject,lanes,shape,scale,ramp_s,begun_s,ended_s,end,scenario_line\n"
        )
        self._telemetry = Telemetry(things, causes)
        self._lanes = len(things.lanes)
        self._sinks = [self._sink(name) for name in formats]
        self._metrics = Metrics(self._files["metrics.om"], things, folder)

    def _part(self, name: str) -> Path:
        self._names.append(name)
        return self.folder / f"{name}.part"

    def _open(self, name: str) -> IO[str]:
        return self._part(name).open("w", encoding="utf-8", newline="\n")

    def _sink(self, name: str) -> Sink:
        rows = self._telemetry.rows
        if name == "parquet":
            return ParquetTable(self._part("telemetry.parquet"), rows)
        return CsvTable(self._open("telemetry.csv"), rows)

    def sample(self, time_ns: int, read: ReadColumn, truths: Truths, marks: Iterable[Mark]) -> None:
        columns = self._telemetry.columns(time_ns, read, truths)
        for sink in self._sinks:
            sink.write(columns)
        self._metrics.write(time_ns, read, marks)

    def fault(
        self, info: FaultInfo, until_ns: int | None, end: str, scenario_line: int | None
    ) -> None:
        """A fault that is over, or (`until_ns` None) lasts beyond the end. Times of the wall."""
        lanes = " ".join(map(str, info.lanes))
        ramp = f"{info.ramp_s:g}" if info.ramp_s else ""
        until = "" if until_ns is None else metric_time(until_ns)
        self._faults.write(
            f"{info.fault_id},{info.kind},{info.subject},{lanes},{info.shape},{info.scale:g},{ramp},"
            f"{metric_time(info.started_ns)},{until},{end},{scenario_line or ''}\n"
        )
        self._metrics.fault(fault_labels(info), info.started_ns, until_ns)

    def size_each(self, marks: Sequence[Mark]) -> tuple[int, int]:
        """Of a sample with such marks: its series, and about how many bytes it takes."""
        rows = self._lanes * sum(sink.bytes_each for sink in self._sinks)
        names = [*self._metrics.names(), *((family.name, labels) for family, labels, _ in marks)]
        lines = sum(len(name) + len(labels) + LINE_BYTES for name, labels in names)
        return len(names), rows + lines

    @property
    def free_bytes(self) -> int:
        """Room where the files go."""
        return shutil.disk_usage(self.folder).free

    def finish(self, summary: Mapping[str, object]) -> None:
        """All files are whole, and get their names. Raises OSError; then `discard`."""
        self._metrics.finish()
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        self._part(SUMMARY).write_text(text + "\n", encoding="utf-8")
        done: list[Closeable] = [*self._files.values(), *self._sinks]
        for closing in done:
            closing.close()
        for name in self._names:
            os.replace(self.folder / f"{name}.part", self.folder / name)

    def discard(self) -> None:
        """Nothing is left of a run that did not come to its end."""
        open_ones: list[Closeable] = [self._metrics, *self._files.values(), *self._sinks]
        for closing in open_ones:
            with suppress(OSError):  # A full disk takes no last bytes either.
                closing.close()
        for name in self._names:
            (self.folder / f"{name}.part").unlink(missing_ok=True)
