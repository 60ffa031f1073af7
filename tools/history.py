"""The past of a simulated fleet in Prometheus: `history.py SCENARIO [--out FOLDER] [--for 30d]`.

Runs the scenario in simulated time, makes blocks of its metrics, asks a Prometheus over them which
alerts would have come and when, and prints the command to look at it. Needs Debian's package
prometheus. Rules whose windows are shorter than the time between samples see nothing, and what a
fleet without daemons has not (health, workers, transfers) has no past.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
ALERTS = ROOT / "monitoring/alerts"
SCRAPED = 'job="acceld",instance="simulated:9437"'  # what a scrape would have added
BLOCK_MAX = "486h"  # promtool reads all samples once for each block
TIMEOUT_S = 120
POINTS_MAX = 10_000  # that Prometheus answers to one question
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Alert:
    name: str
    expr: str  # with records written out: the past has none
    for_s: int


@dataclass(frozen=True)
class Firing:
    alert: str
    place: str
    from_s: float
    until_s: float  # the last time that it was seen


@dataclass(frozen=True)
class Span:
    first_s: float
    last_s: float
    step_s: float


# ---- samples ------------------------------------------------------------------------------------


def scraped(line: str) -> str:
    """A line of OpenMetrics, with the labels of a scrape."""
    if line.startswith("#"):
        return line
    name, brace, rest = line.partition("{")
    if brace and " " not in name:
        return f"{name}{{{SCRAPED},{rest}"
    name, _, rest = line.partition(" ")
    return f"{name}{{{SCRAPED}}} {rest}"


def rewrite(source: Path, target: Path) -> Span:
    """All lines with those labels; when the samples are."""
    times: set[float] = set()
    with source.open() as lines, target.open("w") as out:
        for line in lines:
            out.write(scraped(line))
            if line.startswith("accel_link_up{"):
                times.add(float(line.rsplit(" ", 1)[1]))
    ordered = sorted(times)
    if len(ordered) < 2:
        raise SystemExit(f"{source} has fewer than two samples; take a shorter --step")
    return Span(ordered[0], ordered[-1], ordered[1] - ordered[0])


# ---- rules --------------------------------------------------------------------------------------


def seconds(duration: str) -> int:
    return int(duration[:-1]) * SECONDS[duration[-1]]


def alerts() -> list[Alert]:
    rules = [
        rule
        for file in sorted(ALERTS.glob("*.rules.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    records = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}
    return [
        Alert(rule["alert"], written_out(rule["expr"], records), seconds(rule.get("for", "0s")))
        for rule in rules
        if "alert" in rule and "up{" not in rule["expr"] and rule["labels"]["severity"] != "none"
    ]


def written_out(expr: str, records: dict[str, str]) -> str:
    """Records by what they are, and so on within."""
    while found := re.search(r"\baccel:[\w:]+", expr):
        expr = f"{expr[: found.start()]}({records[found[0]]}){expr[found.end() :]}"
    return expr


# ---- Prometheus ---------------------------------------------------------------------------------


def prometheus(data: Path, span: Span, web: str) -> list[str]:
    """The command; a sample counts until the next one."""
    return [
        "prometheus", f"--config.file={ROOT}/monitoring/prometheus.yml",
        f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=100y",
        f"--query.lookback-delta={round(1.5 * span.step_s)}s", f"--web.listen-address={web}",
    ]  # fmt: skip


@contextmanager
def over(data: Path, span: Span) -> Iterator[str]:
    """A Prometheus over the data; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        web = f"127.0.0.1:{probe.getsockname()[1]}"
    with tempfile.TemporaryFile() as log, tempfile.NamedTemporaryFile("w", suffix=".yml") as empty:
        command = prometheus(data, span, web)
        command[1] = f"--config.file={empty.name}"  # It scrapes nothing into the past.
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while not _is_ready(web):
                if running.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise SystemExit(f"prometheus does not start: {log.read().decode()[-2000:]}")
                time.sleep(0.1)
            yield web
        finally:
            running.terminate()
            running.wait()


