"""The statistical eye of a lane: what a sampling scope would pile up behind the receiver.

Levels are equally spaced between 0 and 1. An edge between two symbols is an error function, so a
little of each neighbour is left in the middle of a symbol; noise is Gaussian and alike on all
levels; jitter is random (Gaussian) plus deterministic (two spikes). The noise is chosen such that
the middle of the eye errs exactly as the lane's Q says: the eye spreads the chain's figure over
time and amplitude, and adds none of its own.

An eye's BER at a time and a threshold is the chance that one of the two levels beside the
threshold is taken for the other's side; in the middle that is the Gaussian tail at Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

EDGE_UI = 0.22  # sigma of the edge's error function: 20 to 80 % in 0.37 UI
JITTER_RMS_UI = 0.01  # random; these three are choices of this emulator
JITTER_PP_UI = 0.05  # deterministic, between its two spikes

BER_LEVELS = (1e-6, 1e-12)  # where height and width are told
COLUMNS_PER_UI = 96
SHOWN_UI = 2.0  # width of the density
ROWS = 128
LOW, HIGH = -0.3, 1.3  # of the density's amplitude axis
FLOOR_LOG10 = -15.0  # density below this is shown as nothing

_STEP_UI = 1.0 / 256.0  # of the bathtub's own, finer grid
_STEPS_PER_EYE = 64
_MIDDLE = _STEPS_PER_EYE // 2
_Q_MAX = 30.0
_GRID = np.linspace(-38.0, 38.0, 38001)
_LOG_TAIL = np.log(np.array([0.5 * math.erfc(x / math.sqrt(2.0)) for x in _GRID.tolist()]))


def tail(x: ArrayLike) -> Floats:
    """P(N(0,1) > x) within 1e-6 relative, fast for large arrays."""
    return np.asarray(np.exp(np.interp(np.asarray(x, float), _GRID, _LOG_TAIL)))


def tail_inverse(p: float) -> float:
    """x with that tail."""
    return float(-np.interp(-math.log(max(p, 1e-310)), -_LOG_TAIL, -_GRID))


@dataclass(frozen=True, slots=True)
class Opening:
    """One eye between two neighbouring levels. Heights are shares of the outer amplitude."""

    threshold: float
    ber: float  # in its middle
    heights: tuple[float, ...]  # at BER_LEVELS; 0: closed
    widths_ui: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Eye:
    levels: tuple[float, ...]
    sigma: float  # noise, as a share of the outer amplitude
    openings: tuple[Opening, ...]  # from the lowest
    time_ui: tuple[float, ...]  # of the bathtub, -0.5 to 0.5
    bathtub_log10: tuple[float, ...]  # worst of the eyes, each at its own threshold
    amplitude: tuple[float, ...]  # of the vertical bathtub, at the middle of the symbol
    vertical_log10: tuple[float, ...]
    density: NDArray[np.uint8]  # rows from the top, columns over SHOWN_UI; 0 nothing, 255 the most


def statistical_eye(q: float, modulation: str) -> Eye:
    """The eye of a lane with this Q. Raises ValueError on a Q that is none."""
    if not q > 0.0:
        raise ValueError(f"{q=} makes no eye")
    count = 4 if modulation == "pam4" else 2
    levels = np.arange(count) / (count - 1.0)
    times = np.arange(-0.75, 0.75 + _STEP_UI / 2, _STEP_UI)
    kernel = _jitter(_STEP_UI)
    middles = _middles(levels, times)
    sigma = _sigma(min(q, _Q_MAX), levels, middles, times, kernel)
    near = middles[..., _near_middle(times, kernel)]
    openings, tubs, amplitude, vertical = [], [], [], []
    for k in range(count - 1):
        grid = np.linspace(levels[k], levels[k + 1], _STEPS_PER_EYE + 1)
        over_time = _smeared(_errors(middles, k, grid[_MIDDLE : _MIDDLE + 1], sigma)[:, 0], kernel)
        up, down = _crossings(near, k, grid, sigma, kernel)
        openings.append(_opening(grid, up, down, times, over_time))
        tubs.append(over_time)
        fresh = slice(1 if k else 0, None)  # neighbours share a level
        amplitude.append(grid[fresh])
        vertical.append((up + down)[fresh] / 2.0)
    shown = np.abs(times) <= 0.5 + 1e-9
    worst = np.max(tubs, axis=0)
    return Eye(
        tuple(levels.tolist()),
        sigma,
        tuple(openings),
        tuple(times[shown].tolist()),
        tuple(_log10(worst)[shown].tolist()),
        tuple(np.concatenate(amplitude).tolist()),
        tuple(_log10(np.concatenate(vertical)).tolist()),
        _density(levels, sigma),
    )


def _log10(p: Floats) -> Floats:
    return np.asarray(np.log10(np.maximum(p, 1e-30)))


def _jitter(step_ui: float) -> Floats:
    """Chances of a shift by so many steps: two Gaussians, integrated over each step."""
    reach = round((8.0 * JITTER_RMS_UI + JITTER_PP_UI / 2.0) / step_ui) + 1
    edges = np.asarray((np.arange(-reach, reach + 2) - 0.5) * step_ui, float)
    whole = np.zeros(2 * reach + 1)
    for spike in (-JITTER_PP_UI / 2.0, JITTER_PP_UI / 2.0):
        # From the side of each tail, or the difference of two ones would eat it.
        up = tail((edges - spike) / JITTER_RMS_UI)
        down = tail(-(edges - spike) / JITTER_RMS_UI)
        mass = np.where(edges[:-1] > spike, up[:-1] - up[1:], down[1:] - down[:-1])
        whole += np.abs(mass) / 2.0
    return np.asarray(whole / whole.sum())


def _smeared(over_time: Floats, kernel: Floats) -> Floats:
    """Along the first axis; beyond the ends all is as at the ends."""
    reach = len(kernel) // 2
    padded = np.pad(over_time, (reach, reach), mode="edge")
    return np.convolve(padded, kernel[::-1], mode="valid")


def _middles(levels: Floats, times: Floats) -> Floats:
    """Noiseless amplitude by [symbol, neighbours, time]: 0 is the middle of the symbol."""
    after = 1.0 - tail((times - 0.5) / EDGE_UI)
    before = tail((times + 0.5) / EDGE_UI)
    now, last, following = np.meshgrid(levels, levels, levels, indexing="ij")
    shape = now[..., np.newaxis]
    wave = (
        shape
        + (following[..., np.newaxis] - shape) * after
        + (last[..., np.newaxis] - shape) * before
    )
    return np.asarray(wave.reshape(len(levels), -1, len(times)))


def _errors(middles: Floats, k: int, thresholds: Floats, sigma: float) -> Floats:
    """BER of eye k by [time, threshold], without jitter."""
    below = tail((thresholds - middles[k][..., np.newaxis]) / sigma).mean(axis=0)
    above = tail((middles[k + 1][..., np.newaxis] - thresholds) / sigma).mean(axis=0)
    return np.asarray((below + above) / 2.0)


def _near_middle(times: Floats, kernel: Floats) -> slice:
    middle, reach = len(times) // 2, len(kernel) // 2
    return slice(middle - reach, middle + reach + 1)


def _sigma(q: float, levels: Floats, middles: Floats, times: Floats, kernel: Floats) -> float:
    """The noise with which the eyes, taken together, err in their middles as Q says."""
    near = middles[..., _near_middle(times, kernel)]
    thresholds = (levels[:-1] + levels[1:]) / 2.0

    def q_with(inverse_sigma: float) -> float:
        errors = [
            kernel @ _errors(near, k, thresholds[k : k + 1], 1.0 / inverse_sigma)[:, 0]
            for k in range(len(thresholds))
        ]
        return tail_inverse(float(np.mean(errors)))

    gap = float(levels[1] - levels[0])
    u0, u1 = 2.0 * q / gap, 2.2 * q / gap
    y0, y1 = q_with(u0), q_with(u1)
    for _ in range(30):
        if y1 == y0 or abs(y1 - q) < 1e-9:
            break
        u0, u1 = u1, max(u1 + (q - y1) * (u1 - u0) / (y1 - y0), 1e-3)
        y0, y1 = y1, q_with(u1)
    return 1.0 / u1


def _crossings(
    near: Floats, k: int, grid: Floats, sigma: float, kernel: Floats
) -> tuple[Floats, Floats]:
    """Around the middle: chances that level k lies above each threshold, k+1 below it."""
    up = kernel @ tail((grid - near[k][..., np.newaxis]) / sigma).mean(axis=0)
    down = kernel @ tail((near[k + 1][..., np.newaxis] - grid) / sigma).mean(axis=0)
    return np.asarray(up), np.asarray(down)


def _opening(grid: Floats, up: Floats, down: Floats, times: Floats, over_time: Floats) -> Opening:
    heights, widths = [], []
    for level in np.log10(BER_LEVELS).tolist():
        # The stretch of thresholds where either level errs more seldom than that.
        low = _crossing(grid, _log10(up), level)
        high = -_crossing(-grid[::-1], _log10(down)[::-1], level)
        heights.append(max(high - low, 0.0))
        widths.append(_width(times, _log10(over_time), level))
    middle = float(over_time[len(times) // 2])
    return Opening(float(grid[_MIDDLE]), middle, tuple(heights), tuple(widths))


def _crossing(x: Floats, falling: Floats, level: float) -> float:
    """Where a falling curve first passes a level; the end if it never does."""
    under = np.flatnonzero(falling <= level)
    if not len(under):
        return float(x[-1])
    i = int(under[0])
    if i == 0:
        return float(x[0])
    share = (falling[i - 1] - level) / (falling[i - 1] - falling[i])
    return float(x[i - 1] + share * (x[i] - x[i - 1]))


def _width(times: Floats, curve: Floats, level: float) -> float:
    """Of the stretch around the middle that lies below the level."""
    middle = len(times) // 2
    if curve[middle] > level:
        return 0.0
    right = _crossing(-times[middle:][::-1], curve[middle:][::-1], level)
    left = _crossing(times[: middle + 1], curve[: middle + 1], level)
    return float(min(-right, 0.5) - max(left, -0.5))


def _density(levels: Floats, sigma: float) -> NDArray[np.uint8]:
    """How often the waveform passes each cell, on a logarithmic scale of 255 steps."""
    times = (np.arange(COLUMNS_PER_UI) + 0.5) / COLUMNS_PER_UI - 0.5
    waves = _middles(levels, times).reshape(-1, COLUMNS_PER_UI)
    # Noise is laid over a finer comb of rows, then rows are summed: a thin line stays thin.
    fine = ROWS * 4
    pitch = (HIGH - LOW) / fine
    place = (waves - LOW) / pitch - 0.5
    lower = np.floor(place).astype(int)
    share = place - lower
    comb = np.zeros((fine, COLUMNS_PER_UI))
    columns = np.broadcast_to(np.arange(COLUMNS_PER_UI), waves.shape)
    np.add.at(comb, (lower, columns), (1.0 - share) / len(waves))
    np.add.at(comb, (lower + 1, columns), share / len(waves))
    rows = np.arange(fine)
    apart = (rows[:, np.newaxis] - rows) * pitch
    # A cell is never thinner than a fine row, or large Q would leave dots.
    spread = math.hypot(sigma, pitch)
    noise = np.exp(-0.5 * (apart / spread) ** 2) * pitch / (spread * math.sqrt(2.0 * math.pi))
    cells = (noise @ comb).reshape(ROWS, 4, COLUMNS_PER_UI).sum(axis=1)
    kernel = _jitter(1.0 / COLUMNS_PER_UI)
    reach = len(kernel) // 2
    wrapped = np.concatenate((cells[:, -reach:], cells, cells[:, :reach]), axis=1)
    smeared = np.stack([np.convolve(row, kernel[::-1], mode="valid") for row in wrapped])
    shown = np.roll(np.tile(smeared, (1, round(SHOWN_UI))), COLUMNS_PER_UI // 2, axis=1)[::-1]
    with np.errstate(divide="ignore"):
        log = np.log10(shown / shown.max())
    steps = np.ceil(255.0 * (1.0 - log / FLOOR_LOG10))
    return np.asarray(np.clip(steps, 0, 255), np.uint8)
