"""The metric families of a simulated run: names, kinds, labels and help are the exporter's.

A test compares them with the daemon's own table, so that dashboards and alert rules read simulated
years as they read a live rack. What a fleet without data path, processes and driver has not, is not
here: transfers, frames, regions, workers, health.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import Level
from accelhw.fault.scenariofigures import FIGURES, Figure
from accelhw.interface.messages import FaultInfo
from accelhw.interface.tables import FEC_BINS
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState
from accelhw.sim.samples import ReadColumn, Things, figure_values

LINK_STATES = tuple(LinkState)
UP = [state.value for state in LINK_STATES if state.carries_data]

Values = Callable[[ReadColumn], NDArray[np.float64]]


def _nothing(read: ReadColumn) -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Family:
    """`series` are the labels of each value, in their order; none where labels come with marks."""

    name: str
    kind: str
    help: str
    series: tuple[str, ...] = ()
    values: Values = _nothing

    @property
    def base(self) -> str:
        """OpenMetrics names a family without what its samples end with."""
        return self.name.removesuffix({"counter": "_total", "info": "_info"}.get(self.kind, ""))


# A sample that says more with its labels: family, labels, value.
Mark = tuple[Family, str, float]


def _info(name: str, text: str) -> Family:
    return Family(f"accel_{name}_info", "info", f"{text}; always 1.")


def _gauge(name: str, text: str) -> Family:
    return Family(f"accel_{name}", "gauge", text)


def _levels(name: str, text: str) -> Family:
    return _gauge(name, f"{text}; a flag goes on beyond them.")


CARD_INFO = _info("card", "The card's profile, identity and worker")
OE_INFO = _info("oe", "The engine's lanes and connector")
LINK_INFO = _info("link", "The link's fibre, peer and kind of light")
LANE_INFO = _info(
    "lane", "The lane's signal line and channel, the far lane that it hears, its light"
)
MODE_INFO = _info("link_mode", "The FEC and symbol rate that it trained in, as `kp4` or `kr4/2`")
CARD_STATE = _gauge("card_state", "State of the card: 1 for the one it is in.")
REASON = _gauge("link_down_reason", "Why the link is not up; absent when it is.")
PEER_REASON = _gauge(
    "link_peer_down_reason", "Why the far end says that the link is not up; absent when it is."
)
CARD_FLAG = _gauge("card_flag_active", "1 while a watched figure of the card is beyond that level.")
CARD_LATCH = _gauge(
    "card_flag_latched", "1 when the flag was on since it was last cleared by command."
)
LANE_FLAG = _gauge("lane_flag_active", "1 while the flag is on; absent while it is off.")
LANE_LATCH = _gauge(
    "lane_flag_latched",
    "1 when the flag was on since it was last cleared by command; absent when it was not.",
)
FAULT = _gauge(
    "fault_active",
    "1 while a fault of that kind is injected there: the ground truth beside what is seen.",
)
# By quantity: the family, and so many of the profile's unit make one of the family's.
CARD_LEVELS: dict[str, tuple[Family, float]] = {
    "case_temp_c": (
        _levels("card_case_temperature_threshold_celsius", "Levels of the case temperature"), 1.0,
    ),
    "supply_v": (_levels("card_supply_threshold_volts", "Levels of the supply voltage"), 1.0),
    "hbm_temp_c": (
        _levels("hbm_temperature_threshold_celsius", "Levels of the HBM temperature"), 1.0,
    ),
}  # fmt: skip
LANE_LEVELS: dict[str, tuple[Family, float]] = {
    "tx_power_dbm": (
        _levels("oe_tx_power_threshold_dbm", "Levels of the light launched, for each lane"), 1.0,
    ),
    "rx_power_dbm": (
        _levels("oe_rx_power_threshold_dbm", "Levels of the light received, for each lane"), 1.0,
    ),
    "tx_bias_ma": (
        _levels("oe_tx_bias_threshold_amperes", "Levels of the current through a laser"), 1e3,
    ),
    "laser_temp_c": (
        _levels("oe_laser_temperature_threshold_celsius", "Levels of a laser's temperature"), 1.0,
    ),
    "heater_mw": (_levels("oe_heater_threshold_watts", "Levels of a ring heater's power"), 1e3),
    "pre_fec_ber": (
        _levels("oe_pre_fec_error_threshold_ratio", "Levels of the bit errors before FEC"), 1.0,
    ),
}  # fmt: skip
MARKED = (
    CARD_INFO, OE_INFO, LINK_INFO, LANE_INFO, MODE_INFO, CARD_STATE, REASON, PEER_REASON, CARD_FLAG,
    CARD_LATCH, LANE_FLAG, LANE_LATCH, FAULT, *(f for f, _ in CARD_LEVELS.values()),
    *(f for f, _ in LANE_LEVELS.values()),
)  # fmt: skip


def families(things: Things) -> list[Family]:
    """Those that have a value at each sample."""
    labels = {
        Level.CARD: tuple(f'card="{card}"' for card in things.cards),
        Level.PORT: tuple(port_labels(port) for port in things.ports),
        Level.LANE: tuple(
            f'{port_labels(lane.port)},lane="lane{lane.index}"' for lane in things.lanes
        ),
    }
    ports = labels[Level.PORT]
    states = tuple(f'{at},state="{state.name}"' for state in LINK_STATES for at in ports)
    bins = tuple(f'{at},bin="{number}"' for number in range(FEC_BINS) for at in ports)
    return [
        Family(
            "accel_link_up", "gauge", "1 while the link carries data, with all lanes or fewer.",
            ports, _up,
        ),
        Family(
            "accel_link_state", "gauge", "State of the link: 1 for the one it is in.", states,
            _states,
        ),
        Family(
            "accel_link_fec_bin_codewords_total", "counter",
            "Codewords with exactly so many corrected symbols, as `bin` says; absent without FEC.",
            bins, _bins,
        ),
        *(
            Family(
                figure.family, "counter" if figure.counter else "gauge", figure.help,
                labels[figure.level], _scaled(figure),
            )
            for figure in FIGURES if figure.family
        ),
    ]  # fmt: skip


def port_labels(port: PortId) -> str:
    return f'card="{port.card}",oe="oe{port.oe}"'


def fault_labels(info: FaultInfo) -> Sequence[str]:
    card, _, oe = info.subject.partition("/")
    at = f'kind="{info.kind}",card="{card}"' + (f',oe="{oe}"' if oe else "")
    return [f'{at},lane="lane{lane}"' for lane in info.lanes] or [at]


def _up(read: ReadColumn) -> NDArray[np.float64]:
    return np.isin(read(Level.PORT, "state"), UP).astype(np.float64)


def _states(read: ReadColumn) -> NDArray[np.float64]:
    now = read(Level.PORT, "state")
    return np.concatenate([(now == state.value).astype(np.float64) for state in LINK_STATES])


def _bins(read: ReadColumn) -> NDArray[np.float64]:
    """Of bin 0 for all ports, of bin 1, and so on; nan beyond what the code corrects."""
    bins = np.asarray(read(Level.PORT, "fec_bins"), np.float64)
    t = read(Level.PORT, "fec_t")[:, np.newaxis]
    there = (t > 0) & (np.arange(FEC_BINS) <= t)
    return np.where(there, bins, np.nan).T.reshape(-1)


def _scaled(figure: Figure) -> Values:
    return lambda read: figure_values(figure, read) * figure.factor
