"""Scenarios in simulated time: judged, written down, and the same bytes for the same seed."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofigures import BY_NAME, FIGURES
from accelhw.fault.scenariofile import load
from accelhw.fault.scenariotime import parse_span
from accelhw.sim.run import Options, Run, RunRefused
from accelhw.sim.scenario import KNOWN, main

LIBRARY = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.toml"))
# How far each is run here; whole, they take half a minute each.
SHORT = {
    "bad_night": "1h35m",
    "dirty_replug": "80m",
    "fleet_year": "12d",
    "hot_aisle": "65m",
    "laser_ageing": "12d",
    "laser_month": "6d",
}
STORY = """
for = "30m"
[topology]
cards = 4
shape = "ring"
[telemetry]
every = "2m"
[[do]]
name = "dirt"
fault = "dirty_connector_mild"
on = "card0/oe0"
lanes = [1, 2]
at = "5m"
[[do]]
fault = "laser_fail"
on = "card2/oe0/lane3"
at = "9m"
for = "4m"
[[do]]
action = "replug"
on = "all ports"
pick = 1
at = "20m"
[[do]]
clear = "dirt"
at = "25m"
"""


def scenario(text: str) -> Scenario:
    found = load(text, KNOWN, lambda path: "")
    assert isinstance(found, Scenario), [f"{m.line}: {m}" for m in found]
    return found


def run(
    text: str,
    seed: int = 1,
    out: Path | None = None,
    lasts: str | None = None,
    formats: tuple[str, ...] = ("csv",),
) -> Any:
    read = scenario(text)
    duration_ns = parse_span(lasts) if lasts else read.duration_ns
    assert duration_ns is not None
    one = Run(read, Options(seed, duration_ns, out=out, formats=formats))
    one.go()
    return one.finish()


def expecting(*lines: str, do: str = "") -> Any:
    head = 'for = "5m"\n[topology]\ncards = 2\n'
    return run(head + do + "[[expect]]\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_the_library_is_as_expected(path: Path) -> None:
    result = run(path.read_text(), lasts=SHORT[path.stem])
    assert [each for each in result["expectations"] if each["met"] is False] == []
    assert result["refused"] == []
    assert result["met"]


def test_each_of_the_library_runs_here() -> None:
    assert {path.stem for path in LIBRARY} == set(SHORT)


# ---- the same seed, the same bytes ---------------------------------------------------------------


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "story.toml").write_text(STORY)
    run(STORY, 7, tmp_path / "here")
    for number, hash_seed in enumerate(("1", "2")):
        done = subprocess.run(
            [sys.executable, "-m", "accelhw.sim.scenario", "run", "story.toml", "--seed=7",
             f"--out=out{number}"],
            cwd=tmp_path, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert hashes(tmp_path / "here") == hashes(tmp_path / "out0") == hashes(tmp_path / "out1")


def test_another_seed_gives_others(tmp_path: Path) -> None:
    run(STORY, 7, tmp_path / "a", lasts="4m")
    run(STORY, 8, tmp_path / "b", lasts="4m")
    assert hashes(tmp_path / "a")["telemetry.csv"] != hashes(tmp_path / "b")["telemetry.csv"]


# ---- what is written -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    run(STORY, 7, folder)
    return folder


def rows(written: Path) -> list[dict[str, str]]:
    with (written / "telemetry.csv").open() as file:
        return list(csv.DictReader(file))


def minute(row: dict[str, str]) -> float:
    return (float(row["time_s"]) - 1_767_225_600) / 60


def test_telemetry_has_each_lane_at_each_sample(written: Path) -> None:
    found = rows(written)
    assert len(found) == 15 * 4 * 2 * 8
    assert len({(row["time_s"], row["port"], row["lane"]) for row in found}) == len(found)


def test_telemetry_is_labelled_with_what_is_wrong_at_both_ends(written: Path) -> None:
    for row in rows(written):
        place, at = (row["port"], row["lane"]), minute(row)
        dirty = place in (("card0/oe0", "lane1"), ("card0/oe0", "lane2")) and 5 <= at < 25
        assert ("dirty_connector_mild" in row["fault"]) == dirty, row
        assert (float(row["cause_rx_path_loss_db"]) == pytest.approx(1.8)) == (
            dirty and "unplug" not in row["fault"]
        )
        dead = 9 <= at < 13
        assert ("laser_fail" in row["fault"]) == (dead and place == ("card2/oe0", "lane3")), row
        assert ("laser_fail" in row["far_fault"]) == (dead and place == ("card3/oe1", "lane3")), row
        if dead and place == ("card3/oe1", "lane3"):
            assert (row["los"], row["margin_db"], row["pre_fec_ber"]) == ("1", "", "")


def test_parquet_has_what_csv_has_typed_and_with_its_labels(tmp_path: Path) -> None:
    run(STORY, 7, tmp_path / "both", lasts="12m", formats=("csv", "parquet"))
    run(STORY, 7, tmp_path / "one", lasts="12m", formats=("parquet",))
    assert not (tmp_path / "one" / "telemetry.csv").exists()
    files = [tmp_path / name / "telemetry.parquet" for name in ("both", "one")]
    assert files[0].read_bytes() == files[1].read_bytes()
    table = pyarrow.parquet.read_table(files[0])
    found = rows(tmp_path / "both")
    assert table.column_names == list(found[0])
    assert str(table.schema.field("fault").type).startswith("dictionary")
    assert str(table.schema.field("rx_power_dbm").type) == "double"
    for name in table.column_names:
        typed = table.column(name).to_pylist()
        if isinstance(typed[0], str):
            assert typed == [row[name] for row in found], name
            continue
        told = [float(row[name]) if row[name] else None for row in found]
        assert [value is None for value in typed] == [value is None for value in told], name
        pairs = [(a, b) for a, b in zip(typed, told, strict=True) if a is not None]
        assert all(a == pytest.approx(b, rel=1e-5) for a, b in pairs), name
    faults = set(table.column("fault").to_pylist())
    assert {"", "dirty_connector_mild", "laser_fail"} <= faults
    assert None in table.column("margin_db").to_pylist()  # dark lanes


def test_without_pyarrow_parquet_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    story = tmp_path / "story.toml"
    story.write_text(STORY)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(story), f"--out={tmp_path / 'out'}", "--format=parquet"])
    assert ended.value.code == 2
    (said,) = capsys.readouterr().out.splitlines()
    assert "pip install 'acceld[parquet]'" in json.loads(said)["error"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["telemetry.csv", "metrics.om", "summary.json"])
def test_a_full_disk_ends_the_run_in_a_sentence_and_leaves_nothing_half_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story, out = tmp_path / "story.toml", tmp_path / "out"
    story.write_text(STORY)
    out.mkdir()
    (out / "events.jsonl").write_text("of an earlier run\n")
    (out / f"{name}.part").symlink_to("/dev/full")
    code, said = told(capsys, "run", str(story), f"--out={out}", "--for=10m")
    assert (code, said["reason"]) == (6, "UNWRITABLE")
    assert said["error"] == f"--out: {out}: No space left on device"
    assert [file.name for file in out.iterdir()] == ["events.jsonl"]
    assert (out / "events.jsonl").read_text() == "of an earlier run\n"


def test_an_interrupted_run_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_summary", lambda run, _: interrupt(run))
    story, out = tmp_path / "story.toml", tmp_path / "out"
    story.write_text(STORY)
    assert main(["run", str(story), f"--out={out}", "--for=4m"]) == 130
    assert list(out.iterdir()) == []


def test_an_interrupted_run_leaves_nothing_however_often_it_is_told(tmp_path: Path) -> None:
    """A terminal tells the whole group, and accelctl then its child."""
    story, out = tmp_path / "story.toml", tmp_path / "out"
    story.write_text(STORY)
    command = [sys.executable, "-m", "accelhw.sim.scenario", "run", str(story), f"--out={out}"]
    with subprocess.Popen([*command, "--step=1s"], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        while b"progress" not in running.stdout.readline():
            assert running.poll() is None
        while running.poll() is None:
            running.terminate()
    assert running.returncode == 130
    assert list(out.iterdir()) == []


def test_how_much_will_be_written_is_known_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story, out = tmp_path / "story.toml", tmp_path / "out"
    story.write_text(STORY)
    main(["run", str(story), f"--out={out}", "--format=csv", "--format=parquet"])
    size = json.loads(capsys.readouterr().out.splitlines()[0])["size"]
    assert (size["samples"], size["step_s"]) == (15, 120)
    files = (out / name for name in ("metrics.om", "telemetry.csv", "telemetry.parquet"))
    assert size["bytes"] == pytest.approx(sum(file.stat().st_size for file in files), rel=0.2)
    with (out / "metrics.om").open() as metrics:
        lines = sum(not line.startswith("#") for line in metrics)
    assert 0.8 < lines / size["samples"] / size["series"] < 1.3
    assert size["free_bytes"] > 0


def test_events_are_json_lines_in_order(written: Path) -> None:
    events = [json.loads(line) for line in (written / "events.jsonl").read_text().splitlines()]
    assert [event["revision"] for event in events] == list(range(1, len(events) + 1))
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    assert {"LINK_UP", "FAULT_INJECTED", "FAULT_ENDED", "FAULT_CLEARED", "LINK_DOWN"} <= {
        event["kind"] for event in events
    }


def test_faults_have_their_times_and_their_line(written: Path) -> None:
    with (written / "faults.csv").open() as file:
        found = {row["kind"]: row for row in csv.DictReader(file)}
    dirt, laser = found["dirty_connector_mild"], found["laser_fail"]
    assert (dirt["lanes"], dirt["end"], dirt["scenario_line"]) == ("1 2", "CLEARED", "8")
    assert float(dirt["ended_s"]) - float(dirt["begun_s"]) == 20 * 60
    assert (laser["subject"], laser["end"]) == ("card2/oe0", "ENDED")
    assert found["unplug_replug"]["end"] == "ACTIVE"


def test_metrics_are_sound_openmetrics_with_timestamps(written: Path) -> None:
    families = {
        family.name: family
        for family in text_string_to_metric_families((written / "metrics.om").read_text())
    }
    names = {figure.family.removesuffix("_total") for figure in FIGURES}
    assert names | {"accel_link_up", "accel_link_state", "accel_fault_active"} <= set(families)
    light = families["accel_lane_rx_power_dbm"].samples
    assert len(light) == 15 * 64
    assert {sample.timestamp is not None for sample in light} == {True}
    assert families["accel_lane_rx_bytes"].samples[0].name == "accel_lane_rx_bytes_total"
    active = families["accel_fault_active"].samples
    assert {sample.labels["kind"] for sample in active} == {
        "dirty_connector_mild", "laser_fail", "unplug_replug",
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here")
def test_promtool_makes_blocks_of_the_metrics(written: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", written / "metrics.om", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir())


def test_telemetry_may_be_of_some_ports_only(tmp_path: Path) -> None:
    text = STORY.replace("[telemetry]", '[telemetry]\non = ["card1/*", "card2/oe0"]')
    run(text, out=tmp_path, lasts="4m")
    assert {row["port"] for row in rows(tmp_path)} == {"card1/oe0", "card1/oe1", "card2/oe0"}


# ---- what is expected ----------------------------------------------------------------------------


def test_what_is_not_met_is_told_with_what_was_found() -> None:
    result = expecting('state = "down"', 'on = "card0/oe0"', 'from = "10s"')
    assert not result["met"]
    (missed,) = result["expectations"]
    assert missed["detail"] == "card0/oe0 was UP at 10s"


def test_figures_are_looked_at_where_a_window_begins_and_ends() -> None:
    result = expecting(
        'metric = "rx_power_dbm"', 'on = "card1/oe0/*"', 'at = "91s"', "below = -39",
        do='[[do]]\nfault = "fibre_cut"\non = "card0/oe0"\nat = "90s"\nfor = "2s"\n',
    )  # fmt: skip
    assert result["met"], result["expectations"]


def test_chance_leaves_alone_what_is_broken_already() -> None:
    result = run(
        'for = "2h"\n[topology]\ncards = 2\n[[do]]\nfault = "laser_fail"\n'
        'on = "card0/oe0/lane0"\nper_hour = 20\n'
    )
    assert result["faults_injected"] == 1
    assert result["faults_skipped"] > 20


def test_what_cannot_be_done_fails_the_run() -> None:
    result = run(
        'for = "1m"\n[topology]\ncards = 2\n[[do]]\nfault = "dirty_connector_mild"\n'
        'on = "card0/oe0"\nat = 30\ntarget_ber = 1e-16\n'
    )
    assert not result["met"]
    assert result["refused"][0].startswith("line 4, at 30s: dirty_connector_mild on card0/oe0: ")


def test_more_telemetry_than_anybody_reads_is_refused_before_the_start(tmp_path: Path) -> None:
    read = scenario('[topology]\ncards = 64\n[telemetry]\nevery = "1s"\n')
    with pytest.raises(RunRefused, match=r"1024 lanes every 1s make 88473600 rows.*--step 1m"):
        Run(read, Options(1, parse_span("1d"), out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_operator_switches_resets_and_repairs() -> None:
    actions = "".join(
        f'[[do]]\naction = "{action}"\non = "{on}"\nat = {at}\n'
        for action, on, at in (
            ("link_down", "card0/oe0", 20),
            ("link_up", "card0/oe0", 40),
            ("retrain", "card0/oe1", 50),
            ("reset", "card1", 60),
            ("repair", "card0", 120),
        )
    )
    fault = '[[do]]\nfault = "fibre_cut"\non = "card0/oe0"\nat = 90\n'
    result = expecting('state = "up"', 'on = "all ports"', 'from = "3m"', do=actions + fault)
    assert result["met"], result["expectations"]
    events = result["events"]
    assert (events["CARD_RESET"], events["FAULT_CLEARED"]) == (1, 1)


# ---- the program ---------------------------------------------------------------------------------


def told(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int | str | None, dict[str, Any]]:
    capsys.readouterr()
    try:
        code: int | str | None = main(list(arguments))
    except SystemExit as end:
        code = end.code
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--seed=seven"], "--seed: 'seven' is no seed; use a whole number from 0 to "),
        (["--seed=-1"], "--seed: '-1' is no seed"),
        (["--for=soon"], "--for: 'soon' is no span of time; use 90,"),
        (["--for=0"], "--for: '0' is no time at all; use 30d or 90s"),
        (["--step=x"], "--step: 'x' is no span of time"),
    ],
)
def test_options_that_are_none(
    options: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "story.toml").write_text(STORY)
    code, said = told(capsys, "run", str(tmp_path / "story.toml"), *options)
    assert code == 2
    assert said["error"].startswith(error)


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = told(capsys, "run", str(tmp_path / "none.toml"))
    assert (code, said) == (2, {"error": f"{tmp_path}/none.toml: No such file or directory"})


def test_a_run_without_an_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "endless.toml").write_text("[topology]\ncards = 2\n")
    code, said = told(capsys, "run", str(tmp_path / "endless.toml"))
    assert code == 2
    assert said["error"].endswith('how long? use --for 30d, or write for = "30d" into the file')


def test_mistakes_come_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text(STORY.replace("card0/oe0", "card9/oe0"))
    code, said = told(capsys, "run", str(tmp_path / "bad.toml"), f"--out={tmp_path / 'out'}")
    assert code == 2
    assert [(each["line"], each["key"]) for each in said["mistakes"]] == [(11, "do.on")]
    assert not (tmp_path / "out").exists()


def test_a_rack_from_a_configuration_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = Path(__file__).parents[2] / "examples"
    shutil.copy(examples / "pair.toml", tmp_path / "rack.toml")
    (tmp_path / "s.toml").write_text(
        'for = "10s"\n[topology]\nconfig = "rack.toml"\n[[expect]]\nstate = "up"\n'
        'on = "all ports"\nfrom = 5\n'
    )
    code, said = told(capsys, "run", str(tmp_path / "s.toml"))
    assert code == 0
    assert (said["result"]["cards"], said["result"]["links"]) == (2, 1)
    code, said = told(capsys, "check", str(tmp_path / "s.toml"))
    assert said["scenario"]["ports"] == 2


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert run(example)["met"]


def test_the_page_names_every_figure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    assert [name for name in BY_NAME if f"`{name}`" not in page] == []
