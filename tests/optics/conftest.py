"""A bank whose ports hear each other, two and two, on a hand-turned clock."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from accelhw.model.profile import Profile, load_profile
from accelhw.optics.bank import LaneBank

SECOND_NS = 1_000_000_000


def narrow(name: str, lanes: int | None = None, **changes: object) -> Profile:
    profile = load_profile(name)
    lane = msgspec.structs.replace(profile.lane, **changes)
    return msgspec.structs.replace(profile, lanes_per_oe=lanes or profile.lanes_per_oe, lane=lane)


class World:
    """Port 2k and port 2k+1 are the ends of a link; each card has one port."""

    def __init__(self, profile: Profile, ports: int = 2, seed: int = 1, loss_db: float = 0.6):
        self.bank = LaneBank(profile, seed, ports=ports, cards=ports)
        self.loss_db = loss_db
        self.now_ns = SECOND_NS
        self.bank.wall_offset_ns = 10**18
        for port in range(ports):
            self.bank.add_port(f"card{port}", 0, loss_db)
            self.bank.set_transmit(port, True)
        self.bank.advance(self.now_ns)
        self.shine()

    def shine(self) -> None:
        """Every port hears what its peer sends now."""
        bank, tx = self.bank, self.bank.tx
        bank.settle(self.now_ns)
        for port in range(bank.ports):
            far = port ^ 1
            bank.hear(
                port, tx.lit[far], tx.sent_dbm[far], tx.sent_extinction_db[far],
                tx.sent_penalty_db[far],
            )  # fmt: skip
        bank.settle(self.now_ns)

    def cause(self, name: str, amount: float, port: int = 0, lane: int | slice = 0) -> None:
        self.bank.causes_of(port).array(name)[lane] = amount
        self.bank.mark(port)
        self.bank.settle(self.now_ns)
        self.shine()

    def up(self, width: int | None = None) -> None:
        lanes = self.bank.profile.lanes_per_oe
        used = np.arange(lanes) < (lanes if width is None else width)
        for port in range(self.bank.ports):
            self.bank.use_lanes(port, used, self.now_ns)

    def run(self, seconds: float, step_s: float = 0.5) -> None:
        for _ in range(round(seconds / step_s)):
            self.now_ns += round(step_s * SECOND_NS)
            self.bank.advance(self.now_ns)
            self.shine()


@pytest.fixture
def oio() -> World:
    return World(load_profile("oio"))


@pytest.fixture
def dr8() -> World:
    return World(load_profile("dr8"))
