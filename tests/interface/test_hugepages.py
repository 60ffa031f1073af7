"""Huge pages behind HBM: a matter of speed alone. No byte changes, nothing else is backed."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelhw.interface import hugepages
from accelhw.interface.hugepages import (
    EXTENT_BYTES,
    PAUSE,
    SLOW_NS,
    STEP_BYTES,
    HugePages,
    mapped,
)

SIZE = 3 * STEP_BYTES
PAGE = 4096
POPULATE, COLLAPSE = 22, 25


@pytest.fixture
def fd() -> Iterator[int]:
    fd = os.memfd_create("hbm")
    os.ftruncate(fd, SIZE)
    yield fd
    os.close(fd)


class Advice:
    """Stands for madvise: what was asked for, in bytes; `refuse` is what the kernel cannot do."""

    def __init__(self, refuse: int | None = None) -> None:
        self.asked: list[tuple[int, int]] = []  # what, length
        self._refuse = refuse

    def __call__(self, address: int, length: int, what: int) -> int:
        self.asked.append((what, length))
        if what == self._refuse:
            return -1
        if what == POPULATE:
            ctypes.string_at(address, 1)
        return 0

    @property
    def collapsed_bytes(self) -> int:
        return sum(length for what, length in self.asked if what == COLLAPSE)


def backed_bytes(fd: int) -> int:
    return os.fstat(fd).st_blocks * 512


def holds_data(fd: int, at: int) -> bool:
    try:
        return os.lseek(fd, at, os.SEEK_DATA) == at
    except OSError:
        return False


def mapped_huge_bytes(view: memoryview) -> int:
    """How much of the mapping is on huge pages, as the kernel says."""
    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    ours, huge = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, _, high = first.partition("-")
            ours = int(low, 16) <= start < int(high, 16)
        elif ours and first == "ShmemPmdMapped:":
            huge = int(line.split()[1]) << 10
    return huge


def kernel_can() -> bool:
    release = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
    size = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
    return release >= (6, 1) and size.exists() and int(size.read_text()) == EXTENT_BYTES


def test_a_mapping_lies_as_its_file_does_and_lasts_as_long_as_a_slice_of_it(fd: int) -> None:
    view = mapped(fd, SIZE - PAGE - 1)
    assert len(view) == SIZE - PAGE - 1
    assert ctypes.addressof(ctypes.c_char.from_buffer(view)) % EXTENT_BYTES == 0
    os.pwrite(fd, b"there", PAGE)
    piece = view[PAGE : PAGE + 5]
    before = Path("/proc/self/maps").read_text().count("memfd:hbm")
    del view
    assert bytes(piece) == b"there"
    piece[:] = b"here!"
    assert os.pread(fd, 5, PAGE) == b"here!"
    del piece
    assert Path("/proc/self/maps").read_text().count("memfd:hbm") == before - 1


def test_a_file_that_cannot_be_mapped_says_so(fd: int) -> None:
    reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    with pytest.raises(PermissionError):
        mapped(reader, SIZE)
    HugePages(reader).prepare(0, 1, 0, SIZE)  # and here it does not matter
    assert backed_bytes(fd) == 0
    os.close(reader)


def test_pages_are_huge_where_the_kernel_can_and_small_where_it_cannot(fd: int) -> None:
    HugePages(fd, now_ns=lambda: 0).prepare(0, 1, 0, SIZE)
    view = mapped(fd, SIZE)
    assert not any(view[at] for at in range(0, STEP_BYTES, EXTENT_BYTES))
    huge = mapped_huge_bytes(view)
    assert backed_bytes(fd) == huge + (STEP_BYTES - huge) // EXTENT_BYTES * PAGE
    assert (huge > 0) == kernel_can()


def test_only_whole_extents_of_the_range_are_backed(fd: int) -> None:
    low, high = PAGE, STEP_BYTES - PAGE
    HugePages(fd, now_ns=lambda: 0).prepare(low, high, low, high)
    assert not holds_data(fd, 0)
    assert holds_data(fd, EXTENT_BYTES)
    assert not holds_data(fd, STEP_BYTES - EXTENT_BYTES)
    assert not holds_data(fd, STEP_BYTES)
    HugePages(fd).prepare(
        low, low + EXTENT_BYTES, low, low + EXTENT_BYTES
    )  # none lies in it wholly
    assert not holds_data(fd, 0)


def test_a_step_at_a_time_whatever_it_begins_with(fd: int) -> None:
    advice = Advice()
    pages = HugePages(fd, advise=advice, now_ns=lambda: 0)
    pages.prepare(PAGE, 2 * PAGE, 0, SIZE)
    assert advice.collapsed_bytes == STEP_BYTES
    # Across the border, and from the end of the next one.
    assert pages.prepare(STEP_BYTES - PAGE, SIZE, 0, SIZE) == 2 * STEP_BYTES
    assert advice.collapsed_bytes == 2 * STEP_BYTES
    # All of it is there: so far, and further on it may not be.
    assert pages.prepare(PAGE, STEP_BYTES + PAGE, 0, SIZE) == STEP_BYTES + EXTENT_BYTES
    pages.prepare(SIZE - PAGE, SIZE, 0, SIZE - EXTENT_BYTES)
    assert advice.collapsed_bytes == 2 * STEP_BYTES
    pages.prepare(SIZE - PAGE, SIZE, 0, SIZE)
    assert advice.collapsed_bytes == 3 * STEP_BYTES


def test_what_holds_data_is_left_as_it_is(fd: int) -> None:
    os.pwrite(fd, b"x", EXTENT_BYTES + PAGE)
    advice = Advice()
    pages = HugePages(fd, advise=advice, now_ns=lambda: 0)
    pages.prepare(EXTENT_BYTES + PAGE, 2 * EXTENT_BYTES, 0, SIZE)
    assert [holds_data(fd, at) for at in range(0, STEP_BYTES, EXTENT_BYTES)] == [1, 0, 1, 1]
    before = len(advice.asked)
    pages.prepare(0, STEP_BYTES, 0, SIZE)
    os.pwrite(fd, b"x", STEP_BYTES)
    pages.prepare(STEP_BYTES, STEP_BYTES + PAGE, 0, SIZE)  # for when the empty ones are written
    assert len(advice.asked) == before  # it is done, and stays so


@pytest.mark.parametrize("refused", [POPULATE, COLLAPSE])
def test_a_kernel_without_it_leaves_small_pages_and_is_asked_once(fd: int, refused: int) -> None:
    advice = Advice(refused)
    pages = HugePages(fd, advise=advice, now_ns=lambda: 0)
    pages.prepare(0, PAGE, 0, SIZE)
    if refused == POPULATE:  # no page to be had: it is the store that will tell
        assert backed_bytes(fd) == 0
        return
    assert backed_bytes(fd) == STEP_BYTES // EXTENT_BYTES * PAGE
    before = len(advice.asked)
    os.pwrite(fd, b"first", 0)
    pages.prepare(0, PAGE, 0, SIZE)
    assert len(advice.asked) == before
    assert os.pread(fd, 6, 0) == b"first\0"


def test_pages_that_are_slow_to_come_by_are_tried_again_later_and_one_at_a_time(fd: int) -> None:
    now_ns, took_ns = 1_000_000_000, SLOW_NS + 1  # for an extent

    class Slow(Advice):
        def __call__(self, address: int, length: int, what: int) -> int:
            nonlocal now_ns
            if what == COLLAPSE:
                now_ns += length // EXTENT_BYTES * took_ns
            return super().__call__(address, length, what)

    advice = Slow()
    pages = HugePages(fd, advise=advice, now_ns=lambda: now_ns)

    def after(wait_ns: int) -> int:
        nonlocal now_ns
        now_ns += wait_ns
        for at in range(0, SIZE, EXTENT_BYTES):
            pages.prepare(at, at + PAGE, 0, SIZE)
        return advice.collapsed_bytes

    assert after(0) == EXTENT_BYTES
    assert after(PAUSE * took_ns - 1) == EXTENT_BYTES
    assert after(1) == 2 * EXTENT_BYTES
    took_ns -= 1  # as fast as is well
    assert after(PAUSE * took_ns + PAUSE) == SIZE
    assert max(length for _, length in advice.asked) > EXTENT_BYTES


def test_no_mapping_no_huge_pages(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, offset: int, length: int) -> int:
        raise OSError("no address space")

    monkeypatch.setattr(hugepages, "_map", refuse)
    HugePages(fd).prepare(0, PAGE, 0, SIZE)
    assert backed_bytes(fd) == 0


def test_no_byte_of_anybody_who_writes_meanwhile_is_changed(fd: int) -> None:
    view = mapped(fd, SIZE)
    count = SIZE // PAGE
    barrier = threading.Barrier(3)

    def page(number: int) -> bytes:
        return number.to_bytes(4, "big") * (PAGE // 4)

    def by_call() -> None:
        barrier.wait()
        for number in range(0, count, 2):
            os.pwrite(fd, page(number), number * PAGE)

    def by_mapping() -> None:
        barrier.wait()
        for number in range(count - 1, 0, -2):
            view[number * PAGE : (number + 1) * PAGE] = page(number)

    pages = HugePages(fd)
    writers = [threading.Thread(target=each) for each in (by_call, by_mapping)]
    for writer in writers:
        writer.start()
    barrier.wait()
    for at in range(0, SIZE, EXTENT_BYTES):
        pages._back(at, EXTENT_BYTES)  # whatever it holds
    for writer in writers:
        writer.join()
    assert view == b"".join(map(page, range(count)))


def punch(fd: int, start: int, length: int) -> None:
    """Give the memory back, as when a region is freed."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size_and_punch = 3
    off = ctypes.c_long
    assert libc.fallocate(fd, keep_size_and_punch, off(start), off(length)) == 0


