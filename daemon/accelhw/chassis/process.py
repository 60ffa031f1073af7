"""Processes that end together: a child asks the kernel to be told of its parent's death."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have this process get `with_signal` when `parent_pid` ends, also when it has ended already.

    Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), with_signal)
