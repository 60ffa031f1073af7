"""accelctl oe: optical engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import rich_click as click

from accel.address import short
from accelctl import figures, render
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import CARD, ENGINE
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View


def troubled(count: int) -> Cell:
    """A count that should be zero."""
    return Cell(str(count), "bad" if count else "dim")


COLUMNS = (
    Column("OE", lambda e: short(e.name)),
    Column("LANES", lambda e: str(e.fitted_lanes), right=True),
    Column("LIT", lambda e: str(e.lanes_lit_count), right=True),
    Column("LOS", lambda e: troubled(e.lanes_los_count), right=True),
    Column("LOL", lambda e: troubled(e.lanes_lol_count), right=True),
    Column(
        "MARGIN dB", lambda e: render.optional(e, "margin_min_db", lambda v: f"{v:.2f}"), right=True
    ),
    Column("MODULATION", lambda e: e.modulation.upper(), droppable=True),
    Column("FEC", lambda e: e.fec),
    Column(
        "Gb/s/LANE",
        lambda e: render.number(e.line_rate_gbit_per_s, 4),
        right=True,
        droppable=True,
    ),
    Column("FLAGS ON", lambda e: troubled(e.flags_active_count), right=True),
    Column("LATCHED", lambda e: troubled(e.flags_latched_count), right=True),
    Column("CHANGES", lambda e: render.count(e.flag_changes_total), right=True, wide=True),
    Column("CONNECTOR", lambda e: e.connector, wide=True),
    Column("TYPE", lambda e: e.lane_type, wide=True),
    Column("GBd", lambda e: render.number(e.symbol_rate_gbd, 4), right=True, wide=True),
    Column("pJ/bit", lambda e: render.number(e.energy_pj_per_bit), right=True, wide=True),
    Column("TRACE dB", lambda e: render.number(e.trace_loss_db), right=True, wide=True),
)


@click.group("oe", cls=Noun)
def cli() -> None:
    """Optical engines: what turns electrons into light and back."""


@command(cli, "list")
@examples("accelctl oe list", "accelctl oe list card0 -o csv")
@click.argument("card", type=CARD, required=False)
@viewed
def list_(session: Session, view: View, card: str | None) -> None:
    """List the engines of one card, or of all."""
    view.rows(
        lambda: session.client.engines.list(card), COLUMNS, empty="no optical engines", kind=_kind
    )


@command(cli, "show")
@examples("accelctl oe show card0/oe0")
@click.argument("port", type=ENGINE)
@viewed
def show(session: Session, view: View, port: str) -> None:
    """Show one engine in full, with its thresholds and the flags of its lanes."""

    def describe(engine: Any) -> list[str]:
        lines = [
            *view.detail(*_describe(engine)),
            "",
            *view.table(engine.thresholds, figures.THRESHOLD_COLUMNS),
        ]
        if engine.external_lasers:
            lines += ["", *view.table(engine.external_lasers, LASER_COLUMNS)]
        if engine.flags_latched_count or engine.flag_changes_total:
            lanes = list(session.client.lanes.list(port))
            lines += ["", *view.table(lane_flags(lanes), LANE_FLAG_COLUMNS)]
        return lines

    view.one(lambda: session.client.engines.get(port), describe)


@command(cli, "clear-flags")
@examples("accelctl oe clear-flags card0/oe1", "accelctl oe clear-flags card0/oe0 card0/oe1")
@click.argument("ports", type=ENGINE, nargs=-1, required=True, metavar="OE...")
@printed
def clear_flags(session: Session, view: View, ports: tuple[str, ...]) -> None:
    """Clear the latched flags of all lanes of engines.

    What is on now stays latched, and counts and times go on. The flags of a card itself are
    cleared with 'accelctl card clear-flags'.
    """
    with each(ports) as work:
        done = work(session.client.engines.clear_flags)
        view.results(done, lambda e: f"{short(e.name)}: {cleared(e.flags_latched_count)}")


def cleared(left: int) -> str:
    if not left:
        return "no flag is latched"
    return f"{left} flag{'s are' if left > 1 else ' is'} still on"


@dataclass(frozen=True)
class LaneFlag:
    """A flag over all lanes of an engine: which have it on, which latched."""

    name: str
    active: str
    latched: str
    changes: int
    last_set: str
    last_clear: str


def lane_flags(lanes: Sequence[Any]) -> list[LaneFlag]:
    """A row per flag that ever changed, in the order of the lanes' own."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for number, lane in enumerate(lanes):
        for flag in figures.changed(lane.flags):
            found.setdefault(flag.name, []).append((number, flag))
    return [
        LaneFlag(
            name,
            figures.ranges(number for number, flag in of_lanes if flag.active),
            figures.ranges(number for number, flag in of_lanes if flag.latched),
            sum(flag.changes_total for _, flag in of_lanes),
            max(figures.time(flag, "last_set_time") for _, flag in of_lanes),
            max(figures.time(flag, "last_clear_time") for _, flag in of_lanes),
        )
        for name, of_lanes in found.items()
    ]


LANE_FLAG_COLUMNS = (
    Column("FLAG", lambda f: f.name),
    Column("ON LANES", lambda f: Cell(f.active, "bad")),
    Column("LATCHED LANES", lambda f: Cell(f.latched, "warn")),
    Column("CHANGES", lambda f: render.count(f.changes), right=True),
    Column("LAST SET", lambda f: f.last_set, spare=True),
    Column("LAST CLEAR", lambda f: f.last_clear, spare=True, droppable=True),
)


def _shown(key: str) -> Callable[[Any], str]:
    return lambda laser: str(figures.figure(laser, key, "")[1])


LASER_COLUMNS = (
    Column("LASER", lambda s: str(s.index)),
    Column("LANES", lambda s: f"{min(s.lanes)}-{max(s.lanes)}"),
    Column("BIAS", _shown("tx_bias_ma"), right=True),
    Column("TEMPERATURE", _shown("laser_temp_c"), right=True),
    Column("WORN", _shown("laser_wear_ratio"), right=True),
    Column("COOLER", _shown("tec_current_ratio"), right=True),
)


def _describe(engine: Any) -> tuple[str, list[render.Field]]:
    return f"{short(engine.name)}  {engine.lane_type}", [
        ("connector", engine.connector),
        ("modulation", engine.modulation.upper()),
        ("FEC", engine.fec),
        ("symbol rate", f"{render.number(engine.symbol_rate_gbd, 4)} GBd"),
        ("line rate", f"{render.number(engine.line_rate_gbit_per_s, 4)} Gb/s per lane"),
        ("energy", f"{render.number(engine.energy_pj_per_bit)} pJ/bit"),
        ("trace loss", f"{render.number(engine.trace_loss_db)} dB"),
        ("lanes fitted", str(engine.fitted_lanes)),
        ("lanes lit", str(engine.lanes_lit_count)),
        ("lanes in LOS", troubled(engine.lanes_los_count)),
        ("lanes in LOL", troubled(engine.lanes_lol_count)),
        figures.figure(engine, "margin_min_db", "worst margin"),
        ("flags on", troubled(engine.flags_active_count)),
        ("flags latched", troubled(engine.flags_latched_count)),
        figures.figure(engine, "flag_changes_total", "changes of flags"),
    ]


def _kind() -> Any:
    from accel.v1 import optics_pb2

    return optics_pb2.Engine.DESCRIPTOR
