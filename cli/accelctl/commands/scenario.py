"""accelctl scenario: what happens to a fleet, written down; in simulated time or for real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import rich_click as click

from accelctl import exits, render, scenarios
from accelctl.options import Noun, command, examples, printed
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

MUCH_BYTES = 100e6  # of files: more is told before it is written
STEPS_S = (1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
FILES = ("events.jsonl", "faults.csv", "metrics.om", "summary.json")

MISTAKE_COLUMNS = (
    Column("LINE", lambda m: str(m["line"]), right=True),
    Column("KEY", lambda m: m["key"]),
    Column("MISTAKE", lambda m: m["problem"]),
    Column("REMEDY", lambda m: m["remedy"]),
)
LINK_COLUMNS = (
    Column("LINK", lambda k: k["link"]),
    Column("STATE", lambda k: render.state(k["state"])),
    Column("DOWNS", lambda k: str(k["downs"]), right=True),
    Column("DOWN", lambda k: _time(k["down_s"]), right=True),
    Column("DEGRADED", lambda k: _time(k["degraded_s"]), right=True),
    Column("FAULTS", lambda k: str(k["faults"]), right=True),
)
EXPECTED_COLUMNS = (
    Column("LINE", lambda e: str(e["line"]), right=True),
    Column("EXPECTED", lambda e: e["text"], flexible=True),
    Column("MET", lambda e: _met(e["met"])),
    Column("INSTEAD", lambda e: e["detail"], spare=True),
)


@click.group("scenario", cls=Noun)
def cli() -> None:
    """Scenarios: faults and operators, where and when, and what must come of it.

    A scenario is a TOML file; docs/scenarios.md tells what may stand in it. It runs in simulated
    time without any daemon, months in seconds, or as it is written against the rack of a daemon.
    """


@command(cli, "check")
@examples(
    "accelctl scenario check hot_aisle.toml",
    "accelctl scenario check hot_aisle.toml --live",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--live", is_flag=True, help="On the daemon's rack, not on the file's topology.")
@printed
def check(session: Session, view: View, file: Path, live: bool) -> None:
    """Name every mistake of a scenario with its line and a remedy, or say what it holds."""
    rack = scenarios.rack(session) if live else None
    found = scenarios.check(file, rack)
    if "mistakes" in found:
        rows = [{"file": str(file), **mistake} for mistake in found["mistakes"]]
        view.write(view.text(rows, lambda rows: [_mistake(row) for row in rows]))
        raise _bad(file, len(rows))
    view.result(found["scenario"], _good(found["scenario"]))


@command(cli, "run")
@examples(
    "accelctl scenario run hot_aisle.toml --simulate --for 8h --out hot",
    "accelctl scenario run hot_aisle.toml --simulate --step 5m -o json",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--simulate", is_flag=True, help="In simulated time: no daemon, no waiting.")
@click.option("--seed", metavar="NUMBER", help="Instead of the file's: other chance, other run.")
@click.option("--for", "duration", metavar="TIME", help="How long, as 30d; the file says, too.")
@click.option("--step", metavar="TIME", help="Simulated: time between samples, as 60s.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Simulated: events, telemetry and metrics go there.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["csv", "parquet"]),
    multiple=True,
    help="Simulated: of the telemetry; csv unless told, or both.",
)
@click.option(
    "--cold-start",
    is_flag=True,
    help="Simulated: equalisers train from nothing, not from where they were left.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.001, 100_000),
    metavar="FACTOR",
    help="For real: so many seconds of the file in each second; 1 unless told.",
)
@click.option("--keep", is_flag=True, help="For real: leave at the end what was injected.")
@printed
def run(
    session: Session,
    view: View,
    file: Path,
    simulate: bool,
    seed: str | None,
    duration: str | None,
    step: str | None,
    out: Path | None,
    formats: tuple[str, ...],
    cold_start: bool,
    speed: float | None,
    keep: bool,
) -> None:
    """Run a scenario and judge it by what it expects: exit code 1 when that is not met.

    With --simulate a fleet is made up as the file says, and the same seed gives the same bytes.
    Without, it happens to the rack of the daemon; Ctrl-C takes away what was injected.
    """
    chosen: dict[str, object] = {"seed": seed, "for": duration}
    if formats and out is None:
        raise click.UsageError("--format goes with --out")
    if simulate:
        if speed is not None or keep:
            raise click.UsageError("--speed and --keep are for a run without --simulate")
        with _progress(session) as show:
            options = chosen | {
                "step": step,
                "out": out,
                "format": formats,
                "cold-start": cold_start,
            }
            found = scenarios.simulate(file, options, partial(_tell_size, view), show)
    else:
        if step is not None or out is not None or formats or cold_start:
            raise click.UsageError("--step, --out, --format and --cold-start go with --simulate")
        found = scenarios.run_live(session, view, file, chosen, speed or 1.0, keep)
    if "mistakes" in found:
        text = view.text(
            found["mistakes"], lambda rows: [_mistake({"file": file, **r}) for r in rows]
        )
        view.write(text)
        raise _bad(file, len(found["mistakes"]))
    result = found["result"] | {"file": str(file)}
    if "took_s" in found:
        result["took_s"] = found["took_s"]
    if out is not None:
        tables = (f"telemetry.{name}" for name in dict.fromkeys(formats or ("csv",)))
        result["files"] = [str(out / name) for name in (*FILES[:2], *tables, *FILES[2:])]
    view.write(view.single(result, lambda row: _lines(view, row)))
    _judge(file, result)


def _tell_size(view: View, size: dict[str, int]) -> None:
    """Before much is written, how much, and what makes it less. Goes to stderr: it is no result."""
    import sys

    written = size["bytes"]
    if written <= min(MUCH_BYTES, size["free_bytes"]):
        return
    words = (
        f"this writes about {render.size(written)}: {render.count(size['samples'])} samples"
        f" of {render.count(size['series'])} series, every {render.time_s(size['step_s'])}"
    )
    if written > size["free_bytes"]:
        words += f", and {render.size(size['free_bytes'])} are free"
    wanted_s = size["step_s"] * written / min(MUCH_BYTES, size["free_bytes"] or 1)
    step_s = next((s for s in STEPS_S if s >= wanted_s), STEPS_S[-1])
    less = render.size(written * size["step_s"] // step_s)
    sys.stderr.write(
        f"accelctl: {words}; --step {_span(step_s)} makes it {less}; fewer ports do, too:"
        ' [telemetry] on = "card0/*" in the file\n'
    )


def _span(seconds: int) -> str:
    """As --step takes it."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % length_s == 0:
            return f"{seconds // length_s}{unit}"
    return f"{seconds}s"


