"""Makes docs/reference/health.md from the table of reasons: `health_reference.py FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from acceld.health.reasons import REASONS
from acceld.health.report import Kind

HEAD = """\
# Reasons of health

Made from the table of reasons by `make reference`; do not edit. [health.md](../health.md) says how
they come about. An object may be put into the states that stand beside a reason: TRAINING while it
has its time, WARNING at a warning level, CRITICAL at an alarm level.

"""
TITLES = {
    Kind.HOST: "Host",
    Kind.DAEMON: "Daemon",
    Kind.WORKER: "Worker",
    Kind.CARD: "Card",
    Kind.LINK: "Link",
    Kind.LANE: "Lane; of the engine, where most of its lanes have the same",
}


def page() -> str:
    return HEAD + "\n".join("".join(_section(kind, title)) for kind, title in TITLES.items())


def _section(kind: Kind, title: str) -> Iterator[str]:
    yield f"## {title}\n\n| reason | state | what it means | what to do |\n|---|---|---|---|\n"
    for one in REASONS.values():
        if kind in one.kinds:
            states = ", ".join(state.name for state in one.states)
            action = one.next_action
            for name in ("object", "card", "port", "worker", "interface"):
                action = action.replace(f"{{{name}}}", name.upper())
            yield f"| `{one.code}` | {states} | {one.meaning} | {action} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
