"""Runs a module of the emulator as a program of its own: its border is a process, not an import.

What needs no daemon (a comparison of published figures, a simulation) is computed by the emulator's
own code, in a child with the Python that runs us.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from accelctl import exits

_PROGRAM = re.compile(r"^\S+: error: ")  # argparse names the child, which nobody called


def ask(module: str, *arguments: str) -> Any:
    """The JSON that `python -m module` prints. Raises Failed with the child's own words."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = done.stderr.strip().splitlines()
    words = said[-1] if said else f"{module} ended with status {done.returncode}"
    words = _PROGRAM.sub("", words)
    if done.returncode == exits.USAGE:
        raise exits.Failed(words, exits.USAGE, "USAGE")
    if "No module named" in words:
        words = f"{words}: the emulator is not installed beside accelctl"
    raise exits.Failed(words, exits.INTERNAL, "INTERNAL")


def arguments_of(**named: object) -> Sequence[str]:
    """`--bytes 64 --length 10` from bytes=64, length=10."""
    return [word for name, value in named.items() for word in (f"--{name}", str(value))]


class Conversation:
    """A module that runs and is talked with: JSON lines both ways. Use it in a `with`."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        """It ends with us, whatever ends us."""
        process = self._process
        if process.poll() is None:
            process.terminate()
        process.communicate()

    def say(self, **message: object) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(message) + "\n")
            pipe.flush()
        except BrokenPipeError:
            pass  # What it had to say about that comes out of `hear`.

    def hear(self) -> Iterator[dict[str, Any]]:
        """What it says, until it ends. Raises Failed where it ended without a last word."""
        pipe = self._process.stdout
        assert pipe is not None
        last: dict[str, Any] = {}
        for line in pipe:
            last = json.loads(line)
            yield last
        if not LAST_WORDS & last.keys():
            assert self._process.stderr is not None
            words = _last_line(self._process.stderr.read())
            status = f"{self._module} ended with status {self._process.wait()}"
            raise exits.Failed(words or status, exits.INTERNAL, "INTERNAL")


LAST_WORDS = frozenset({"result", "mistakes", "error", "scenario"})


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
