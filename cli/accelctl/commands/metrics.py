"""accelctl metrics: what a scrape of this host costs a Prometheus."""

from __future__ import annotations

from collections import Counter
from typing import Any

import rich_click as click

from accelctl import emulator, exits, render
from accelctl.known import PROFILES
from accelctl.options import Noun, command, examples, printed
from accelctl.params import OneOf
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

MODULE = "acceld.fields.budget"
COUNT = click.IntRange(1, 1_000_000)

COLUMNS = (
    Column("FAMILY", lambda f: Cell(f["metric"], "dim" if f.get("opt_in") else "")),
    Column("GROUP", lambda f: f.get("group", ""), spare=True),
    Column("SERIES", lambda f: render.count(f["series"]), right=True),
    Column("", lambda f: "opt-in" if f.get("opt_in") else "", spare=True),
)


@click.group("metrics", cls=Noun)
def cli() -> None:
    """Metrics: how many series a Prometheus has to keep."""


@command(cli, "budget")
@examples(
    "accelctl metrics budget",
    "accelctl metrics budget --cards 8 --engines 4 --lanes 8",
    "accelctl metrics budget --cards 8 --profile oio -o json",
)
@click.option("--cards", type=COUNT, metavar="N", help="Count for so many cards, without a daemon.")
@click.option("--engines", type=COUNT, metavar="N", help="Engines of a card; as in the profile.")
@click.option("--lanes", type=COUNT, metavar="N", help="Lanes of an engine; as in the profile.")
@click.option(
    "--profile",
    type=OneOf("profile", PROFILES),
    metavar="NAME",
    help="Kind of card: dr8, oio or single. [dr8]",
)
@printed
def budget(
    session: Session,
    view: View,
    cards: int | None,
    engines: int | None,
    lanes: int | None,
    profile: str | None,
) -> None:
    """Count the series of each family, and of all.

    Without options it counts a scrape of the daemon, as it is now. With one, it counts by
    arithmetic for a host that is well and quiet, each engine with a fibre.
    """
    named = {"cards": cards, "engines": engines, "lanes": lanes, "profile": profile}
    asked = {name: value for name, value in named.items() if value is not None}
    families = emulator.ask(MODULE, *emulator.arguments_of(**asked)) if asked else _live(session)
    usual = sum(f["series"] for f in families if not f.get("opt_in"))
    extra = sum(f["series"] for f in families if f.get("opt_in"))
    answer = {"series_total": usual, "opt_in_series_total": extra, "families": families}
    view.one(lambda: answer, lambda found: _lines(view, found))


def _lines(view: View, found: dict[str, Any]) -> list[str]:
    shown = [family for family in found["families"] if family["series"]]
    total = f"{render.count(found['series_total'])} series in a scrape"
    if found["opt_in_series_total"]:
        total += f", {render.count(found['opt_in_series_total'])} more on request"
    return [*view.table(shown, COLUMNS), "", total]


def _live(session: Session) -> list[dict[str, Any]]:
    """By a scrape of the daemon. Raises Failed."""
    address = session.client.host().metrics_address
    if not address:
        raise exits.Failed(
            "the daemon serves no metrics (--metrics off); --cards N counts without it",
            exits.CONFLICT,
            "METRICS_OFF",
        )
    return count(page(f"http://{address}/metrics", session.timeout_s))


def page(url: str, timeout_s: float) -> str:
    """Raises Failed."""
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            text: str = answer.read().decode()
    except OSError as error:  # URLError is one
        why = getattr(error, "reason", error)
        words = getattr(why, "strerror", None) or str(why)
        raise exits.Failed(
            f"cannot read {url}: {words}; is it in another network namespace?"
            " --cards N counts without it",
            exits.UNREACHABLE,
            "METRICS_GONE",
        ) from error
    return text


def count(text: str) -> list[dict[str, Any]]:
    """Samples of each family in a page of metrics, in its order."""
    samples = (line for line in text.splitlines() if line and not line.startswith("#"))
    names = Counter(line.partition(" ")[0].partition("{")[0] for line in samples)
    return [{"metric": name, "series": series} for name, series in names.items()]
