"""Named network namespaces, as `ip netns` keeps them: make, enter, remove."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

NETNS_FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000  # linux/sched.h
MS_BIND, MS_REC, MS_SHARED = 0x1000, 0x4000, 0x100000  # linux/mount.h
MNT_DETACH = 2

T = TypeVar("T")

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceError(Exception):
    """A namespace cannot be made or entered; the message says what would work."""


def names() -> list[str]:
    """All named namespaces of this host."""
    try:
        return sorted(path.name for path in NETNS_FOLDER.iterdir())
    except OSError:
        return []


def exists(name: str) -> bool:
    return (NETNS_FOLDER / name).exists()


def run_inside(name: str | None, work: Callable[[], T]) -> T:
    """Run `work` inside a namespace (None: our own) and return what it returns.

    A thread that has entered another namespace is not used again, so it gets one of its own.
    Raises NamespaceError, and what `work` raises.
    """
    if name is None:
        return work()
    return in_thread(lambda: _enter_and(name, work))


@contextlib.contextmanager
def opened(name: str | None) -> Iterator[int]:
    """A descriptor of a namespace (None: that of the process), for as long as needed."""
    path = Path("/proc/self/ns/net") if name is None else NETNS_FOLDER / name
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def create(name: str) -> None:
    """Make a named namespace. Raises NamespaceError."""
    try:
        in_thread(lambda: _create(name))
    except OSError as error:
        raise NamespaceError(
            f"network namespace {name!r} cannot be made ({os.strerror(error.errno or 0)});"
            f" run as root, make it beforehand (ip netns add {name}), or leave netns_a and"
            " netns_b out"
        ) from error


def remove(name: str) -> None:
    """Forget the name; the namespace goes when no process is left in it."""
    path = NETNS_FOLDER / name
    with contextlib.suppress(OSError):
        _call("umount2", os.fsencode(path), MNT_DETACH)
    with contextlib.suppress(OSError):
        path.unlink()


def _enter_and(name: str, work: Callable[[], T]) -> T:
    try:
        with opened(name) as fd:
            _call("setns", fd, CLONE_NEWNET)
    except FileNotFoundError:
        raise NamespaceError(
            f"there is no network namespace {name!r}; make it: ip netns add {name}"
        ) from None
    except OSError as error:
        raise NamespaceError(
            f"network namespace {name!r} cannot be entered ({os.strerror(error.errno or 0)});"
            " that takes CAP_SYS_ADMIN: run as root, or leave netns_a and netns_b out"
        ) from error
    return work()


def _create(name: str) -> None:
    NETNS_FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder = os.fsencode(NETNS_FOLDER)
    try:
        _call("mount", b"", folder, b"none", MS_SHARED | MS_REC, None)
    except OSError:
        # No mount point yet. It must be one, or a namespace would be seen in one mount tree only.
        _call("mount", folder, folder, b"none", MS_BIND | MS_REC, None)
        _call("mount", b"", folder, b"none", MS_SHARED | MS_REC, None)
    path = NETNS_FOLDER / name
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
    try:
        _call("unshare", CLONE_NEWNET)
        here = b"/proc/thread-self/ns/net"
        _call("mount", here, os.fsencode(path), b"none", MS_BIND, None)
    except OSError:
        path.unlink()
        raise


def _call(function: str, *arguments: object) -> None:
    """A libc function that returns 0, or sets errno. Raises OSError."""
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own and wait; returns and raises what it does."""
    results: list[T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body, name="netns")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
