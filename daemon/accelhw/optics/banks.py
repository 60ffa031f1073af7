"""The banks of a worker: one for each profile among its cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from accelhw.model.profile import Profile
from accelhw.optics.bank import LaneBank


class Banks:
    """`profiles`: that of each card, in any order."""

    def __init__(self, profiles: Iterable[Profile], seed: int, wall_offset_ns: int = 0) -> None:
        every = list(profiles)
        cards = Counter(profile.name for profile in every)
        self._banks = {
            profile.name: LaneBank(
                profile, seed, ports=cards[profile.name] * profile.oes, cards=cards[profile.name]
            )
            for profile in {profile.name: profile for profile in every}.values()
        }
        for bank in self._banks.values():
            bank.wall_offset_ns = wall_offset_ns

    def of(self, profile: Profile) -> LaneBank:
        return self._banks[profile.name]

    def advance(self, now_ns: int, late_ns: int = 0) -> None:
        """Let time pass for all lanes, and their monitors wander. `late_ns`: so much too late."""
        for bank in self._banks.values():
            bank.late_ns = max(late_ns, bank.late_ns // 2)
            bank.advance(now_ns)
            bank.sense()
