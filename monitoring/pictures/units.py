"""Values as Grafana writes them: a number with the unit of its panel."""

from __future__ import annotations

import math

THOUSANDS = ("", " K", " M", " G", " T", " P")
SMALL = ("", " m", " µ", " n", " p")
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
PLAIN = {"dB": " dB", "dBm": " dBm", "celsius": " °C", "volt": " V", "watt": " W", "amp": " A"}
TINY = 1e-4  # below it, digits are not worth their zeros
PREFIXED = {"watt", "amp", "volt"}  # small ones get a milli


def written(value: float, unit: str) -> str:
    """With three significant figures or so."""
    if not math.isfinite(value):
        return "none"
    match unit:
        case "percentunit":
            return f"{_short(value * 100)} %"
        case "sci":
            return f"{value:.2e}"
        case "bytes" | "binBps":
            return _binary(value) + ("/s" if unit == "binBps" else "")
        case "bps":
            return _scaled(value, THOUSANDS) + "b/s"
        case "cps":
            return f"{_scaled(value, THOUSANDS)} c/s"
        case "s":
            return _duration(value)
        case "short":
            return _scaled(value, THOUSANDS)
        case _ if unit in PLAIN:
            if unit in PREFIXED and 0 < abs(value) < 1:
                return _scaled(value, SMALL, 1e-3) + PLAIN[unit].strip()
            return f"{_short(value)}{PLAIN[unit]}"
    return _short(value)


def _short(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) < TINY:
        return f"{value:.1g}"
    text = f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, names: tuple[str, ...], step: float = 1e3) -> str:
    """With the largest of the names, each a step from the last, that leaves at least 1."""
    power = 0
    while power + 1 < len(names) and (
        abs(value) >= step ** (power + 1) if step > 1 else 0 < abs(value) < step**power
    ):
        power += 1
    return _short(value / step**power) + names[power]


def _binary(value: float) -> str:
    power = 0
    while abs(value) >= 1024 and power + 1 < len(BINARY):
        value /= 1024
        power += 1
    return f"{_short(value)} {BINARY[power]}"


def _duration(value: float) -> str:
    if value == 0:
        return "0 s"
    if abs(value) < 1:
        return _scaled(value, SMALL, 1e-3) + ("s" if abs(value) < 1 else " s")
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(value) >= size:
            return f"{_short(value / size)} {name}"
    return f"{_short(value)} s"
