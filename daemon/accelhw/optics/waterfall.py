"""A margin scan's result: how errors grow with attenuation, and where they would reach a limit.

Received light x (as a share of what comes unattenuated) gives Q^2 = x^2 / (thermal + laser x^2):
thermal noise stays while the light goes, laser noise goes with it. Two figures fitted to what was
measured where errors are frequent tell what no scan has time to wait for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accelhw.optics import ber

ERRORS_MIN = 5  # fewer say too little of a point
COUNT_MAX = 400
BER_MAX = 0.1  # beyond it, errors are no measure of noise


@dataclass(frozen=True, slots=True)
class Point:
    attenuation_db: float
    bits: float
    errors: int

    @property
    def ber(self) -> float:
        return self.errors / self.bits if self.bits else 0.0


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Noise variances over the signal without attenuation."""

    thermal: float
    laser: float

    def q(self, attenuation_db: float) -> float:
        x2 = 10.0 ** (-attenuation_db / 5.0)
        return math.sqrt(x2 / (self.thermal + self.laser * x2))

    def attenuation_db(self, q: float) -> float:
        """Where Q falls to this; minus infinity where laser noise never lets it come so far."""
        rest = 1.0 / (q * q) - self.laser
        if rest <= 0.0:
            return -math.inf
        return -5.0 * math.log10(self.thermal / rest)


def fit(points: Sequence[Point], modulation: str) -> Waterfall | None:
    """Least squares over 1/Q^2, each point weighed by its count. None without a useful point."""
    rows = []
    for point in points:
        if point.errors < ERRORS_MIN or not 0.0 < point.ber < BER_MAX:
            continue
        q = ber.q_of_ber(point.ber, modulation)
        # A relative error of 1/sqrt(n) in the count is about 1/(q sqrt(n)) in Q.
        # Beyond some hundreds the model is less sure than the count.
        weight = q**8 * min(point.errors, COUNT_MAX)
        rows.append((10.0 ** (point.attenuation_db / 5.0), 1.0 / (q * q), weight))
    if not rows:
        return None
    s = sum(w for _, _, w in rows)
    su = sum(w * u for u, _, w in rows)
    suu = sum(w * u * u for u, _, w in rows)
    sy = sum(w * y for _, y, w in rows)
    suy = sum(w * u * y for u, y, w in rows)
    determinant = s * suu - su * su
    if len(rows) > 1 and determinant > 0.0:
        thermal = (s * suy - su * sy) / determinant
        laser = (sy - thermal * su) / s
        if thermal > 0.0 and laser >= 0.0:
            return Waterfall(thermal, laser)
    return Waterfall(suy / suu, 0.0)
