"""Runs a module of the emulator as a program of its own: its border is a process, not an import.

What needs no daemon (a comparison of published figures, a simulation) is computed by the emulator's
own code, in a child with the Python that runs us.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from accelctl import exits


def ask(module: str, *arguments: str) -> Any:
    """The JSON that `python -m module` prints. Raises Failed with the child's own words."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = done.stderr.strip().splitlines()
    words = said[-1] if said else f"{module} ended with status {done.returncode}"
    if done.returncode == exits.USAGE:
        raise exits.Failed(words, exits.USAGE, "USAGE")
    if "No module named" in words:
        words = f"{words}: the emulator is not installed beside accelctl"
    raise exits.Failed(words, exits.INTERNAL, "INTERNAL")


def arguments_of(**named: object) -> Sequence[str]:
    """`--bytes 64 --length 10` from bytes=64, length=10."""
    return [word for name, value in named.items() for word in (f"--{name}", str(value))]
