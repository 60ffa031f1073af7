"""The scenario file: TOML to values, or every mistake in it with its line and a remedy.

The schema, by table (defaults in brackets, * required):

    name [the file's], about, for [the command line's], seed [1]
    [topology]  config*: a configuration file, or instead of it a fleet made up:
                cards*, profile [dr8], shape [pairs]: pairs, ring, mesh, length_m [10]
    [telemetry] every [60s], on [all ports]
    [[do]]      fault* or action* or clear*: a fault of the catalogue, an operator's action, or the
                name of an earlier line
                on*: an address, a pattern, `all ports`, or a list of them; pick: so many of them
                at*, or every with from, until, or fit, per_hour, per_day with from, until
                for: how long, or [shortest, longest]; lanes, shape, ramp, scale, target_ber; name
    [[expect]]  state* or event* or metric*, on, from, until, at, how [always], hold,
                at_least, at_most, count, reason, fault, above, below, about
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from accelhw.fault.kinds import FaultKind
from accelhw.fault.scenario import Level, Scenario, Telemetry
from accelhw.fault.scenariocheck import find_contradictions
from accelhw.fault.scenarioexpect import read_expectations
from accelhw.fault.scenariolines import read_lines
from accelhw.fault.scenarioplace import read_targets, span
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import SECOND_NS
from accelhw.fault.scenariotopology import read_topology
from accelhw.model.configfile import SEED_MAX, syntax_mistake
from accelhw.model.ids import PortId
from accelhw.model.tomllines import key_lines
from accelhw.model.tomltable import Mistake, Table

TABLES = ("name", "about", "for", "seed", "topology", "telemetry", "do", "expect")
TELEMETRY_KEYS = ("every", "on")
EVERY_DEFAULT_NS = 60 * SECOND_NS
EVERY_MIN_NS = SECOND_NS


@dataclass(frozen=True, slots=True)
class Known:
    """The words that a scenario may use, besides addresses."""

    faults: Mapping[str, FaultKind]
    shapes: Sequence[str]
    events: Sequence[str]
    metrics: Mapping[str, Level]


def load(
    text: str,
    known: Known,
    open_config: Callable[[str], str],
    rack: Rack | None = None,
    for_ns: int | None = None,
) -> Scenario | list[Mistake]:
    """The scenario, or all its mistakes in the order of their lines.

    `open_config` gives the text of a configuration that the scenario names; it may raise OSError.
    `rack` is a real one, to be used instead of the scenario's own topology; `for_ns` how long it
    will run, where that is not left to the file: what comes later then is cut off.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [syntax_mistake(str(error), text)]
    mistakes: list[Mistake] = []
    top = Table(document, (), "", key_lines(text), mistakes)
    top.refuse_unknown(TABLES)
    name = top.text("name", "A night of repairs") or ""
    about = top.text("about", "What it shows.") or ""
    own_for_ns = span(top, "for", "30d", least_ns=1)
    seed = top.integer("seed", 0, SEED_MAX, 1)
    topology = read_topology(top, open_config, needed=rack is None)
    if rack is None and topology is not None:
        rack = Rack.of(topology)
    ends_ns = max((ns for ns in (own_for_ns, for_ns) if ns is not None), default=None)
    lines = read_lines(top, rack, known.faults, known.shapes, ends_ns)
    expectations = read_expectations(top, rack, known.events, known.metrics, ends_ns)
    telemetry = _read_telemetry(top.table("telemetry"), rack)
    if not mistakes:
        find_contradictions(top, lines, ends_ns)
    if mistakes:
        return sorted(mistakes, key=lambda mistake: mistake.line)
    return Scenario(
        name=name,
        about=about,
        duration_ns=own_for_ns,
        seed=1 if seed is None else seed,
        topology=topology,
        telemetry=telemetry,
        lines=lines,
        expectations=expectations,
    )


def _read_telemetry(table: Table, rack: Rack | None) -> Telemetry:
    table.refuse_unknown(TELEMETRY_KEYS)
    every_ns = span(table, "every", "60s", least_ns=EVERY_MIN_NS)
    targets = read_targets(table, rack, required=False)
    ports: tuple[PortId, ...] | None = None
    if targets is not None:
        ports = tuple(subject for subject in targets.subjects if isinstance(subject, PortId))
        if len(ports) != len(targets.subjects):
            table.complain("on", f"a {targets.level} is no port", 'use e.g. "card0/*"')
    return Telemetry(EVERY_DEFAULT_NS if every_ns is None else every_ns, ports)
