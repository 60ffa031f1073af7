"""The causes that a fault may change, and nothing else may: one array per cause, zero is healthy.

Every figure that an operator sees follows from these and from the parts' own figures. Amounts add
to the healthy value, so several faults on one lane add up. After writing, say so: `mark` of the
bank, or `light_moved` of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Causes:
    """Deltas over the healthy part. Units are in the names; arrays are written in place."""

    # The laser. Where a source feeds a group of lanes, the worst lane of the group speaks for all.
    laser_wear_ratio: Floats  # share of the laser's slope efficiency that is lost
    laser_dead: Flags  # the laser gives no light
    els_loss_db: Floats  # loss between an external source and its modulators
    tec_rise_c: Floats  # the laser's cooler leaves it so much too warm
    # The modulator.
    extinction_drop_db: Floats  # less extinction ratio
    tdecq_rise_db: Floats  # worse transmitted eye
    ring_error_k: Floats  # detuning that the ring's heater does not reach
    # The path. A connector belongs to a port; the far end sees it through the fibre.
    tx_path_loss_db: Floats  # loss behind the power monitor, of leaving light
    rx_path_loss_db: Floats  # loss of arriving light
    mpi_penalty_db: Floats  # reflections interfere at this receiver
    # The receiver.
    rx_penalty_db: Floats  # less sensitivity
    rx_monitor_error_db: Floats  # the Rx power monitor reads so much high
    crosstalk_penalty_db: Floats  # with every lane of the card transmitting
    cdr_unlocked: Flags  # clock recovery does not hold, whatever the light
    # Bursts: Gilbert-Elliott, stepped per codeword of the port; none while good_to_bad is 0.
    burst_ber_good: Floats  # BER that the good state adds
    burst_ber_bad: Floats  # BER that the bad state adds
    burst_good_to_bad: Floats  # chance per codeword to enter the bad state
    burst_bad_to_good: Floats  # chance per codeword to leave it
    # The card.
    ambient_rise_c: Floats  # warmer air at the inlet
    airflow_ratio: Floats  # change of air flow: -0.6 leaves 40 %
    supply_error_v: Floats  # the optics' supply is off by so much
    hbm_heat_c: Floats  # HBM warmer than its load explains
    hbm_sbe_per_s: Floats  # more single-bit errors, corrected
    hbm_dbe_per_s: Floats  # double-bit errors, detected, not corrected
    hbm_bad_rows: Floats  # rows that hold a double-bit error, each in its own bank
    hbm_bad_bank_rows: Floats  # such rows, all in one bank

    @classmethod
    def healthy(cls, lanes: int, cards: int) -> Causes:
        size = {"lane": lanes, "card": cards}
        arrays: list[Any] = [np.zeros(size[per], cause_type(name)) for name, per in CAUSES.items()]
        return cls(*arrays)

    def of(self, lanes: slice, cards: slice) -> Causes:
        """The same causes for some lanes and cards; writing to it writes here."""
        part = {"lane": lanes, "card": cards}
        return Causes(*(self.array(name)[part[per]] for name, per in CAUSES.items()))

    def array(self, name: str) -> NDArray[Any]:
        """A cause by its name. Raises KeyError on a name that is none."""
        if name not in CAUSES:
            raise KeyError(name)
        array: NDArray[Any] = getattr(self, name)
        return array

    def heal(self) -> None:
        for name in CAUSES:
            self.array(name)[:] = 0


CARD_CAUSES = (
    "ambient_rise_c", "airflow_ratio", "supply_error_v", "hbm_heat_c", "hbm_sbe_per_s",
    "hbm_dbe_per_s", "hbm_bad_rows", "hbm_bad_bank_rows",
)  # fmt: skip
SWITCHES = frozenset({"laser_dead", "cdr_unlocked"})  # on or off; all others are amounts
# Every cause and what it belongs to.
CAUSES: dict[str, str] = {
    field.name: "card" if field.name in CARD_CAUSES else "lane" for field in fields(Causes)
}
LANE_CAUSES = tuple(name for name, per in CAUSES.items() if per == "lane")


def cause_type(name: str) -> type[np.bool_] | type[np.float64]:
    return np.bool_ if name in SWITCHES else np.float64
