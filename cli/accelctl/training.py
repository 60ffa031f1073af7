"""Follows a training: a line per step, and on a terminal a line per phase that fills with lanes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from accel.errors import Internal
from accel.plain import to_plain, word
from accelctl import figures, formats, render
from accelctl.session import Session
from accelctl.view import View

ERASE = "\r\x1b[K"


def follow(session: Session, view: View, port: str) -> Any:
    """Trains, shows each step, and gives the link as it is at the end."""
    steps = session.client.links.train(port)
    if session.output == "jsonl":
        link = _each(steps, lambda step, _: view.write(formats.to_jsonl([to_plain(step)])))
    elif not session.human:
        link = _each(steps, lambda step, took_ms: None)
    elif sys.stdout.isatty():
        phases = Phases(view, session.colored)
        link = _each(steps, phases.show)
        phases.close()
    else:
        link = _each(steps, partial(_write, view))
    if link is None:
        raise Internal(f"{port}: the daemon ended the training without a result")
    return link


def _write(view: View, step: Any, took_ms: float) -> None:
    if step.text:  # The last step carries the link alone; the command tells that.
        view.write(line(step, took_ms, False) + "\n")


def _each(steps: Iterable[Any], show: Any) -> Any:
    link = None
    started = time.monotonic()
    for step in steps:
        show(step, (time.monotonic() - started) * 1e3)
        if step.HasField("link"):
            link = step.link
    return link


def line(step: Any, took_ms: float, colored: bool) -> str:
    """`  12 ms  TRAINING  LOCK  lane3  text`."""
    state = word(step, "state")
    lane = f"lane{step.lane}" if step.HasField("lane") else ""
    painted = render.paint(state.ljust(8), render.STATE_STYLES.get(state, ""), colored)
    text = render.clean(step.text)
    return f"{took_ms:6.0f} ms  {painted}  {step.phase:<11}  {lane:<7}  {text}".rstrip()


class Phases:
    """Lanes of one phase share a line: `  12 ms  TRAINING  LOCK  4 lanes: 0-3`."""

    def __init__(self, view: View, colored: bool) -> None:
        self._view = view
        self._colored = colored
        self._phase = ""
        self._lanes: list[int] = []

    def show(self, step: Any, took_ms: float) -> None:
        if not step.text:
            return
        shown = line(step, took_ms, self._colored)
        if not step.HasField("lane"):
            self.close()
            self._view.write(shown + "\n")
            return
        if step.phase != self._phase:
            self.close()
            self._phase = step.phase
        if step.lane not in self._lanes:
            self._lanes.append(step.lane)
        state = word(step, "state")
        painted = render.paint(state.ljust(8), render.STATE_STYLES.get(state, ""), self._colored)
        head = f"{took_ms:6.0f} ms  {painted}  {step.phase:<11}  "
        room = render.terminal_width() - 34
        count = len(self._lanes)
        lanes = f"{count} lane{'' if count == 1 else 's'}: {figures.ranges(self._lanes)}"
        self._view.write(ERASE + head + render.cut(lanes, max(room, 10)))

    def close(self) -> None:
        """Ends the line that is being filled, if there is one."""
        if self._lanes:
            self._view.write("\n")
        self._phase, self._lanes = "", []
