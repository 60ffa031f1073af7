"""One scrape: the field table over one snapshot, so that its figures agree with each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from acceld.fields.table import DEFAULT, FIELDS
from acceld.host.snapshot import HostSnapshot
from acceld.telemetry.exposition import Format, family
from acceld.telemetry.subjects import World


@dataclass(frozen=True, slots=True)
class Page:
    """What a scraper is answered with."""

    text: str
    samples: int


def scrape(
    snapshot: HostSnapshot, groups: Collection[str] = DEFAULT, form: Format = Format.TEXT
) -> Page:
    world = World(snapshot)
    lines: list[str] = []
    families = 0
    for field in FIELDS:
        if field.group in groups:
            found = family(field, world.samples(field), form)
            families += bool(found)
            lines += found
    samples = len(lines) - families
    return Page("".join(lines) + form.end, samples)
