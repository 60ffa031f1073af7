"""Makes docs/reference/faults.md from the catalogue: `fault_reference.py FILE`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.kinds import Effect, FaultKind, Where
from accelhw.fault.request import incoming_db
from accelhw.fault.shapes import ShapeKind
from accelhw.optics.causes import CAUSES, Causes

HEAD = """\
# Faults

Made from the catalogue by `make reference`; do not edit.

A fault changes causes, and nothing else; what is seen of it follows from the light. The command is
`accelctl fault inject KIND --on SUBJECT`; `accelctl fault catalogue` tells the same as this page.
Amounts add up when several faults hit one lane, and clearing one restores what was there without
it.
"""
PLACES = {
    Where.PORT: "Of a port: all its lanes, unless `--lane` names some",
    Where.LANE: "Of a lane: the first, unless `--lane` names others",
    Where.CARD: "Of a card",
}
TIMES = {
    ShapeKind.STEP: "at once",
    ShapeKind.RAMP: "evenly, over {rise}",
    ShapeKind.EXP: "warming up, time constant {rise}",
    ShapeKind.PULSE: "once, for {on}",
    ShapeKind.ON_OFF: "at random: there {on}, away {off}, on average",
    ShapeKind.BURST: "there {on}, away {off}",
    ShapeKind.POISSON: "at random: for {on}, {off} apart on average",
}


def page() -> str:
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    for where, title in PLACES.items():
        yield f"## {title}\n"
        for kind in CATALOGUE.values():
            if kind.where is where:
                yield from _kind(kind)
    yield "## Causes\n"
    yield "| cause | of a | what it is |"
    yield "|---|---|---|"
    for name, per, text in _causes():
        yield f"| `{name}` | {per} | {text} |"


def _kind(kind: FaultKind) -> Iterator[str]:
    shape = kind.shape
    yield f"### {kind.id}\n"
    yield f"{kind.summary}\n"
    causes = [_cause(effect) for effect in kind.effects]
    causes += [f"then `{effect.cause}` {effect.after:g}" for effect in kind.effects if effect.after]
    causes += [f"lanes {kind.crossing}"] if kind.crossing else []
    yield f"- causes: {', '.join(causes)}"
    times = {"rise": _time(shape.rise_s), "on": _time(shape.on_s), "off": _time(shape.off_s)}
    yield f"- comes: {TIMES[shape.kind].format(**times)}"
    yield f"- seen here: {kind.near}"
    yield f"- seen at the far end: {kind.far}"
    yield f"- repair: {kind.repair}"
    if incoming_db(kind):
        yield "- takes `--target-ber`"
    if kind.needs_fibre:
        yield "- needs a fibre: a port without one refuses it"
    yield f"- source: {kind.source}\n"


def _cause(effect: Effect) -> str:
    text = f"`{effect.cause}` {effect.amount:g}{' of the supply' if effect.of_supply else ''}"
    others = [f"{amount:g} on lanes with FEC {fec}" for fec, amount in effect.by_fec]
    return f"{text} ({', '.join(others)})" if others else text


def _causes() -> Iterator[tuple[str, str, str]]:
    """Each cause with the comment behind it, which is where its unit is explained."""
    for match in re.finditer(r"^    (\w+): \w+  # (.+)$", inspect.getsource(Causes), re.M):
        yield match[1], CAUSES[match[1]], match[2]


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
