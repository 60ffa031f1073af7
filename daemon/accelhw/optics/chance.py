"""Chance for many lanes at once, each with dice of its own: numbers by counter, not by sequence.

A draw is a hash of a key (seed, card, engine, lane, purpose) and of how many draws came before. So
what befalls one lane moves no other's dice, whoever shares its bank, and a million dice cost two
arrays. Uniforms have 53 bits; means below 1e-16 never hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SECOND = np.uint64(0xD1B54A32D192ED03)  # keeps the second uniform of a pair apart from the first
SMALL_MEAN = 20.0  # below it by inversion, above it by the normal expansion


def key(*words: object) -> int:
    """A key of 64 bits from what names the dice."""
    text = "/".join(str(word) for word in words)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def keys(names: Iterable[tuple[object, ...]]) -> Keys:
    return np.array([key(*name) for name in names], np.uint64)


def _mixed(z: Keys) -> Keys:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def derived(base: Keys, purpose: int) -> Keys:
    """Keys for another purpose of the same owners."""
    return _mixed(_mixed(base + _STEP) ^ np.uint64(key(purpose)))


def uniform(of: Keys, draw: ArrayLike) -> Floats:
    """In the open interval from 0 to 1. `draw` counts what was drawn with these keys before."""
    with np.errstate(over="ignore"):
        bits = _mixed(of + (np.asarray(draw, np.uint64) + np.uint64(1)) * _STEP)
    return np.asarray(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def normals(of: Keys, draw: ArrayLike) -> tuple[Floats, Floats]:
    """Two independent standard normal numbers a key (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(uniform(of, draw)))
    turn = 2.0 * np.pi * uniform(of ^ _SECOND, draw)
    return radius * np.cos(turn), radius * np.sin(turn)


def exponential(of: Keys, draw: ArrayLike) -> Floats:
    """With mean 1."""
    return np.asarray(-np.log(uniform(of, draw)))


def poisson(mean: ArrayLike, of: Keys, draw: ArrayLike) -> NDArray[np.int64]:
    """Poisson counts. Exact below a mean of 20; above, the quantile to within O(1/mean)."""
    lam = np.asarray(mean, np.float64)
    v = uniform(of, draw)
    tail = -np.expm1(-lam)  # P(X > 0)
    counts = np.zeros(lam.shape, np.int64)
    hit = v < tail
    few = np.flatnonzero(hit & (lam < SMALL_MEAN))
    if len(few):
        means = lam.flat[few]
        counts.flat[few] = _invert(
            v.flat[few], tail.flat[few], np.exp(-means), lambda k, left: means[left] / k
        )
    many = np.flatnonzero(lam >= SMALL_MEAN)
    if len(many):
        big = lam.flat[many]
        w = normals(*_picked(of, draw, many, lam.shape))[0]
        root = np.sqrt(big)
        quantile = big + root * w + 1.0 / 3.0 + w * w / 6.0 - (w / 36.0 + w**3 / 72.0) / root
        counts.flat[many] = np.maximum(np.floor(quantile), 0.0).astype(np.int64)
    return counts


def binomial(n: ArrayLike, p: ArrayLike, of: Keys, draw: ArrayLike) -> NDArray[np.int64]:
    """Successes among n (whole numbers). Exact where few are expected, as `poisson` else."""
    total, chance = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(p, np.float64))
    turned = chance > 0.5  # count the rarer outcome
    rare = np.where(turned, 1.0 - chance, chance)
    v = uniform(of, draw)
    log_none = total * np.log1p(-rare)
    tail = -np.expm1(log_none)
    counts = np.zeros(total.shape, np.int64)
    mean = total * rare
    few = np.flatnonzero((v < tail) & (mean < SMALL_MEAN))
    if len(few):
        left_over = total.flat[few]
        odds = rare.flat[few] / (1.0 - rare.flat[few])
        counts.flat[few] = _invert(
            v.flat[few],
            tail.flat[few],
            np.exp(log_none.flat[few]),
            lambda k, left: np.maximum(left_over[left] - k + 1, 0.0) / k * odds[left],
        )
    many = np.flatnonzero(mean >= SMALL_MEAN)
    if len(many):
        big, share = mean.flat[many], rare.flat[many]
        w = normals(*_picked(of, draw, many, total.shape))[0]
        skew = (1.0 - 2.0 * share) * (w * w - 1.0) / 6.0
        quantile = np.floor(big + np.sqrt(big * (1.0 - share)) * w + skew + 0.5)
        counts.flat[many] = np.clip(quantile, 0.0, total.flat[many]).astype(np.int64)
    return np.asarray(np.where(turned, total.astype(np.int64) - counts, counts))


def _picked(
    of: Keys, draw: ArrayLike, at: NDArray[np.intp], shape: tuple[int, ...]
) -> tuple[Keys, NDArray[np.uint64]]:
    draws = np.broadcast_to(np.asarray(draw, np.uint64), shape)
    return np.broadcast_to(of, shape).flat[at] ^ _SECOND, draws.flat[at]


def _invert(
    v: Floats, tail: Floats, none: Floats, step: Callable[[int, NDArray[np.intp]], Floats]
) -> NDArray[np.int64]:
    """The smallest k with P(X > k) <= v, from P(X > 0), P(X = 0) and P(X = k) / P(X = k-1)."""
    counts = np.zeros(len(v), np.int64)
    left = np.arange(len(v))
    tail, term, k = tail.copy(), none.copy(), 0
    while len(left):
        k += 1
        term[left] *= step(k, left)
        tail[left] -= term[left]
        counts[left] = k
        left = left[(v[left] < tail[left]) & (term[left] > 0.0)]
    return counts
