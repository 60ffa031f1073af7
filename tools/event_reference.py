"""Makes the journal's catalogue and docs/reference/events.md from the table of event kinds:
`event_reference.py CATALOGUE PAGE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from acceld.host.eventkinds import COLLAPSING, KINDS, NAMESPACE, EventKind

CATALOGUE_HEAD = """\
# Texts for acceld's entries in the journal, shown by journalctl -x. Made from the table of event
# kinds by `make reference`; do not edit. Installed as /usr/lib/systemd/catalog/accel.catalog, then
# `journalctl --update-catalog`.
"""
# journalctl writes the name of a field that an entry lacks: only those that all have are woven in.
FIELDS = """
Where they are known, ACCEL_REASON says why, ACCEL_CAUSE which object is to blame, and ACCEL_PEER
who is at the far end: journalctl -o verbose ACCEL_OBJECT=@ACCEL_OBJECT@
"""
PAGE_HEAD = f"""\
# Events

Made from the table of event kinds by `make reference`; do not edit.

`accelctl event list` and `accelctl event follow` show them, `EventService` hands them out, and
under systemd each is an entry of the journal with fields of its own; [health.md](../health.md) says
how to use them. An event has a revision, a severity, a kind, the object that it happened to, and,
where they are known, a reason, the object to blame, the far end, and what to do.

Kinds marked with * collapse: a repeat with the same object, reason and severity within a minute is
no new row; the row gets a new revision, the time of the repeat and a higher count, for ten minutes
at most. Followers see it again.

The message id is the kind's `MESSAGE_ID` in the journal: a UUID of version 5 below `{NAMESPACE}`.

| kind | what happened | what to do | MESSAGE_ID |
|---|---|---|---|
"""


def catalogue() -> str:
    return CATALOGUE_HEAD + "".join(map(_entry, KINDS.values()))


def _entry(kind: EventKind) -> str:
    action = "What to do: @ACCEL_ACTION@" if kind.action else "Nothing is to be done."
    subject = kind.meaning.rstrip(".")
    return (
        f"\n-- {kind.message_id}\n"
        f"Subject: @ACCEL_OBJECT@: {subject[0].lower()}{subject[1:]}\n"
        "Defined-By: acceld\n"
        "Documentation: file:///usr/share/doc/acceld/README.md\n\n"
        f"{kind.meaning}\n\n{action}\n{FIELDS}"
    )


def page() -> str:
    return PAGE_HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    for kind in sorted(KINDS.values(), key=lambda kind: kind.kind):
        star = " *" if kind.kind in COLLAPSING else ""
        action = kind.action.replace("{object}", "OBJECT")
        yield f"| `{kind.kind}`{star} | {kind.meaning} | {action} | `{kind.message_id}` |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(catalogue())
    Path(sys.argv[2]).write_text(page())
