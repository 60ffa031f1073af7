"""How sure a count of errors makes one of a bit error ratio: exact Poisson bounds.

With k errors in N bits, the BER lies below gamma(k+1) / N at a confidence c, where gamma(a) is the
c-quantile of a gamma distribution of shape a (half a chi-square quantile of 2a degrees).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

from accelhw.model.diag import Verdict

EXACT_SHAPE_MAX = 1e5  # beyond it an expansion is as good as a double


def gamma_p(a: float, x: float) -> float:
    """Regularised lower incomplete gamma P(a, x), a > 0."""
    if x <= 0.0:
        return 0.0
    return _series(a, x) if x < a + 1.0 else 1.0 - _fraction(a, x)


def gamma_q(a: float, x: float) -> float:
    """1 - P(a, x), without its loss of digits in the tail."""
    if x <= 0.0:
        return 1.0
    return 1.0 - _series(a, x) if x < a + 1.0 else _fraction(a, x)


def _front(a: float, x: float) -> float:
    """x^a e^-x / Gamma(a)."""
    return math.exp(a * math.log(x) - x - math.lgamma(a))


def _series(a: float, x: float) -> float:
    term = total = 1.0 / a
    n = a
    while abs(term) > abs(total) * 1e-17:
        n += 1.0
        term *= x / n
        total += term
    return total * _front(a, x)


def _fraction(a: float, x: float) -> float:
    """Lentz's continued fraction for the upper tail."""
    tiny = 1e-300
    b = x + 1.0 - a
    c = 1.0 / tiny
    d = 1.0 / b
    h = d
    for i in range(1, 100_000):
        factor = -i * (i - a)
        b += 2.0
        d = 1.0 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        step = d * c
        h *= step
        if abs(step - 1.0) < 1e-16:
            break
    return h * _front(a, x)


@cache
def normal_quantile(p: float) -> float:
    """z with P(N(0,1) < z) = p. Raises ValueError unless 0 < p < 1."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"{p=}")
    low, high = -40.0, 40.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        if 0.5 * math.erfc(-middle / math.sqrt(2.0)) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@lru_cache(4096)
def gamma_quantile(p: float, a: float) -> float:
    """x with P(a, x) = p, to double precision. Raises ValueError unless 0 < p < 1 and a > 0."""
    if not 0.0 < p < 1.0 or a <= 0.0:
        raise ValueError(f"{p=} {a=}")
    z = normal_quantile(p)
    if a > EXACT_SHAPE_MAX:
        # Cornish and Fisher: the next term is below 1e-10 of the whole.
        root = math.sqrt(a)
        return a + z * root + (z * z - 1.0) / 3.0 + z * (z * z - 7.0) / (36.0 * root)
    if a == 1.0:
        return -math.log1p(-p)
    # Wilson and Hilferty's cube is near; Newton, kept inside a shrinking bracket, ends it.
    cube = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * math.sqrt(a))
    x = a * cube**3 if cube > 0.0 else a * p
    low, high = 0.0, math.inf
    for _ in range(200):
        excess = gamma_p(a, x) - p if p < 0.5 else (1.0 - p) - gamma_q(a, x)
        if excess < 0.0:
            low = x
        else:
            high = x
        slope = _front(a, x) / x
        moved = x - excess / slope if slope > 0.0 else low
        if not low < moved < high:
            moved = 0.5 * (low + high) if high < math.inf else 2.0 * x
        if abs(moved - x) <= 1e-15 * x:
            return moved
        x = moved
    return x


# ---- what a tester asks --------------------------------------------------------------------------


def bits_needed(ber: float, confidence: float, errors: int = 0) -> float:
    """Bits to check, with no more than so many errors, to prove a BER no worse than `ber`."""
    if not 0.0 < ber < 1.0:
        raise ValueError(f"{ber=} is no error ratio")
    return gamma_quantile(confidence, errors + 1.0) / ber


def upper_bound(errors: int, bits: float, confidence: float) -> float:
    """The BER is below this, at this confidence; 1 when nothing was checked."""
    if bits <= 0.0:
        return 1.0
    return min(gamma_quantile(confidence, errors + 1.0) / bits, 1.0)


def lower_bound(errors: int, bits: float, confidence: float) -> float:
    """The BER is above this, at this confidence; 0 without an error."""
    if errors == 0 or bits <= 0.0:
        return 0.0
    return min(gamma_quantile(1.0 - confidence, float(errors)) / bits, 1.0)


def judge(errors: int, bits: float, ber: float, confidence: float) -> Verdict:
    """Whether these errors in these bits prove or refute a BER no worse than `ber`."""
    if upper_bound(errors, bits, confidence) <= ber:
        return Verdict.PASSED
    if lower_bound(errors, bits, confidence) > ber:
        return Verdict.FAILED
    return Verdict.OPEN
