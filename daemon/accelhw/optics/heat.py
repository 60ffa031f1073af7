"""The temperatures of cards: network module and HBM, from load, inlet air and air flow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accelhw.model.profile import Profile
from accelhw.optics import thermal
from accelhw.optics.causes import Causes

Floats = NDArray[np.float64]

HBM_REFRESH_C = 85.0  # above it HBM refreshes twice as often
HBM_THROTTLE_C = 95.0  # and above this it slows down
NOTICED_C = 0.05  # a change of case temperature that parts are computed anew for


class Heat:
    """Arrays over cards of one profile."""

    def __init__(self, profile: Profile, cards: int, causes: Causes) -> None:
        self._profile = profile
        self._causes = causes
        self.lit_lanes: NDArray[np.int64] = np.zeros(cards, np.int64)
        self.moved_bytes: Floats = np.zeros(cards)  # HBM bytes read and written, ever
        self._counted_bytes: Floats = np.zeros(cards)
        self.load_ratio: Floats = np.zeros(cards)
        self.optics_w: Floats = np.zeros(cards)
        self.hbm_w: Floats = np.zeros(cards)
        self._power()
        # A card that is found switched on is warm: as its lasers being off would leave it.
        self.case_c: Floats = self._case_final()
        self.hbm_c: Floats = self._hbm_final()
        self.noticed_c: Floats = self.case_c.copy()

    @property
    def power_w(self) -> Floats:
        return self.optics_w + self.hbm_w

    @property
    def supply_v(self) -> Floats:
        return np.asarray(self._profile.thermal.supply_v + self._causes.supply_error_v)

    def refresh_ratio(self, card: int) -> int:
        """How often HBM refreshes, over the normal rate."""
        return 2 if self.hbm_c[card] > HBM_REFRESH_C else 1

    def is_throttled(self, card: int) -> bool:
        return bool(self.hbm_c[card] > HBM_THROTTLE_C)

    def start_load(self, card: int, moved_bytes: float) -> None:
        """What was moved in an earlier life is no load of this one."""
        self.moved_bytes[card] = self._counted_bytes[card] = moved_bytes

    def step(self, elapsed_s: float) -> NDArray[np.intp]:
        """Go on by so much time. Cards whose case temperature moved enough to be noticed."""
        figures = self._profile.thermal
        moved = self.moved_bytes - self._counted_bytes
        self._counted_bytes[:] = self.moved_bytes
        # This host moves bytes a hundred times slower than the card would, so load is scaled.
        full = figures.full_load_gbyte_per_s * 1e9 * elapsed_s
        np.minimum(moved / full, 1.0, out=self.load_ratio)
        self._power()
        flow = self._airflow()
        case_tau = figures.case_tau_s / flow
        self.case_c[:] = thermal.relaxed_c(self.case_c, self._case_final(), elapsed_s, case_tau)
        hbm_tau = figures.hbm_tau_s / flow
        self.hbm_c[:] = thermal.relaxed_c(self.hbm_c, self._hbm_final(), elapsed_s, hbm_tau)
        felt = np.flatnonzero(np.abs(self.case_c - self.noticed_c) > NOTICED_C)
        self.noticed_c[felt] = self.case_c[felt]
        return felt

    def _power(self) -> None:
        profile, figures = self._profile, self._profile.thermal
        lane_w = profile.lane.line_rate_gbit_per_s * profile.energy.optical_pj_per_bit * 1e-3
        self.optics_w[:] = figures.case_idle_w + self.lit_lanes * lane_w
        busy_w = profile.hbm_gbyte_per_s * 8.0 * figures.hbm_pj_per_bit * 1e-3
        self.hbm_w[:] = figures.hbm_idle_w + self.load_ratio * busy_w

    def _airflow(self) -> Floats:
        return np.maximum(1.0 + self._causes.airflow_ratio, thermal.AIRFLOW_MIN_RATIO)

    def _inlet_c(self) -> Floats:
        return np.asarray(self._profile.thermal.inlet_c + self._causes.ambient_rise_c)

    def _case_final(self) -> Floats:
        resistance = self._profile.thermal.case_k_per_w
        return thermal.final_c(self._inlet_c(), self.optics_w, resistance, self._airflow())

    def _hbm_final(self) -> Floats:
        resistance = self._profile.thermal.hbm_k_per_w
        warm = thermal.final_c(self._inlet_c(), self.hbm_w, resistance, self._airflow())
        return np.asarray(warm + self._causes.hbm_heat_c)


def nominal_case_c(profile: Profile) -> float:
    """Case temperature of a healthy card with all lasers on."""
    lanes = profile.oes * profile.lanes_per_oe
    lane_w = profile.lane.line_rate_gbit_per_s * profile.energy.optical_pj_per_bit * 1e-3
    figures = profile.thermal
    power_w = figures.case_idle_w + lanes * lane_w
    return figures.inlet_c + figures.case_k_per_w * power_w
