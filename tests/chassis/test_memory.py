"""HBM is sparse, cannot be cut, and no more is promised than the machine can back."""

import os

import pytest

from accelhw.chassis.memory import (
    GIB,
    NotEnoughMemory,
    available_bytes,
    budget_bytes,
    make_shared,
)


def test_hbm_costs_what_was_written_and_keeps_its_size():
    fd = make_shared("hbm", 96 * GIB)
    assert os.fstat(fd).st_size == 96 * GIB
    assert os.fstat(fd).st_blocks == 0
    os.pwrite(fd, b"x", 95 * GIB)
    assert os.fstat(fd).st_blocks * 512 == 4096
    for size in (0, 97 * GIB):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)


@pytest.mark.parametrize(("asked", "given"), [(None, 4), (3, 3), (8, 8)])
def test_the_budget_is_what_was_asked_or_half_of_what_is_free(asked, given):
    assert budget_bytes(asked and asked * GIB, 8 * GIB) == given * GIB


def test_a_budget_beyond_what_is_free_is_refused():
    with pytest.raises(NotEnoughMemory, match="asks for 9 GiB, and this machine can back 8 GiB"):
        budget_bytes(9 * GIB, 8 * GIB)


def machine(tmp_path, group="", **limits):
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:    8192 kB\n")
    (proc / "self/cgroup").write_text(f"0::/{group}\n")
    for name, (limit, used) in limits.items():
        folder = cgroups / name.replace("__", "/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
    return available_bytes(proc, tmp_path / "node", cgroups)


def test_a_control_group_s_limit_counts_also_one_above(tmp_path):
    kib = 1024
    assert machine(tmp_path / "none") == 8192 * kib
    assert machine(tmp_path / "free", "a", a=("max", 1)) == 8192 * kib
    assert machine(tmp_path / "own", "a", a=(4096 * kib, 1024 * kib)) == 3072 * kib
    limits = {"a": (2048 * kib, 1024 * kib), "a__b": (4096 * kib, 0)}
    assert machine(tmp_path / "above", "a/b", **limits) == 1024 * kib
    assert machine(tmp_path / "over", "a", a=(10, 20)) == 0


def test_a_sandbox_that_hides_the_machine_s_figures_shows_its_nodes(tmp_path):
    for number in range(2):
        folder = tmp_path / f"node{number}"
        folder.mkdir()
        (folder / "meminfo").write_text(
            f"Node {number} MemTotal: 4096 kB\nNode {number} MemFree:   100 kB\n"
            f"Node {number} Active(file): 30 kB\nNode {number} Inactive(file): 10 kB\n"
        )
    assert available_bytes(tmp_path, tmp_path, tmp_path) == 2 * 120 * 1024
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert available_bytes(tmp_path, tmp_path / "none", tmp_path) == total // 2


def test_this_machine_has_some():
    assert available_bytes() > 0
