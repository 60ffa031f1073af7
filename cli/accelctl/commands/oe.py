"""accelctl oe: optical engines."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accel.address import short
from accelctl import render
from accelctl.options import Noun, command, examples, viewed
from accelctl.params import CARD, ENGINE
from accelctl.render import Cell, Column
from accelctl.session import Session
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
    Column("MODULATION", lambda e: e.modulation.upper()),
    Column("FEC", lambda e: e.fec),
    Column("Gb/s/LANE", lambda e: render.number(e.line_rate_gbit_per_s, 4), right=True),
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
    """Show one engine in full."""
    view.one(lambda: session.client.engines.get(port), lambda e: view.detail(*_describe(e)))


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
        ("worst margin", render.optional(engine, "margin_min_db", lambda v: f"{v:.2f} dB")),
    ]


def _kind() -> Any:
    from accel.v1 import optics_pb2

    return optics_pb2.Engine.DESCRIPTOR
