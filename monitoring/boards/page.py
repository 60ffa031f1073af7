"""A board as a whole: shelves of panels, variables, marks in time, and ways to the other boards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    GridPos,
    VariableHide,
    VariableRefresh,
    VariableSort,
)

from boards.blocks import (
    SOURCE,
)
from boards.words import (
    CARD,
    HOST,
    PORT,
)

TAG = "acceld"
COLUMNS = 24  # of Grafana's grid
NAME_HEIGHT = 1


@dataclass(frozen=True, slots=True)
class Wide:
    """A panel that takes so many columns; others of its shelf share what is left evenly."""

    columns: int
    panel: Any


@dataclass(frozen=True, slots=True)
class Shelf:
    """Panels side by side, under a name of their own, or under that of the shelf above."""

    height: int
    panels: Sequence[Any]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    label: str
    values: str  # a query of Grafana: label_values(...)
    many: bool = True
    hidden: bool = False
    whole: str = ".*"  # what "All" stands for: also what lacks the label. Empty: every value


JOB = Variable("job", "Job", "label_values(accel_emulated, job)", whole="")
INSTANCE = Variable("instance", "Host", 'label_values(accel_emulated{job=~"$job"}, instance)')
HOSTS = (JOB, INSTANCE)
CARDS = (*HOSTS, Variable("card", "Card", f"label_values(accel_card_info{{{HOST}}}, card)"))
OES = (*CARDS, Variable("oe", "OE", f"label_values(accel_oe_info{{{CARD}}}, oe)"))
PORTS = (*CARDS, Variable("oe", "OE", f"label_values(accel_link_info{{{CARD}}}, oe)"))
LANES = (*OES, Variable("lane", "Lane", f"label_values(accel_lane_info{{{PORT}}}, lane)"))


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened, as a line over all panels of a board."""

    name: str
    expr: str
    colour: str


# Without a store of logs, events come from what counts them. Grafana asks once for each minute, so
# each change is found in exactly one answer.
def counted_up(name: str, counter: str, colour: str) -> Mark:
    return Mark(name, f"{counter} - {counter} offset 1m > 0", colour)


FAULTS = Mark("Injected faults", f"accel_fault_active{{{HOST}}} == 1", "purple")
DAEMON_STARTS = counted_up("Daemon starts", f"accel_daemon_start_time_seconds{{{HOST}}}", "blue")
POWER_CYCLES = counted_up("Power cycles", f"accel_chassis_start_time_seconds{{{HOST}}}", "text")
DOWNS = counted_up("Links that went down", f"accel_link_downs_total{{{HOST}}}", "red")
DOWNS_OF_CARDS = counted_up("Links that went down", f"accel_link_downs_total{{{CARD}}}", "red")
DOWNS_OF_PORTS = counted_up("Links that went down", f"accel_link_downs_total{{{PORT}}}", "red")
RESETS = counted_up("Card resets", f"accel_card_resets_total{{{CARD}}}", "blue")


def board(
    uid: str,
    title: str,
    about: str,
    variables: Sequence[Variable],
    marks: Sequence[Mark],
    shelves: Sequence[Shelf],
) -> dashboard.Dashboard:
    page = (
        dashboard.Dashboard(f"Accelerators: {title}")
        .uid(uid)
        .description(about)
        .tags([TAG])
        .refresh("15s")
        .time("now-1h", "now")
        .timezone("browser")
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Other boards")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Source").type("prometheus")
        )
    )
    for variable in variables:
        page.with_variable(_choice(variable))
    for mark in marks:
        page.annotation(
            dashboard.AnnotationQuery()
            .name(mark.name)
            .datasource(SOURCE)
            .expr(mark.expr)
            .icon_color(mark.colour)
            .enable(True)
        )
    for panel in _placed(shelves):
        add = page.with_row if isinstance(panel, dashboard.Row) else page.with_panel
        add(panel)
    return page


def _choice(variable: Variable) -> dashboard.QueryVariable:
    made = (
        dashboard.QueryVariable(variable.name)
        .label(variable.label)
        .datasource(SOURCE)
        .query(variable.values)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NUMERICAL_ASC)
        .multi(variable.many)
        .include_all(variable.many)
    )
    if variable.many and variable.whole:
        made.all_value(variable.whole)
    return made.hide(VariableHide.HIDE_VARIABLE) if variable.hidden else made


def _placed(shelves: Sequence[Shelf]) -> list[Any]:
    """The panels, each with its place and number."""
    placed: list[Any] = []
    y = 0
    for shelf in shelves:
        if shelf.name:
            place = GridPos(h=NAME_HEIGHT, w=COLUMNS, x=0, y=y)
            placed.append(dashboard.Row(shelf.name).grid_pos(place).id(len(placed) + 1))
            y += NAME_HEIGHT
        x = 0
        for columns, panel in _shared(shelf.panels):
            place = GridPos(h=shelf.height, w=columns, x=x, y=y)
            placed.append(panel.grid_pos(place).id(len(placed) + 1))
            x += columns
        y += shelf.height
    return placed


def _shared(panels: Sequence[Any]) -> list[tuple[int, Any]]:
    left = COLUMNS - sum(panel.columns for panel in panels if isinstance(panel, Wide))
    others = sum(not isinstance(panel, Wide) for panel in panels)
    shared: list[tuple[int, Any]] = []
    for panel in panels:
        if isinstance(panel, Wide):
            shared.append((panel.columns, panel.panel))
        else:
            columns = -(-left // others)  # rounded up: the first ones take the odd columns
            left, others = left - columns, others - 1
            shared.append((columns, panel))
    return shared


def text(page: dashboard.Dashboard) -> str:
    return str(JSONEncoder(sort_keys=True, indent=2).encode(page.build())) + "\n"
