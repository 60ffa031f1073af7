"""Boards are what their code makes, ask only for what the daemon shows, and explain themselves."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from acceld.fields.table import DEFAULT, FIELDS

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "monitoring"))

from boards import grafana  # noqa: E402
from boards.__main__ import BOARDS, texts  # noqa: E402

FOLDER = ROOT / "monitoring/dashboards"
FILES = sorted(FOLDER.glob("*.json"))
SCRAPER = {"job", "instance"}  # labels that Prometheus adds
LABELS = {field.metric: {*field.labels, *SCRAPER} for field in FIELDS if field.group in DEFAULT}
LABELS["up"] = SCRAPER  # Prometheus' own
SPAN = grafana.Span(start_s=0, end_s=3600, step_s=15, scrape_s=15)
GRID_COLUMNS = 24

each_board = pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)


def read(file: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(file.read_text())
    return board


def parsed(expr: str, board: dict[str, Any]) -> promql.Expr:
    chosen = {variable["name"]: "one" for variable in grafana.variables(board)}
    return promql.parse(grafana.put_in(expr, board, chosen, SPAN))


def asked(board: dict[str, Any]) -> Iterator[grafana.Question]:
    for panel in grafana.panels(board):
        yield from grafana.questions(panel)
    yield from grafana.marks(board)
    for variable in grafana.variables(board):
        yield grafana.Question(variable["name"], "", grafana.label_values(variable["query"])[0])


def parts(expr: promql.Expr) -> Iterator[promql.Expr]:
    """The expression with all that it is made of."""
    yield expr
    for name in ("expr", "lhs", "rhs", "vs", "vector_selector", "args", "param"):
        inner = getattr(expr, name, None)
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, promql.Expr):
                yield from parts(one)


def selectors(expr: promql.Expr) -> list[promql.VectorSelector]:
    return [part for part in parts(expr) if isinstance(part, promql.VectorSelector)]


def grouped_by(expr: promql.Expr) -> set[str]:
    """Labels after by, on and group_left."""
    names: set[str] = set()
    for part in parts(expr):
        modifier = getattr(part, "modifier", None)
        if isinstance(part, promql.AggregateExpr) and modifier:
            names |= set(modifier.labels)
        if isinstance(part, promql.BinaryExpr) and modifier and modifier.matching:
            names |= {*modifier.matching.labels, *(modifier.group_labels or ())}
    return names


def made_labels(expr: promql.Expr) -> set[str]:
    """Labels that label_replace makes."""
    calls = (part for part in parts(expr) if isinstance(part, promql.Call))
    return {call.args[1].val for call in calls if call.func.name == "label_replace"}


def test_the_files_are_what_the_code_makes() -> None:
    assert {f.name: f.read_text() for f in FILES} == texts(), "run `make dashboards`"


@each_board
def test_decoding_and_encoding_is_an_identity(file: Path) -> None:
    register_default_plugins()
    decoded = Dashboard.from_json(read(file))
    assert JSONEncoder(sort_keys=True, indent=2).encode(decoded) + "\n" == file.read_text()


@each_board
def test_every_metric_and_label_is_one_of_the_field_table(file: Path) -> None:
    board = read(file)
    for question in asked(board):
        expr = parsed(question.expr, board)
        found = selectors(expr)
        assert found, question
        known: set[str] = set()
        for selector in found:
            assert selector.name in LABELS, question
            known |= LABELS[selector.name]
            named = {matcher.name for matcher in selector.matchers.matchers}
            assert named <= LABELS[selector.name], question
        known |= made_labels(expr)
        assert grouped_by(expr) <= known, question
        assert set(re.findall(r"{{(\w+)}}", question.legend)) <= known, question


@each_board
def test_the_labels_that_a_variable_lists_exist(file: Path) -> None:
    for variable in grafana.variables(read(file)):
        selector, label = grafana.label_values(variable["query"])
        assert label in LABELS[selector.split("{")[0]]


@each_board
def test_every_variable_in_use_is_one_of_the_board(file: Path) -> None:
    board = read(file)
    names = {variable["name"] for variable in board["templating"]["list"]} | set(SPAN.built_in)
    for question in asked(board):
        used = {a or b for a, b in grafana.VARIABLE.findall(question.expr)}
        assert used - {"1"} <= names, question


@each_board
def test_every_panel_says_what_it_means_and_in_which_unit(file: Path) -> None:
    known = {getattr(units, name) for name in units.__annotations__}
    for panel in grafana.panels(read(file)):
        assert panel["title"]
        assert len(panel["description"]) > 40, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in known, panel["title"]
        for override in panel["fieldConfig"]["overrides"]:
            for look in override["properties"]:
                assert look["id"] != "unit" or look["value"] in known, panel["title"]


@each_board
def test_panels_do_not_overlap_and_stay_on_the_grid(file: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in read(file)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= GRID_COLUMNS, panel["title"]
        cells = {
            (place["x"] + dx, place["y"] + dy)
            for dx in range(place["w"])
            for dy in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@each_board
def test_titles_tell_the_panels_of_a_board_apart(file: Path) -> None:
    titles = [panel["title"] for panel in grafana.panels(read(file))]
    assert len(titles) == len(set(titles))


@each_board
def test_tables_are_sorted(file: Path) -> None:
    for panel in grafana.panels(read(file)):
        if panel["type"] == "table":
            (order,) = panel["options"]["sortBy"]
            assert (
                order["displayName"]
                in panel["transformations"][1]["options"]["renameByName"].values()
            )


@each_board
def test_every_way_leads_to_a_board_and_hands_over_its_variables(file: Path) -> None:
    boards = {module.UID: read(FOLDER / f"{module.UID}.json") for module in BOARDS}
    for address in re.findall(r'"url": "(/d/[^"]+)"', file.read_text()):
        uid, handed = re.fullmatch(r"/d/([\w-]+)\?(.*)", address).groups()
        names = {variable["name"] for variable in boards[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", handed)) <= names, address
        assert "${datasource:queryparam}" in handed
        assert "${__url_time_range}" in handed


def test_every_board_can_be_reached_from_another() -> None:
    for file in FILES:
        (link,) = read(file)["links"]
        assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
        assert set(link["tags"]) <= set(read(file)["tags"])


# ---- provisioning -------------------------------------------------------------------------------

PROVISIONING = ROOT / "monitoring/grafana/provisioning"


def provisioned(kind: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((PROVISIONING / kind / "acceld.yaml").read_text())
    assert document["apiVersion"] == 1
    return document


def test_the_data_source_is_the_prometheus_that_scrapes_acceld() -> None:
    (source,) = provisioned("datasources")["datasources"]
    prometheus = yaml.safe_load((ROOT / "monitoring/prometheus.yml").read_text())
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_the_boards_are_looked_for_where_the_page_puts_them() -> None:
    (provider,) = provisioned("dashboards")["providers"]
    page = (ROOT / "docs/dashboards.md").read_text()
    assert provider["type"] == "file"
    assert f"cp monitoring/dashboards/*.json {provider['options']['path']}/" in page


def test_the_page_shows_every_board() -> None:
    page = (ROOT / "docs/dashboards.md").read_text()
    for module in BOARDS:
        assert f"(boards/{module.UID}.png)" in page
        picture = ROOT / f"docs/boards/{module.UID}.png"
        assert 10_000 < picture.stat().st_size < 150_000


# ---- as Grafana puts variables in ---------------------------------------------------------------

TWO = {
    "templating": {
        "list": [
            {"type": "query", "name": "many", "multi": True, "includeAll": True, "allValue": ".*"},
            {"type": "query", "name": "one"},
        ]
    }
}


@pytest.mark.parametrize(
    ("text", "chosen", "result"),
    [
        ('a{b=~"$many"}', {"many": grafana.ALL}, 'a{b=~".*"}'),
        ('a{b=~"$many"}', {"many": ["x.y", "z"]}, r'a{b=~"(x\\.y|z)"}'),
        ('a{b=~"${many}"}', {"many": ["x"]}, 'a{b=~"x"}'),
        ('a{b="$one"}', {"one": "x.y"}, 'a{b="x.y"}'),
        ("rate(a[$__rate_interval])", {}, "rate(a[60s])"),
        ("increase(a[$__range])", {}, "increase(a[3600s])"),
        ('label_replace(a, "b", "$1", "c", "(.)")', {}, 'label_replace(a, "b", "$1", "c", "(.)")'),
    ],
)
def test_variables_are_put_in_as_grafana_does(
    text: str, chosen: dict[str, Any], result: str
) -> None:
    assert grafana.put_in(text, TWO, chosen, SPAN) == result


@pytest.mark.parametrize(
    ("step_s", "scrape_s", "rate"),
    [(15, 15, "60s"), (1, 2, "8s"), (300, 15, "315s"), (20 / 3, 2, "9s")],
)
def test_rates_look_back_over_four_scrapes_or_a_step_and_one(
    step_s: float, scrape_s: float, rate: str
) -> None:
    span = grafana.Span(start_s=0, end_s=3600, step_s=step_s, scrape_s=scrape_s)
    assert span.built_in["__rate_interval"] == rate


@each_board
def test_a_board_without_data_does_not_look_well(file: Path) -> None:
    """No number is made up where there is nothing to count."""
    for question in asked(read(file)):
        assert "vector(" not in question.expr, question
        assert "absent(" not in question.expr, question
