"""What all cards of a worker share."""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.chassis.loop import Loop
from accelhw.chassis.movers import Movers
from accelhw.chassis.voice import Voice
from accelhw.interface.tables import Tables
from accelhw.optics.banks import Banks


@dataclass(frozen=True, slots=True)
class Shared:
    chassis_id: str
    seed: int
    loop: Loop
    voice: Voice
    tables: Tables
    movers: Movers
    banks: Banks
