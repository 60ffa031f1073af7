"""`python -m acceld.demo.child PARENT_PID ...`: the command `acceld ...`, which ends with the demo.

The child asks for that itself. Between a fork and its program, as `preexec_fn` runs, the threads
that gRPC has in the demo would be missing, and gRPC itself may write lines of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    parent_pid = int(sys.argv.pop(1))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent_pid:
        return  # It ended before we could ask.
    from acceld.main import main as acceld

    acceld()


if __name__ == "__main__":
    main()
