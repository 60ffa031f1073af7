"""A scenario as values: what happens where and when, and what must come of it.

Reading it from TOML: scenariofile.py. Unrolling it into a seed's moments: scenariotimeline.py.
Judging a run by it: scenariojudge.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from accelhw.model.config import Config
from accelhw.model.ids import LaneId, PortId

Subject = str | PortId | LaneId  # a card by its name, a port, a lane


class Level(StrEnum):
    CARD = "card"
    PORT = "port"
    LANE = "lane"


class Action(StrEnum):
    """What an operator may do. How each comes about: the runner's `perform`."""

    LINK_DOWN = "link_down"
    LINK_UP = "link_up"
    RETRAIN = "retrain"
    RESET = "reset"  # of a card
    REPLUG = "replug"  # out, some seconds, in again
    CLEAN = "clean"  # the connector: takes dirt away
    REPAIR = "repair"  # takes every fault of the subject away


ACTION_LEVELS: dict[Action, tuple[Level, ...]] = {
    Action.LINK_DOWN: (Level.PORT,),
    Action.LINK_UP: (Level.PORT,),
    Action.RETRAIN: (Level.PORT,),
    Action.RESET: (Level.CARD,),
    Action.REPLUG: (Level.PORT,),
    Action.CLEAN: (Level.PORT,),
    Action.REPAIR: (Level.CARD, Level.PORT, Level.LANE),
}


REPLUG = "unplug_replug"  # the fault that a replug brings about
DIRT = frozenset({"dirty_connector_mild", "dirty_connector_bad"})  # what cleaning takes away


@dataclass(frozen=True, slots=True)
class Targets:
    """Where: subjects of one level, all of them or so many drawn by the seed."""

    level: Level
    subjects: tuple[Subject, ...]
    pick: int | None = None


@dataclass(frozen=True, slots=True)
class At:
    """At these times."""

    times_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Every:
    """At `from_ns`, and again after each period, while before `until_ns`."""

    period_ns: int
    from_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class Random:
    """A Poisson process of its own for each subject."""

    per_hour: float
    from_ns: int
    until_ns: int | None


When = At | Every | Random


@dataclass(frozen=True, slots=True)
class FaultSettings:
    """How a fault comes and how strong; None: as the catalogue has it."""

    shape: str | None = None
    ramp_ns: int | None = None
    scale: float | None = None
    target_ber: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One `[[do]]`: exactly one of `fault`, `action` and `clear` is set."""

    line: int  # where in the file
    name: str
    targets: Targets | None  # None with `clear`: where the cleared line is
    when: When
    fault: str | None = None
    action: Action | None = None
    clear: str | None = None  # the name of a line
    settings: FaultSettings = field(default_factory=FaultSettings)
    # How long a fault stays: shortest and longest, drawn evenly by the seed.
    lasts_ns: tuple[int, int] | None = None


class How(StrEnum):
    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"
    AT_END = "at_end"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One `[[expect]]`: exactly one of `states`, `event` and `metric` is set."""

    line: int
    text: str  # what is expected, for people
    targets: Targets | None  # None: events of any subject
    from_ns: int
    until_ns: int | None  # None: the end of the run
    how: How = How.ALWAYS
    hold_ns: int = 0  # with SOMETIMES: at a stretch
    # a link's state
    states: frozenset[str] = frozenset()
    # an event
    event: str | None = None
    detail: tuple[tuple[str, str], ...] = ()  # what the event must say besides
    at_least: int = 0
    at_most: int | None = None
    # a figure
    metric: str | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a run writes down: every figure of these ports, so often."""

    every_ns: int
    ports: tuple[PortId, ...] | None = None  # None: all


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    about: str
    duration_ns: int | None
    seed: int
    topology: Config | None  # None: only to be run live
    telemetry: Telemetry
    lines: tuple[Line, ...]
    expectations: tuple[Expectation, ...]
