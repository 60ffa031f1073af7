"""Every panel asks a real Prometheus and is answered, and panels of faults move with the faults."""

from __future__ import annotations

import json
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
    span = rack.told.all_until_the_peak
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
    span = rack.told.all
    marks = [mark for mark in grafana.marks(board) if mark.panel not in UNMARKED]
    assert not [mark.panel for mark in marks if not rack.ask(board, mark, span)]


@pytest.mark.parametrize("uid", [module.UID for module in BOARDS])
def test_every_variable_has_values(rack: Watched, uid: str) -> None:
    board = read(uid)
    span = rack.told.all
    wanted = LINK if uid == "accel-link" else {}
    chosen = choose(board, rack.prometheus, span, wanted)
    for variable in grafana.variables(board):
        selector, label = grafana.label_values(variable["query"])
        asked = grafana.put_in(selector, board, chosen, span)
        assert rack.prometheus.label_values(asked, label, span), variable["name"]


FAULTS = [
    # board, panel: at its worst it says more than before, or less; and does a repair take it back?
    ("accel-fleet", "Link ends up", "less", True),
    ("accel-fleet", "Degraded ends", "more", True),
    ("accel-fleet", "Smallest margin", "less", True),
    ("accel-fleet", "Critical", "more", True),
    ("accel-fleet", "Injected faults", "more", True),
    ("accel-card", "Warmest case", "more", False),  # what is warm stays so for minutes
    ("accel-card", "Card flags on", "more", True),
    ("accel-lanes", "Lanes lit", "less", True),
    ("accel-lanes", "Smallest margin", "less", True),
    ("accel-lanes", "Worst error ratio", "more", True),
    ("accel-lanes", "Lanes without lock", "more", True),
    ("accel-lanes", "Most worn laser", "more", True),
    ("accel-link", "Here: margin", "less", True),
    ("accel-link", "There: margin", "less", True),
    ("accel-training", "Ends not up", "more", True),
    ("accel-training", "Downs", "more", False),  # they have happened
    ("accel-hbm", "Rows pending", "more", True),
    ("accel-hbm", "Uncorrectable", "more", False),
    ("accel-hbm", "Corrected", "more", False),
    ("accel-transfers", "Failed", "more", False),
]


@pytest.mark.parametrize(("uid", "title", "worse", "repaired"), FAULTS)
def test_panels_of_faults_change_with_the_fault(
    rack: Watched, uid: str, title: str, worse: str, repaired: bool
) -> None:
    board = read(uid)
    (panel,) = (panel for panel in grafana.panels(board) if panel["title"] == title)
    (question,) = grafana.questions(panel)
    before, worst, after = (
        rack.ask(board, question, span)[0].last
        for span in (rack.told.before, rack.told.all_until_the_peak, rack.told.all)
    )
    sign = 1 if worse == "more" else -1
    assert (worst - before) * sign > 0, (before, worst, after)
    if repaired:
        assert (worst - after) * sign > 0, (before, worst, after)


def test_what_was_injected_is_told_as_it_is(rack: Watched) -> None:
    """The ground truth, which no load of this machine can move."""
    board = read("accel-hbm")
    (panel,) = (panel for panel in grafana.panels(board) if panel["title"] == "Rows pending")
    (question,) = grafana.questions(panel)
    spans = rack.told.before, rack.told.all_until_the_peak, rack.told.all
    assert [rack.ask(board, question, span)[0].last for span in spans] == [0, 1, 0]
