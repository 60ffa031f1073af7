"""Figures of a whole fleet as arrays, under the names of the status tables' columns.

They are read from the banks and from the machines, without a table in between: a fleet of a
hundred thousand lanes is shown in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.device.card import Card
from accelhw.device.ecc import RowState
from accelhw.device.port import Port
from accelhw.fault.scenario import Level
from accelhw.model.ids import LaneId, PortId
from accelhw.optics import fec
from accelhw.optics.bank import LaneBank
from accelhw.optics.counters import FECS
from accelhw.optics.heat import Heat

Column = NDArray[Any]


FEC_T: NDArray[np.int64] = np.array(
    [0 if (code := fec.CODES[name]) is None else code.t for name in FECS], np.int64
)


def _worst(bank: LaneBank, values: Column, worst: Callable[..., Column], none: float) -> Column:
    """Of the lanes of each port that have light; nan where none has."""
    lit = bank.rx.lit
    return np.where(lit.any(axis=1), worst(np.where(lit, values, none), axis=1), np.nan)


LANE: dict[str, Callable[[LaneBank], Column]] = {
    "tx_power_dbm": lambda bank: bank.readings().tx_power_dbm,
    "rx_power_dbm": lambda bank: bank.readings().rx_power_dbm,
    "tx_bias_ma": lambda bank: bank.readings().tx_bias_ma,
    "margin_db": lambda bank: bank.rx.margin_db,
    "q": lambda bank: bank.rx.q,
    "snr_db": lambda bank: bank.readings().snr_db,
    "pre_fec_ber": lambda bank: bank.rx.ber,
    "fitted_margin": lambda bank: bank.rx.lit,
    "laser_temp_c": lambda bank: bank.readings().laser_temp_c,
    "laser_wear_ratio": lambda bank: bank.tx.wear_ratio,
    "tec_current_ratio": lambda bank: bank.tx.cooler_ratio,
    "heater_mw": lambda bank: bank.tx.heater_mw,
    "tx_on": lambda bank: bank.tx.lit,
    "los": lambda bank: ~bank.rx.lit,
    "lol": lambda bank: ~bank.rx.locked,
    "used": lambda bank: bank.counters.used,
    "rx_bits": lambda bank: bank.counters.rx_bits,
    "pre_fec_errors": lambda bank: bank.counters.errors,
    "los_count": lambda bank: bank.rx.los_count,
    "lol_count": lambda bank: bank.rx.lol_count,
}
PORTS: dict[str, Callable[[LaneBank], Column]] = {
    "lanes_lit_count": lambda bank: bank.rx.lit.sum(axis=1),
    "flags_active_count": lambda bank: bank.flags.active.sum(axis=(0, 2)),
    "flags_latched_count": lambda bank: bank.flags.latched.sum(axis=(0, 2)),
    "flag_changes_total": lambda bank: bank.flags.count.sum(axis=(0, 2)),
    "margin_min_db": lambda bank: _worst(bank, bank.rx.margin_db, np.min, np.inf),
    "pre_fec_ber_max": lambda bank: _worst(bank, bank.rx.ber, np.max, 0.0),
    "fec_t": lambda bank: FEC_T[bank.counters.fec],
    "fec_bins": lambda bank: bank.counters.bins,
    "fec_corrected_symbols": lambda bank: bank.counters.corrected_symbols,
    "fec_lock_losses": lambda bank: bank.counters.lock_losses,
    "fec_codewords": lambda bank: bank.counters.codewords,
    "fec_corrected_bits": lambda bank: bank.counters.corrected_bits,
    "fec_uncorrectable": lambda bank: bank.counters.uncorrectable,
}
PORT: dict[str, Callable[[Port], float]] = {
    "fitted_lanes": lambda port: port.optics.lanes,
    "full_width_lanes": lambda port: port.optics.profile.data_lanes,
    "capacity_gbit_per_s": lambda port: _capacity_gbit_per_s(port),
    "admin_up": lambda port: port.admin_up,
    "state": lambda port: port.trainer.state,
    "width": lambda port: port.trainer.width,
    "trainings": lambda port: port.trainer.trainings,
    "training_failures": lambda port: port.trainer.failures,
    "downs": lambda port: port.downs,
    "recoveries": lambda port: port.trainer.recoveries,
    "recovery_failures": lambda port: port.trainer.recovery_failures,
    "flaps": lambda port: port.trainer.flaps,
    "flaps_damped": lambda port: port.trainer.flaps_damped,
    "fallbacks": lambda port: port.trainer.fallbacks,
}
HEAT: dict[str, Callable[[LaneBank], Column]] = {
    "case_temp_c": lambda bank: bank.heat.case_c,
    "hbm_temp_c": lambda bank: bank.heat.hbm_c,
    "supply_v": lambda bank: bank.heat.supply_v,
    "power_w": lambda bank: bank.heat.power_w,
}
CARD: dict[str, Callable[[Card], float]] = {
    "ecc_sbe": lambda card: card.ecc.sbe,
    "ecc_dbe": lambda card: card.ecc.dbe,
    "rows_remapped": lambda card: card.ecc.count(RowState.REMAPPED),
    "rows_pending": lambda card: card.ecc.count(RowState.PENDING),
    "remap_failed": lambda card: bool(card.ecc.count(RowState.FAILED)),
    "hbm_refresh_ratio": lambda card: _heat(card).refresh_ratio(card.ports[0].optics.card),
    "hbm_throttled": lambda card: _heat(card).is_throttled(card.ports[0].optics.card),
    "links_up_count": lambda card: sum(port.trainer.state.carries_data for port in card.ports),
    "resets": lambda card: card.resets,
}


def _heat(card: Card) -> Heat:
    return card.ports[0].optics.bank.heat


def _capacity_gbit_per_s(port: Port) -> float:
    """Of the lanes that carry data."""
    trainer = port.trainer
    if not trainer.state.carries_data:
        return 0.0
    return port.optics.profile.port_gbit_per_s(trainer.width, trainer.mode)


class FleetColumns:
    """Rows are in the order of cards, engines and lanes, whatever bank they are in."""

    def __init__(self, cards: Sequence[Card], banks: Sequence[LaneBank]) -> None:
        self._cards = list(cards)
        self._ports = [port for card in cards for port in card.ports]
        self._banks = list(banks)
        first = {id(bank): 0 for bank in banks}
        ports = cards_before = lanes = 0
        for bank in banks:
            first[id(bank)] = ports
            ports += len(bank.rx.lit)
        starts = {}
        for bank in banks:
            starts[id(bank)] = (cards_before, lanes)
            cards_before += len(bank.heat.case_c)
            lanes += bank.rx.lit.size
        # Where each row lies in the banks, laid end to end.
        self._port_at = np.array(
            [first[id(p.optics.bank)] + p.optics.port for p in self._ports], np.intp
        )
        self._card_at = np.array(
            [starts[id(c.ports[0].optics.bank)][0] + c.ports[0].optics.card for c in cards], np.intp
        )
        self._lane_at = np.concatenate(
            [
                starts[id(p.optics.bank)][1] + p.optics.port * p.optics.lanes
                + np.arange(p.optics.lanes)
                for p in self._ports
            ]
        )  # fmt: skip
        self.places: dict[object, int] = {}
        for row, card in enumerate(cards):
            self.places[card.name] = row
        at = 0
        for row, port in enumerate(self._ports):
            self.places[port.id] = row
            for lane in range(port.optics.lanes):
                self.places[LaneId(port.id, lane)] = at + lane
            at += port.optics.lanes

    @property
    def port_ids(self) -> list[PortId]:
        return [port.id for port in self._ports]

    def column(self, level: Level, name: str) -> Column:
        """Raises KeyError on a name that is none."""
        found: Column
        match level:
            case Level.LANE:
                found = self._joined(LANE[name])[self._lane_at]
            case Level.PORT if name in PORTS:
                found = np.concatenate([PORTS[name](bank) for bank in self._banks])[self._port_at]
            case Level.PORT:
                found = np.array([PORT[name](port) for port in self._ports])
            case Level.CARD if name in HEAT:
                found = self._joined(HEAT[name])[self._card_at]
            case Level.CARD:
                found = np.array([CARD[name](card) for card in self._cards])
        return found

    def _joined(self, read: Callable[[LaneBank], Column]) -> Column:
        whole: Column = np.concatenate([read(bank).reshape(-1) for bank in self._banks])
        return whole
