"""What a rack costs is reckoned with all of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from support.rack import cpu_s, private_mib, pss_mib, with_movers

NAMED = """
import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
while time.process_time() < 0.05: pass
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def child(name: str) -> Iterator[int]:
    """A child of ours by that name, which has worked and waits."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", NAMED, name], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_movers_count_with_the_worker_that_made_them() -> None:
    me = [os.getpid()]
    with child("accel-mover3") as mover, child("something") as other:
        assert with_movers(me) == [*me, mover]
        assert other not in with_movers(me)
        assert cpu_s(me) > cpu_s([mover]) > 0.04
        assert pss_mib(me) > pss_mib([mover]) > 1
        assert private_mib(me) > private_mib([mover]) > 1
        assert with_movers([*me, mover]) == [*me, mover], "each counts once"
    assert with_movers(me) == me
