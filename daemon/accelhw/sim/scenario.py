"""python -m accelhw.sim.scenario: scenarios, for a program that shows them: JSON lines out.

    check FILE [--rack]   what the scenario holds; with --rack a real rack is told on stdin
    run FILE              in simulated time: progress, then the result
    live FILE             the plan for a real rack, told on stdin; then judges what is told there

Exit code 0: good; 1: not as expected; 2: `mistakes` or an `error` were said; 130: interrupted.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofigures import LEVELS
from accelhw.fault.scenariofile import Known, load
from accelhw.fault.scenariorack import Rack
from accelhw.fault.scenariotime import BadSpan, parse_span, show_span
from accelhw.fault.shapes import ShapeKind
from accelhw.model.configfile import SEED_MAX
from accelhw.model.event import EVENT_KINDS
from accelhw.model.ids import PortId
from accelhw.model.profile import UnknownProfile, load_profile

FALSE, USAGE, CONFLICT, INTERRUPTED = 1, 2, 6, 130
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
FORMATS = ("csv", "parquet")  # of telemetry
PROGRESS_S = 0.2  # between two lines of progress
KNOWN = Known(CATALOGUE, tuple(shape.value for shape in ShapeKind), tuple(EVENT_KINDS), LEVELS)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="accelhw.sim.scenario", description=__doc__)
    parser.add_argument("verb", choices=("check", "run", "live"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed")
    parser.add_argument("--for", dest="duration")
    parser.add_argument("--step")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--format", action="append", choices=FORMATS)
    parser.add_argument("--cold-start", action="store_true")
    parser.add_argument("--rack", action="store_true")
    parser.add_argument("--speed", type=float, default=1.0)
    chosen = parser.parse_args(arguments)
    try:
        match chosen.verb:
            case "check":
                return _check(chosen)
            case "run":
                return _run(chosen)
        return _live(chosen)
    except KeyboardInterrupt:
        return INTERRUPTED


def say(**message: Any) -> None:
    print(json.dumps(message, ensure_ascii=False), flush=True)


def _fail(text: str) -> NoReturn:
    say(error=text)
    sys.exit(USAGE)


# ---- what was asked for --------------------------------------------------------------------------


def _read(chosen: argparse.Namespace, rack: Rack | None = None) -> Scenario:
    path: Path = chosen.file
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _fail(f"{path}: {getattr(error, 'strerror', None) or 'it is no text'}")
    for_ns = _span(chosen.duration, "--for") if chosen.duration is not None else None
    found = load(text, KNOWN, lambda name: (path.parent / name).read_text("utf-8"), rack, for_ns)
    if isinstance(found, list):
        say(
            mistakes=[
                {"line": m.line, "key": m.key, "problem": m.problem, "remedy": m.remedy}
                for m in found
            ]
        )
        sys.exit(USAGE)
    return found


def _span(text: str, option: str) -> int:
    try:
        ns = parse_span(float(text) if _is_number(text) else text)
    except BadSpan as error:
        _fail(f"{option}: {error}")
    if ns == 0:
        _fail(f"{option}: {text!r} is no time at all; use 30d or 90s")
    return ns


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _seed(chosen: argparse.Namespace, scenario: Scenario) -> int:
    if chosen.seed is None:
        return scenario.seed
    text: str = chosen.seed
    if not (text.isascii() and text.isdecimal() and int(text) <= SEED_MAX):
        _fail(f"--seed: {text!r} is no seed; use a whole number from 0 to {SEED_MAX}")
    return int(text)


def _duration_ns(chosen: argparse.Namespace, scenario: Scenario) -> int:
    if chosen.duration is not None:
        return _span(chosen.duration, "--for")
    if scenario.duration_ns is None:
        _fail(f'{chosen.file}: how long? use --for 30d, or write for = "30d" into the file')
    return scenario.duration_ns


def _rack_told() -> Rack:
    """From the first line of stdin: {"cards": {"card0": "oio"}, "plugged": ["card0/oe0"]}."""
    told = json.loads(sys.stdin.readline())
    try:
        cards = {card: load_profile(name) for card, name in told["cards"].items()}
    except UnknownProfile as unknown:
        _fail(f"the rack has a card of profile {unknown.name!r}, which is unknown here")
    return Rack(cards, frozenset(PortId.parse(text) for text in told["plugged"]))


# ---- check ---------------------------------------------------------------------------------------


def _check(chosen: argparse.Namespace) -> int:
    rack = _rack_told() if chosen.rack else None
    scenario = _read(chosen, rack)
    seed = _seed(chosen, scenario)
    topology = scenario.topology
    if rack is None and topology is not None:
        rack = Rack.of(topology)
    assert rack is not None
    duration_ns = scenario.duration_ns
    if chosen.duration is not None:
        duration_ns = _duration_ns(chosen, scenario)
    moments = None
    if duration_ns is not None:
        from accelhw.fault.scenariotimeline import unroll

        moments = len(unroll(scenario, seed, duration_ns))
    say(
        scenario={
            "file": str(chosen.file),
            "name": scenario.name,
            "about": scenario.about,
            "seed": seed,
            "duration": None if duration_ns is None else show_span(duration_ns),
            "cards": len(rack.cards),
            "ports": len(rack.ports),
            "lanes": sum(rack.cards[port.card].lanes_per_oe for port in rack.ports),
            "lines": len(scenario.lines),
            "moments": moments,
            "expectations": len(scenario.expectations),
        }
    )
    return 0


# ---- run -----------------------------------------------------------------------------------------


def _run(chosen: argparse.Namespace) -> int:
    scenario = _read(chosen)
    seed, duration_ns = _seed(chosen, scenario), _duration_ns(chosen, scenario)
    step_ns = None if chosen.step is None else _span(chosen.step, "--step")
    # numpy and the machines behind it load only when there is something to run.
    from accelhw.sim.run import Options, Run, RunRefused

    begun_s = time.monotonic()
    told_s = [begun_s]

    def progress(now_ns: int) -> None:
        now_s = time.monotonic()
        if now_s - told_s[0] >= PROGRESS_S:
            told_s[0] = now_s
            say(progress={"done_s": now_ns / 1e9, "total_s": duration_ns / 1e9})

    try:
        formats = tuple(dict.fromkeys(chosen.format or FORMATS[:1]))
        options = Options(
            seed, duration_ns, step_ns, chosen.out, formats=formats, cold_start=chosen.cold_start
        )
        run = Run(scenario, options, progress)
    except RunRefused as refused:
        _fail(f"{chosen.file}: {refused}")
    except OSError as error:
        _fail(f"--out: {error.filename}: {error.strerror}")
    if (size := run.size()) is not None:
        say(size=size)
    try:
        run.go()
        result = run.finish()
    except KeyboardInterrupt:
        run.abandon()
        raise
    except OSError as error:
        with suppress(OSError):  # What is left has no room either.
            run.abandon()
        say(error=f"--out: {chosen.out}: {error.strerror or error}", reason="UNWRITABLE")
        sys.exit(CONFLICT)
    say(result=result, took_s=round(time.monotonic() - begun_s, 3))
    return 0 if result["met"] else FALSE


def _interrupted_once(number: int, frame: FrameType | None) -> NoReturn:
    """Ctrl-C comes twice: from the terminal, and from whoever started us. The second must not meet
    the clearing away."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


# ---- live ----------------------------------------------------------------------------------------


def _live(chosen: argparse.Namespace) -> int:
    from accelhw.sim.live import LiveRun

    scenario = _read(chosen, _rack_told())
    seed, duration_ns = _seed(chosen, scenario), _duration_ns(chosen, scenario)
    run = LiveRun(scenario, seed, duration_ns, chosen.speed)
    say(plan=run.plan())
    for line in sys.stdin:
        told = json.loads(line)
        run.hear(told)
        if "end_s" in told:
            result = run.finish(told)
            say(result=result)
            return 0 if result["met"] else FALSE
    return INTERRUPTED  # Whoever carried it out is gone.


if __name__ == "__main__":
    for interrupt in INTERRUPTS:
        signal.signal(interrupt, _interrupted_once)
    sys.exit(main())
