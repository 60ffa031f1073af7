"""What a kind of fault is: the causes it changes, where, how it comes, and how it is repaired."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from accelhw.fault.shapes import Shape

AT_ONCE = Shape()


class Where(StrEnum):
    LANE = "lane"  # one lane, or those that are named
    PORT = "port"  # all lanes of a port, unless some are named
    CARD = "card"


class Crossing(StrEnum):
    """What a cable does to lanes, at the end where it is plugged."""

    INVERTED = "inverted"  # polarity of the named lanes is swapped
    REVERSED = "reversed"  # the first lane arrives last


@dataclass(frozen=True, slots=True)
class Effect:
    """A cause and how much of it is added at full strength; `after` is what stays of it when a
    passing shape is over. Units are in the name of the cause; 1 switches a condition on."""

    cause: str
    amount: float
    after: float = 0.0


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
    group: int = 1  # lanes that share the part: naming one names them all

    @property
    def is_on_card(self) -> bool:
        return self.where is Where.CARD

    def lanes(self, named: tuple[int, ...], fitted: int) -> tuple[int, ...]:
        """The lanes it acts on, of so many fitted ones. Without a name: all, or the first."""
        if self.is_on_card:
            return ()
        if not named and self.where is Where.PORT:
            return tuple(range(fitted))
        groups = sorted({lane // self.group for lane in named or (0,)})
        found = (lane for group in groups for lane in self._of_group(group))
        return tuple(lane for lane in found if lane < fitted)

    def _of_group(self, group: int) -> range:
        return range(group * self.group, (group + 1) * self.group)
