"""A report on health: a tree of objects with their state, its reasons, and what is possible.

Capability says what is fitted and possible, standing what is in use now, state whether that is
well: three things, since eight lanes may be all that is fitted, or half of what there was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class HealthState(IntEnum):
    HEALTHY = 1
    TRAINING = 2  # starts, trains or restarts as somebody wanted; it has its time, and never alarms
    WARNING = 3  # works, and will not for long or not fully
    CRITICAL = 4  # does not do what it should
    ABSENT = 5  # not in service: not fitted, or switched off by command

    @property
    def rank(self) -> int:
        """Of two, the higher one counts for the whole; what is absent does not."""
        return 0 if self is HealthState.ABSENT else int(self)

    @property
    def is_unwell(self) -> bool:
        return self in (HealthState.WARNING, HealthState.CRITICAL)


class Kind(StrEnum):
    HOST = "host"
    DAEMON = "daemon"
    WORKER = "worker"
    CARD = "card"
    OE = "oe"
    LINK = "link"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class Place:
    """An object. An engine and its link share an address, so the kind belongs to it."""

    kind: Kind
    address: str  # host, daemon, worker0, card0, card0/oe1, card0/oe1/lane3

    def __str__(self) -> str:
        return self.address


HOST = Place(Kind.HOST, "host")
DAEMON = Place(Kind.DAEMON, "daemon")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an object is in a state. `code` is UPPER_SNAKE and stands in `reasons.REASONS`."""

    code: str
    state: HealthState
    place: Place
    text: str  # one sentence with its figures, for people
    next_action: str


@dataclass(frozen=True, slots=True)
class Capability:
    """What is fitted and possible at best."""

    lanes_fitted: int = 0
    lanes_data: int = 0  # that carry data at full width
    lanes_spare: int = 0
    modes: tuple[str, ...] = ()  # FEC and rate, best first: "kp4", "kp4/2"
    gbit_per_s: float = 0.0
    fibre: bool = False  # one is plugged in


@dataclass(frozen=True, slots=True)
class Standing:
    """What is in use now."""

    lanes_used: int = 0
    mode: str = ""
    gbit_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """Of one object, with its parts. `state` counts the worst of both."""

    place: Place
    state: HealthState
    reasons: tuple[Reason, ...] = ()  # its own, the worst first
    cause: Place | None = None  # what explains the state and has the reasons
    parts: tuple[Health, ...] = ()
    capability: Capability | None = None
    standing: Standing | None = None

    def walk(self) -> Iterator[Health]:
        """This object and all that is inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def find(self, place: Place) -> Health | None:
        return next((health for health in self.walk() if health.place == place), None)

    def all_reasons(self) -> list[Reason]:
        """Each cause once, the worst first."""
        found = [reason for health in self.walk() for reason in health.reasons]
        return sorted(found, key=lambda reason: -reason.state.rank)


def worst(states: Iterator[HealthState] | tuple[HealthState, ...]) -> HealthState:
    """The state that counts for the whole; HEALTHY when there is none, or all are absent."""
    found = max(states, key=lambda state: state.rank, default=HealthState.HEALTHY)
    return HealthState.HEALTHY if found is HealthState.ABSENT else found


def whole(
    place: Place,
    reasons: tuple[Reason, ...] = (),
    parts: tuple[Health, ...] = (),
    cause: Place | None = None,
    capability: Capability | None = None,
    standing: Standing | None = None,
) -> Health:
    """An object whose state follows from its reasons and parts. Where all that is unwell of it
    has its cause elsewhere, so has the whole."""
    ordered = tuple(sorted(reasons, key=lambda reason: -reason.state.rank))
    own = tuple(reason.state for reason in ordered)
    if own and all(state is HealthState.ABSENT for state in own) and not parts:
        state = HealthState.ABSENT
    else:
        state = worst((*own, *(part.state for part in parts)))
    if cause is None and not any(one.is_unwell for one in own):
        cause = _elsewhere(place, parts)
    return Health(place, state, ordered, cause, parts, capability, standing)


def _elsewhere(place: Place, parts: tuple[Health, ...]) -> Place | None:
    unwell = [part for part in parts if part.state.is_unwell]
    causes = [part.cause for part in unwell if part.cause is not None]
    inside = {place, *(part.place for part in parts)}
    if not causes or len(causes) < len(unwell) or inside.intersection(causes):
        return None
    return causes[0]
