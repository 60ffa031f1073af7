"""Addresses: the short form people write, and the AIP resource name the API speaks.

    card0                 cards/card0
    card0/oe1             cards/card0/links/oe1, cards/card0/engines/oe1
    card0/oe1/lane3       cards/card0/engines/oe1/lanes/lane3
    card0:weights+4096    cards/card0/regions/weights, offset 4096

Every parser takes both forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from accel.errors import InvalidRequest

OFFSET_MAX = 2**63 - 1  # no card holds more
_NAME = r"[a-z][a-z0-9-]{0,30}"
_NUMBER = r"(?:0|[1-9][0-9]{0,2})"
_CARD = re.compile(rf"(?:cards/)?({_NAME})")
_PORT = re.compile(rf"({_NAME})/oe({_NUMBER})|cards/({_NAME})/(?:links|engines)/oe({_NUMBER})")
_LANE = re.compile(
    rf"({_NAME})/oe({_NUMBER})/lane({_NUMBER})"
    rf"|cards/({_NAME})/engines/oe({_NUMBER})/lanes/lane({_NUMBER})"
)
_REGION = re.compile(rf"(?:({_NAME}):|cards/({_NAME})/regions/)({_NAME})(?:\+(.*))?")
_TRANSFER = re.compile(r"(?:transfers/)?([0-9a-f]{1,64})")
_DIAG = re.compile(r"(?:diags/)?([A-Za-z0-9][A-Za-z0-9_.-]{0,62})")
_FAULT = re.compile(r"(?:faults/)?([a-z0-9][a-z0-9-]{0,31})")
_SHORT = (
    (re.compile(r"cards/([^/]+)/engines/([^/]+)/lanes/([^/]+)"), r"\1/\2/\3"),
    (re.compile(r"cards/([^/]+)/(?:engines|links)/([^/]+)"), r"\1/\2"),
    (re.compile(r"cards/([^/]+)/regions/([^/]+)"), r"\1:\2"),
    (re.compile(r"cards/([^/]+)/channelMap"), r"\1"),
    (re.compile(r"(?:cards|workers|transfers|diags|faults|faultKinds)/([^/]+)"), r"\1"),
)


class BadAddress(InvalidRequest, ValueError):
    """A text that names nothing; the message says which form works."""


@dataclass(frozen=True, slots=True, order=True)
class CardAddress:
    """A card: `card0`."""

    card: str

    def __str__(self) -> str:
        return self.card

    @property
    def name(self) -> str:
        return f"cards/{self.card}"

    @property
    def channel_map_name(self) -> str:
        return f"cards/{self.card}/channelMap"

    @classmethod
    def parse(cls, text: str) -> CardAddress:
        match = _CARD.fullmatch(text)
        if match is None:
            raise BadAddress(f"{text!r} is not a card; try card0")
        return cls(match[1])


@dataclass(frozen=True, slots=True, order=True)
class PortAddress:
    """An optical engine with its fibre port: `card0/oe1`."""

    card: str
    oe: int

    def __str__(self) -> str:
        return f"{self.card}/oe{self.oe}"

    @property
    def link_name(self) -> str:
        return f"cards/{self.card}/links/oe{self.oe}"

    @property
    def engine_name(self) -> str:
        return f"cards/{self.card}/engines/oe{self.oe}"

    @classmethod
    def parse(cls, text: str) -> PortAddress:
        match = _PORT.fullmatch(text)
        if match is None:
            raise BadAddress(f"{text!r} is not a port; try card0/oe1")
        return cls(match[1] or match[3], int(match[2] or match[4]))


@dataclass(frozen=True, slots=True, order=True)
class LaneAddress:
    """A lane of an engine: `card0/oe1/lane3`."""

    card: str
    oe: int
    lane: int

    def __str__(self) -> str:
        return f"{self.card}/oe{self.oe}/lane{self.lane}"

    @property
    def name(self) -> str:
        return f"cards/{self.card}/engines/oe{self.oe}/lanes/lane{self.lane}"

    @classmethod
    def parse(cls, text: str) -> LaneAddress:
        match = _LANE.fullmatch(text)
        if match is None:
            raise BadAddress(f"{text!r} is not a lane; try card0/oe1/lane3")
        card, oe, lane = match.groups()[:3] if match[1] else match.groups()[3:]
        return cls(str(card), int(str(oe)), int(str(lane)))


@dataclass(frozen=True, slots=True, order=True)
class RegionAddress:
    """A place in a region: `card0:weights+4096`, offset in bytes."""

    card: str
    region: str
    offset: int = 0

    def __str__(self) -> str:
        text = f"{self.card}:{self.region}"
        return f"{text}+{self.offset}" if self.offset else text

    @property
    def name(self) -> str:
        return f"cards/{self.card}/regions/{self.region}"

    @property
    def card_name(self) -> str:
        return f"cards/{self.card}"

    @classmethod
    def parse(cls, text: str) -> RegionAddress:
        match = _REGION.fullmatch(text)
        if match is None:
            raise BadAddress(f"{text!r} is not a region; try card0:weights or card0:weights+4096")
        offset = 0
        if match[4] is not None:
            try:
                offset = int(match[4], 0)
            except ValueError:
                offset = -1
            if not 0 <= offset <= OFFSET_MAX:
                raise BadAddress(
                    f"{text!r}: {match[4]!r} is not an offset; use bytes, as +4096 or +0x1000"
                )
        return cls(match[1] or match[2], match[3], offset)

    @classmethod
    def looks_like(cls, text: str) -> bool:
        """Whether a text means a region and not a file: `card0:...` without a slash, or a name."""
        return _REGION.fullmatch(text) is not None or bool(re.fullmatch(rf"{_NAME}:[^/]*", text))


def transfer_name(text: str) -> str:
    """`3f2a` or `transfers/3f2a` to the resource name."""
    match = _TRANSFER.fullmatch(text)
    if match is None:
        raise BadAddress(f"{text!r} is not a transfer; accelctl transfer list shows them")
    return f"transfers/{match[1]}"


def diag_name(text: str) -> str:
    """`3f2a` or `diags/3f2a` to the resource name."""
    match = _DIAG.fullmatch(text)
    if match is None:
        raise BadAddress(f"{text!r} is not a test; accelctl diag list shows them")
    return f"diags/{match[1]}"


def fault_name(text: str) -> str:
    """`3f2a91` or `faults/3f2a91` to the resource name."""
    match = _FAULT.fullmatch(text)
    if match is None:
        raise BadAddress(f"{text!r} is not a fault; accelctl fault list shows them")
    return f"faults/{match[1]}"


def subject_name(text: str) -> str:
    """A card, a port or a lane to the resource name that a fault is given with."""
    for kind in (CardAddress, LaneAddress, PortAddress):
        try:
            place = kind.parse(text)
        except BadAddress:
            continue
        return place.link_name if isinstance(place, PortAddress) else place.name
    raise BadAddress(
        f"{text!r} is not a card, a port or a lane; try card0, card0/oe1 or card0/oe1/lane3"
    )


def short(name: str) -> str:
    """A resource name in the form people write; any other text as it is."""
    for pattern, replacement in _SHORT:
        match = pattern.fullmatch(name)
        if match is not None:
            return match.expand(replacement)
    return name
