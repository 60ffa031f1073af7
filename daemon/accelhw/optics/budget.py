"""Light along a link: powers in dBm, losses in dB. Scalars and arrays alike.

Arithmetic of IEEE 802.3 optical link budgets: what leaves the transmitter as optical modulation
amplitude (OMA), minus what the path and the penalties take, against the receiver's sensitivity.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SPEED_OF_LIGHT_M_PER_S = 299_792_458.0


def milliwatts(power_dbm: ArrayLike) -> Floats:
    return np.asarray(10.0 ** (np.asarray(power_dbm, float) / 10.0))


def dbm(power_mw: ArrayLike) -> Floats:
    """Raises no error on darkness: 0 mW is -inf dBm."""
    with np.errstate(divide="ignore"):
        return np.asarray(10.0 * np.log10(np.asarray(power_mw, float)))


def oma_dbm(average_dbm: ArrayLike, extinction_ratio_db: ArrayLike) -> Floats:
    """Outer OMA of a signal of this average power and extinction ratio."""
    ratio = 10.0 ** (np.asarray(extinction_ratio_db, float) / 10.0)
    with np.errstate(divide="ignore"):
        swing = 10.0 * np.log10(2.0 * (ratio - 1.0) / (ratio + 1.0))
    return np.asarray(np.asarray(average_dbm, float) + swing)


def loss_db(
    length_m: float,
    fibre_db_per_km: float,
    connectors: int = 0,
    connector_db: float = 0.0,
    splices: int = 0,
    splice_db: float = 0.0,
    extra_db: float = 0.0,
) -> float:
    """End-to-end loss of a fibre with its mated connectors and splices."""
    return (
        length_m / 1000.0 * fibre_db_per_km
        + connectors * connector_db
        + splices * splice_db
        + extra_db
    )


def delay_ns(length_m: float, group_index: float) -> float:
    """One-way flight time."""
    return length_m * group_index / SPEED_OF_LIGHT_M_PER_S * 1e9


def margin_db(
    rx_average_dbm: ArrayLike,
    extinction_ratio_db: ArrayLike,
    penalty_db: ArrayLike,
    sensitivity_oma_dbm: float,
) -> Floats:
    """Light to spare: received OMA minus penalties (TDECQ) minus sensitivity, in optical dB."""
    received = oma_dbm(rx_average_dbm, extinction_ratio_db)
    return np.asarray(received - np.asarray(penalty_db, float) - sensitivity_oma_dbm)


def overload_penalty_db(rx_average_dbm: ArrayLike, overload_dbm: float) -> Floats:
    """Too much light: (excess dB) squared, a design choice of this emulator."""
    excess = np.maximum(np.asarray(rx_average_dbm, float) - overload_dbm, 0.0)
    return np.asarray(excess * excess)


def rin_q_floor(r_over_thermal: float, s_over_thermal: float, q_reference: float) -> float:
    """The Q that more light cannot exceed; infinite without laser noise."""
    if r_over_thermal == 0.0:
        return math.inf
    return q_reference * math.sqrt((1.0 + s_over_thermal + r_over_thermal) / r_over_thermal)
