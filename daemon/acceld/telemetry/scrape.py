"""One scrape: the field table over one snapshot, so that its figures agree with each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import perf_counter

from acceld.fields.table import DEFAULT, FIELDS
from acceld.host.snapshot import HostSnapshot, Scrapes
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


class Scraper:
    """Scrapes on request, from any thread, and knows what that has cost."""

    def __init__(self, snapshot: Callable[[], HostSnapshot]) -> None:
        self._snapshot = snapshot
        self._lock = threading.Lock()
        self.scrapes = Scrapes()

    def __call__(self, groups: Collection[str], form: Format) -> Page:
        began_s = perf_counter()
        page = scrape(self._snapshot(), groups, form)
        took_s = perf_counter() - began_s
        with self._lock:
            self.scrapes = Scrapes(self.scrapes.count + 1, took_s, page.samples)
        return page
