"""Addresses of things: `card0`, `card0/oe1`, `card0/oe1/lane3`, `card0:weights+4096`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_PORT = re.compile(r"oe(0|[1-9][0-9]{0,2})")
_LANE = re.compile(r"lane(0|[1-9][0-9]{0,2})")


class BadAddress(ValueError):
    """An address that names nothing; the message says which form works."""


def check_name(name: str, what: str) -> str:
    if not NAME.fullmatch(name):
        raise BadAddress(
            f"{name!r} is not a {what} name; use 1 to 31 of a-z, 0-9 and -, a letter first"
        )
    return name


@dataclass(frozen=True, slots=True, order=True)
class PortId:
    """One optical engine with its fibre port: `card0/oe1`."""

    card: str
    oe: int

    def __str__(self) -> str:
        return f"{self.card}/oe{self.oe}"

    @classmethod
    def parse(cls, text: str) -> PortId:
        card, _, rest = text.partition("/")
        match = _PORT.fullmatch(rest)
        if not NAME.fullmatch(card) or match is None:
            raise BadAddress(f"{text!r} is not a port; try card0/oe1")
        return cls(card, int(match.group(1)))


@dataclass(frozen=True, slots=True, order=True)
class LaneId:
    """One lane of an engine: `card0/oe1/lane3`."""

    port: PortId
    index: int

    def __str__(self) -> str:
        return f"{self.port}/lane{self.index}"

    @classmethod
    def parse(cls, text: str) -> LaneId:
        head, _, rest = text.rpartition("/")
        match = _LANE.fullmatch(rest)
        if match is None:
            raise BadAddress(f"{text!r} is not a lane; try card0/oe1/lane3")
        return cls(PortId.parse(head), int(match.group(1)))


@dataclass(frozen=True, slots=True)
class RegionAddress:
    """A place in a named region of a card's HBM: `card0:weights+4096` (offset in bytes)."""

    card: str
    region: str
    offset: int = 0

    def __str__(self) -> str:
        text = f"{self.card}:{self.region}"
        return f"{text}+{self.offset}" if self.offset else text

    @classmethod
    def parse(cls, text: str) -> RegionAddress:
        card, colon, rest = text.partition(":")
        region, plus, offset_text = rest.partition("+")
        if not colon or not NAME.fullmatch(card) or not NAME.fullmatch(region):
            raise BadAddress(f"{text!r} is not a region; try card0:weights or card0:weights+4096")
        offset = 0
        if plus:
            try:
                offset = int(offset_text, 0)
            except ValueError:
                offset = -1
            if offset < 0:
                raise BadAddress(
                    f"{text!r}: {offset_text!r} is not an offset; use bytes, as +4096 or +0x1000"
                )
        return cls(card, region, offset)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name a mistyped one most likely meant."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.5)), None)
