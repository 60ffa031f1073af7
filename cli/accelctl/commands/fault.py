"""accelctl fault: make things go wrong on purpose, and right again."""

from __future__ import annotations

from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem

from accel.address import BadAddress, CardAddress, LaneAddress, PortAddress, fault_name, short
from accelctl import exits, figures, render
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import (
    CARD,
    COMPLETION_TIMEOUT_S,
    DURATION,
    LANE_NUMBER,
    SEED,
    SIZE,
    Address,
    completions,
)
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View

SHAPES = ("step", "ramp", "exp", "pulse", "on_off", "burst", "poisson")

SUBJECT = Address(
    "card|port|lane",
    CardAddress,
    PortAddress,
    LaneAddress,
    known=lambda client: [
        *(short(card.name) for card in client.cards.list()),
        *(short(port.name) for port in client.engines.list()),
    ],
    examples="card0, card0/oe1 or card0/oe1/lane3",
)


class FaultName(click.ParamType):  # type: ignore[type-arg]
    """`3f2a91`, as `accelctl fault list` shows it."""

    name = "fault"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return short(fault_name(value))
        except BadAddress as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return completions(
            ctx, lambda client: [short(one.name) for one in client.faults.list()], incomplete
        )


class KindName(click.ParamType):  # type: ignore[type-arg]
    """A kind of fault; completed from the hardware's own catalogue."""

    name = "kind"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from accel import AccelError, Client

        try:
            socket = ctx.find_root().params.get("socket")
            with Client(socket, timeout_s=COMPLETION_TIMEOUT_S) as client:
                kinds = [(short(kind.name), kind.summary) for kind in client.faults.kinds()]
        except AccelError:
            return []
        return [CompletionItem(n, help=text) for n, text in kinds if n.startswith(incomplete)]


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number: 0.5, 1e-5."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; use 0.5 or 1e-5", param, ctx)


FAULT, KIND, NUMBER = FaultName(), KindName(), Number()


def shape_word(message: Any) -> str:
    from accel.plain import word

    return word(message, "shape").lower()


def lanes_text(fault: Any) -> str:
    return figures.ranges(fault.lanes)


def until(fault: Any) -> str:
    return render.near_time(fault.end_time) if fault.HasField("end_time") else ""


COLUMNS = (
    Column("FAULT", lambda f: short(f.name)),
    Column("KIND", lambda f: Cell(f.kind, "warn")),
    Column("ON", lambda f: short(f.subject)),
    Column("LANES", lanes_text, spare=True),
    Column("COMES AS", shape_word),
    Column("SINCE", lambda f: render.near_time(f.start_time)),
    Column("UNTIL", until, spare=True),
    Column("SCALE", lambda f: scale_text(f), right=True, wide=True),
    Column("TARGET BER", lambda f: render.optional(f, "target_ber", render.ber), wide=True),
    Column("RAMP", lambda f: render.optional(f, "ramp_s", seconds_text), wide=True, spare=True),
    Column("SEED", lambda f: str(f.seed), right=True, wide=True),
)
KIND_COLUMNS = (
    Column("KIND", lambda k: short(k.name)),
    Column("ACTS ON", lambda k: place_word(k)),
    Column("COMES AS", lambda k: shape_word(k)),
    Column("WHAT IT IS", lambda k: k.summary, wraps=True),
    Column("CAUSES", lambda k: causes_text(k), wide=True),
    Column("REPAIR", lambda k: k.repair, wide=True),
)


@click.group("fault", cls=Noun)
def cli() -> None:
    """Faults: make things go wrong on purpose, and right again.

    A fault changes causes only (loss, heat, wear); what is seen of it follows from the light.
    """


@command(cli, "list")
@examples("accelctl fault list", "accelctl fault list card0 -o wide", "accelctl fault list -o name")
@click.argument("card", type=CARD, required=False)
@viewed
def list_(session: Session, view: View, card: str | None) -> None:
    """List the faults that are active, of one card or of all."""
    view.rows(
        lambda: session.client.faults.list(card),
        COLUMNS,
        empty="no faults; accelctl fault catalogue shows what can be injected",
        kind=_kind,
    )