def test_what_is_used_again_gets_its_huge_page_and_keeps_its_bytes(fd: int) -> None:
    os.pwrite(fd, b"x" * STEP_BYTES, 0)
    advice = Advice()
    pages = HugePages(fd, SIZE, advise=advice)
    assert pages.use(PAGE, PAGE + 1, 0, SIZE) == EXTENT_BYTES
    assert not advice.asked  # once is not again
    assert pages.use(2 * PAGE, EXTENT_BYTES + 1, 0, SIZE) == EXTENT_BYTES
    assert advice.collapsed_bytes == EXTENT_BYTES  # the first, not the second
    for _ in range(3):
        pages.use(0, EXTENT_BYTES, 0, SIZE)
    assert advice.collapsed_bytes == EXTENT_BYTES
    assert os.pread(fd, STEP_BYTES, 0) == b"x" * STEP_BYTES


def test_only_extents_that_lie_wholly_in_the_range_are_made_huge(fd: int) -> None:
    os.pwrite(fd, b"x" * STEP_BYTES, 0)
    advice = Advice()
    pages = HugePages(fd, SIZE, advise=advice)
    low, high = PAGE, STEP_BYTES - PAGE
    assert pages.use(low, high, low, high) == STEP_BYTES  # none is there that was used before
    for number in range(1, STEP_BYTES // EXTENT_BYTES - 1):  # one at a time
        low = pages.use(low, high, low, high)
        assert low == (number + 1) * EXTENT_BYTES
    assert pages.use(low, high, low, high) == STEP_BYTES
    assert advice.collapsed_bytes == STEP_BYTES - 2 * EXTENT_BYTES


def test_an_extent_that_was_freed_begins_anew(fd: int) -> None:
    advice = Advice()
    pages = HugePages(
        fd, SIZE, advise=advice, now_ns=iter(range(0, 99 * SLOW_NS, 2 * SLOW_NS)).__next__
    )
    collapsed = 0
    for life in (1, 2):
        for at in (0, EXTENT_BYTES):  # the first is slow to come by, so the next is not tried
            pages.use(at, at + 1, 0, SIZE)
            pages.prepare(at, at + 1, 0, SIZE)
            os.pwrite(fd, b"x" * EXTENT_BYTES, at)
        collapsed += EXTENT_BYTES if life == 1 else 0  # and not soon again
        assert advice.collapsed_bytes == collapsed
        for _ in range(2):
            pages.use(EXTENT_BYTES, EXTENT_BYTES + 1, 0, SIZE)
        collapsed += EXTENT_BYTES
        assert advice.collapsed_bytes == collapsed
        punch(fd, 0, 2 * EXTENT_BYTES)


def test_what_was_huge_from_the_first_is_not_made_so_again(fd: int) -> None:
    advice = Advice()
    pages = HugePages(fd, SIZE, advise=advice, now_ns=lambda: 0)
    for _ in range(3):
        pages.use(0, 1, 0, EXTENT_BYTES)
        pages.prepare(0, 1, 0, EXTENT_BYTES)
        os.pwrite(fd, b"x", 0)
    assert advice.collapsed_bytes == EXTENT_BYTES


def test_a_child_goes_on_where_its_parent_or_another_was(fd: int) -> None:
    os.pwrite(fd, b"x" * EXTENT_BYTES, 0)
    advice = Advice()
    pages = HugePages(fd, SIZE, advise=advice)
    if (child := os.fork()) == 0:
        pages.use(0, 1, 0, SIZE)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    pages.use(0, 1, 0, SIZE)
    assert advice.collapsed_bytes == EXTENT_BYTES
