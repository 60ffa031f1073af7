"""A scenario in simulated time: a fleet that its lines happen to, judged by its expectations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.device.refusal import EngineRefusal
from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.scenario import DIRT, REPLUG, Action, Level, Scenario, Subject, Targets
from accelhw.fault.scenariofigures import BY_NAME
from accelhw.fault.scenariojudge import Judge, Outcome, meant_end_ns
from accelhw.fault.scenariorack import subject_of
from accelhw.fault.scenariotime import show_span
from accelhw.fault.scenariotimeline import Moment, choose, does_what, unroll
from accelhw.interface.messages import FaultInfo, InjectFault
from accelhw.model.ids import LaneId, PortId
from accelhw.model.link import LinkState
from accelhw.sim.fleet import BORN_NS, SECOND_NS, Fleet, Told
from accelhw.sim.fleetmarks import FleetMarks
from accelhw.sim.outputs import FORMATS, ROWS_MAX, Outputs
from accelhw.sim.parquet import NoParquet
from accelhw.sim.parquet import check as check_parquet
from accelhw.sim.samples import Things
from accelhw.sim.telemetry import Truths
from accelhw.sim.truth import Truth

START_NS = 1_767_225_600 * SECOND_NS  # 2026-01-01: runs of one seed show the same dates
FINE_NS = 5 * SECOND_NS  # steps of physics while temperatures move
QUIET_NS = 300 * SECOND_NS  # and when nothing moves, unless samples are further apart
LINKS_SHOWN = 10
REFUSALS_SHOWN = 20


class RunRefused(Exception):
    """The run cannot begin; the message says why and what works."""


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    duration_ns: int
    step_ns: int | None = None  # between samples; None: as the scenario says
    out: Path | None = None
    start_ns: int = START_NS  # wall clock at the start
    formats: tuple[str, ...] = FORMATS[:1]  # of telemetry
    cold_start: bool = False  # no training went before


@dataclass(slots=True)
class LinkStory:
    """How a port fared. Times in ns."""

    state: LinkState = LinkState.DOWN
    since_ns: int = 0
    spent_ns: Counter[LinkState] = field(default_factory=Counter)
    downs: int = 0
    ever_up: bool = False
    faults: int = 0

    def turn(self, now_ns: int, state: LinkState) -> None:
        self.spent_ns[self.state] += now_ns - self.since_ns
        if self.state.carries_data and not state.carries_data:
            self.downs += 1
        self.ever_up |= state.carries_data
        self.state, self.since_ns = state, now_ns

    @property
    def degraded_ns(self) -> int:
        return self.spent_ns[LinkState.DEGRADED]

    @property
    def down_ns(self) -> int:
        return sum(ns for state, ns in self.spent_ns.items() if not state.carries_data)


class Run:
    """One run; `finish` after `go`. `progress` is told how far it is, in ns."""

    def __init__(
        self,
        scenario: Scenario,
        options: Options,
        progress: Callable[[int], None] = lambda ns: None,
    ) -> None:
        assert scenario.topology is not None
        self.scenario = scenario
        self.options = options
        self._progress = progress
        self._config = scenario.topology
        self._step_ns = options.step_ns or scenario.telemetry.every_ns
        self._moments = unroll(scenario, options.seed, options.duration_ns)
        self._judge = Judge(
            scenario.expectations, meant_end_ns(scenario, options.duration_ns), self._choose
        )
        self._stories: dict[PortId, LinkStory] = {}
        self._events: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._skipped = 0
        self._refused: list[str] = []
        self._of_line: dict[str, dict[str, str]] = {}  # active faults: line, id, card
        self._lines: dict[str, int] = {}
        self._fault_number = 0
        self._samples = 0
        things = self._things()
        causes = _causes_of(scenario)
        self._check_size(things)
        self._fleet = Fleet(
            self._config,
            options.seed,
            self._on_event,
            self._on_state,
            self._on_fault,
            options.start_ns,
        )
        self._truth = Truth(self._config, things.lanes, causes)
        self._known_rows: dict[tuple[Subject, ...], NDArray[np.intp]] = {}
        self._rows = {
            Level.CARD: self._rows_of(things.cards),
            Level.PORT: self._rows_of(things.ports),
            Level.LANE: self._rows_of(things.lanes),
        }
        self._outputs = None
        if options.out is not None:
            self._outputs = Outputs(options.out, things, causes, options.formats)
            self._marks = FleetMarks(self._config, self._fleet.cards, things)
        self._stories = {port: LinkStory() for port in self._fleet.seats}
        for port in self._stories:
            self._judge.state(0, port, LinkState.DOWN.name)

    def _things(self) -> Things:
        plugged = {end.port for f in self._config.fibres for end in (f.a, f.b) if end is not None}
        chosen = self.scenario.telemetry.ports
        watched = plugged if chosen is None else plugged & set(chosen)
        ports = [
            (port, card.profile.lanes_per_oe)
            for card in self._config.cards
            for port in (PortId(card.name, oe) for oe in range(card.profile.oes))
            if port in watched
        ]
        return Things(
            tuple(dict.fromkeys(port.card for port, _ in ports)),
            tuple(port for port, _ in ports),
            tuple(LaneId(port, lane) for port, count in ports for lane in range(count)),
        )

    def _check_size(self, things: Things) -> None:
        if self.options.out is None:
            return
        if "parquet" in self.options.formats:
            try:
                check_parquet()
            except NoParquet as missing:
                raise RunRefused(str(missing)) from missing
        samples = self.options.duration_ns // self._step_ns
        rows = samples * len(things.lanes)
        if rows > ROWS_MAX:
            least_ns = -(-self.options.duration_ns * len(things.lanes) // ROWS_MAX)
            step = show_span(-(-least_ns // (60 * SECOND_NS)) * 60 * SECOND_NS)
            raise RunRefused(
                f"{len(things.lanes)} lanes every {show_span(self._step_ns)} make {rows} rows of"
                f" telemetry, more than {ROWS_MAX}; use --step {step}, or name fewer ports in"
                ' the scenario: [telemetry] on = "card0/*"'
            )

    def size(self) -> dict[str, int] | None:
        """About what will be written; None: nothing."""
        if self._outputs is None:
            return None
        samples = -(-self.options.duration_ns // self._step_ns)
        series, bytes_each = self._outputs.size_each(list(self._marks.marks()))
        return {
            "samples": samples,
            "step_s": self._step_ns // SECOND_NS,
            "series": series,
            "bytes": samples * bytes_each,
            "free_bytes": self._outputs.free_bytes,
        }

    def _choose(self, expectation: Any, targets: Targets) -> tuple[Subject, ...]:
        return choose(targets, self.options.seed, f"expect {expectation.line}")

    # ---- turning the clock ---------------------------------------------------------------------

    def go(self) -> None:
        """To the end. The files are complete after `finish`."""
        fleet = self._fleet
        fleet.power_on(self.options.cold_start)
        moments = iter([*self._moments, None])
        moment = next(moments)
        for time_ns, is_sample in self._times():
            while moment is not None and moment.time_ns <= time_ns:
                fleet.run_until(moment.time_ns)
                self._perform(moment)
                moment = next(moments)
            fleet.run_until(time_ns)
            fleet.step()
            if is_sample:
                self._sample(time_ns)
            self._progress(time_ns)

    def _times(self) -> Iterator[tuple[int, bool]]:
        """When to stop, in order: samples, edges of expectations, and steps of physics between."""
        end_ns = self.options.duration_ns
        edges = sorted(ns for ns in self._judge.edges_ns() if ns < end_ns)
        now_ns, sample_ns = 0, self._step_ns
        quiet_ns = max(self._step_ns, QUIET_NS)
        if self._outputs is None and not self._judge.wants_samples:
            sample_ns = end_ns  # Nobody looks.
        while now_ns < end_ns:
            while edges and edges[0] <= now_ns:
                edges.pop(0)
            edge_ns = edges[0] if edges else end_ns
            tick_ns = FINE_NS if self._fleet.restless else quiet_ns
            now_ns = min(now_ns + tick_ns, sample_ns, edge_ns, end_ns)
            yield now_ns, now_ns in (sample_ns, edge_ns, end_ns)
            if now_ns == sample_ns:
                sample_ns += self._step_ns

    def _sample(self, time_ns: int) -> None:
        self._fleet.sense()
        self._judge.sample(time_ns, self._read_figure)
        if self._outputs is not None and (
            time_ns % self._step_ns == 0 or time_ns == self.options.duration_ns
        ):
            self._samples += 1
            truth = self._truth
            self._outputs.sample(
                time_ns + self.options.start_ns,
                self._read_column,
                Truths(truth.near, truth.far, truth.amounts(time_ns + BORN_NS)),
                self._marks.marks(),
            )

    def _rows_of(self, subjects: Sequence[Subject]) -> NDArray[np.intp]:
        key = tuple(subjects)
        if key not in self._known_rows:
            places = self._fleet.columns.places
            self._known_rows[key] = np.array([places[subject] for subject in key], np.intp)
        return self._known_rows[key]

    def _read_column(self, level: Level, name: str) -> NDArray[Any]:
        return self._fleet.columns.column(level, name)[self._rows[level]]

    def _read_figure(self, name: str, subjects: tuple[Subject, ...]) -> NDArray[np.float64]:
        figure, columns, rows = BY_NAME[name], self._fleet.columns, self._rows_of(subjects)
        values = np.asarray(columns.column(figure.level, figure.column)[rows], np.float64)
        if figure.present:
            lit = columns.column(figure.level, figure.present)[rows] != 0
            return np.where(lit, values, np.nan)
        return values

    # ---- what the scenario does ----------------------------------------------------------------

    def _perform(self, moment: Moment) -> None:
        try:
            if moment.line.clear is not None:
                for fault_id, card in list(self._of_line.get(moment.line.clear, {}).items()):
                    self._fleet.clear(card, fault_id)
            elif moment.line.fault is not None:
                self._inject(moment, moment.line.fault)
            else:
                self._act(moment)
        except EngineRefusal as refusal:
            what = f"{does_what(moment)} on {moment.place}" if moment.place else does_what(moment)
            at = show_span(moment.time_ns)
            self._refused.append(f"line {moment.line.line}, at {at}: {what}: {refusal}")

    def _inject(self, moment: Moment, kind: str) -> None:
        if self._is_there(moment, kind):
            self._skipped += 1
            return
        settings = moment.line.settings
        self._fault_number += 1
        fault_id = f"{moment.line.name}-{self._fault_number}"
        self._lines[fault_id] = moment.line.line
        self._of_line.setdefault(moment.line.name, {})[fault_id] = _card_of(moment)
        command = InjectFault(
            id=self._fault_number,
            fault_id=fault_id,
            kind=kind,
            subject=str(moment.subject),
            lanes=moment.lanes,
            shape=settings.shape or "",
            duration_s=(moment.lasts_ns or 0) / SECOND_NS,
            ramp_s=(settings.ramp_ns or 0) / SECOND_NS,
            scale=1.0 if settings.scale is None else settings.scale,
            target_ber=settings.target_ber or 0.0,
            seed=moment.seed,
            started_ns=moment.time_ns + self.options.start_ns,
        )
        try:
            self._fleet.inject(command)
        except EngineRefusal:
            self._of_line[moment.line.name].pop(fault_id, None)
            raise

    def _is_there(self, moment: Moment, kind: str) -> bool:
        """The same fault lies there already: it stays as it is."""
        return any(
            info.kind == kind
            and info.subject == str(moment.subject)
            and (not moment.lanes or not info.lanes or set(moment.lanes) & set(info.lanes))
            for info in self._truth.active.values()
        )

    def _act(self, moment: Moment) -> None:
        action, subject, fleet = moment.line.action, moment.subject, self._fleet
        if isinstance(subject, str) and action is Action.RESET:
            fleet.reset(subject)
            return
        if action in (Action.CLEAN, Action.REPAIR):
            self._take_away(moment, DIRT if action is Action.CLEAN else None)
            return
        assert isinstance(subject, PortId)
        match action:
            case Action.LINK_DOWN:
                fleet.set_admin(subject, False)
            case Action.LINK_UP:
                fleet.set_admin(subject, True)
            case Action.RETRAIN:
                fleet.retrain(subject)
            case Action.REPLUG:
                self._take_away(moment, frozenset({REPLUG}))
                self._inject(moment, REPLUG)

    def _take_away(self, moment: Moment, kinds: frozenset[str] | None) -> None:
        for info in list(self._truth.active.values()):
            if (kinds is None or info.kind in kinds) and _covers(moment, info):
                self._fleet.clear(info.subject.partition("/")[0], info.fault_id)

    # ---- what the fleet says -------------------------------------------------------------------

    def _on_event(self, told: Told) -> None:
        self._events[told.kind] += 1
        self._judge.event(told.time_ns, told.kind, subject_of(told.subject), told.detail)
        if self._outputs is not None:
            self._outputs.events.write(
                told.time_ns + self.options.start_ns,
                told.severity.name,
                told.kind,
                told.subject,
                told.message,
                told.detail,
            )

    def _on_state(self, now_ns: int, port: PortId, state: LinkState) -> None:
        self._stories[port].turn(now_ns, state)
        self._judge.state(now_ns, port, state.name)

    def _on_fault(self, info: FaultInfo) -> None:
        self._faults[info.state] += 1
        self._truth.change(info)
        subject = subject_of(info.subject)
        for port, story in self._stories.items():
            if info.state == "ACTIVE" and (port == subject or port.card == subject):
                story.faults += 1
        if info.state != "ACTIVE":
            for ids in self._of_line.values():
                ids.pop(info.fault_id, None)
            self._write_fault(info, self._fleet.now_ns, info.state)

    def _write_fault(self, info: FaultInfo, ended_ns: int | None, end: str) -> None:
        if self._outputs is not None:
            until_ns = None if ended_ns is None else ended_ns + self.options.start_ns
            self._outputs.fault(info, until_ns, end, self._lines.get(info.fault_id))

    # ---- the end -------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        """The run in figures. Closes its files."""
        end_ns = self.options.duration_ns
        for story in self._stories.values():
            story.turn(end_ns, story.state)
        for info in self._truth.active.values():
            self._write_fault(info, None, "ACTIVE")
        outcomes = self._judge.finish(end_ns)
        result = self._summary(outcomes)
        if self._outputs is not None:
            self._outputs.finish(result)
        self._fleet.close()
        return result

    def abandon(self) -> None:
        """Ended before its time: nothing is left of it."""
        if self._outputs is not None:
            self._outputs.discard()
        self._fleet.close()

    def _summary(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        config, options = self._config, self.options
        # A link is told from its end a: both ends agree but for milliseconds.
        links = {fibre.a.port: self._stories[fibre.a.port] for fibre in config.fibres}
        degraded_ns = sum(story.degraded_ns for story in links.values())
        down_ns = sum(story.down_ns for story in links.values())
        whole_ns = options.duration_ns * max(len(links), 1)
        expected = [outcome.plain() for outcome in outcomes]
        return {
            "name": self.scenario.name,
            "seed": options.seed,
            "duration_s": options.duration_ns / SECOND_NS,
            "start_s": options.start_ns / SECOND_NS,
            "cards": len(config.cards),
            "links": len(links),
            "lanes": sum(card.profile.signal_lines for card in config.cards),
            "links_up": sum(story.state.carries_data for story in links.values()),
            "downs": sum(story.downs for story in links.values()),
            "degraded_s": degraded_ns / SECOND_NS,
            "down_s": down_ns / SECOND_NS,
            "availability_ratio": round(1.0 - down_ns / whole_ns, 9),
            "faults_injected": self._faults["ACTIVE"],
            "faults_cleared": self._faults["CLEARED"],
            "faults_ended": self._faults["ENDED"],
            "faults_skipped": self._skipped,
            "refused": self._refused[:REFUSALS_SHOWN],
            "refused_count": len(self._refused),
            "events": dict(sorted(self._events.items())),
            "samples": self._samples,
            "worst_links": _worst(links),
            "expectations": expected,
            "met": all(outcome.met is not False for outcome in outcomes) and not self._refused,
        }


def _causes_of(scenario: Scenario) -> tuple[str, ...]:
    """Those that its faults change, in the order of the catalogue."""
    kinds = {line.fault for line in scenario.lines}
    if any(line.action is Action.REPLUG for line in scenario.lines):
        kinds.add(REPLUG)
    return tuple(
        dict.fromkeys(
            effect.cause
            for kind in CATALOGUE.values()
            if kind.id in kinds
            for effect in kind.effects
        )
    )


def _worst(links: dict[PortId, LinkStory]) -> list[dict[str, Any]]:
    def badness(item: tuple[PortId, LinkStory]) -> tuple[int, int, int]:
        story = item[1]
        return -story.down_ns, -story.degraded_ns, -story.downs

    troubled = [item for item in links.items() if item[1].downs or item[1].degraded_ns]
    troubled += [item for item in links.items() if not item[1].ever_up and item not in troubled]
    return [
        {
            "link": str(port),
            "state": story.state.name,
            "downs": story.downs,
            "down_s": story.down_ns / SECOND_NS,
            "degraded_s": story.degraded_ns / SECOND_NS,
            "faults": story.faults,
        }
        for port, story in sorted(troubled, key=badness)[:LINKS_SHOWN]
    ]


def _card_of(moment: Moment) -> str:
    subject = moment.subject
    assert subject is not None
    return subject if isinstance(subject, str) else subject.card


def _covers(moment: Moment, info: FaultInfo) -> bool:
    """Whether the fault sits where the moment is."""
    if isinstance(moment.subject, str):
        return info.subject.partition("/")[0] == moment.subject
    if info.subject != str(moment.subject):
        return False
    return not moment.lanes or bool(set(moment.lanes) & set(info.lanes))
