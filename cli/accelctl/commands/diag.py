"""accelctl diag: tests of links, run, listed and shown."""

from __future__ import annotations

import re
from typing import Any

import rich_click as click

from accel.address import BadAddress, LaneAddress, PortAddress, diag_name, short
from accelctl import render, testing
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import DURATION, PORT, Address, _short_names
from accelctl.render import Column
from accelctl.session import Session
from accelctl.view import View

_LANE = re.compile(r"[0-9]{1,3}")  # as in an address: no engine has more
KINDS = ("prbs", "ber", "margin", "eye", "loopback", "reflect", "fec")
LOOPS = ("near", "far")
PATTERNS = (
    "prbs7", "prbs9", "prbs11", "prbs13", "prbs13_lane1", "prbs13_lane2", "prbs13_lane3",
    "prbs15", "prbs23", "prbs31", "prbs13q", "prbs31q",
)  # fmt: skip
CHECKERS = ("seeded", "self-sync")

TARGET = Address(
    "port|lane",
    PortAddress,
    LaneAddress,
    known=lambda client: _short_names(client.links.list()),
)


class DiagName(click.ParamType):  # type: ignore[type-arg]
    """`3f2a91`, as `accelctl diag list` shows it."""

    name = "test"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return short(diag_name(value))
        except BadAddress as error:
            self.fail(str(error), param, ctx)


class Ratio(click.ParamType):  # type: ignore[type-arg]
    """A share: 1e-12, 0.95, 99%."""

    name = "ratio"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            ratio = float(value[:-1]) / 100 if value.endswith("%") else float(value)
        except ValueError:
            ratio = 0.0
        if not 0.0 < ratio < 1.0:
            self.fail(f"{value!r} is not between 0 and 1; use 1e-12, 0.95 or 99%", param, ctx)
        return ratio


class Lanes(click.ParamType):  # type: ignore[type-arg]
    """Lanes by number: 0,3 or 4-7."""

    name = "lanes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: set[int] = set()
        for part in value.split(","):
            first, dash, last = part.partition("-")
            if not _LANE.fullmatch(first) or (dash and not _LANE.fullmatch(last)):
                self.fail(f"{value!r} names no lanes; use 0,3 or 4-7", param, ctx)
            found.update(range(int(first), int(last or first) + 1))
        return tuple(sorted(found))


DIAG, RATIO, LANES = DiagName(), Ratio(), Lanes()


def split(target: str) -> tuple[str, tuple[int, ...]]:
    """`card0/oe0/lane3` to its port and lanes."""
    port, _, lane = target.partition("/lane")
    return port, ((int(lane),) if lane else ())


pattern_option = click.option(
    "--pattern",
    type=click.Choice(PATTERNS),
    metavar="NAME",
    help="prbs7 to prbs31, prbs13q, prbs31q; prbs31 unless told otherwise.",
)
checker_option = click.option(
    "--checker",
    type=click.Choice(CHECKERS),
    default="seeded",
    metavar="HOW",
    help="seeded counts each wrong bit once; self-sync counts it 3 or 5 times and divides.",
)
for_option = click.option(
    "--for", "duration", type=DURATION, metavar="SECONDS", help="How long; 2 seconds."
)
ber_option = click.option(
    "--ber",
    "target_ber",
    type=RATIO,
    metavar="RATIO",
    help="The BER to prove, and end as soon as it is proven or refuted; else the FEC's limit.",
)
confidence_option = click.option(
    "--confidence", type=RATIO, metavar="RATIO", help="How sure; 95% unless told otherwise."
)
force_option = click.option(
    "--force", is_flag=True, help="Even while transfers run: they wait, and go on after."
)
svg_option = click.option("--svg", metavar="FILE", help="Draw the result into a file.")


@click.group("diag", cls=Noun)
def cli() -> None:
    """Tests of links: patterns, errors, margin, eyes, loops."""


