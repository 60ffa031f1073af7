"""What a port's registers read of its light: noise and steps of the monitors included.

Kept for all lanes of a bank, and taken anew, for many ports at once, only where light or noise
moved since: whoever shows many ports copies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelhw.optics import ber
from accelhw.optics.monitor import (
    BIAS_STEP_MA,
    TEMPERATURE_STEP_C,
    Monitors,
    power_reading_dbm,
    seen_dbm,
    stepped,
)
from accelhw.optics.receiver import Receivers
from accelhw.optics.transmitter import Transmitters

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ports = NDArray[np.intp]

Q_MIN = 1e-9  # below any that a lit lane has; keeps the logarithm finite


class Readings:
    """Arrays [port, lane]. What has no light behind it reads 0, and powers their floor."""

    def __init__(self, modulation: str, shape: tuple[int, int]) -> None:
        self._modulation = modulation
        self.tx_power_dbm: Floats = np.zeros(shape)
        self.rx_power_dbm: Floats = np.zeros(shape)
        self.tx_bias_ma: Floats = np.zeros(shape)
        self.margin_db: Floats = np.zeros(shape)
        self.snr_db: Floats = np.zeros(shape)
        self.pre_fec_ber: Floats = np.zeros(shape)
        self.laser_temp_c: Floats = np.zeros(shape)
        self._stale: Flags = np.ones(shape[0], bool)

    def expire(self, ports: Ports | slice) -> None:
        """Light, lasers or noise of these ports moved."""
        self._stale[ports] = True

    def refresh(
        self, tx: Transmitters, rx: Receivers, tx_monitor: Monitors, rx_monitor: Monitors,
        rx_error_db: Floats,
    ) -> None:  # fmt: skip
        """Read again what expired. `rx_error_db`: what faults add to the Rx power monitors."""
        at = np.flatnonzero(self._stale)
        if len(at) == 0:
            return
        self._stale[at] = False
        lit = rx.lit[at]
        self.tx_power_dbm[at] = power_reading_dbm(tx.power_dbm[at], tx_monitor.error_db[at])
        seen = seen_dbm(rx.power_dbm[at], rx_error_db[at])
        self.rx_power_dbm[at] = power_reading_dbm(seen, rx_monitor.error_db[at])
        self.tx_bias_ma[at] = stepped(tx.bias_ma[at], BIAS_STEP_MA)
        self.margin_db[at] = np.where(lit, rx.margin_db[at], 0.0)
        snr_db = ber.snr_db(np.maximum(rx.q[at], Q_MIN), self._modulation)
        self.snr_db[at] = np.where(lit, snr_db, 0.0)
        self.pre_fec_ber[at] = np.where(lit, rx.ber[at], 0.0)
        self.laser_temp_c[at] = stepped(tx.laser_c[at], TEMPERATURE_STEP_C)
