"""Every example in a help runs as it stands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rich_click as click
from click.shell_completion import ShellComplete

from accelctl.known import EVENT_KINDS, PROFILES
from accelctl.root import EXAMPLES, cli
from acceld.host.eventkinds import KINDS
from accelhw.model.profile import profile_names

from .conftest import Accelctl
from .fake_state import State


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


SCENARIO = """
for = "1m"
[topology]
cards = 2
[[do]]
fault = "dirty_connector_mild"
on = "card0/oe0"
at = 20
"""
COMMANDS = dict(commands(cli))
LINES = [*EXAMPLES, *(line for command in COMMANDS.values() for line in command.examples)]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_examples_of_itself(path: tuple[str, ...]) -> None:
    examples = COMMANDS[path].examples
    assert examples
    assert all(line.startswith(" ".join(("accelctl", *path))) for line in examples)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_shows_its_examples(path: tuple[str, ...], accelctl: Accelctl) -> None:
    outcome = accelctl(*path, "--help")
    assert outcome.code == 0
    for line in COMMANDS[path].examples:
        assert f"   {line}\n" in outcome.out


@pytest.mark.parametrize("line", LINES)
@pytest.mark.usefixtures("daemon")
def test_the_example_runs(
    line: str,
    accelctl: Accelctl,
    state: State,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(os.urandom(3000))
    Path("hot_aisle.toml").write_text(SCENARIO)
    if "card1:" in line and ("cp" in line or "sha256" in line):
        for name in ("weights", "pages"):
            state.add_region("card1", name, bytes(1 << 20), 0x500000)
    if "--wait" in line:
        state.training_end = "UP"
        monkeypatch.setattr("accelctl.commands.link.CARRIES_DATA", ("SEEKING",))
    monkeypatch.setattr("accelctl.commands.metrics.page", lambda url, timeout_s: "accel_x 1\n")
    outcome = accelctl(*shlex.split(line)[1:])
    if "event follow" in line:  # Endless; the fake ends it with a refusal.
        assert "SCRIPT_ENDED" in outcome.err or "no more events" in outcome.err
    elif "health check" in line:  # The fake's host is not well.
        assert (outcome.code, outcome.err) == (1, "")
    else:
        assert (outcome.code, outcome.err) == (0, "")


def test_there_are_no_stubs() -> None:
    nouns = {path[0] for path in COMMANDS}
    assert nouns.isdisjoint({"top"})
    assert ("oe", "eeprom") not in COMMANDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str, accelctl: Accelctl) -> None:
    assert "_ACCELCTL_COMPLETE" in accelctl("completion", shell).out


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("event list --kind LINK_D", "LINK_DOWN LINK_DAMPED"),
        ("event follow --kind link-d", "LINK_DOWN LINK_DAMPED"),
        ("event list --kind FELL", "FELL_OFF_BUS"),
        ("metrics budget --profile ", "dr8 oio single"),
        ("metrics budget --profile o", "oio"),
        ("metrics budget --profile x", ""),
    ],
)
def test_words_complete_without_a_daemon(line: str, completed: str) -> None:
    words = line.split(" ")
    completing = ShellComplete(cli, {}, "accelctl", "_ACCELCTL_COMPLETE")
    found = completing.get_completions(words[:-1], words[-1])
    assert sorted(item.value for item in found) == sorted(completed.split())


def test_words_that_complete_are_those_that_there_are() -> None:
    assert tuple(KINDS) == EVENT_KINDS
    assert tuple(profile_names()) == PROFILES


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("link show card1/", "card1/oe0 card1/oe1"),
        ("event list card1", "card1 card1/oe0 card1/oe1"),
        ("health check card1/oe1/lane3", "card1/oe1/lane3"),
        ("fault clear 3", "3f2a91"),
    ],
)
@pytest.mark.usefixtures("daemon")
def test_addresses_complete_from_the_daemon(line: str, completed: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "from accelctl import params; params.COMPLETION_TIMEOUT_S = 60;"  # however busy it is here
        " from accelctl.root import cli; cli(prog_name='accelctl')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "ACCEL_SOCKET": str(tmp_path / "acceld.sock"),
            "_ACCELCTL_COMPLETE": "bash_complete",
            "COMP_WORDS": f"accelctl {line}",
            "COMP_CWORD": "3",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [f"plain,{word}" for word in completed.split()]
