"""Processes that end together: a child asks the kernel to be told of its parent's death."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_NAME = 15
PR_SET_TIMERSLACK = 29
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


def die_with_parent(parent_pid: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have this process get `with_signal` when `parent_pid` ends, also when it has ended already.

    Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), with_signal)


def name_thread(name: str) -> None:
    """As ps and top show it; the kernel keeps 15 bytes."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def keep_rights_to_ourselves() -> None:
    """Programs we start get none of the capabilities that a service manager lent us."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def allow_many_files() -> None:
    """Two descriptors a port add up: take what the hard limit gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def sleep_exactly() -> None:
    """Have short sleeps of this thread end on time; the kernel may else add 50 us to each."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
