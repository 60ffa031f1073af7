"""What `make bench` says of figures: ratios, spread, goals, and both pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from support import picture  # noqa: E402
from support.answer import Answer, Figures, Line, in_turn, table  # noqa: E402

MACHINE = {"cpu": "a CPU", "cpus": 2, "time": "2026-11-30T18:00:00+00:00"}
SVG = "{http://www.w3.org/2000/svg}"


def beside(goal: float | None = None, better: Any = "more") -> Line:
    ours, theirs = Figures([2.0, 3.0, 10.0], "GB/s"), Figures([2.0, 2.0, 4.0], "GB/s")
    return Line("a copy", ours, theirs, "iperf3", goal, better)


def test_a_ratio_is_one_of_medians_and_its_spread_one_of_rounds() -> None:
    assert beside().ratio == 1.5
    assert beside().ratio_spread == (1.0, 2.5)


@pytest.mark.parametrize(
    ("goal", "better", "met"),
    [(1.5, "more", True), (1.6, "more", False), (1.5, "less", True), (1.4, "less", False)],
)
def test_a_goal_is_for_the_ratio_and_has_a_side(goal: float, better: str, met: bool) -> None:
    assert beside(goal, better).met is met


def test_without_a_peer_the_goal_is_for_the_figure() -> None:
    assert Line("ready", Figures([1.0, 2.0, 3.0], "s"), goal=1.5, better="less").met is False
    assert Line("ready", Figures([1.0], "s")).met is None


def test_contestants_take_turns_and_the_first_round_does_not_count() -> None:
    seen: list[str] = []

    def runner(name: str) -> Any:
        def run() -> float:
            seen.append(name)
            return float(len(seen))

        return run

    assert in_turn(2, runner("a"), runner("b")) == ([3.0, 5.0], [4.0, 6.0])
    assert seen == ["a", "b"] * 3


def answer() -> dict[str, Any]:
    lone = Line("its <CPU>", Figures([0.5], "s/GB"))
    return Answer("How fast?", [beside(1.8), lone], ["C loop"]).plain()


def test_a_table_says_what_was_missed_and_what_was_absent() -> None:
    lines = [line.split() for line in table(answer())]
    assert lines[2] == ["a", "copy", "3", "GB/s", "2", "GB/s", "iperf3", "1.50", "1.00..2.50",
                        ">=", "1.8", "MISSED"]  # fmt: skip
    assert lines[3] == ["its", "<CPU>", "0.5", "s/GB"]
    assert lines[4] == ["without", "C", "loop"]


def texts(svg: str) -> str:
    return " ".join(node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_ratios_are_drawn_and_lines_without_a_peer_are_not() -> None:
    drawn = texts(picture.draw({"machine": MACHINE, "answers": {"copy": answer()}}))
    assert "a copy : iperf3" in drawn
    assert "1.50" in drawn
    assert "<CPU>" not in drawn


def test_a_run_without_any_ratio_still_makes_a_picture() -> None:
    assert "acceld beside its peers" in picture.draw({"machine": MACHINE, "answers": {}})


def test_the_cost_of_racks_is_drawn_over_their_ports() -> None:
    points = [
        {"profile": profile, "ports": ports, "cpu_percent": ports / 10, "pss_mib": 100.0 + ports}
        for profile, ports in (("oio", 4), ("oio", 512), ("dr8", 128))
    ]
    svg = picture.draw_scale({"points": points}, MACHINE)
    assert svg.count("<circle") == 2 * len(points)


def test_every_benchmark_asks_a_question_and_a_wrong_name_is_told() -> None:
    def bench(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "tools/bench.py"), *words]
        return subprocess.run(command, capture_output=True, text=True)

    asked = bench("--list").stdout.splitlines()
    assert len(asked) == len(list((ROOT / "benchmarks").glob("*.py")))
    assert all("?" in line for line in asked)
    refused = bench("--only", "none")
    assert refused.returncode == 2
    assert "no benchmark 'none'; there is bit_errors" in refused.stderr
