"""What a simulated run leaves behind: events, telemetry with the truth beside it, metrics.

    events.jsonl        an event a line, with the keys of the API
    faults.csv          each fault that was injected: where, when, what
    telemetry.csv       each lane at each sample, labelled with the faults that act on it
    telemetry.parquet   the same, where it is asked for
    metrics.om          OpenMetrics with timestamps: promtool tsdb create-blocks-from
    summary.json        the run in figures, and what became of its expectations

All bytes follow from the scenario and the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from accelhw.interface.messages import FaultInfo
from accelhw.sim.metricfamilies import Mark, fault_labels
from accelhw.sim.metrics import Metrics, metric_time
from accelhw.sim.parquet import ParquetTable
from accelhw.sim.samples import SECOND_NS, ReadColumn, Things
from accelhw.sim.telemetry import CsvTable, Sink, Telemetry, Truths

ROWS_MAX = 2_000_000  # of telemetry; ten times as many lines of metrics
FORMATS = ("csv", "parquet")


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
        self._files = {
            name: self._open(name) for name in ("events.jsonl", "faults.csv", "metrics.om")
        }
        self.events = Events(self._files["events.jsonl"])
        self._faults = self._files["faults.csv"]
        self._faults.write(
            "fault,kind,subject,lanes,shape,scale,ramp_s,begun_s,ended_s,end,scenario_line\n"
        )
        self._telemetry = Telemetry(things, causes)
        self._sinks = [self._sink(name) for name in formats]
        self._metrics = Metrics(self._files["metrics.om"], things, folder)

    def _open(self, name: str) -> IO[str]:
        return (self.folder / name).open("w", encoding="utf-8", newline="\n")

    def _sink(self, name: str) -> Sink:
        rows = self._telemetry.rows
        if name == "parquet":
            return ParquetTable(self.folder / "telemetry.parquet", rows)
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

    def finish(self, summary: Mapping[str, object]) -> None:
        self._metrics.finish()
        self.close()
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        (self.folder / "summary.json").write_text(text + "\n", encoding="utf-8")

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        for sink in self._sinks:
            sink.close()
