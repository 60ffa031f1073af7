"""Both forms of an address name the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.address import (
    BadAddress,
    CardAddress,
    LaneAddress,
    PortAddress,
    RegionAddress,
    short,
    transfer_name,
)

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True)
NUMBERS = st.integers(0, 999)


@given(NAMES, NUMBERS, NUMBERS)
def test_a_resource_name_and_its_short_form_are_one_address(card: str, oe: int, lane: int) -> None:
    for address, name in (
        (CardAddress(card), CardAddress(card).name),
        (PortAddress(card, oe), PortAddress(card, oe).link_name),
        (PortAddress(card, oe), PortAddress(card, oe).engine_name),
        (LaneAddress(card, oe, lane), LaneAddress(card, oe, lane).name),
    ):
        assert short(name) == str(address)
        assert type(address).parse(str(address)) == address
        assert type(address).parse(name) == address


@given(NAMES, NAMES, st.integers(0, 2**48))
def test_a_region_has_an_offset_in_both_forms(card: str, region: str, offset: int) -> None:
    address = RegionAddress(card, region, offset)
    assert RegionAddress.parse(str(address)) == address
    assert RegionAddress.parse(f"{address.name}+{offset:#x}") == address
    assert short(address.name) == f"{card}:{region}"


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (CardAddress, "Card0", "try card0"),
        (CardAddress, "card0/oe1", "try card0"),
        (PortAddress, "card0/oe01", "try card0/oe1"),
        (PortAddress, "cards/card0/oe1", "try card0/oe1"),
        (LaneAddress, "card0/oe1", "try card0/oe1/lane3"),
        (RegionAddress, "card0", "try card0:weights"),
        (RegionAddress, "card0:", "try card0:weights"),
        (RegionAddress, "card0:weights+", "use bytes, as +4096 or +0x1000"),
        (RegionAddress, "card0:weights+-1", "use bytes, as +4096 or +0x1000"),
        (RegionAddress, "card0:weights+4K", "use bytes, as +4096 or +0x1000"),
    ],
)
def test_a_bad_address_says_what_works(kind: Any, text: str, says: str) -> None:
    with pytest.raises(BadAddress, match=r"is not an? ") as caught:
        kind.parse(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("card0:weights", True),
        ("card0:Weights", True),  # meant as one; the parser says what is wrong with it
        ("cards/card0/regions/weights", True),
        ("./card0:weights", False),
        ("/tmp/card0:weights", False),
        ("card0:a/b", False),
        ("file", False),
        ("-", False),
    ],
)
def test_a_region_is_told_from_a_file(text: str, region: bool) -> None:
    assert RegionAddress.looks_like(text) == region


def test_a_transfer_is_named_by_its_id() -> None:
    assert transfer_name("3f2a") == transfer_name("transfers/3f2a") == "transfers/3f2a"
    with pytest.raises(BadAddress):
        transfer_name("3f/2a")


def test_a_bad_address_is_one_of_the_errors_that_programs_catch() -> None:
    from accel import AccelError, InvalidRequest

    for kind in (AccelError, InvalidRequest, ValueError):
        with pytest.raises(kind, match="is not a card"):
            CardAddress.parse("Card 0")
