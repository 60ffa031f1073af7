"""accelctl topo: how the cards are joined, put together from the links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich_click as click

from accel.address import PortAddress, short
from accelctl import render
from accelctl.options import Noun, command, examples, viewed
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

Plain = dict[str, Any]

COLUMNS = (
    Column("A", lambda e: e["a"]),
    Column("", lambda e: "<->" if "b" in e else ""),
    Column("B", lambda e: e.get("b", "")),
    Column("STATE", lambda e: render.state(e["state"])),
    Column("LANES", lambda e: str(e["width_lanes"]), right=True),
    Column("Gb/s", lambda e: render.number(e["capacity_gbit_per_s"]), right=True),
    Column("FIBRE", lambda e: e.get("fibre", "")),
    Column(
        "LENGTH m", lambda e: render.number(e["length_m"]) if "length_m" in e else "", right=True
    ),
    Column("TRANSPORT", lambda e: e.get("transport", "")),
)


@click.group("topo", cls=Noun)
def cli() -> None:
    """Topology: which port is joined to which, and what lies between two cards."""


@command(cli, "show")
@examples("accelctl topo show", "accelctl topo show -o json")
@viewed
def show(session: Session, view: View) -> None:
    """List the fibres, each once, with both ends."""
    view.rows(lambda: edges(session.client.links.list()), COLUMNS, empty="no links")


@command(cli, "matrix")
@examples("accelctl topo matrix", "accelctl topo matrix -o csv")
@viewed
def matrix(session: Session, view: View) -> None:
    """Show links up and Gb/s between each two cards.

    A cell reads links up/all and their Gb/s in sum; - where no link joins the two cards, and
    . for a card with itself.
    """

    def fetch() -> list[Plain]:
        names = [short(card.name) for card in session.client.cards.list()]
        return pairs(names, edges(session.client.links.list()))

    if session.human:
        view.one(lambda: {"pairs": fetch()}, lambda found: _grid(view, found["pairs"]))
    else:
        view.rows(fetch, ())


def edges(links: Iterable[Any]) -> list[Plain]:
    """One row per fibre. The two ends of a link name each other, so one of them is enough."""
    from accel.plain import word

    rows: dict[tuple[str, ...], Plain] = {}
    for link in links:
        here, peer, fibre = short(link.name), short(link.peer), link.fibre
        known = fibre.name if link.HasField("fibre") else ""
        key = (known,) if known else tuple(sorted((here, peer)))
        if key in rows:
            rows[key].setdefault("b", here)
            continue
        row: Plain = {"name": known or here, "a": here}
        if peer:
            row["b"] = peer
        row |= {
            "state": word(link, "state"),
            "width_lanes": link.width_lanes,
            "capacity_gbit_per_s": link.capacity_gbit_per_s,
        }
        if known:
            row |= {"fibre": known, "length_m": fibre.length_m, "transport": fibre.transport}
        rows[key] = row
    return list(rows.values())


def pairs(cards: list[str], found: Iterable[Plain]) -> list[Plain]:
    """Every ordered pair of different cards with its links, links up and capacity."""
    cards = list(
        dict.fromkeys([*cards, *(_card(e[end]) for e in found for end in "ab" if end in e)])
    )
    table: dict[tuple[str, str], Plain] = {
        (a, b): {
            "name": f"{a}-{b}",
            "card": a,
            "peer_card": b,
            "links_count": 0,
            "links_up_count": 0,
            "capacity_gbit_per_s": 0.0,
        }
        for a in cards
        for b in cards
        if a != b
    }
    for edge in found:
        if "b" not in edge:
            continue
        a, b = _card(edge["a"]), _card(edge["b"])
        for key in {(a, b), (b, a)} & table.keys():
            row = table[key]
            row["links_count"] += 1
            if edge["state"] in ("UP", "DEGRADED"):
                row["links_up_count"] += 1
                row["capacity_gbit_per_s"] += edge["capacity_gbit_per_s"]
    return list(table.values())


def _card(port: str) -> str:
    return PortAddress.parse(port).card


def _grid(view: View, rows: list[Plain]) -> list[str]:
    by_pair = {(row["card"], row["peer_card"]): row for row in rows}
    cards = list(dict.fromkeys(row["card"] for row in rows))
    if not cards:
        return ["no two cards to compare"]

    def cell(a: str, b: str) -> Cell:
        row = by_pair.get((a, b))
        if row is None:
            return Cell(".", "dim")
        if not row["links_count"]:
            return Cell("-", "dim")
        up, all_ = row["links_up_count"], row["links_count"]
        style = "good" if up == all_ else "warn" if up else "bad"
        return Cell(f"{up}/{all_} {render.number(row['capacity_gbit_per_s'])}", style)

    columns = [Column("", lambda a: a)]
    columns += [Column(b, lambda a, b=b: cell(a, b), right=True) for b in cards]  # type: ignore[misc]
    return ["links up/all, Gb/s in sum", "", *view.table(cards, columns)]
