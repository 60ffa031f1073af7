"""Resource names (AIP-122): `cards/card0/links/oe1` to addresses and back. `-` stands for any."""

from __future__ import annotations

import re

from acceld.errors import InvalidRequest
from accelhw.model.ids import NAME, LaneId, PortId

ANY = "-"
_OE = re.compile(r"oe(0|[1-9][0-9]{0,2})")
_LANE = re.compile(r"lane(0|[1-9][0-9]{0,2})")
_FAULT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_TRANSFER = re.compile(r"[0-9a-f]{1,64}")


def card(name: str) -> str:
    return f"cards/{name}"


def region(card_name: str, name: str) -> str:
    return f"cards/{card_name}/regions/{name}"


def link(port: PortId) -> str:
    return f"cards/{port.card}/links/oe{port.oe}"


def engine(port: PortId) -> str:
    return f"cards/{port.card}/engines/oe{port.oe}"


def lane(lane_id: LaneId) -> str:
    return f"{engine(lane_id.port)}/lanes/lane{lane_id.index}"


def channel_map(card_name: str) -> str:
    return f"cards/{card_name}/channelMap"


def transfer(transfer_id: str) -> str:
    return f"transfers/{transfer_id}"


def fault(fault_id: str) -> str:
    return f"faults/{fault_id}"


def fault_kind(kind: str) -> str:
    return f"faultKinds/{kind}"


def diag(diag_id: str) -> str:
    return f"diags/{diag_id}"


def _bad(name: str, what: str, example: str) -> InvalidRequest:
    return InvalidRequest(
        "NAME_INVALID", f"{name!r} is not the name of a {what}; try {example}", name=name
    )


def _parts(name: str, pattern: tuple[str, ...], what: str, example: str) -> list[str]:
    """The parts of a name that stand at `*` of the pattern. Raises InvalidRequest."""
    parts = name.split("/")
    if len(parts) != len(pattern):
        raise _bad(name, what, example)
    found = []
    for part, wanted in zip(parts, pattern, strict=True):
        if wanted == "*":
            found.append(part)
        elif part != wanted:
            raise _bad(name, what, example)
    return found


def parse_card(name: str) -> str:
    (found,) = _parts(name, ("cards", "*"), "card", "cards/card0")
    if not NAME.fullmatch(found):
        raise _bad(name, "card", "cards/card0")
    return found


def parse_card_parent(name: str) -> str | None:
    """None for all cards: `cards/-`, or nothing."""
    if name in ("", f"cards/{ANY}"):
        return None
    return parse_card(name)


def parse_region(name: str) -> tuple[str, str]:
    example = "cards/card0/regions/weights"
    found = _parts(name, ("cards", "*", "regions", "*"), "region", example)
    if not all(NAME.fullmatch(part) for part in found):
        raise _bad(name, "region", example)
    return found[0], found[1]


def _parse_port(name: str, collection: str, what: str) -> PortId:
    example = f"cards/card0/{collection}/oe1"
    card_name, oe = _parts(name, ("cards", "*", collection, "*"), what, example)
    match = _OE.fullmatch(oe)
    if not NAME.fullmatch(card_name) or match is None:
        raise _bad(name, what, example)
    return PortId(card_name, int(match.group(1)))


def parse_link(name: str) -> PortId:
    return _parse_port(name, "links", "link")


def parse_engine(name: str) -> PortId:
    return _parse_port(name, "engines", "engine")


def parse_engine_parent(name: str) -> tuple[str | None, int | None]:
    """Card and engine; None for any of them."""
    if name == "":
        return None, None
    example = "cards/card0/engines/oe1"
    card_name, oe = _parts(name, ("cards", "*", "engines", "*"), "engine", example)
    match = _OE.fullmatch(oe)
    if (card_name != ANY and not NAME.fullmatch(card_name)) or (oe != ANY and match is None):
        raise _bad(name, "engine", example)
    return (
        None if card_name == ANY else card_name,
        int(match.group(1)) if match is not None else None,
    )


def parse_lane(name: str) -> LaneId:
    example = "cards/card0/engines/oe1/lanes/lane3"
    head, slash, last = name.rpartition("/lanes/")
    match = _LANE.fullmatch(last)
    if not slash or match is None:
        raise _bad(name, "lane", example)
    try:
        return LaneId(parse_engine(head), int(match.group(1)))
    except InvalidRequest as error:
        raise _bad(name, "lane", example) from error


def parse_channel_map(name: str) -> str:
    (found,) = _parts(name, ("cards", "*", "channelMap"), "channel map", "cards/card0/channelMap")
    if not NAME.fullmatch(found):
        raise _bad(name, "channel map", "cards/card0/channelMap")
    return found


def parse_diag(name: str) -> str:
    (found,) = _parts(name, ("diags", "*"), "test", "diags/3f2a")
    if not _TRANSFER.fullmatch(found):
        raise _bad(name, "test", "diags/3f2a")
    return found


def parse_transfer(name: str) -> str:
    (found,) = _parts(name, ("transfers", "*"), "transfer", "transfers/3f2a")
    if not _TRANSFER.fullmatch(found):
        raise _bad(name, "transfer", "transfers/3f2a")
    return found


def parse_fault(name: str) -> str:
    (found,) = _parts(name, ("faults", "*"), "fault", "faults/3f2a91")
    if not _FAULT.fullmatch(found):
        raise _bad(name, "fault", "faults/3f2a91")
    return found


def parse_fault_subject(name: str) -> str:
    """A card, a link or engine, or a lane, in the short form that the hardware takes."""
    for parse in (parse_card, parse_link, parse_engine, parse_lane):
        try:
            return str(parse(name))
        except InvalidRequest:
            continue
    raise _bad(name, "card, link or lane", "cards/card0/links/oe1")
