"""Every panel asks a real Prometheus and is answered, and panels of faults move with the faults."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "monitoring"))

from boards import grafana  # noqa: E402
from boards.__main__ import BOARDS  # noqa: E402
from boards.grafana import Span  # noqa: E402
from pictures.answers import choose  # noqa: E402
from pictures.prometheus import Prometheus, Series  # noqa: E402
from pictures.rack import Told, watched  # noqa: E402

pytestmark = [
    pytest.mark.system,
    pytest.mark.network,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="prometheus is not installed (Debian package prometheus)",
    ),
]

LINK = {"card": "card1", "oe": "oe1"}  # what the board of one link looks at: the story is there too
UNMARKED = {"Power cycles"}  # the story has none
BEFORE_S = 20.0  # after the begin of the story, all is still well


@dataclass(frozen=True)
class Watched:
    prometheus: Prometheus
    told: Told

    def ask(self, board: dict[str, Any], question: grafana.Question, span: Span) -> list[Series]:
        wanted = LINK if board["uid"] == "accel-link" else {}
        chosen = choose(board, self.prometheus, span, wanted)
        expr = grafana.put_in(question.expr, board, chosen, span)
        if question.instant:
            return self.prometheus.at(expr, span.end_s)
        return self.prometheus.over(expr, span)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched(tmp_path_factory.mktemp("rack")) as rack:
        told = rack.tell()
        yield Watched(rack.prometheus, told)


def read(uid: str) -> dict[str, Any]:
    board: dict[str, Any] = json.loads((ROOT / f"monitoring/dashboards/{uid}.json").read_text())
    return board


@pytest.mark.parametrize("uid", [module.UID for module in BOARDS])
def test_every_query_of_every_panel_has_an_answer(rack: Watched, uid: str) -> None:
    board = read(uid)
    span = rack.told.until(rack.told.peak_s)
    empty = [
        (question.panel, question.ref)
        for panel in grafana.panels(board)
        for question in grafana.questions(panel)
        if not rack.ask(board, question, span)
    ]
    assert not empty


@pytest.mark.parametrize("uid", [module.UID for module in BOARDS])
def test_every_mark_was_made(rack: Watched, uid: str) -> None:
    board = read(uid)
    span = rack.told.until(rack.told.end_s)
    marks = [mark for mark in grafana.marks(board) if mark.panel not in UNMARKED]
    assert not [mark.panel for mark in marks if not rack.ask(board, mark, span)]


@pytest.mark.parametrize("uid", [module.UID for module in BOARDS])
def test_every_variable_has_values(rack: Watched, uid: str) -> None:
    board = read(uid)
    span = rack.told.until(rack.told.end_s)
    wanted = LINK if uid == "accel-link" else {}
    chosen = choose(board, rack.prometheus, span, wanted)
    for variable in grafana.variables(board):
        selector, label = grafana.label_values(variable["query"])
        asked = grafana.put_in(selector, board, chosen, span)
        assert rack.prometheus.label_values(asked, label, span), variable["name"]


FAULTS = [
    # board, panel: what it says before the story, at its worst, and when all is repaired
    ("accel-fleet", "Cards ready", 1.0, 1.0, 1.0),
    ("accel-fleet", "Link ends up", 1.0, 12 / 14, 1.0),
    ("accel-fleet", "Degraded ends", 0, 2, 0),
    ("accel-fleet", "Critical", 0, "more", 0),
    ("accel-fleet", "Injected faults", 0, "more", 0),
    ("accel-fleet", "Smallest margin", "more", "less", "more"),
    ("accel-card", "Card flags on", 0, "more", "any"),  # what is warm stays warm for a while
    ("accel-lanes", "Lanes without lock", 0, 33, 0),  # a dead laser, and a cut of 16 lanes
    ("accel-lanes", "Most worn laser", "any", "more", "less"),
    ("accel-link", "Here: margin", "more", "less", "more"),
    ("accel-training", "Ends not up", 0, 2, 0),
    ("accel-hbm", "Rows pending", 0, 1, 0),
    ("accel-hbm", "Uncorrectable", 0, 1, "more"),
    ("accel-transfers", "Failed", 0, "more", "more"),
]


@pytest.mark.parametrize(("uid", "title", "before", "worst", "after"), FAULTS)
def test_panels_of_faults_change_with_the_fault(
    rack: Watched, uid: str, title: str, before: Any, worst: Any, after: Any
) -> None:
    board = read(uid)
    (panel,) = (panel for panel in grafana.panels(board) if panel["title"] == title)
    (question,) = grafana.questions(panel)
    told = rack.told
    ends = told.start_s + BEFORE_S, told.peak_s, told.end_s
    values = [rack.ask(board, question, told.until(end_s))[0].last for end_s in ends]
    print(uid, title, values)
    for value, expected, others in zip(
        values, (before, worst, after), (values[1], values[0], values[1]), strict=True
    ):
        if expected == "more":
            assert value > others, values
        elif expected == "less":
            assert value < others, values
        elif expected != "any":
            assert math.isclose(value, expected), values
