"""accelctl health: what is well, what is not, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rich_click as click

from accel.address import short
from accel.errors import AccelError, Unreachable
from accelctl import exits, render
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import HEALTH_OBJECT
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View, plain

QUIET = ("HEALTHY", "ABSENT")
UNWELL = ("WARNING", "CRITICAL")
CHECKED_CAUSES = 1  # of a check's one line; more are counted


def state_word(health: Any) -> str:
    from accel.plain import word

    return word(health, "state")


def kind_word(health: Any) -> str:
    from accel.plain import word

    return word(health, "kind").lower()


def _why(health: Any) -> str:
    if health.reasons:
        return str(health.reasons[0].code)
    return f"see {short(health.cause)}" if health.cause else ""


COLUMNS = (
    Column("OBJECT", lambda h: short(h.name)),
    Column("KIND", kind_word),
    Column("STATE", lambda h: render.state(state_word(h))),
    Column("REASON", lambda h: Cell(_why(h), render.state(state_word(h)).style), spare=True),
    Column("USED", lambda h: _used(h), right=True, wide=True, spare=True),
    Column("MODE", lambda h: h.standing.mode, wide=True, spare=True),
    Column("POSSIBLE", lambda h: " ".join(h.capability.modes), wide=True, spare=True),
    Column("WHAT", lambda h: "; ".join(one.text for one in h.reasons), wraps=True, spare=True),
)


def _used(health: Any) -> str:
    """Lanes that carry data, of those that could."""
    if not health.HasField("standing"):
        return ""
    return f"{health.standing.lanes_used}/{health.capability.lanes_data}"


@click.group("health", cls=Noun)
def cli() -> None:
    """Health: what is well, what is not, why, and what to do."""


@command(cli, "show")
@examples("accelctl health show", "accelctl health show card0 --all -o wide")
@click.argument("object_", type=HEALTH_OBJECT, metavar="[OBJECT]", default="host")
@click.option("--all", "everything", is_flag=True, help="What is well and what is absent, too.")
@viewed
def show(session: Session, view: View, object_: str, everything: bool) -> None:
    """Show what is not well, each cause once, and what to do.

    OBJECT is host, daemon, worker0, card0, card0/oe1 (the engine with its link and lanes) or
    card0/oe1/lane3; the host unless told.
    """
    from accel.health import walk

    def fetch() -> list[Any]:
        tree = session.client.health.get(object_, with_parts=True)
        return [tree, *_shown(walk(tree), everything)]

    def lines(found: Sequence[Any]) -> list[str]:
        top, rows = found[0], found[1:]
        out = [_headline(view, top)]
        if rows:
            out += ["", *view.table(rows, COLUMNS)]
        return out + _to_do(top.causes)

    def data() -> list[Any]:
        return _without_parts(fetch()[1:])

    if session.human:
        view.listed(fetch, lines)
    else:
        view.rows(data, COLUMNS, kind=_kind)


def _shown(objects: Iterable[Any], everything: bool) -> list[Any]:
    """By default those that have a reason of their own to be told."""
    if everything:
        return list(objects)
    return [one for one in objects if one.reasons and state_word(one) not in QUIET]


def _without_parts(objects: Iterable[Any]) -> list[Any]:
    """Each as a row of its own."""
    rows = []
    for one in objects:
        row = type(one)()
        row.CopyFrom(one)
        row.ClearField("parts")
        row.ClearField("causes")
        rows.append(row)
    return rows


def _counts(reason: Any) -> bool:
    return state_word(reason) not in QUIET


def _headline(view: View, health: Any) -> str:
    state = render.state(state_word(health))
    painted = render.paint(state.text, state.style, view.session.colored)
    causes = [one for one in health.causes if _counts(one)]
    count = f": {len(causes)} cause{'s' * (len(causes) != 1)}" if causes else ""
    cause = f"; see {short(health.cause)}" if health.cause else ""
    return f"{render.clean(short(health.name))} is {painted}{count}{cause}"


def _to_do(causes: Iterable[Any]) -> list[str]:
    steps = [
        f"  {render.clean(short(one.object))}: {render.clean(one.next_action)}"
        for one in causes
        if state_word(one) in UNWELL and not one.next_action.startswith("none")
    ]
    return ["", "What to do:", *dict.fromkeys(steps)] if steps else []


# ---- check ---------------------------------------------------------------------------------------


@command(cli, "check")
@examples("accelctl health check", "accelctl health check card0 --warning-ok")
@click.argument("object_", type=HEALTH_OBJECT, metavar="[OBJECT]", default="host")
@click.option("--warning-ok", is_flag=True, help="A WARNING passes, too.")
@printed
def check(session: Session, view: View, object_: str, warning_ok: bool) -> int:
    """Say in one line whether all is well; made for scripts and for node-problem-detector.

    Exit code 0 when it is, also while links train; 1 when it is not; 5 when the daemon does not
    answer. OBJECT as for health show.
    """
    try:
        health = session.client.health.get(object_)
    except Unreachable as error:
        if error.reason == "CHASSIS_GONE":
            line = f"CRITICAL CHASSIS_GONE {object_}: {error.message}"
            return _answer(view, _without_hardware(object_, error), line)
        if session.human:
            view.write(f"UNKNOWN {object_}: no answer from the daemon\n")
        raise
    return _answer(view, verdict(health, warning_ok), sentence(health))


def passed(state: str, warning_ok: bool) -> bool:
    return state in ("HEALTHY", "TRAINING", "ABSENT") or (warning_ok and state == "WARNING")


def sentence(health: Any) -> str:
    """The state and its causes in one line, the code before the words: a reader may cut it."""
    causes = [one for one in health.causes if _counts(one)]
    name = render.clean(short(health.name))
    if not causes:
        cause = f": see {render.clean(short(health.cause))}" if health.cause else ""
        return f"{state_word(health)} {name}{cause}"
    told = [
        f"{one.code} {render.clean(short(one.object))}: {render.clean(one.text)}"
        for one in causes[:CHECKED_CAUSES]
    ]
    more = len(causes) - len(told)
    return f"{state_word(health)} {'; '.join(told)}{f' (and {more} more)' if more else ''}"


def verdict(health: Any, warning_ok: bool = False) -> dict[str, Any]:
    """The answer of a check, for programs."""
    return {
        "name": health.name,
        "state": state_word(health),
        "healthy": passed(state_word(health), warning_ok),
        "causes": plain(health).get("causes", []),
    }


def _without_hardware(object_: str, error: AccelError) -> dict[str, Any]:
    cause = {"code": error.reason, "state": "CRITICAL", "object": "host", "text": error.message}
    return {"name": object_, "state": "CRITICAL", "healthy": False, "causes": [cause]}


def _answer(view: View, told: dict[str, Any], line: str) -> int:
    view.write(view.single(told, lambda _: [line]))
    return exits.OK if told["healthy"] else exits.FALSE


def _kind() -> Any:
    from accel.v1 import health_pb2

    return health_pb2.Health.DESCRIPTOR
