"""accelctl scenario: checked and run without a daemon."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from accelctl.commands import scenario

from .conftest import Accelctl

GOOD = """
name = "a short story"
for = "2m"
[topology]
cards = 2
[[do]]
fault = "fibre_cut"
on = "card0/oe0"
at = 30
for = 20
[[expect]]
event = "LINK_DOWN"
on = "card0/oe0"
count = 1
[[expect]]
state = "up"
on = "card0/oe1"
from = 10
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("story.toml")
    path.write_text(GOOD)
    return path


def test_a_good_scenario_is_summed_up(file: Path, accelctl: Accelctl) -> None:
    outcome = accelctl("scenario", "check", "story.toml")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "story.toml: good, 2m, 2 cards, 4 ports, 32 lanes, 1 moment of 1 line, 2 expectations\n"
    )


def test_mistakes_are_lines_or_rows(file: Path, accelctl: Accelctl) -> None:
    file.write_text(GOOD.replace("fibre_cut", "fiber_cut").replace("count", "counts"))
    outcome = accelctl("scenario", "check", "story.toml")
    assert outcome.code == 2
    assert outcome.out.splitlines() == [
        "story.toml:7: do.fault: 'fiber_cut' is no fault; did you mean 'fibre_cut'?",
        "story.toml:14: expect.counts: no such key; did you mean 'count'?",
    ]
    assert outcome.err == "accelctl: story.toml: 2 mistakes\n"
    rows = list(csv.DictReader(io.StringIO(accelctl("scenario", "check", str(file), "-ocsv").out)))
    assert [row["line"] for row in rows] == ["7", "14"]


def test_a_run_is_told_and_written(file: Path, accelctl: Accelctl) -> None:
    outcome = accelctl("scenario", "run", "story.toml", "--simulate", "--seed", "7", "--out", "out")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "a short story"
    assert lines[1].startswith("  ran:            2 min with seed 7, took ")
    assert "  links:          2 of 2 up at the end, 32 lanes" in lines
    assert "  faults:         1 injected, 0 cleared, 1 ended" in lines
    assert "  written:        out/metrics.om" in lines
    assert {path.name for path in Path("out").iterdir()} == {
        "events.jsonl", "faults.csv", "telemetry.csv", "metrics.om", "summary.json",
    }  # fmt: skip
    assert [line.split()[-1] for line in lines[-2:]] == ["yes", "yes"]


def test_how_much_a_long_run_writes_is_told_before(
    file: Path, accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("scenario", "run", "story.toml", "--simulate", "--step", "1s", "--out", "out")
    monkeypatch.setattr(scenario, "MUCH_BYTES", 1e6)
    outcome = accelctl(*words)
    assert outcome.code == 0
    assert re.fullmatch(
        r"accelctl: this writes about [\d.]+ MiB: 120 samples of [\d ]+ series, every 1 s;"
        r" --step \d+s makes it \d+ KiB; fewer ports do, too:"
        r' \[telemetry\] on = "card0/\*" in the file\n',
        outcome.err,
    ), outcome.err
    monkeypatch.setattr(scenario, "MUCH_BYTES", 1e9)
    assert accelctl(*words).err == ""
    assert accelctl(*words[:-2]).err == ""  # writes nothing


def test_telemetry_may_be_parquet_or_both(file: Path, accelctl: Accelctl) -> None:
    words = ("scenario", "run", "story.toml", "--simulate", "--out", "out", "-o", "json")
    both = accelctl(*words, "--format", "parquet", "--format", "csv", "--cold-start")
    assert (both.code, both.err) == (0, "")
    tables = [name for name in json.loads(both.out)["files"] if "telemetry" in name]
    assert tables == ["out/telemetry.parquet", "out/telemetry.csv"]
    assert all(Path(name).stat().st_size > 1000 for name in tables)
    lonely = accelctl(*words[:4], "--format", "parquet")
    assert (lonely.code, "--format goes with --out" in lonely.err) == (2, True)


def test_what_is_not_as_expected_is_exit_code_1(file: Path, accelctl: Accelctl) -> None:
    file.write_text(GOOD.replace("count = 1", "count = 0"))
    outcome = accelctl("scenario", "run", "story.toml", "--simulate", "-o", "json")
    assert outcome.code == 1
    result = json.loads(outcome.out)
    assert result["met"] is False
    assert result["expectations"][0]["detail"] == "there were 1, first card0/oe0 at 30s"
    assert outcome.err.startswith("accelctl: story.toml: 1 of 2 expectations are not met\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--simulate", "--seed", "seven"], "--seed: 'seven' is no seed; use a whole number"),
        (["--simulate", "--for", "soon"], "--for: 'soon' is no span of time; use 90,"),
        (["--simulate", "--speed", "3"], "--speed and --keep are for a run without --simulate"),
        (["--step", "60s"], "--step, --out, --format and --cold-start go with --simulate"),
    ],
)
@pytest.mark.usefixtures("file")
def test_options_that_make_no_sense(options: list[str], words: str, accelctl: Accelctl) -> None:
    outcome = accelctl("scenario", "run", "story.toml", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


def test_a_scenario_that_is_not_there(accelctl: Accelctl) -> None:
    outcome = accelctl("scenario", "run", "nowhere.toml", "--simulate")
    assert outcome.code == 2
    assert outcome.err == "accelctl: nowhere.toml: No such file or directory\n"


@pytest.mark.usefixtures("daemon")
def test_a_daemons_rack_may_lack_the_port(file: Path, accelctl: Accelctl) -> None:
    file.write_text(GOOD.replace("card0/oe0", "card7/oe0"))
    outcome = accelctl("scenario", "check", "story.toml", "--live")
    assert outcome.code == 2
    assert "there is no card 'card7'; did you mean 'card1/oe0'?" in outcome.out


def test_without_a_daemon_nothing_happens_for_real(file: Path, accelctl: Accelctl) -> None:
    assert accelctl("scenario", "run", "story.toml").code == 5
