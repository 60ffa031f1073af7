"""Two cards on a hand-turned clock, healthy and up, and a way to look at both ends of the link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from accelhw.model.link import LinkState
from accelhw.sim.cardworld import CardWorld

Floats = NDArray[np.float64]
NEAR, FAR = 0, 1  # card0/oe0, where faults are injected, and card1/oe0


@dataclass(frozen=True)
class Look:
    """One end as its status tables show it, at one moment."""

    lanes: NDArray[np.void]
    port: np.void
    card: np.void
    state: LinkState
    reason: str

    @property
    def tx(self) -> Floats:
        return self.lanes["tx_power_dbm"]

    @property
    def rx(self) -> Floats:
        return self.lanes["rx_power_dbm"]

    @property
    def bias(self) -> Floats:
        return self.lanes["tx_bias_ma"]

    @property
    def ber(self) -> Floats:
        return self.lanes["pre_fec_ber"]

    @property
    def margin(self) -> Floats:
        return self.lanes["margin_db"]

    @property
    def los(self) -> list[int]:
        return np.flatnonzero(self.lanes["los"]).tolist()

    @property
    def lol(self) -> list[int]:
        """Lanes with light and without a clock."""
        return np.flatnonzero(self.lanes["lol"] & ~self.lanes["los"] & 1).tolist()

    @property
    def width(self) -> int:
        return int(self.port["width"])


class Bench:
    """The link under test. Monitors are noisy by some hundredths of a dB; compare with `about`."""

    def __init__(self, profile: str) -> None:
        self.world = CardWorld(profile)
        self.world.power_on()
        assert self.run_until_up()
        self.run(2)
        self.before = self.look()

    def look(self) -> tuple[Look, Look]:
        world = self.world
        for card in world.cards:
            card.write_rows()
        return self._end(NEAR), self._end(FAR)

    def _end(self, index: int) -> Look:
        world = self.world
        profile, tables, trainer = world.profile, world.tables, world.ports[index].trainer
        first = index * profile.signal_lines
        return Look(
            tables.lane[first : first + profile.lanes_per_oe].copy(),
            tables.port[index * profile.oes].copy(),
            tables.card[index].copy(),
            trainer.state,
            trainer.reason.code.name,
        )

    def run(self, seconds: float) -> tuple[Look, Look]:
        self.world.run(seconds)
        return self.look()

    def run_until_up(self, seconds: float = 60.0) -> bool:
        """All lanes carry data at both ends."""
        whole = self.world.profile.data_lanes
        return self.world.run(
            seconds,
            until=lambda: all(
                port.trainer.state is LinkState.UP and port.trainer.width == whole
                for port in self.world.ports
            ),
        )

    def inject(self, kind: str, subject: str = "card0/oe0", **how: object) -> str:
        return self.world.inject(kind, subject, **how)

    def heals(self, seconds: float = 60.0, settle_s: float = 1.0) -> tuple[Look, Look]:
        """Clear all faults: the link is as it was before them."""
        self.world.clear()
        assert self.run_until_up(seconds)
        after = self.run(settle_s)
        for now, then in zip(after, self.before, strict=True):
            np.testing.assert_allclose(now.tx, then.tx, atol=0.35)
            np.testing.assert_allclose(now.rx, then.rx, atol=0.35)
            np.testing.assert_allclose(now.margin, then.margin, atol=0.02)
            assert (now.los, now.lol) == ([], [])
        return after

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.world.events]


Benches = Callable[..., Bench]


@pytest.fixture
def bench() -> Iterator[Benches]:
    made: list[Bench] = []

    def make(profile: str = "dr8") -> Bench:
        made.append(Bench(profile))
        return made[-1]

    yield make
    for one in made:
        one.world.close()
