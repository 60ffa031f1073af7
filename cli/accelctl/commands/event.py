"""accelctl event: what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rich_click as click

from accelctl import formats, render
from accelctl.exits import Interrupted
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import COUNT
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
    Column("MESSAGE", lambda e: e.message, flexible=True),
)


@click.group("event", cls=Noun)
def cli() -> None:
    """Events: what happened to cards, links and transfers, in order."""


@command(cli, "list")
@examples(
    "accelctl event list",
    "accelctl event list card0 --lines 5",
    "accelctl event list --severity warning -o jsonl",
)
@click.argument("subject", required=False, default="")
@click.option(
    "-n",
    "--lines",
    type=COUNT,
    default=50,
    metavar="COUNT",
    help="The newest so many; 50 unless told, 0 for all.",
)
@click.option(
    "--severity",
    "least",
    type=click.Choice(SEVERITIES),
    default="info",
    help="At least this severe.",
)
@viewed
def list_(session: Session, view: View, subject: str, lines: int, least: str) -> None:
    """List the newest events, oldest of them first.

    SUBJECT is an address (card0, card0/oe0) and takes what is inside it too.
    """

    def fetch() -> Sequence[Any]:
        events = session.client.events
        if lines == 0:
            return tuple(events.list(subject, min_severity=least))
        return events.latest(lines, subject, min_severity=least)

    view.rows(fetch, COLUMNS, empty="no events", kind=_kind)


@command(cli, "follow")
@examples("accelctl event follow", "accelctl event follow card0 --after 12 -o jsonl")
@click.argument("subject", required=False, default="")
@click.option(
    "--after",
    type=COUNT,
    metavar="REVISION",
    help="Begin after this revision; 0 for the oldest kept. Only new ones unless told.",
)
@printed
def follow(session: Session, view: View, subject: str, after: int | None) -> None:
    """Print events as they happen, until Ctrl-C.

    A daemon that restarts meanwhile is found again, and no event is missed.
    """
    first = True
    try:
        for event in session.client.events.follow(after, subject):
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
    when = render.local_time(event.time, date=False)
    return f"{when}  {subject}  {kind}  {render.clean(event.message)}\n"


def _kind() -> Any:
    from accel.v1 import event_pb2

    return event_pb2.Event.DESCRIPTOR
