"""A fake daemon for each test, and accelctl run against it in this process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from accelctl import render, root

from .fake_canned import EPOCH_S
from .fake_server import FakeDaemon
from .fake_state import State


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


Accelctl = Callable[..., Outcome]


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def daemon(tmp_path: Path, state: State) -> Iterator[FakeDaemon]:
    fake = FakeDaemon(tmp_path, state).start()
    yield fake
    fake.stop()


@pytest.fixture
def terminal(accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch) -> Accelctl:
    """As accelctl, on a terminal without colours."""
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: str) -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            return accelctl(*arguments)

    return call


@pytest.fixture
def accelctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Accelctl]:
    """`accelctl("link", "list")`: the exit code and what was printed. 80 columns, UTC."""
    monkeypatch.setenv("ACCEL_SOCKET", str(tmp_path / "acceld.sock"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    monkeypatch.setattr(render, "now_s", lambda: EPOCH_S + 7500)

    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = root.run(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    yield call
    monkeypatch.undo()
    time.tzset()
