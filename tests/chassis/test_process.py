"""What a process asks of the kernel for itself."""

from __future__ import annotations

import subprocess
import sys

SLICE_NS = 100_000_000
ASK = f"""
import os
from accelhw.chassis.process import work_in_long_strokes
work_in_long_strokes({SLICE_NS})
print(os.sched_getscheduler(0) == os.SCHED_BATCH)
shown = [line.split()[-1] for line in open("/proc/self/sched") if ".slice " in line]
print(*shown or [{SLICE_NS}])
"""


def test_long_strokes_are_batch_with_long_slices_where_the_kernel_shows_them() -> None:
    told = subprocess.run([sys.executable, "-c", ASK], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["True", str(SLICE_NS)]