@command(cli, "show")
@examples("accelctl fault show 3f2a91")
@click.argument("fault", type=FAULT)
@viewed
def show(session: Session, view: View, fault: str) -> None:
    """Show one active fault in full."""
    view.one(lambda: session.client.faults.get(fault), lambda f: view.detail(*_describe(f)))


@command(cli, "catalogue")
@examples(
    "accelctl fault catalogue",
    "accelctl fault catalogue bent_fibre",
    "accelctl fault catalogue -o json",
)
@click.argument("kind", type=KIND, required=False)
@viewed
def catalogue(session: Session, view: View, kind: str | None) -> None:
    """Show what can be injected; with a KIND what it does, looks like, and how it is repaired."""
    if kind is None:
        view.rows(session.client.faults.kinds, KIND_COLUMNS, kind=_kind_of_kind)
        return
    view.one(lambda: _find_kind(session, kind), lambda k: view.detail(*_describe_kind(k)))


@command(cli, "inject")
@examples(
    "accelctl fault inject dirty_connector_bad --on card0/oe0",
    "accelctl fault inject laser_fail --on card0/oe0 --lane 3 --for 30s",
    "accelctl fault inject dirty_connector_mild --on card0/oe0 --target-ber 1e-5",
    "accelctl fault inject fibre_cut --on card0/oe0 --shape burst",
    "accelctl fault inject hbm_dbe --on card0 --address 0x1000",
)
@click.argument("kind", type=KIND)
@click.option("--on", "subject", type=SUBJECT, required=True, metavar="CARD|PORT|LANE")
@click.option(
    "--lane",
    "lanes",
    type=LANE_NUMBER,
    multiple=True,
    metavar="NUMBER",
    help="This lane; again for more.",
)
@click.option(
    "--shape",
    type=click.Choice(SHAPES),
    metavar="SHAPE",
    help="How it comes: step, ramp, exp, pulse, on_off, burst or poisson.",
)
@click.option("--ramp", type=DURATION, metavar="TIME", help="How long it takes to come in full.")
@click.option(
    "--for", "duration", type=DURATION, metavar="TIME", help="When it goes; stays unless told."
)
@click.option("--scale", type=NUMBER, metavar="FACTOR", help="So much of it; 1 unless told.")
@click.option(
    "--target-ber",
    type=NUMBER,
    metavar="BER",
    help="As much of it as gives this BER before FEC, on each lane.",
)
@click.option("--seed", type=SEED, metavar="NUMBER", help="For what comes at random.")
@click.option("--address", type=SIZE, metavar="BYTES", help="Where in HBM, for faults of a row.")
@click.option("--id", "fault_id", default="", metavar="ID", help="An id of your own.")
@printed
def inject(
    session: Session,
    view: View,
    kind: str,
    subject: str,
    lanes: tuple[int, ...],
    shape: str | None,
    ramp: float | None,
    duration: float | None,
    scale: float | None,
    target_ber: float | None,
    seed: int | None,
    address: int | None,
    fault_id: str,
) -> None:
    """Inject a fault of the catalogue into a card, a port or a lane.

    It stays until `accelctl fault clear`, for as long as --for says, or until the chassis is
    powered off. Restarts of the daemon do not end it.
    """
    made = session.client.faults.inject(
        kind,
        subject,
        lanes=lanes,
        shape=shape or "",
        duration_s=duration,
        ramp_s=ramp,
        scale=scale,
        target_ber=target_ber,
        seed=seed,
        hbm_address=address,
        fault_id=fault_id,
    )
    view.result(made, _injected(made))