@contextmanager
def _progress(session: Session) -> Iterator[Any]:
    """A line that is written over, on a terminal only."""
    import sys

    if not session.live:
        yield lambda progress: None
        return

    def show(progress: dict[str, float]) -> None:
        ratio = progress["done_s"] / progress["total_s"]
        text = f"{'#' * round(ratio * 20):20} {ratio:4.0%}  {_time(progress['done_s'])}"
        sys.stderr.write(f"\r\x1b[K{render.cut(text, render.terminal_width() - 1)}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


# ---- words ---------------------------------------------------------------------------------------


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 and seconds % 1 else render.time_s(seconds)


def _met(met: bool | None) -> Cell:
    if met is None:
        return Cell("-", "dim")
    return Cell("yes", "good") if met else Cell("no", "bad")


def _mistake(row: Any) -> str:
    return f"{row['file']}:{row['line']}: {row['key']}: {row['problem']}; {row['remedy']}"


def _bad(file: Path, count: int) -> exits.Failed:
    return exits.Failed(f"{file}: {_many(count, 'mistake')}", exits.USAGE, "BAD_SCENARIO")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _good(row: Any) -> str:
    count, lines = row["moments"], row["lines"]
    happens = _many(lines, "line")
    if count is not None:
        happens = f"{_many(count, 'moment')} of {happens}"
    lasts = f"{row['duration']}, " if row["duration"] else ""
    return (
        f"{row['file']}: good, {lasts}{row['cards']} cards, {row['ports']} ports,"
        f" {row['lanes']} lanes, {happens}, {_many(row['expectations'], 'expectation')}"
    )


def _lines(view: View, row: Any) -> list[str]:
    title = row["name"] or row["file"]
    lines = view.detail(title, _fields(row))
    if row.get("worst_links"):
        lines += ["", *view.table(row["worst_links"], LINK_COLUMNS)]
    if row["expectations"]:
        lines += ["", *view.table(row["expectations"], EXPECTED_COLUMNS)]
    return lines


def _fields(row: Any) -> list[render.Field]:
    took = f", took {row['took_s']:.1f} s" if "took_s" in row else ""
    fields: list[render.Field] = [
        ("ran", f"{_time(row['duration_s'])} with seed {row['seed']}{took}")
    ]
    if "links" in row:
        there = f", {row['faults_skipped']} were there already" if row["faults_skipped"] else ""
        fields += [
            ("links", f"{row['links_up']} of {row['links']} up at the end, {row['lanes']} lanes"),
            ("times down", f"{row['downs']}"),
            ("time down", f"{_time(row['down_s'])}, available {row['availability_ratio']:.6%}"),
            ("time degraded", _time(row["degraded_s"])),
            (
                "faults",
                f"{row['faults_injected']} injected, {row['faults_cleared']} cleared,"
                f" {row['faults_ended']} ended{there}",
            ),
        ]
    fields += [("refused", Cell(text, "bad")) for text in row["refused"]]
    fields += [("written", file) for file in row.get("files", ())]
    return fields


def _judge(file: Path, result: Any) -> None:
    """Raises Failed when the run was not as expected."""
    missed = sum(each["met"] is False for each in result["expectations"])
    if missed:
        words = f"{missed} of {len(result['expectations'])} expectations are not met"
        raise exits.Failed(f"{file}: {words}", exits.FALSE, "NOT_AS_EXPECTED")
    if result["refused_count"]:
        words = f"{result['refused_count']} of its lines could not be carried out"
        raise exits.Failed(f"{file}: {words}", exits.FALSE, "NOT_CARRIED_OUT")
