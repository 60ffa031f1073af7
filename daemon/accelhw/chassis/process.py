"""Processes that end together: a child asks the kernel to be told of its parent's death."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_NAME = 15
PR_SET_TIMERSLACK = 29
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # its system call; not every libc has it
SCHED_ATTR = struct.Struct("=IIQiIQQQ")  # struct sched_attr of linux/sched/types.h, first version


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


def work_in_long_strokes(slice_ns: int) -> None:
    """Under SCHED_BATCH: whoever is like this does not break in on another. With slices of that
    length, where the kernel has them (6.12): who wants less at a time comes first, and gets the CPU
    at once. Raises OSError."""
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    number = SCHED_SETATTR.get(platform.machine())
    if number is not None:  # An older kernel takes the call, and no notice of the slice.
        wish = SCHED_ATTR.pack(SCHED_ATTR.size, os.SCHED_BATCH, 0, 0, 0, slice_ns, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, wish, 0)


def how_it_ended(status: int) -> str:
    """A process, by its exit status; below 0 a signal's number."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
