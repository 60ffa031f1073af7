"""Worlds of two cards for the tests of the data path."""

from __future__ import annotations

import pytest

from accelhw.device import channelport, dataport, push, sending

from .channelworld import BULK, CHUNK, ChannelWorld, MakeWorld
from .world import World


@pytest.fixture
def make_world() -> type[World]:
    """`make_world(seed=7, links=2, loss_ratio=0.1)`: two cards, their links still down."""
    return World


@pytest.fixture
def world_of(monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """`world_of(seed=7, links=2)`: links down; what is bulk, and a chunk, small."""
    for module in (channelport, dataport, sending):
        monkeypatch.setattr(module, "BULK_BYTES", BULK)
    monkeypatch.setattr(push, "CHUNK_BYTES_MIN", CHUNK)
    return ChannelWorld
