"""The rules of monitoring/ and the configuration of Alertmanager, as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

MONITORING = Path(__file__).resolve().parent.parent.parent / "monitoring"
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def rules_of(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


FILES = sorted((MONITORING / "alerts").glob("*.rules.yml"))
RULES = list(chain.from_iterable(map(rules_of, FILES)))
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"]: rule for rule in RULES if "record" in rule}
MANAGER = yaml.safe_load((MONITORING / "alertmanager.yml").read_text())
PROMETHEUS = yaml.safe_load((MONITORING / "prometheus.yml").read_text())


def seconds(duration: str | None) -> int:
    return int(duration[:-1]) * SECONDS[duration[-1]] if duration else 0


def parts(expr: promql.Expr) -> Iterator[promql.Expr]:
    """The expression with all that it is made of."""
    yield expr
    for name in ("expr", "lhs", "rhs", "vector_selector", "args", "param"):
        inner = getattr(expr, name, None)
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, promql.Expr):
                yield from parts(one)
