"""What a kind of fault is: the causes it changes, where, how it comes, and how it is repaired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from accelhw.fault.shapes import Shape
from accelhw.model.profile import Profile

AT_ONCE = Shape()
# Causes that sit in the cable or at its plug: without a cable nothing is there to have them.
OF_FIBRE = frozenset({"rx_path_loss_db", "tx_path_loss_db", "mpi_penalty_db"})
# Causes that befall rows of HBM, which somebody may choose.
ROW_CAUSES = ("hbm_bad_rows", "hbm_bad_bank_rows")


class Where(StrEnum):
    LANE = "lane"  # one lane, or those that are named
    PORT = "port"  # all lanes of a port, unless some are named
    CARD = "card"


class Part(StrEnum):
    """What not every card has."""

    RING = "ring modulators"
    COOLER = "cooled lasers"
    SHARED_LASER = "lasers that lanes share"

    def is_in(self, profile: Profile) -> bool:
        match self:
            case Part.RING:
                return profile.ring is not None
            case Part.COOLER:
                return profile.laser.cooled
            case _:
                return profile.laser.lanes_per_laser > 1


class Crossing(StrEnum):
    """What a cable does to lanes, at the end where it is plugged."""

    INVERTED = "inverted"  # polarity of the named lanes is swapped
    REVERSED = "reversed"  # the first lane arrives last


@dataclass(frozen=True, slots=True)
class Effect:
    """A cause and how much of it is added at full strength; `after` is what stays of it when a
    passing shape is over. Units are in the name of the cause; 1 switches a condition on.

    What bursts of errors do depends on the code that meets them: `by_fec` has the amounts for lanes
    whose own FEC is one of those, and `amount` is for all others.
    """

    cause: str
    amount: float
    after: float = 0.0
    of_supply: bool = False  # the amount is a share of the optics' supply voltage
    by_fec: tuple[tuple[str, float], ...] = ()

    def on(self, profile: Profile) -> Effect:
        """The same, in the unit of its cause."""
        amount = dict(self.by_fec).get(profile.lane.fec, self.amount)
        if self.of_supply:
            amount *= profile.thermal.supply_v
        return replace(self, amount=amount, of_supply=False, by_fec=())


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`near` and `far` say what is seen at the end where it sits, and at the other."""

    id: str
    where: Where
    summary: str
    effects: tuple[Effect, ...]
    near: str
    far: str
    repair: str
    source: str
    shape: Shape = AT_ONCE
    crossing: Crossing | None = None
    needs: Part | None = None  # a card without it cannot have the fault

    @property
    def is_on_card(self) -> bool:
        return self.where is Where.CARD

    @property
    def needs_fibre(self) -> bool:
        return self.crossing is not None or any(e.cause in OF_FIBRE for e in self.effects)

    @property
    def strikes_rows(self) -> bool:
        """Whether it befalls rows of HBM, so that somebody may say which."""
        return any(effect.cause in ROW_CAUSES for effect in self.effects)

    def effects_on(self, profile: Profile) -> tuple[Effect, ...]:
        return tuple(effect.on(profile) for effect in self.effects)

    def lanes(self, named: tuple[int, ...], profile: Profile) -> tuple[int, ...]:
        """The lanes of a port it acts on. Without a name: all, or the first.

        Where lanes share the part that fails, naming one names them all.
        """
        every = range(profile.lanes_per_oe)
        if self.is_on_card:
            return ()
        if not named and self.where is Where.PORT:
            return tuple(every)
        size = profile.laser.lanes_per_laser if self.needs is Part.SHARED_LASER else 1
        groups = {lane // size for lane in named or (0,)}
        return tuple(lane for lane in every if lane // size in groups)
