"""From faults to an engine's causes, and from a wanted BER to the loss that makes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from accelhw.device.engine import OpticalEngine
from accelhw.optics import ber


def afflict(
    engine: OpticalEngine,
    on_lanes: Mapping[str, Sequence[float]],
    on_card: Mapping[str, float],
    now_ns: int,
) -> bool:
    """Write all causes of an engine at once. True: its light or quality changed."""
    engine.path_extra_db[:] = on_lanes["rx_path_loss_db"]
    engine.laser_fault[:] = np.array(on_lanes["laser_dead"], bool)
    return engine.light_moved(now_ns)


# The loss in dB that a lane lacks to the BER, or None in the dark; and what is in the way.
LossToBer = tuple[float | None, str]


def loss_to_ber_db(engine: OpticalEngine, wanted: float) -> list[LossToBer]:
    """For each lane: how much more loss makes this pre-FEC BER, if any does."""
    lane = engine.profile.lane
    if wanted <= lane.ber_floor:
        why = f"its BER is never below {lane.ber_floor:.1e}, whatever the light"
        return [(math.nan, why)] * engine.lanes
    reference = ber.q_of_ber(lane.ber_at_sensitivity, lane.modulation)
    q = ber.q_of_ber(wanted - lane.ber_floor, lane.modulation)
    needed_db = ber.margin_of_q(q, reference, lane.shot_over_thermal, lane.rin_over_thermal)
    return [_loss_of(engine, index, needed_db, wanted) for index in range(engine.lanes)]


def _loss_of(engine: OpticalEngine, index: int, needed_db: float, wanted: float) -> LossToBer:
    if not engine.lit[index]:
        return None, "no light arrives, so no BER can be aimed at"
    loss_db = float(engine.margin_db[index]) - needed_db
    if not loss_db > 0.0:
        now = float(engine.ber[index])
        return math.nan, f"its BER is {now:.1e} already; aim above that, not at {wanted:.1e}"
    return loss_db, ""