@command(cli, "clear")
@examples("accelctl fault clear 3f2a91", "accelctl fault clear --all")
@click.argument("faults", type=FAULT, nargs=-1, metavar="[FAULT...]")
@click.option("--all", "everything", is_flag=True, help="Every active fault.")
@printed
def clear(session: Session, view: View, faults: tuple[str, ...], everything: bool) -> None:
    """Clear faults: their causes go at once. What they have done stays done."""
    if everything == bool(faults):
        raise click.UsageError("name the faults to clear, or use --all")
    if everything:
        faults = tuple(short(fault.name) for fault in session.client.faults.list())
        if not faults:
            view.write(view.text([], lambda _: ["no faults"]))
            return

    def take(fault: str) -> dict[str, str]:
        session.client.faults.clear(fault)
        return {"name": fault_name(fault)}

    with each(faults) as work:
        view.results(work(take), lambda row: f"{short(row['name'])} cleared")


# ---- words --------------------------------------------------------------------------------------


def place_word(kind: Any) -> str:
    from accel.plain import word

    return word(kind, "place").lower()


def seconds_text(value: float) -> str:
    return render.time_us(value * 1e6) if value < 60 else render.time_s(value)


def scale_text(fault: Any) -> str:
    if not fault.lane_scales:
        return render.number(fault.scale, 3)
    low, high = min(fault.lane_scales), max(fault.lane_scales)
    few = render.number(low, 3)
    return few if low == high else f"{few} to {render.number(high, 3)}"


def causes_text(kind: Any) -> str:
    parts = [f"{cause.cause} {cause.amount:g}" for cause in kind.causes]
    return ", ".join([*parts, f"lanes {kind.crossing}"] if kind.crossing else parts)


def _shape_text(kind: Any) -> str:
    times = [
        (label, seconds_text(getattr(kind, field)))
        for field, label in (("rise_s", "over"), ("on_s", "there"), ("off_s", "away"))
        if kind.HasField(field)
    ]
    return " ".join([shape_word(kind), *(f"{label} {text}" for label, text in times)])


def _injected(fault: Any) -> str:
    lanes = lanes_text(fault)
    word = "lane" if len(fault.lanes) == 1 else "lanes"
    where = f"{short(fault.subject)} {word} {lanes}" if lanes else short(fault.subject)
    till = f", until {until(fault)}" if fault.HasField("end_time") else ""
    return f"{short(fault.name)}: {fault.kind} on {where}{till}"


def _describe(fault: Any) -> tuple[str, list[render.Field]]:
    return f"fault {short(fault.name)}", [
        ("kind", Cell(fault.kind, "warn")),
        ("on", short(fault.subject)),
        ("lanes", lanes_text(fault)),
        ("comes as", shape_word(fault)),
        ("ramp", render.optional(fault, "ramp_s", seconds_text)),
        ("since", render.local_time(fault.start_time)),
        ("until", render.local_time(fault.end_time) if fault.HasField("end_time") else ""),
        ("scale", scale_text(fault)),
        ("target BER", render.optional(fault, "target_ber", render.ber)),
        ("HBM address", render.optional(fault, "hbm_address", lambda v: f"0x{v:x}")),
        ("seed", str(fault.seed)),
    ]


def _describe_kind(kind: Any) -> tuple[str, list[render.Field]]:
    return short(kind.name), [
        ("what it is", kind.summary),
        ("acts on", place_word(kind)),
        ("comes as", _shape_text(kind)),
        ("causes", causes_text(kind)),
        ("seen here", kind.near_signature),
        ("seen at the far end", kind.far_signature),
        ("repair", kind.repair),
        ("takes --target-ber", "yes" if kind.takes_target_ber else "no"),
        ("source", kind.source),
    ]


def _find_kind(session: Session, wanted: str) -> Any:
    from difflib import get_close_matches

    kinds = {short(kind.name): kind for kind in session.client.faults.kinds()}
    if wanted in kinds:
        return kinds[wanted]
    near = get_close_matches(wanted, list(kinds), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "accelctl fault catalogue shows them"
    raise exits.Failed(f"there is no fault {wanted!r}; {hint}", exits.NOT_FOUND, "FAULT_NOT_FOUND")


def _kind() -> Any:
    from accel.v1 import fault_pb2

    return fault_pb2.Fault.DESCRIPTOR


def _kind_of_kind() -> Any:
    from accel.v1 import fault_pb2

    return fault_pb2.FaultKind.DESCRIPTOR