def _is_ready(web: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{web}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def ask(web: str, expr: str, span: Span) -> list[dict[str, Any]]:
    step_s = max(span.step_s, (span.last_s - span.first_s) / POINTS_MAX)
    question = urllib.parse.urlencode(
        {"query": expr, "start": span.first_s, "end": span.last_s, "step": step_s}
    )
    with urllib.request.urlopen(f"http://{web}/api/v1/query_range?{question}") as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def firings(web: str, alert: Alert, span: Span) -> Iterator[Firing]:
    """When it would have fired, series by series: the condition has held for its time."""
    for series in ask(web, alert.expr, span):
        place = "/".join(
            series["metric"][k] for k in ("card", "oe", "lane") if k in series["metric"]
        )
        times = [float(at) for at, _ in series["values"]]
        begun = previous = times[0]
        for at in [*times[1:], None]:
            if at is None or at > previous + 1.5 * span.step_s:
                if previous - begun >= alert.for_s:
                    yield Firing(alert.name, place, begun + alert.for_s, previous)
                begun = at or 0.0
            previous = at or 0.0


# ---- the whole ----------------------------------------------------------------------------------


def backfill(scenario: Path, out: Path, options: list[str]) -> Span:
    """Runs the scenario and makes blocks of it in `out`/data."""
    command = [
        sys.executable, "-m", "accelctl.main", "scenario", "run", str(scenario), "--simulate",
        "--out", str(out / "run"), *options,
    ]  # fmt: skip
    done = subprocess.run(command, check=False)
    if done.returncode not in (0, 1):  # 1: an expectation is not met; the past is there.
        raise SystemExit(done.returncode)
    span = rewrite(out / "run/metrics.om", out / "scraped.om")
    shutil.rmtree(out / "data", ignore_errors=True)
    subprocess.run(
        [
            "promtool", "tsdb", "create-blocks-from", f"--max-block-duration={BLOCK_MAX}",
            "--quiet", "openmetrics", out / "scraped.om", out / "data",
        ],
        check=True,
    )  # fmt: skip
    (out / "scraped.om").unlink()
    return span


def story(web: str, span: Span) -> list[Firing]:
    """All that would have been told, in order."""
    found = [one for alert in alerts() for one in firings(web, alert, span)]
    return sorted(found, key=lambda one: (one.from_s, one.alert, one.place))


def told(found: list[Firing], span: Span) -> Iterator[str]:
    """A line for each alert and engine, its lanes together."""
    groups: dict[tuple[str, str], list[Firing]] = {}
    for one in found:
        port = "/".join(one.place.split("/")[:2])
        groups.setdefault((one.alert, port), []).append(one)
    for (alert, port), ones in groups.items():
        when = datetime.fromtimestamp(ones[0].from_s, UTC)
        day = (ones[0].from_s - span.first_s) / SECONDS["d"]
        lanes = len({one.place for one in ones})
        more = f", {lanes} lanes" if lanes > 1 else ""
        yield f"  {when:%Y-%m-%d %H:%M}  day {day:5.1f}  {alert:28} {port}{more}"


def main() -> None:
    parser = argparse.ArgumentParser(description="A simulated past in Prometheus.")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build/history"))
    for option in ("--for", "--seed", "--step"):
        parser.add_argument(option, dest=option)
    chosen = vars(parser.parse_args())
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed; Debian's package is prometheus")
    out = chosen["out"].resolve()
    out.mkdir(parents=True, exist_ok=True)
    options = [
        word for key, value in chosen.items() if key.startswith("--") and value
        for word in (key, value)
    ]  # fmt: skip
    span = backfill(chosen["scenario"], out, options)
    with over(out / "data", span) as web:
        lines = list(told(story(web, span), span))
    print("\nalerts that would have come, by the time of the run:")
    print("\n".join(lines) if lines else "  none")
    print("\nto look at it, with any board that asks this Prometheus:")
    print("  " + " ".join(prometheus(out / "data", span, "127.0.0.1:9090")))
    first = datetime.fromtimestamp(span.first_s, UTC)
    last = datetime.fromtimestamp(span.last_s, UTC)
    print(f"  from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC")


if __name__ == "__main__":
    main()
