"""Shared memory without a name: each card's HBM and the status tables. A kill leaves nothing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

MFD_NOEXEC_SEAL = 0x0008  # linux/memfd.h, since 6.3
F_ADD_SEALS = 1033
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 0x1, 0x2, 0x4  # linux/fcntl.h

GIB = 1 << 30


class NotEnoughMemory(Exception):
    """The machine cannot back what the configuration asks for."""


def make_shared(name: str, size_bytes: int) -> int:
    """A sparse memory file of that size for ever: nobody who has it can cut it under our feet.

    Raises OSError.
    """
    try:
        fd = os.memfd_create(name, os.MFD_CLOEXEC | MFD_NOEXEC_SEAL)
    except OSError:
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size_bytes)
        fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    except OSError:
        os.close(fd)
        raise
    return fd


def budget_bytes(asked_bytes: int | None, available_bytes: int) -> int:
    """How much HBM may be written on this host: what was asked, or half of what is free.

    Raises NotEnoughMemory.
    """
    if asked_bytes is None:
        return available_bytes // 2
    if asked_bytes > available_bytes:
        raise NotEnoughMemory(
            f"hardware.hbm_budget_gib asks for {asked_bytes / GIB:.4g} GiB, and this machine can"
            f" back {available_bytes / GIB:.4g} GiB now; lower it, or leave it out for half of that"
        )
    return asked_bytes


def available_bytes(
    proc: Path = Path("/proc"),
    nodes: Path = Path("/sys/devices/system/node"),
    cgroups: Path = Path("/sys/fs/cgroup"),
) -> int:
    """Memory that can be had without pressing others: of the machine, and of our control group."""
    return min([_left_in_machine(proc, nodes), *_left_in_groups(proc, cgroups)])


def _left_in_machine(proc: Path, nodes: Path) -> int:
    try:
        return _kib(proc / "meminfo")["MemAvailable"] << 10
    except (OSError, KeyError):
        pass  # A sandbox may show processes only (ProcSubset=pid); the nodes' own figures do, too.
    left_kib = 0
    for path in nodes.glob("node[0-9]*/meminfo"):
        node = _kib(path)
        cache_kib = node.get("Active(file)", 0) + node.get("Inactive(file)", 0)
        left_kib += node.get("MemFree", 0) + (cache_kib + node.get("SReclaimable", 0)) // 2
    # Without either, half of the machine is a guess that a budget may start from.
    return left_kib << 10 or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _kib(path: Path) -> dict[str, int]:
    """`MemFree: 12 kB`, or `Node 0 MemFree: 12 kB`, by name."""
    found = {}
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name.split()[-1]] = int(value.split()[0])
    return found


def _left_in_groups(proc: Path, cgroups: Path) -> list[int]:
    """What our control group (version 2) and those above it leave, where they set a limit."""
    left: list[int] = []
    try:
        entry = (proc / "self/cgroup").read_text().strip().splitlines()[-1]
        group = cgroups / entry.partition("::")[2].lstrip("/")
    except (OSError, IndexError):
        return left
    while group != cgroups.parent:
        try:
            limit = (group / "memory.max").read_text().strip()
            if limit != "max":
                used = int((group / "memory.current").read_text())
                left.append(max(0, int(limit) - used))
        except (OSError, ValueError):
            pass  # The root group has no such files.
        group = group.parent
    return left
