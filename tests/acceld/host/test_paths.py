"""A copy between cards that no fibre joins is refused at once, and says what would work."""

from __future__ import annotations

import pytest

from acceld.errors import WrongState
from acceld.host.paths import require_path
from accelhw.interface.messages import CardInfo, FibreInfo, PortInfo


def card(name: str, *fibres: str | None) -> CardInfo:
    ports = tuple(
        PortInfo(oe, 0, 0, 8, FibreInfo(fibre, "veth", 10.0, 0.5, 9000) if fibre else None)
        for oe, fibre in enumerate(fibres)
    )
    return CardInfo(name, "dr8", "0" * 16, 1 << 30, 0, 0, ports)


def test_a_fibre_between_them_is_a_path() -> None:
    require_path([card("card0", None, "f0"), card("card1", "f0")], "card0", "card1")


@pytest.mark.parametrize("remote", ["card1", "elsewhere"])
def test_a_fibre_to_the_outside_may_lead_anywhere(remote: str) -> None:
    require_path([card("card0", "tap0"), card("card1", "tap1")], "card0", remote)


def test_a_card_of_this_host_is_not_reached_over_the_outside_by_one_end_alone() -> None:
    with pytest.raises(WrongState, match="no fibre joins card0 and card1"):
        require_path([card("card0", "tap0"), card("card1", None)], "card0", "card1")


def test_without_a_path_the_neighbours_are_named() -> None:
    chain = [card("card0", "f0"), card("card1", "f0", "f1"), card("card2", "f1")]
    with pytest.raises(WrongState) as refusal:
        require_path(chain, "card0", "card2")
    assert refusal.value.reason == "NO_PATH"
    assert "card1 (oe0)" in str(refusal.value)


def test_a_card_without_fibres_says_so() -> None:
    with pytest.raises(WrongState, match="it has no fibre"):
        require_path([card("card0", None), card("card1", None)], "card0", "card1")


def test_a_far_card_needs_a_fibre_to_the_outside() -> None:
    with pytest.raises(WrongState, match="no fibre joins card0 and elsewhere"):
        require_path([card("card0", "f0"), card("card1", "f0")], "card0", "elsewhere")
