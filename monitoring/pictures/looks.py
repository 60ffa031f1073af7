"""How a panel says that its values look: units, names and colours, defaults and overrides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pictures.units import written

COLOURS = {
    "green": "#37872d", "red": "#c4162a", "orange": "#e0752d", "blue": "#1f60c4",
    "purple": "#8f3bb8", "text": "#3b4045", "transparent": "#00000000",
}  # fmt: skip


def options_of(panel: Mapping[str, Any], column: str = "") -> dict[str, Any]:
    """Defaults of the fields, with what is overridden for that one."""
    found = dict(panel["fieldConfig"]["defaults"])
    for override in panel["fieldConfig"]["overrides"]:
        matcher = override["matcher"]
        wanted = matcher["options"]
        if wanted == column or (
            matcher["id"] == "byRegexp" and column and re.search(wanted.strip("/"), column)
        ):
            found.update({look["id"]: look.get("value") for look in override["properties"]})
    return found


def said(value: float, options: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a value and its colour, by mappings and thresholds."""
    for mapping in options.get("mappings", ()):
        if found := mapping["options"].get(f"{value:g}"):
            return found["text"], COLOURS[found["color"]]
    colour = "text"
    for step in options.get("thresholds", {}).get("steps", ()):
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return written(value, options["unit"]), COLOURS[colour]


def clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S")
