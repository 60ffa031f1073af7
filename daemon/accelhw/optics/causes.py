"""The causes that a fault may change, and nothing else may: one array per cause, zero is healthy.

Every figure that an operator sees follows from these and from the parts' own figures. Amounts add
to the healthy value, so several faults on one lane add up. After writing, say so: `mark` of the
bank, or `light_moved` of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def _cause(per: str, text: str) -> Any:
    """A field of `Causes`: an array over lanes or over cards."""
    return field(metadata={"per": per, "text": text})


@dataclass(frozen=True, slots=True)
class Causes:
    """Deltas over the healthy part. Units are in the names; arrays are written in place."""

    # The laser. Where a source feeds a group of lanes, the worst lane of the group speaks for all.
    laser_wear_ratio: Floats = _cause("lane", "share of the laser's slope efficiency that is lost")
    laser_dead: Flags = _cause("lane", "the laser gives no light")
    els_loss_db: Floats = _cause("lane", "loss between an external source and its modulators")
    tec_rise_c: Floats = _cause("lane", "the laser's cooler leaves it so much too warm")
    # The modulator.
    extinction_drop_db: Floats = _cause("lane", "less extinction ratio")
    tdecq_rise_db: Floats = _cause("lane", "worse transmitted eye")
    ring_error_k: Floats = _cause("lane", "detuning that the ring's heater does not reach")
    # The path. A connector belongs to a port; the far end sees it through the fibre.
    tx_path_loss_db: Floats = _cause("lane", "loss behind the power monitor, of leaving light")
    rx_path_loss_db: Floats = _cause("lane", "loss of arriving light")
    mpi_penalty_db: Floats = _cause("lane", "reflections interfere at this receiver")
    # The receiver.
    rx_penalty_db: Floats = _cause("lane", "less sensitivity")
    rx_monitor_error_db: Floats = _cause("lane", "the Rx power monitor reads so much high")
    crosstalk_penalty_db: Floats = _cause("lane", "with every lane of the card transmitting")
    cdr_unlocked: Flags = _cause("lane", "clock recovery does not hold, whatever the light")
    # Bursts: Gilbert-Elliott, stepped per codeword of the port; none while good_to_bad is 0.
    burst_ber_good: Floats = _cause("lane", "BER that the good state adds")
    burst_ber_bad: Floats = _cause("lane", "BER that the bad state adds")
    burst_good_to_bad: Floats = _cause("lane", "chance per codeword to enter the bad state")
    burst_bad_to_good: Floats = _cause("lane", "chance per codeword to leave it")
    # The card.
    ambient_rise_c: Floats = _cause("card", "warmer air at the inlet")
    airflow_ratio: Floats = _cause("card", "change of air flow: -0.6 leaves 40 %")
    supply_error_v: Floats = _cause("card", "the optics' supply is off by so much")
    hbm_heat_c: Floats = _cause("card", "HBM warmer than its load explains")
    hbm_sbe_per_s: Floats = _cause("card", "more single-bit errors, corrected")
    hbm_dbe_per_s: Floats = _cause("card", "double-bit errors, detected, not corrected")
    hbm_bad_rows: Floats = _cause("card", "rows that hold a double-bit error, each in its own bank")
    hbm_bad_bank_rows: Floats = _cause("card", "such rows, all in one bank")

    @classmethod
    def healthy(cls, lanes: int, cards: int) -> Causes:
        size = {"lane": lanes, "card": cards}
        return cls(*(np.zeros(size[CAUSES[name]], cause_type(name)) for name in CAUSES))

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


# Every cause and what it belongs to: "lane" or "card".
CAUSES: dict[str, str] = {field.name: field.metadata["per"] for field in fields(Causes)}
LANE_CAUSES = tuple(name for name, per in CAUSES.items() if per == "lane")
CARD_CAUSES = tuple(name for name, per in CAUSES.items() if per == "card")
SWITCHES = frozenset({"laser_dead", "cdr_unlocked"})  # on or off; all others are amounts


def cause_type(name: str) -> type[np.bool_] | type[np.float64]:
    return np.bool_ if name in SWITCHES else np.float64
