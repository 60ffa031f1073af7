"""How sure a count of errors makes us that a lane is better than a limit."""

from __future__ import annotations

import math

ENOUGH = 0.95
NORMAL_FROM = 400.0  # expected errors; above, the Poisson law is normal to three digits


def confidence(bits: float, errors: float, limit: float) -> float:
    """The chance that a lane just at the limit would have shown more errors than these.

    `errors` counts those seen in `bits`, `limit` is a bit error ratio.
    """
    expected = bits * limit
    seen = math.floor(errors)
    if expected <= 0.0:
        return 0.0
    if expected > NORMAL_FROM:
        distance = (expected - seen - 0.5) / math.sqrt(expected)
        return 0.5 * math.erfc(-distance / math.sqrt(2.0))
    if seen > expected + 10 * math.sqrt(expected) + 10:
        return 0.0
    term = total = math.exp(-expected)
    for count in range(1, seen + 1):
        term *= expected / count
        total += term
    return max(0.0, 1.0 - total)
