"""accelctl bench: comparisons of published and modelled figures; no daemon is asked."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accelctl import emulator, render
from accelctl.options import Noun, command, examples, printed
from accelctl.params import SIZE
from accelctl.pictures import blocks
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

MODULE = "accelhw.optics.paths"
WAYS = ("pcie", "pluggable", "cpo", "oio")
BAR_WIDTH = 30


def _time(way: Any) -> str:
    return render.time_us(way["time_ns"] / 1e3)


def energy(joules: float) -> str:
    """`2.66 nJ`, `41.6 mJ`."""
    for unit, factor in (("pJ", 1e12), ("nJ", 1e9), ("uJ", 1e6), ("mJ", 1e3), ("J", 1.0)):
        if joules * factor < 1000.0 or unit == "J":
            break
    return f"{joules * factor:.3g} {unit}"


def _reach(way: Any) -> Cell:
    text = f"{way['reach_m']:g} m"
    return Cell(text) if way["within_reach"] else Cell(f"{text} !", "warn")


COLUMNS = (
    Column("WAY", lambda w: w["name"]),
    Column("TIME", _time, right=True),
    Column("LATENCY", lambda w: render.time_us(w["latency_ns"] / 1e3), right=True),
    Column("GB/s", lambda w: render.number(w["rate_gbyte_per_s"], 1), right=True),
    Column("ENERGY", lambda w: energy(w["energy_j"]), right=True),
    Column("pJ/bit", lambda w: render.number(sum(p["value"] for p in w["energy"]), 1), right=True),
    Column("FEC", lambda w: w["fec"]),
    Column("BER BEFORE", lambda w: f"{w['pre_fec_ber']:.1e}", right=True),
    Column("FRAMES LOST", lambda w: f"{w['frame_loss_ratio']:.1e}", right=True, droppable=True),
    Column("REACH", _reach, right=True),
)
PART_COLUMNS = (
    Column("PART", lambda p: p["name"]),
    Column("", lambda p: p["text"], right=True),
    Column("SOURCE", lambda p: p["source"]),
)


@click.group("bench", cls=Noun)
def cli() -> None:
    """Comparisons by figures, computed here: no daemon is needed."""


@command(cli, "path")
@examples(
    "accelctl bench path",
    "accelctl bench path --compare pcie --bytes 1G --length 10",
    "accelctl bench path --bytes 64 --sources",
)
@click.option(
    "--compare",
    type=click.Choice(WAYS),
    default="pcie",
    metavar="WAY",
    help="The way that the others are measured by: pcie, pluggable, cpo or oio.",
)
@click.option("--bytes", "nbytes", type=SIZE, default="64", metavar="SIZE", help="64, 4K, 1G.")
@click.option("--length", type=float, default=10.0, metavar="METRES", help="Of fibre; 10 m.")
@click.option("--sources", is_flag=True, help="Each part of each way, with its source.")
@printed
def path(
    session: Session, view: View, compare: str, nbytes: int, length: float, sources: bool
) -> None:
    """Compare ways from one card's memory to another's: time, energy and errors.

    PCIe 5.0 x16 through a switch, a pluggable module with PAM4, DSP and KP4 FEC, the same
    co-packaged, and optical I/O of many NRZ lanes without FEC.
    """
    ways = emulator.ask(MODULE, *emulator.arguments_of(bytes=nbytes, length=length))
    if session.output in ("json", "jsonl", "yaml", "csv", "name"):
        view.write(view.text(ways, lambda rows: []))
        return
    base = next(way for way in ways if way["name"] == compare)
    lines = [f"{render.size(nbytes)} from card to card over {length:g} m", ""]
    lines += view.table(ways, COLUMNS)
    lines += ["", *_bars(ways, base)]
    late = [way for way in ways if not way["within_reach"]]
    lines += [f"! {way['name']} reaches {way['reach_m']:g} m, not {length:g} m" for way in late]
    if sources:
        for way in ways:
            lines += ["", *_parts(view, way)]
    view.write("".join(line + "\n" for line in lines))


def _bars(ways: list[Any], base: Any) -> list[str]:
    """Time and energy as shares of the way that was chosen."""
    lines = []
    for label, key in (("time", "time_ns"), ("energy", "energy_j")):
        most = max(way[key] for way in ways)
        lines.append(f"{label}, {base['name']} = 1")
        for way in ways:
            share = way[key] / base[key]
            drawn = blocks.bar(way[key] / most, BAR_WIDTH).ljust(BAR_WIDTH)
            lines.append(f"  {way['name']:<10} {drawn} {share:.2f}")
    return lines


def _parts(view: View, way: Any) -> list[str]:
    rows = [{**part, "text": f"{render.number(part['value'], 1)} ns"} for part in way["latency"]]
    rows += [
        {**part, "text": f"{render.number(part['value'], 1)} pJ/bit"} for part in way["energy"]
    ]
    rows.append({"name": "BER", "text": f"{way['pre_fec_ber']:.1e}", "source": way["ber_source"]})
    title = render.paint(f"{way['name']}: {way['description']}", "head", view.session.colored)
    return [title, *view.table(rows, PART_COLUMNS)]
