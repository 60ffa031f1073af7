"""Worlds of two cards for the tests of the data path."""

from __future__ import annotations

import pytest

from accelhw.device import channelport, dataport, pace, push, sending

from .burstends import LIBRARY
from .channelworld import BULK, CHUNK, ChannelWorld, MakeWorld
from .turnsworld import TurnsWorld
from .world import World

# Of what this machine has: a world whose movers have the loops in Python, and one with those in C.
WORLDS = [ChannelWorld] if LIBRARY is None else [ChannelWorld, TurnsWorld]


@pytest.fixture
def make_world() -> type[World]:
    """`make_world(seed=7, links=2, loss_ratio=0.1)`: two cards, their links still down."""
    return World


@pytest.fixture(params=WORLDS, ids=lambda world: world.__name__)
def world_of(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> MakeWorld:
    """`world_of(seed=7, links=2)`: links down; what is bulk, and a chunk, small."""
    for module in (channelport, dataport, sending):
        monkeypatch.setattr(module, "BULK_BYTES", BULK)
    monkeypatch.setattr(push, "CHUNK_BYTES_MIN", CHUNK)
    monkeypatch.setattr(pace, "OPENING", 2)
    made: MakeWorld = request.param
    return made
