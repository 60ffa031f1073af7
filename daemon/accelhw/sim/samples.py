"""What is sampled of a simulated fleet, and how its figures are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import Level
from accelhw.fault.scenariofigures import Figure
from accelhw.model.ids import LaneId, PortId

SECOND_NS = 1_000_000_000

# A table column of some rows: `read(level, "rx_power_dbm")`.
ReadColumn = Callable[[Level, str], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Things:
    """What telemetry is written of, in the order of its columns."""

    cards: tuple[str, ...]
    ports: tuple[PortId, ...]
    lanes: tuple[LaneId, ...]


def figure_values(figure: Figure, read: ReadColumn) -> NDArray[np.float64]:
    """The figure's values in its own unit; nan where there is none."""
    values = np.asarray(read(figure.level, figure.column), np.float64)
    if figure.present:
        return np.where(read(figure.level, figure.present) != 0, values, np.nan)
    return values
