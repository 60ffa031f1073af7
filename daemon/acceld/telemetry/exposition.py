"""The Prometheus text format and OpenMetrics, written by ourselves.

prometheus_client needs 5.3 us a sample, most of it for labels that it sorts and escapes each time.
Here the labels of a thing are written once and shared by all its families: about 1 us.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from acceld.fields.field import Field, Labels

Samples = Iterable[tuple[Labels, int | float]]


class Format(Enum):
    """What a scraper may ask for, by the content type that answers it."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    @property
    def end(self) -> str:
        return "# EOF\n" if self is Format.OPENMETRICS else ""


def family(field: Field, samples: Samples, form: Format = Format.TEXT) -> list[str]:
    """The lines of a family, its head first; none when it has no sample."""
    name = field.metric
    lines = [
        f"{name}{{{at}}} {value!r}\n" if at else f"{name} {value!r}\n" for at, value in samples
    ]
    if lines:
        lines.insert(0, _head(field, form))
    return lines


def _head(field: Field, form: Format) -> str:
    name, kind = field.metric, field.kind
    if form is Format.OPENMETRICS:  # There a family is named without what its samples end with.
        name = name.removesuffix(
            "_total" if kind == "counter" else "_info" if kind == "info" else ""
        )
    elif kind == "info":
        kind = "gauge"
    return f"# HELP {name} {field.text}\n# TYPE {name} {kind}\n"
