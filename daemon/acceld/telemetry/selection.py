"""Which groups of families a scrape has, and in which format: what the scraper asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qs

from acceld.fields.table import DEFAULT, GROUPS
from acceld.telemetry.exposition import Format
from accelhw.model.ids import nearest


class UnknownGroup(ValueError):
    """The message names the group and what there is."""


def known(groups: Collection[str]) -> frozenset[str]:
    """These groups. Raises UnknownGroup."""
    for group in groups:
        if group not in GROUPS:
            near = nearest(group, GROUPS)
            remedy = f"did you mean {near}?" if near else f"there is {', '.join(GROUPS)}"
            raise UnknownGroup(f"no group of metrics {group!r}; {remedy}")
    return frozenset(groups)


def chosen(query: str, default: frozenset[str] = DEFAULT) -> frozenset[str]:
    """From `collect[]=link&exclude[]=port`: just those named, or all but those; else the default.

    Raises UnknownGroup, as for a query that has both.
    """
    asked = parse_qs(query)
    collect, exclude = (
        [*asked.get(f"{word}[]", ()), *asked.get(word, ())] for word in ("collect", "exclude")
    )
    if collect and exclude:
        raise UnknownGroup("collect[] and exclude[] say two things; give one of them")
    if collect:
        return known(collect)
    return default - known(exclude)


def preferred(accept: str) -> Format:
    """From an Accept header. OpenMetrics only for who names it; all else reads text."""
    best, format_ = 0.0, Format.TEXT
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.lower().split(";"))
        found = {
            "application/openmetrics-text": Format.OPENMETRICS,
            "text/plain": Format.TEXT,
            "*/*": Format.TEXT,
        }.get(media)
        weight = _weight(parameters)
        if found is not None and weight > best and _can(found, parameters):
            best, format_ = weight, found
    return format_


def takes_gzip(accept_encoding: str) -> bool:
    for entry in accept_encoding.lower().split(","):
        coding, *parameters = (part.strip() for part in entry.split(";"))
        if coding == "gzip":
            return _weight(parameters) > 0.0
    return False


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _can(form: Format, parameters: list[str]) -> bool:
    """Whether we write the version that is asked for."""
    if form is not Format.OPENMETRICS:
        return True
    versions = [p.partition("=")[2].strip() for p in parameters if p.startswith("version")]
    return all(version in ("1.0.0", "0.0.1") for version in versions)
