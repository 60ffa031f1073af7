"""Receivers of many ports: from the light that arrives to margin, Q, BER, LOS and LOL.

Arrays are [port, lane].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accelhw.model.profile import Profile
from accelhw.optics import ber, budget, burst
from accelhw.optics.causes import Causes
from accelhw.optics.monitor import DARK_DBM

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ports = NDArray[np.intp]

LOCK_BER = 1e-2  # clock recovery locks below it
UNLOCK_BER = 2e-2  # and loses lock above this; both are choices of this emulator
NEAR_LOOP_LOSS_DB = 1.0  # from a transmitter to its own receiver inside the engine; a choice


class Receivers:
    def __init__(self, profile: Profile, ports: int, causes: Causes) -> None:
        """`causes`: lane arrays of shape [port, lane]."""
        lane = profile.lane
        self._profile = profile
        self._causes = causes
        shape = (ports, profile.lanes_per_oe)
        # The path, and the far transmitter as the fibre told of it
        self.path_loss_db: Floats = np.zeros(ports)
        self.extra_loss_db: Floats = np.zeros(shape)  # an attenuator in front of the receiver
        self.looped: Flags = np.zeros(ports, bool)  # it hears its own engine, nothing of the path
        self.slowdown: Floats = np.ones(ports)  # lanes at a fraction of their rate
        self.far_on: Flags = np.zeros(shape, bool)
        self.far_dbm: Floats = np.full(shape, DARK_DBM)
        self.far_extinction_db: Floats = np.full(shape, lane.extinction_ratio_db)
        self.far_penalty_db: Floats = np.full(shape, lane.tdecq_db)
        # What follows
        self.power_dbm: Floats = np.full(shape, DARK_DBM)
        self.margin_db: Floats = np.full(shape, -math.inf)
        self.q: Floats = np.zeros(shape)
        self.even_ber: Floats = np.full(shape, ber.DARK_BER)  # between bursts
        self.ber: Floats = np.full(shape, ber.DARK_BER)  # in the long run, with bursts
        self.lit: Flags = np.zeros(shape, bool)
        self.locked: Flags = np.zeros(shape, bool)
        self.los_count: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self.lol_count: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self._reference_q = ber.q_of_ber(lane.ber_at_sensitivity, lane.modulation)

    def update(self, ports: Ports, aggressors_ratio: Floats) -> Flags:
        """Follow the light for these ports. Which of them changed in light or quality.

        `aggressors_ratio`, by port: the share of the card's lanes that transmit.
        """
        causes, lane = self._causes, self._profile.lane
        was_lit, was_locked, was_ber = self.lit[ports], self.locked[ports], self.ber[ports]
        power = self._arriving(ports)
        lit = (power > lane.los_deassert_dbm) | (was_lit & (power >= lane.los_assert_dbm))
        margin = self._margin(ports, power, aggressors_ratio)
        q = ber.q_of_margin(
            margin, self._reference_q, lane.shot_over_thermal, lane.rin_over_thermal
        )
        even = ber.ber_of_q(q, lane.modulation) + lane.ber_floor + self._burst_ber_good(ports)
        even = np.where(lit, np.minimum(even, ber.DARK_BER), ber.DARK_BER)
        mean = np.where(lit, np.minimum(self._with_bursts(ports, even), ber.DARK_BER), even)
        holds = (even < LOCK_BER) | (was_locked & (even <= UNLOCK_BER))
        locked = lit & ~causes.cdr_unlocked[ports] & holds
        self.los_count[ports] += was_lit & ~lit
        self.lol_count[ports] += was_locked & ~locked & lit
        self.power_dbm[ports] = power
        self.margin_db[ports] = np.where(lit, margin, -math.inf)
        self.q[ports] = np.where(lit, q, 0.0)
        self.even_ber[ports], self.ber[ports] = even, mean
        self.lit[ports], self.locked[ports] = lit, locked
        moved = (was_lit != lit) | (was_locked != locked) | (was_ber != mean)
        return np.asarray(moved.any(axis=1))

    def _arriving(self, ports: Ports) -> Floats:
        loss = self.path_loss_db[ports, np.newaxis] + self.extra_loss_db[ports]
        loss += self._causes.rx_path_loss_db[ports]
        loss[self.looped[ports]] = NEAR_LOOP_LOSS_DB
        power = self.far_dbm[ports] - loss
        return np.where(self.far_on[ports], np.maximum(power, DARK_DBM), DARK_DBM)

    def _margin(self, ports: Ports, power: Floats, aggressors_ratio: Floats) -> Floats:
        causes, lane = self._causes, self._profile.lane
        echoes = np.where(self.looped[ports, np.newaxis], 0.0, causes.mpi_penalty_db[ports])
        penalty = self.far_penalty_db[ports] + echoes + causes.rx_penalty_db[ports]
        penalty += causes.crosstalk_penalty_db[ports] * aggressors_ratio[:, np.newaxis]
        penalty += budget.overload_penalty_db(power, lane.rx_overload_dbm)
        # Less bandwidth, less noise: 5 log10 of the rate.
        gain = 5.0 * np.log10(self.slowdown[ports, np.newaxis])
        extinction = self.far_extinction_db[ports]
        return budget.margin_db(power, extinction, penalty, lane.sensitivity_oma_dbm) + gain

    def _burst_ber_good(self, ports: Ports) -> Floats:
        causes = self._causes
        return np.where(causes.burst_good_to_bad[ports] > 0.0, causes.burst_ber_good[ports], 0.0)

    def _with_bursts(self, ports: Ports, even: Floats) -> Floats:
        causes = self._causes
        enter = causes.burst_good_to_bad[ports]
        if not enter.any():
            return even
        share = burst.share_bad(enter, causes.burst_bad_to_good[ports])
        return burst.mixed(even, even + causes.burst_ber_bad[ports], share)
