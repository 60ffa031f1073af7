"""The allocator keeps its promises under any sequence of requests."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from acceld.host.allocator import Allocator, NoRoom, Overlaps, rounded_up

PAGE = 4096
TOTAL = 64 * PAGE


class AllocatorMachine(RuleBasedStateMachine):
    """Against a model that marks pages."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(TOTAL)
        self.owner: list[int | None] = [None] * (TOTAL // PAGE)
        self.next = 0

    def _take(self, base: int, size: int) -> tuple[int, int]:
        pages = range(base // PAGE, (base + rounded_up(size)) // PAGE)
        assert all(self.owner[page] is None for page in pages), "overlap"
        self.next += 1
        for page in pages:
            self.owner[page] = self.next
        return base, len(pages)

    def _largest_gap(self, alignment: int) -> int:
        best = 0
        for start in range(0, TOTAL, alignment):
            page = start // PAGE
            while page < len(self.owner) and self.owner[page] is None:
                page += 1
            best = max(best, page * PAGE - start)
        return best

    @rule(
        target=held,
        size=st.integers(1, 20 * PAGE),
        alignment=st.sampled_from([PAGE, 2 * PAGE, 8 * PAGE, 32 * PAGE]),
    )
    def allocate(self, size: int, alignment: int) -> tuple[int, int] | None:
        largest = self._largest_gap(alignment)
        if largest < rounded_up(size):
            with pytest.raises(NoRoom) as caught:
                self.allocator.allocate(size, alignment)
            assert max(caught.value.largest, 0) == largest
            return None
        base = self.allocator.allocate(size, alignment)
        assert base % alignment == 0
        return self._take(base, size)

    @rule(target=held, page=st.integers(0, 70), size=st.integers(1, 20 * PAGE))
    def allocate_at(self, page: int, size: int) -> tuple[int, int] | None:
        pages = range(page, page + rounded_up(size) // PAGE)
        if pages.stop > len(self.owner):
            with pytest.raises(ValueError, match="no aligned range"):
                self.allocator.allocate_at(page * PAGE, size)
            return None
        if any(self.owner[p] is not None for p in pages):
            with pytest.raises(Overlaps) as caught:
                self.allocator.allocate_at(page * PAGE, size)
            assert self.owner[caught.value.start // PAGE] is not None
            return None
        self.allocator.allocate_at(page * PAGE, size)
        return self._take(page * PAGE, size)

    @rule(region=consumes(held))
    def free(self, region: tuple[int, int] | None) -> None:
        if region is None:
            return
        base, pages = region
        self.allocator.free(base)
        for page in range(base // PAGE, base // PAGE + pages):
            self.owner[page] = None

    @invariant()
    def counts_agree(self) -> None:
        taken = sum(owner is not None for owner in self.owner)
        assert self.allocator.allocated == taken * PAGE

    def teardown(self) -> None:
        for start, _ in self.allocator.ranges:
            self.allocator.free(start)
        assert self.allocator.allocate(TOTAL) == 0, "freeing all gives all back"


AllocatorMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestAllocator = AllocatorMachine.TestCase


def test_a_neighbour_on_either_side_is_no_overlap() -> None:
    allocator = Allocator(TOTAL)
    allocator.allocate_at(PAGE, PAGE)
    allocator.allocate_at(0, PAGE)
    allocator.allocate_at(2 * PAGE, PAGE)
    assert allocator.ranges == ((0, PAGE), (PAGE, 2 * PAGE), (2 * PAGE, 3 * PAGE))


def test_an_overlap_names_the_range_that_is_there() -> None:
    allocator = Allocator(TOTAL)
    allocator.allocate_at(4 * PAGE, 4 * PAGE)
    with pytest.raises(Overlaps) as caught:
        allocator.allocate_at(0, 5 * PAGE)
    assert (caught.value.start, caught.value.end) == (4 * PAGE, 8 * PAGE)


def test_what_was_not_allocated_cannot_be_freed() -> None:
    with pytest.raises(KeyError):
        Allocator(TOTAL).free(PAGE)
