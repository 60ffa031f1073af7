"""Channels whose movers have the loops in C and take turns: little is under way."""

from __future__ import annotations

import select

from accelhw.device.pace import Pace
from accelhw.transport.base import Transport
from accelhw.transport.faulty import FaultyTransport

from .channelworld import ChannelWorld, Line
from .gateway import Gateway

AHEAD_BYTES = 6 << 10  # some frames of a chunk
TURN_BYTES = 64 << 10


class Impatient:
    """Waits for nothing: time is turned by hand."""

    def __init__(self) -> None:
        self._epoll = select.epoll()

    def fileno(self) -> int:
        return self._epoll.fileno()

    def patience_ms(self) -> int:
        return 0


class TurnsWorld(ChannelWorld):
    pace = Pace(TURN_BYTES, AHEAD_BYTES, Impatient())

    def _end_of(self, line: Line, way: int, lane: FaultyTransport) -> Transport:
        gateway = line.gateways[way] = Gateway(lane)
        return gateway.end
