"""Data for programs: JSON, JSON lines, YAML, CSV, names. One function each, text out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Plain = dict[str, Any]
# What YAML reads as a text without quotes, and as nothing else.
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_YAML_WORDS = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf")
)


def to_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def to_jsonl(rows: Iterable[Plain]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def to_yaml(data: Any) -> str:
    return "\n".join(_yaml_lines(data)) + "\n"


def _yaml_lines(data: Any) -> list[str]:
    if isinstance(data, dict) and data:
        lines: list[str] = []
        for key, value in data.items():
            if isinstance(value, dict | list) and value:
                lines.append(f"{_yaml_scalar(key)}:")
                lines += ["  " + line for line in _yaml_lines(value)]
            else:
                lines.append(f"{_yaml_scalar(key)}: {_yaml_scalar(value)}")
        return lines
    if isinstance(data, list) and data:
        lines = []
        for item in data:
            first, *others = _yaml_lines(item)
            lines += [f"- {first}", *("  " + line for line in others)]
        return lines
    return [_yaml_scalar(data)]


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, str):
        if _BARE.fullmatch(value) and value.lower() not in _YAML_WORDS:
            return value
        return json.dumps(value, ensure_ascii=False)  # A JSON text is a YAML text.
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 readers want a dot before an exponent: 1e-12 would be a text to them.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value)


def flatten(row: Plain, prefix: str = "") -> Plain:
    """Nested keys dotted, lists joined: one flat row."""
    flat: Plain = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            simple = all(not isinstance(item, dict | list) for item in value)
            flat[prefix + key] = " ".join(map(str, value)) if simple else json.dumps(value)
        elif isinstance(value, bool):
            flat[prefix + key] = "true" if value else "false"
        else:
            flat[prefix + key] = value
    return flat


def to_csv(rows: Iterable[Plain], header: Sequence[str] = ()) -> str:
    """RFC 4180 but for the line end. Columns: those of the header, then what else comes."""
    flat = [_fold(flatten(row), header) for row in rows]
    names = list(dict.fromkeys([*header, *(key for row in flat for key in row)]))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _fold(row: Plain, header: Sequence[str]) -> Plain:
    """A free-form field (`detail`) is one column with JSON in it, not a column per key."""
    folded: Plain = {}
    for key, value in row.items():
        owner = key.partition(".")[0]
        if header and key not in header and owner in header:
            folded.setdefault(owner, {})[key.partition(".")[2]] = value
        else:
            folded[key] = value
    return {
        key: json.dumps(value) if isinstance(value, dict) else value
        for key, value in folded.items()
    }
