"""accelctl event: what happened."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import rich_click as click

from accelctl import formats, render
from accelctl.exits import Interrupted
from accelctl.known import EVENT_KINDS
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import COUNT, MOMENT, SUBJECT, OneOf
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View, header_of, plain

SEVERITIES = ("info", "warning", "error")
SUBJECT_WIDTH, KIND_WIDTH = 10, 19


def severity(event: Any) -> Cell:
    from accel.plain import word

    return render.state(word(event, "severity"))


COLUMNS = (
    Column("REV", lambda e: str(e.revision), right=True),
    Column("TIME", lambda e: render.local_time(e.time)),
    Column("SEVERITY", severity, wide=True),
    Column("SUBJECT", lambda e: e.subject),
    Column("KIND", lambda e: Cell(e.kind, severity(e).style)),
    Column("TIMES", lambda e: str(e.count) if e.count > 1 else "", right=True, spare=True),
    Column("REASON", lambda e: e.reason, wide=True, spare=True),
    Column("TO BLAME", lambda e: e.cause, wide=True, spare=True),
    Column("PEER", lambda e: e.peer, wide=True, spare=True),
    Column("MESSAGE", lambda e: e.message, wraps=True),
)
severity_option = click.option(
    "--severity",
    "least",
    type=click.Choice(SEVERITIES),
    default="info",
    help="At least this severe.",
)
kind_option = click.option(
    "--kind",
    "kinds",
    type=OneOf("kind", EVENT_KINDS),
    multiple=True,
    metavar="KIND",
    help="Only of this kind, as LINK_DOWN; may be given more than once.",
)


@click.group("event", cls=Noun)
def cli() -> None:
    """Events: what happened to cards, links and transfers, in order."""


@command(cli, "list")
@examples(
    "accelctl event list",
    "accelctl event list card0 --lines 5",
    "accelctl event list --severity warning -o jsonl",
    "accelctl event list card0/oe0 --kind LINK_DOWN --since 10m",
)
@click.argument("subject", type=SUBJECT, required=False, default="")
@click.option(
    "-n",
    "--lines",
    type=COUNT,
    default=50,
    metavar="COUNT",
    help="The newest so many; 50 unless told, 0 for all.",
)
@severity_option
@kind_option
@click.option(
    "--since",
    type=MOMENT,
    metavar="TIME",
    help="Not older: 10m, 2h, or a date, as 2026-09-21T14:13:20Z.",
)
@viewed
def list_(
    session: Session,
    view: View,
    subject: str,
    lines: int,
    least: str,
    kinds: tuple[str, ...],
    since: datetime | None,
) -> None:
    """List the newest events, oldest of them first.

    SUBJECT is an address (card0, card0/oe0) and takes what is inside it too.
    """

    wanted = _kinds(kinds)

    def fetch() -> Sequence[Any]:
        events = session.client.events
        if lines == 0:
            return tuple(events.list(subject, min_severity=least, kinds=wanted, since=since))
        return events.latest(lines, subject, min_severity=least, kinds=wanted, since=since)

    view.rows(fetch, COLUMNS, empty="no events", kind=_kind)


@command(cli, "follow")
@examples("accelctl event follow", "accelctl event follow card0 --after 12 -o jsonl")
@click.argument("subject", type=SUBJECT, required=False, default="")
@click.option(
    "--after",
    type=COUNT,
    metavar="REVISION",
    help="Begin after this revision; 0 for the oldest kept. Only new ones unless told.",
)
@severity_option
@kind_option
@printed
def follow(
    session: Session,
    view: View,
    subject: str,
    after: int | None,
    least: str,
    kinds: tuple[str, ...],
) -> None:
    """Print events as they happen, until Ctrl-C.

    A daemon that restarts meanwhile is found again, and no event is missed. One that is repeated
    comes again, with how often it happened.
    """
    first = True
    events = session.client.events
    try:
        for event in events.follow(after, subject, min_severity=least, kinds=_kinds(kinds)):
            view.write(_line(view, event, first))
            first = False
    except KeyboardInterrupt:
        raise Interrupted("") from None  # The way to end it.


def _line(view: View, event: Any, first: bool) -> str:
    session = view.session
    match session.output:
        case "json" | "jsonl":
            return formats.to_jsonl([plain(event)])
        case "yaml":
            return formats.to_yaml([plain(event)])
        case "csv":
            text = formats.to_csv([plain(event)], header_of([event], None))
            return text if first else text.partition("\n")[2]
        case "name":
            return f"{event.revision}\n"
    kind = render.paint(event.kind.ljust(KIND_WIDTH), severity(event).style, session.colored)
    subject = render.clean(event.subject).ljust(SUBJECT_WIDTH)
    when = render.near_time(event.time)
    times = f" ({event.count} times)" if event.count > 1 else ""
    return f"{when}  {subject}  {kind}  {render.clean(event.message)}{times}\n"


def _kinds(words: Sequence[str]) -> list[str]:
    """As the API has them, however they were typed: link-down is LINK_DOWN."""
    return [word.upper().replace("-", "_") for word in words]


def _kind() -> Any:
    from accel.v1 import event_pb2

    return event_pb2.Event.DESCRIPTOR