@command(cli, "run")
@examples(
    "accelctl diag run margin --on card0/oe0 --svg margin.svg",
    "accelctl diag run eye --on card0/oe0/lane3 --svg eye.svg --png eye.png",
    "accelctl diag run ber --on card0/oe0 --for 5s",
    "accelctl diag run loopback --loop near --on card0/oe0",
    "accelctl diag run fec --on card0/oe0",
)
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.option(
    "--on", "target", type=TARGET, required=True, metavar="PORT|LANE", help="What to test."
)
@click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="near",
    metavar="WHERE",
    help="near: light turns round before the connector; far: the far port returns it.",
)
@click.option(
    "--for",
    "duration",
    type=DURATION,
    metavar="SECONDS",
    help="How long, 2 seconds; for margin the time at each attenuation, 50 ms.",
)
@pattern_option
@checker_option
@ber_option
@confidence_option
@force_option
@svg_option
@click.option("--png", metavar="FILE", help="Draw an eye's raster into a file.")
@printed
def run(
    session: Session,
    view: View,
    kind: str,
    target: str,
    loop: str,
    duration: float | None,
    pattern: str | None,
    checker: str,
    target_ber: float | None,
    confidence: float | None,
    force: bool,
    svg: str | None,
    png: str | None,
) -> None:
    """Test a link and show what came out.

    KIND is one of prbs, ber, margin, eye, loopback, reflect, fec. Of these ber, eye and fec run in
    service; the others take the link down for their time, and it trains again after.

    Exit code 0 when it passed or is open, 1 when a lane failed, 6 when it could not be carried out.
    """
    port, lanes = split(target)
    full = f"LOOPBACK_{loop.upper()}" if kind == "loopback" else kind.upper()
    run_and_show(
        session, view, port, full, svg, png, lanes=lanes, duration_s=duration,
        pattern=pattern or "", checker=checker, target_ber=target_ber or 0.0,
        confidence=confidence or 0.0, stop_early=target_ber is not None, force=force,
    )  # fmt: skip


def run_and_show(
    session: Session, view: View, port: str, kind: str, svg: str | None, png: str | None, **how: Any
) -> None:
    testing.check_files(svg, png)
    diag = testing.run(session, view, port, kind, **how)
    if diag.error == "":
        testing.save(diag, svg, png)
    if session.output != "jsonl" and "-" not in (svg, png):
        view.write(view.single(diag, lambda d: testing.describe(view, d)))
    testing.finish(diag)


COLUMNS = (
    Column("TEST", lambda d: short(d.name)),
    Column("KIND", lambda d: _kind_word(d)),
    Column("LINK", lambda d: short(d.link)),
    Column("STATE", lambda d: render.state(_state_word(d))),
    Column("VERDICT", testing.verdict),
    Column("STARTED", lambda d: render.local_time(d.start_time), droppable=True),
    Column("RESULT", lambda d: d.error_detail or d.text, flexible=True),
    Column("LANES", lambda d: str(len(d.lanes)), right=True, wide=True),
    Column("PATTERN", lambda d: d.pattern, wide=True),
)


@command(cli, "list")
@examples("accelctl diag list", "accelctl diag list card0/oe0")
@click.argument("port", type=PORT, required=False)
@viewed
def list_(session: Session, view: View, port: str | None) -> None:
    """List the tests of one port, or all, newest first."""
    view.rows(
        lambda: session.client.diags.list(port),
        COLUMNS,
        empty="no tests; accelctl diag run ber --on card0/oe0 starts one",
        kind=_kind,
    )


@command(cli, "show")
@examples("accelctl diag show 3f2a91c04d77", "accelctl diag show 3f2a91c04d77 --svg again.svg")
@click.argument("test", type=DIAG)
@svg_option
@viewed
def show(session: Session, view: View, test: str, svg: str | None) -> None:
    """Show a test and its result, or draw it."""
    if svg is not None:
        testing.check_files(svg, None)
        testing.save(session.client.diags.get(test), svg, None)
        view.say(f"{test} is drawn in {svg}")
        return
    view.one(lambda: session.client.diags.get(test), lambda d: testing.describe(view, d))


@command(cli, "cancel")
@examples("accelctl diag cancel 3f2a91c04d77")
@click.argument("test", type=DIAG)
@printed
def cancel(session: Session, view: View, test: str) -> None:
    """End a running test; what it measured is kept, and its link trains again."""
    diag = session.client.diags.cancel(test)
    view.result(diag, f"{test} is {_state_word(diag)}")


def _state_word(diag: Any) -> str:
    from accel.plain import word

    return word(diag, "state")


def _kind_word(diag: Any) -> str:
    from accel.plain import word

    return word(diag, "kind").replace("_", " ").lower()


def _kind() -> Any:
    from accel.v1 import diag_pb2

    return diag_pb2.Diag.DESCRIPTOR
