"""accelctl bench: what links make here, measured; and ways of the bytes compared by figures."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accel.address import short
from accelctl import emulator, exits, formats, progress, render
from accelctl.interrupt import held
from accelctl.options import Noun, command, examples, printed
from accelctl.params import CARDS, COUNT, SIZE, SIZES
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
    """Measure transfers between cards, and compare ways of the bytes by figures."""


DEFAULT_SIZES = "4KiB,64KiB,1MiB,64MiB"


@command(cli, "p2p")
@examples(
    "accelctl bench p2p",
    "accelctl bench p2p --sizes 4K,1M --cards card0,card1 --bidirectional",
    "accelctl bench p2p --repeat 3 -o json",
)
@click.option(
    "--sizes",
    type=SIZES,
    default=DEFAULT_SIZES,
    metavar="SIZE,...",
    help=f"Of the transfers; {DEFAULT_SIZES}.",
)
@click.option(
    "--cards", type=CARDS, metavar="CARD,...", help="Only pairs of these; every card unless told."
)
@click.option(
    "--repeat",
    type=COUNT,
    default="5",
    metavar="N",
    help="Rounds of each pair and size; 5. Sizes up to 64 KiB take 20 times as many.",
)
@click.option("--bidirectional", is_flag=True, help="Both directions of a pair at the same time.")
@printed
def p2p(
    session: Session,
    view: View,
    sizes: tuple[int, ...],
    cards: tuple[str, ...] | None,
    repeat: int,
    bidirectional: bool,
) -> None:
    """Measure bandwidth and latency by light between every two cards.

    Pairs that no link joins are shown without figures. GB/s are those of the median round. The
    latency of a transfer ends with the proof that its last byte arrived, so it is a round trip;
    CALL adds the client's calls to the daemon. "Modelled" is what the emulated cards would need.
    Regions for the measurement are allocated and freed again, whatever happens.
    """
    from accel.p2p import Bench, pairs
    from accelctl import p2p as shown

    known = [short(card.name) for card in session.client.cards.list()]
    names = _chosen(known, cards)
    wanted = pairs(names, session.client.links.list())
    if not any(pair.links_up for pair in wanted):
        raise exits.Failed(
            f"no link is up between {' and '.join(names) if len(names) == 2 else 'these cards'}; "
            "'accelctl link list' says why",
            exits.CONFLICT,
            "NO_LINK_UP",
        )
    found = []
    with progress.rounds(session) as tell:
        bench = Bench(session.client, sizes, repeat, bidirectional, tell, held)
        try:
            for one in bench.run(wanted):
                found.append(one)
                if session.output == "jsonl":
                    view.write(formats.to_jsonl([one.plain()]))
        except KeyboardInterrupt:
            raise exits.Interrupted("interrupted; what it had allocated is freed again") from None
        finally:
            with held():
                bench.close()
    if session.human:
        lines = shown.describe(view, names, wanted, found)
        view.write("".join(line + "\n" for line in lines))
    elif session.output == "jsonl":
        view.write(formats.to_jsonl(shown.plain(wanted, ())))
    else:
        view.write(view.text(shown.plain(wanted, found), lambda rows: []))


def _chosen(known: list[str], wanted: tuple[str, ...] | None) -> list[str]:
    """The cards to measure between. Raises Failed where there are not two of them."""
    for name in wanted or ():
        if name not in known:
            raise exits.Failed(
                f"no card {name}; there is {', '.join(known)}", exits.NOT_FOUND, "CARD_NOT_FOUND"
            )
    names = list(dict.fromkeys(wanted or known))
    if len(names) < 2:
        raise exits.Failed(
            f"it takes two cards, not only {names[0]}" if names else "there are no cards",
            exits.USAGE if wanted else exits.CONFLICT,
            "TOO_FEW_CARDS",
        )
    return names


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
