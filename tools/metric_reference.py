"""Makes docs/reference/metrics.md from the field table: `metric_reference.py FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from acceld.fields.field import Field
from acceld.fields.table import DEFAULT, FIELDS, GROUPS, OPT_IN, Shape, series

SHAPE = Shape(cards=8, engines=4, lanes=8, workers=2, fitted=frozenset({"cooled laser"}))

HEAD = """\
# Metrics

Made from the field table by `make reference`; do not edit.

acceld serves them at `http://127.0.0.1:9437/metrics` in the text format of Prometheus, or as
OpenMetrics to a scraper that asks for it, compressed if it takes gzip.

- **Units** stand in the names: seconds, bytes, celsius, volts, watts, amperes, ratios; optical
  power in dBm and optical margins in dB, as every data sheet has them.
- **Absent is absent.** What is not fitted, or has no meaning now, has no sample. A dark lane
  reports the floor of its register, -40 dBm, and `accel_lane_los` 1; its margin and error ratios
  are absent.
- **Counters** end in `_total` and never step back, whatever restarts: what a chassis has counted is
  kept over its power-off. A worker that is killed takes along what was counted since it wrote
  last, a second at most. Only `accel_daemon_scrapes_total` counts one life of the daemon.
- **Labels** of places are `card`, `oe`, `lane`, as in `card0/oe1/lane3`. No label is named `job` or
  `instance`: those are the scraper's.
- **Thresholds** come once for each engine or card, one sample for each `level`: `high_alarm`,
  `high_warning`, `low_warning`, `low_alarm`. Join them with `on (instance, card, oe) group_left`.
- **API** is the message of `accel.v1` and its field with the same value, in the unit of its own
  name; `accelctl ... -o json` has it under that key.
- **Series** is how many a host with 8 cards of 4 engines of 8 lanes has, well and quiet. Where it
  is 0, there are samples only when something is the matter, or when such a part is fitted.
"""

GROUPS_HEAD = """\
## Groups

A scrape has all groups but those marked opt-in. `/metrics?collect[]=link&collect[]=lane` gives just
the groups that it names, opt-in ones too, and `?exclude[]=port` all but those, as with
node_exporter. `acceld serve --metrics-collect lane_fec` adds opt-in groups to every scrape that
names none. `accelctl metrics budget` counts the series of a host.
"""


def page() -> str:
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    yield GROUPS_HEAD
    yield "| group | holds | series |"
    yield "|---|---|---:|"
    for group, text in GROUPS.items():
        opt_in = " (opt-in)" if group in OPT_IN else ""
        yield f"| [`{group}`](#{group}){opt_in} | {text} | {_count(group)} |"
    yield f"| | **by default** | **{sum(map(_count, DEFAULT))}** |\n"
    for group in GROUPS:
        yield f"## {group}\n"
        yield "| family | kind | labels | API | series | meaning |"
        yield "|---|---|---|---|---:|---|"
        for field in FIELDS:
            if field.group == group:
                yield _row(field)
        yield ""


def _row(field: Field) -> str:
    labels = ", ".join(f"`{name}`" for name in field.labels)
    api = f"`{field.message}.{field.key}`" if field.message else ""
    fitted = f" Only with: {field.fitted}." if field.fitted else ""
    cells = (
        f"`{field.metric}`", field.kind, labels, api, str(series(field, SHAPE)),
        field.text + fitted,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _count(group: str) -> int:
    return sum(series(field, SHAPE) for field in FIELDS if field.group == group)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
