"""An epoch names one life of a link; the newest of a sender is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from accelhw.link.epoch import link_epoch
from accelhw.link.newest import SENDERS_REMEMBERED, Newest
from accelhw.model.link import PeerId

PEERS = [PeerId(f"{i:016x}", "card0", i) for i in range(3)]
ENDS = st.tuples(st.sampled_from(PEERS), st.integers(0, 3))


@given(ENDS, ENDS, ENDS, ENDS)
def test_both_ends_agree_and_each_pair_of_lives_has_its_own(
    a: tuple[PeerId, int], b: tuple[PeerId, int], c: tuple[PeerId, int], d: tuple[PeerId, int]
) -> None:
    assert link_epoch(a, b) == link_epoch(b, a) != 0
    same = sorted((a, b), key=str) == sorted((c, d), key=str)
    assert (link_epoch(a, b) == link_epoch(c, d)) == same


def test_only_what_is_newer_advances() -> None:
    newest = Newest()
    assert newest.of(PEERS[0]) is None
    assert newest.advance(PEERS[0], (1, 5))
    assert not newest.advance(PEERS[0], (1, 5))
    assert not newest.advance(PEERS[0], (1, 4))
    assert newest.advance(PEERS[1], (0, 0))
    assert newest.advance(PEERS[0], (2, 0))
    assert newest.of(PEERS[0]) == (2, 0)


def test_many_senders_do_not_fill_the_memory() -> None:
    newest = Newest()
    many = [PeerId(f"{i:016x}", "card0", 0) for i in range(SENDERS_REMEMBERED + 1)]
    for peer in many:
        newest.advance(peer, (1,))
    assert newest.of(many[0]) is None
    assert newest.of(many[-1]) == (1,)
