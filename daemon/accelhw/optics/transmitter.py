"""Transmitters of many ports: laser, power control, cooler, ring, and the light that leaves.

Arrays are [port, lane]. `update` follows the causes for the ports that are named; nothing else is
touched, so that an idle fleet costs nothing here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accelhw.model.profile import Profile
from accelhw.optics import laser, ring
from accelhw.optics.causes import Causes
from accelhw.optics.heat import nominal_case_c
from accelhw.optics.monitor import DARK_DBM

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ports = NDArray[np.intp]

FAULT_DB = 10.0  # so far below its typical power, a transmitter that is on is broken
SETTLED_C = 1e-3
EXTINCTION_MIN_DB = 0.1
SENT_MIN_DBM = -200.0  # what the carrier message can say


class Transmitters:
    def __init__(self, profile: Profile, ports: int, causes: Causes) -> None:
        """`causes`: lane arrays of shape [port, lane]."""
        self._profile = profile
        self._causes = causes
        shape = (ports, profile.lanes_per_oe)
        lane = profile.lane
        self.on: Flags = np.zeros(shape, bool)
        self.launch_dbm: Floats = np.full(shape, lane.tx_power_dbm)  # of the healthy part
        self.extinction_db: Floats = np.full(shape, lane.extinction_ratio_db)
        self.tdecq_db: Floats = np.full(shape, lane.tdecq_db)
        self.shape_db: Floats = np.zeros(shape)  # what the transmit taps leave
        self.age_h: Floats = np.zeros(shape)  # at nominal temperature
        self.nominal_c = profile.laser.temp_c
        if not profile.laser.cooled:
            self.nominal_c += nominal_case_c(profile)
        self.laser_c: Floats = np.full(shape, self.nominal_c)
        self._moving: Flags = np.zeros(ports, bool)  # lasers on their way to another temperature
        # What follows
        self.lit: Flags = np.zeros(shape, bool)
        self.fault: Flags = np.zeros(shape, bool)
        self.power_dbm: Floats = np.full(shape, DARK_DBM)  # at the power monitor
        self.bias_ma: Floats = np.zeros(shape)
        self.wear_ratio: Floats = np.zeros(shape)
        self.cooler_ratio: Floats = np.full(shape, math.nan)
        self.heater_mw: Floats = np.full(shape, math.nan)
        self.sent_dbm: Floats = np.full(shape, DARK_DBM)  # into the fibre
        self.sent_extinction_db: Floats = self.extinction_db.copy()
        self.sent_penalty_db: Floats = self.tdecq_db.copy()
        self._groups = np.arange(0, profile.lanes_per_oe, profile.laser.lanes_per_laser)

    # ---- slow physics ----

    def disturb(self, ports: Ports) -> None:
        """Causes or case temperature changed: lasers take on another temperature."""
        self._moving[ports] = True

    def relax(self, elapsed_s: float, case_c: Floats) -> Ports:
        """Laser temperatures go on; `case_c` is by port. Ports whose lasers moved."""
        moving = np.flatnonzero(self._moving)
        if len(moving):
            target = self._target_c(moving, case_c[moving])
            share = -math.expm1(-elapsed_s / self._profile.laser.tau_s)
            now = self.laser_c[moving]
            left = (target - now) * (1.0 - share)
            there = np.abs(left).max(axis=1) < SETTLED_C
            left[there] = 0.0
            self.laser_c[moving] = target - left
            self._moving[moving[there]] = False
        return moving

    def grow_older(self, elapsed_s: float) -> None:
        speed = laser.acceleration(self.nominal_c, self.laser_c)
        self.age_h += np.where(self.lit, speed * (elapsed_s / 3600.0), 0.0)

    def _target_c(self, ports: Ports, case_c: Floats) -> Floats:
        figures = self._profile.laser
        case = case_c[:, np.newaxis]
        rise = self._worst(self._causes.tec_rise_c[ports])
        if not figures.cooled:
            return np.asarray(case + figures.temp_c + rise)
        return np.maximum(figures.temp_c, case - figures.cooler_reach_k) + rise

    def _worst(self, values: Floats) -> Floats:
        """Lanes that share a laser share its fate."""
        figures = self._profile.laser
        if figures.lanes_per_laser == 1:
            return values
        worst = np.maximum.reduceat(values, self._groups, axis=1)
        repeated = np.repeat(worst, figures.lanes_per_laser, axis=1)
        return np.asarray(repeated[:, : values.shape[1]])

    # ---- the light ----

    def update(self, ports: Ports, case_c: Floats) -> None:
        """From the causes to what leaves these ports; `case_c` is by port."""
        causes, lane, figures = self._causes, self._profile.lane, self._profile.laser
        case = case_c[ports, np.newaxis]
        warm = self.laser_c[ports]
        on = self.on[ports]
        self._drive(ports, warm, on)
        missed_db = figures.power_db_per_k * np.maximum(warm - self.nominal_c, 0.0)
        power = self.power_dbm[ports] - missed_db - self._worst(causes.els_loss_db[ports])
        lit = on & (power > DARK_DBM)
        power = np.where(lit, power, DARK_DBM)
        self.lit[ports], self.power_dbm[ports] = lit, power
        self.fault[ports] = on & (power < lane.tx_power_dbm - FAULT_DB)
        if figures.cooled:
            self.cooler_ratio[ports] = self._cooler(ports, case)
        penalty = self.tdecq_db[ports] + causes.tdecq_rise_db[ports] + self.shape_db[ports]
        if (rings := self._profile.ring) is not None:
            rise = case - rings.case_temp_c
            error = causes.ring_error_k[ports] - ring.out_of_reach_k(rise, rings.reach_k)
            penalty += ring.detuned_penalty_db(error, rings.ghz_per_k, rings.fwhm_ghz)
            heater = ring.heater_mw(
                rise, error, rings.heater_mw, rings.heater_mw_per_k, rings.heater_mw_max
            )
            self.heater_mw[ports] = np.where(on, heater, 0.0)
        sent = np.maximum(power - causes.tx_path_loss_db[ports], SENT_MIN_DBM)
        self.sent_dbm[ports] = np.round(sent, 2)  # the steps of the carrier message
        extinction = self.extinction_db[ports] - causes.extinction_drop_db[ports]
        self.sent_extinction_db[ports] = np.round(np.maximum(extinction, EXTINCTION_MIN_DB), 2)
        self.sent_penalty_db[ports] = np.round(np.maximum(penalty, 0.0), 2)

    def _drive(self, ports: Ports, warm: Floats, on: Flags) -> None:
        """Power control: the bias that the wanted light takes, up to the driver's limit."""
        causes, lane, figures = self._causes, self._profile.lane, self._profile.laser
        first_threshold, first_slope = laser.worn(self.nominal_c, 0.0)
        launch = self.launch_dbm[ports]
        # A shared laser's lanes differ by how its light is split, not by its bias.
        own = launch - lane.tx_power_dbm if figures.lanes_per_laser == 1 else np.zeros(launch.shape)
        first = (lane.tx_bias_ma - first_threshold) * 10.0 ** (own / 10.0)  # over threshold
        wanted_mw = first * first_slope
        wear = self._worst(causes.laser_wear_ratio[ports])
        aged = laser.aged_growth(self.age_h[ports])
        demand = laser.bias_ma(wanted_mw, warm, wear) * aged
        bias = np.minimum(demand, figures.bias_limit_ma)
        given_mw = laser.power_mw(bias / aged, warm, wear)
        with np.errstate(divide="ignore"):
            power = launch + 10.0 * np.log10(given_mw / wanted_mw)
        power = np.where(demand <= figures.bias_limit_ma, launch, power)
        driven = on & (self._worst(causes.laser_dead[ports].astype(np.float64)) == 0.0)
        self.power_dbm[ports] = np.where(driven, power, -math.inf)
        self.bias_ma[ports] = np.where(driven, bias, 0.0)
        way = figures.bias_limit_ma - (first_threshold + first)
        gone = (demand - (first_threshold + first)) / way
        self.wear_ratio[ports] = np.clip(gone, 0.0, 1.0)

    def _cooler(self, ports: Ports, case: Floats) -> Floats:
        """Its current over its limit: against the heat outside, or all it has when it fails."""
        figures = self._profile.laser
        rise = self._worst(self._causes.tec_rise_c[ports])
        against = (case - figures.temp_c) / figures.cooler_reach_k
        return np.clip(against + rise / 5.0, -1.0, 1.0)
