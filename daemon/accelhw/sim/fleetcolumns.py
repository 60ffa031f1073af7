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
from accelhw.device.port import Port
from accelhw.fault.scenario import Level
from accelhw.model.ids import LaneId, PortId
from accelhw.optics import monitor
from accelhw.optics.bank import LaneBank

Column = NDArray[Any]


def _tx_reading(bank: LaneBank) -> Column:
    return monitor.power_reading_dbm(bank.tx.power_dbm, bank.tx_monitor.error_db)


def _rx_reading(bank: LaneBank) -> Column:
    seen = bank.seen_rx_dbm(np.arange(len(bank.rx.power_dbm)))
    return monitor.power_reading_dbm(seen, bank.rx_monitor.error_db)


LANE: dict[str, Callable[[LaneBank], Column]] = {
    "tx_power_dbm": _tx_reading,
    "rx_power_dbm": _rx_reading,
    "tx_bias_ma": lambda bank: monitor.stepped(bank.tx.bias_ma, monitor.BIAS_STEP_MA),
    "margin_db": lambda bank: bank.rx.margin_db,
    "q": lambda bank: bank.rx.q,
    "pre_fec_ber": lambda bank: bank.rx.ber,
    "fitted_margin": lambda bank: bank.rx.lit,
    "laser_temp_c": lambda bank: monitor.stepped(bank.tx.laser_c, monitor.TEMPERATURE_STEP_C),
    "laser_wear_ratio": lambda bank: bank.tx.wear_ratio,
    "tx_on": lambda bank: bank.tx.lit,
    "los": lambda bank: ~bank.rx.lit,
    "lol": lambda bank: ~bank.rx.locked,
    "used": lambda bank: bank.counters.used,
    "rx_bits": lambda bank: bank.counters.rx_bits,
    "pre_fec_errors": lambda bank: bank.counters.errors,
    "los_count": lambda bank: bank.rx.los_count,
    "lol_count": lambda bank: bank.rx.lol_count,
}
FEC: dict[str, Callable[[LaneBank], Column]] = {
    "fec_codewords": lambda bank: bank.counters.codewords,
    "fec_corrected_bits": lambda bank: bank.counters.corrected_bits,
    "fec_uncorrectable": lambda bank: bank.counters.uncorrectable,
}
PORT: dict[str, Callable[[Port], float]] = {
    "state": lambda port: port.trainer.state,
    "width": lambda port: port.trainer.width,
    "trainings": lambda port: port.trainer.trainings,
    "training_failures": lambda port: port.trainer.failures,
    "downs": lambda port: port.downs,
}
HEAT: dict[str, Callable[[LaneBank], Column]] = {
    "case_temp_c": lambda bank: bank.heat.case_c,
    "hbm_temp_c": lambda bank: bank.heat.hbm_c,
    "supply_v": lambda bank: bank.heat.supply_v,
}
CARD: dict[str, Callable[[Card], float]] = {
    "ecc_sbe": lambda card: card.ecc.sbe,
    "ecc_dbe": lambda card: card.ecc.dbe,
}


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
            case Level.PORT if name in FEC:
                found = self._joined(FEC[name])[self._port_at]
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
