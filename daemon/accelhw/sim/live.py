"""A scenario on a real rack: what is to be done when, and what to make of what is seen.

Somebody else carries it out and tells what happens; times they see are real ones, and a scenario
may be told to go faster than written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.fault.scenario import DIRT, REPLUG, Action, Scenario, Subject
from accelhw.fault.scenariofigures import BY_NAME, LEVELS
from accelhw.fault.scenariojudge import Judge, meant_end_ns
from accelhw.fault.scenariorack import subject_of
from accelhw.fault.scenariotime import SECOND_NS
from accelhw.fault.scenariotimeline import Moment, choose, does_what, unroll
from accelhw.model.ids import PortId

SEED_MASK = (1 << 63) - 1


class LiveRun:
    """`speed`: how many seconds of the scenario pass in a real one."""

    def __init__(self, scenario: Scenario, seed: int, duration_ns: int, speed: float) -> None:
        self._scenario = scenario
        self._seed = seed
        self._duration_ns = duration_ns
        self._speed = speed
        self._judge = Judge(
            scenario.expectations,
            meant_end_ns(scenario, duration_ns),
            lambda e, targets: choose(targets, seed, f"expect {e.line}"),
        )
        self._metrics = sorted({e.metric for e in scenario.expectations if e.metric is not None})
        self._figures: dict[str, Mapping[str, float]] = {}
        self._events: Counter[str] = Counter()
        self._refused: list[str] = []

    def plan(self) -> dict[str, Any]:
        """What to do, in order, and what to look at. Times are real seconds from the start."""
        moments = unroll(self._scenario, self._seed, self._duration_ns)
        return {
            "name": self._scenario.name,
            "seed": self._seed,
            "duration_s": self._real_s(self._duration_ns),
            "look_at": sorted({LEVELS[metric].value for metric in self._metrics}),
            "look_at_s": sorted(
                self._real_s(ns) for ns in self._judge.edges_ns() if ns <= self._duration_ns
            ),
            "moments": [self._step(number, moment) for number, moment in enumerate(moments, 1)],
        }

    def _real_s(self, ns: int) -> float:
        return ns / SECOND_NS / self._speed

    def _step(self, number: int, moment: Moment) -> dict[str, Any]:
        line = moment.line
        step: dict[str, Any] = {
            "at_s": self._real_s(moment.time_ns),
            "line": line.line,
            "name": line.name,
            "what": does_what(moment),
            "subject": None if moment.subject is None else str(moment.subject),
            "lanes": list(moment.lanes),
        }
        if line.clear is not None:
            return step | {"do": "clear", "of": line.clear}
        if line.fault is not None:
            settings = line.settings
            step |= {
                "do": "inject",
                "kind": line.fault,
                "fault_id": f"{line.name}-{number}",
                "seed": moment.seed & SEED_MASK,
                "shape": settings.shape,
                "ramp_s": None if settings.ramp_ns is None else self._real_s(settings.ramp_ns),
                "scale": settings.scale,
                "target_ber": settings.target_ber,
                "duration_s": None if moment.lasts_ns is None else self._real_s(moment.lasts_ns),
            }
            return step
        assert line.action is not None
        match line.action:
            case Action.CLEAN:
                return step | {"do": "take_away", "kinds": sorted(DIRT)}
            case Action.REPAIR:
                return step | {"do": "take_away", "kinds": None}
            case Action.REPLUG:
                return step | {
                    "do": "replug",
                    "kind": REPLUG,
                    "fault_id": f"{line.name}-{number}",
                    "seed": moment.seed & SEED_MASK,
                }
        return step | {"do": line.action.value}

    def hear(self, told: Mapping[str, Any]) -> None:
        """States, events and figures as of `at_s`; what could not be done as `refused`."""
        if "refused" in told:
            self._refused.append(told["refused"])
        if "at_s" not in told:
            return
        now_ns = round(told["at_s"] * self._speed * SECOND_NS)
        for port, state in told.get("states", {}).items():
            self._judge.state(now_ns, PortId.parse(port), state)
        for event in told.get("events", ()):
            self._events[event["kind"]] += 1
            subject = subject_of(event["subject"])
            self._judge.event(now_ns, event["kind"], subject, event.get("detail", {}))
        if "figures" in told:
            self._figures = told["figures"]
            self._judge.sample(now_ns, self._read)

    def _read(self, metric: str, subjects: tuple[Subject, ...]) -> NDArray[np.float64]:
        key = BY_NAME[metric].key
        found = (self._figures.get(str(subject), {}).get(key) for subject in subjects)
        return np.array([np.nan if value is None else float(value) for value in found])

    def finish(self, told: Mapping[str, Any]) -> dict[str, Any]:
        now_ns = min(round(told["end_s"] * self._speed * SECOND_NS), self._duration_ns)
        outcomes = self._judge.finish(now_ns)
        return {
            "name": self._scenario.name,
            "seed": self._seed,
            "duration_s": now_ns / SECOND_NS,
            "speed": self._speed,
            "events": dict(sorted(self._events.items())),
            "refused": self._refused,
            "refused_count": len(self._refused),
            "expectations": [outcome.plain() for outcome in outcomes],
            "met": all(outcome.met is not False for outcome in outcomes) and not self._refused,
        }
