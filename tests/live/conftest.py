"""Racks that run: one for the tests of a module that leave it as it was, new ones for the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from .rack import Rack, pair_config, running_rack

MakeRack = Callable[..., Rack]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two cards and one veth fibre. Tests use regions of names of their own and free them.

    It ends with its module: other rooms' tests, which may come next in this process, want its
    interfaces' names.
    """
    config = pair_config(head="[hardware]\nhbm_budget_gib = 2")
    with running_rack(tmp_path_factory.mktemp("r"), config) as rack:
        yield rack


@pytest.fixture
def make_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeRack]:
    """`make_rack(config, netns=None, **how)`: a rack, as `running_rack` has it."""
    with contextlib.ExitStack() as racks:

        def make(config: str, netns: str | None = None, **how: bool) -> Rack:
            folder = tmp_path_factory.mktemp("r")
            return racks.enter_context(running_rack(folder, config, netns, **how))

        yield make


@pytest.fixture
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A pair that nobody has started yet."""
    rack = Rack(tmp_path_factory.mktemp("r"), pair_config())
    try:
        yield rack
    finally:
        rack.close()
