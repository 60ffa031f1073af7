"""The `[[fibre]]` tables of a configuration: ports that exist, lanes that fit, a way for frames."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from accelhw.model.config import MTU_MIN, Card, Fibre, FibreEnd, TransportKind
from accelhw.model.ids import BadAddress, PortId, check_name, nearest
from accelhw.model.profile import Profile
from accelhw.model.tomltable import Table, split

LENGTH_M_MAX = 100_000
LOSS_DB_MAX = 100
CONNECTORS_MAX = 64
INTERFACE_NAME_MAX = 15  # IFNAMSIZ of Linux, without its closing zero

MTU_OF_INTERFACE = 0  # netdev without `mtu`: whatever the interface has, read when it is opened

# An Ethernet frame through a TAP has its 14-byte header inside the kernel's 65535.
MTU_LIMIT = {
    TransportKind.VETH: 65535,
    TransportKind.TAP: 65521,
    TransportKind.NETDEV: 65535,
    TransportKind.MEMORY: 65535,
}
# A TAP that leaves this host's hands meets a guest or bridge, and those start at 1500.
MTU_DEFAULT = {
    TransportKind.VETH: 65535,
    TransportKind.TAP: 9000,
    TransportKind.NETDEV: MTU_OF_INTERFACE,
    TransportKind.MEMORY: 65535,
}
MTU_DEFAULT_TAP_OUTWARD = 1500

FIBRE_KEYS = (
    *("name", "a", "b", "transport", "mtu", "length_m", "attenuation_db_per_km", "connectors"),
    *("connector_loss_db", "extra_loss_db", "lane_map", "inverted_lanes", "interface"),
    *("interface_a", "interface_b", "netns_a", "netns_b"),
)
_INTERFACE = re.compile(r"[^\s/:%]{1,15}")
_NETNS = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_fibres(top: Table, cards: Mapping[str, Card | None]) -> tuple[Fibre, ...]:
    """All of them. `cards` by name; None for one that is named but wrong: not the fibre's fault."""
    fibres: list[Fibre] = []
    ports: dict[PortId, tuple[int, str]] = {}  # the fibre in a port, and where it says so
    names: dict[str, int] = {}
    interfaces: dict[tuple[str | None, str], str] = {}
    for number, table in enumerate(top.tables("fibre")):
        table.refuse_unknown(FIBRE_KEYS)
        name = _read_fibre_name(table, number, names)
        a = _read_port(table, "a", cards, ports, (number, name))
        b = _read_port(table, "b", cards, ports, (number, name))
        _check_pair(table, cards, a, b)
        transport = _read_transport(table)
        outward = "b" not in table.values
        if transport is not None:
            _check_needs(table, transport, outward)
        ends = _read_ends(table, name, interfaces)
        fibre = Fibre(
            name=name,
            a=FibreEnd(a or PortId("", 0), *ends["a"]),
            b=None if outward else FibreEnd(b or PortId("", 0), *ends["b"]),
            transport=transport or TransportKind.VETH,
            mtu=_read_mtu(table, transport, outward),
            lane_map=_read_lane_map(table, cards, a or b),
            inverted_lanes=_read_inverted(table, cards, a or b),
            **_read_glass(table),
        )
        fibres.append(fibre)
    return tuple(fibres)


def _read_fibre_name(table: Table, number: int, names: dict[str, int]) -> str:
    key = (
        "name" if "name" in table.values else "a"
    )  # Where a default name collides, show the fibre.
    name = table.text("name", f"fibre{number}") or f"fibre{number}"
    try:
        check_name(name, "fibre")
    except BadAddress as error:
        table.complain("name", *split(error))
        return name
    if name in names:
        table.complain(
            key, f"a second fibre named {name!r}, after line {names[name]}", "name it otherwise"
        )
    names.setdefault(name, table.line())
    return name


def _read_port(
    table: Table,
    key: str,
    cards: Mapping[str, Card | None],
    taken: dict[PortId, tuple[int, str]],
    fibre: tuple[int, str],
) -> PortId | None:
    example = f"{next(iter(cards), 'card0')}/oe0"
    text = table.text(key, example, required=key == "a")
    if text is None:
        return None
    try:
        port = PortId.parse(text)
    except BadAddress:
        # A card's bare name is the likely slip, so the example is a port of that card.
        guess = nearest(text.partition("/")[0], cards)
        table.complain(key, f"{text!r} is no port", f"try {guess + '/oe0' if guess else example!r}")
        return None
    if port.card not in cards:
        known = nearest(port.card, cards)
        remedy = (
            f"did you mean '{known}/oe{port.oe}'?" if known else f"known are {', '.join(cards)}"
        )
        if not cards:
            remedy = "add the card first"
        table.complain(key, f"{text!r}: there is no card {port.card!r}", remedy)
        return None
    card = cards[port.card]
    if card is not None and port.oe >= card.profile.oes:
        last = card.profile.oes - 1
        has = "only oe0" if last == 0 else f"oe0 to oe{last}"
        table.complain(
            key,
            f"{text!r}: {card.name} is of profile {card.profile.name} and has {has}",
            f"use '{card.name}/oe{last}'" if last == 0 else f"use '{card.name}/oe0' to 'oe{last}'",
        )
        return None
    number, name = fibre
    taken.setdefault(port, (number, f"{name}.{key} (line {table.line(key)})"))
    holder, place = taken[port]
    if holder != number:
        table.complain(key, f"{text!r} holds {place} already", _free_port(card, taken))
        return None
    return port


def _free_port(card: Card | None, taken: Mapping[PortId, Any]) -> str:
    if card is None:
        return "one port takes one fibre"
    free = [
        f"'{card.name}/oe{oe}'"
        for oe in range(card.profile.oes)
        if PortId(card.name, oe) not in taken
    ]
    return f"free is {free[0]}" if free else f"{card.name} has no free port"


def _check_pair(
    table: Table, cards: Mapping[str, Card | None], a: PortId | None, b: PortId | None
) -> None:
    if a is None or b is None:
        return
    if a == b:
        table.complain("b", f"the fibre ends where it begins, in '{a}'", "plug b into another port")
        return
    near, far = cards[a.card], cards[b.card]
    if near is None or far is None:
        return
    if _kind_of_light(near.profile) != _kind_of_light(far.profile):
        table.complain(
            "b",
            f"{far.name} ({_light_words(far.profile)}) and {near.name}"
            f" ({_light_words(near.profile)}) do not understand each other",
            "join cards of one profile",
        )


def _kind_of_light(profile: Profile) -> tuple[object, ...]:
    lane = profile.lane
    rate = lane.line_rate_gbit_per_s
    return profile.lanes_per_oe, lane.modulation, rate, lane.fec, lane.fec_interleave


def _light_words(profile: Profile) -> str:
    lane = profile.lane
    fec = "no FEC" if lane.fec == "none" else lane.fec.upper()
    return (
        f"{profile.name}: {profile.lanes_per_oe} x {lane.line_rate_gbit_per_s:g} Gb/s"
        f" {lane.modulation.upper()}, {fec}"
    )


def _read_transport(table: Table) -> TransportKind | None:
    """None if it is wrong."""
    text = table.text("transport", "veth")
    if text is None:
        return None if "transport" in table.values else TransportKind.VETH
    try:
        return TransportKind(text)
    except ValueError:
        table.reference("transport", {kind.value: kind for kind in TransportKind}, "transport")
        return None


def _check_needs(table: Table, transport: TransportKind, outward: bool) -> None:
    given = table.values.keys()
    needs_b = transport in (TransportKind.VETH, TransportKind.MEMORY)
    if outward and needs_b and "a" in given:
        table.complain(
            "transport" if "transport" in given else "a",
            f"b is missing, and transport {transport} needs both ends",
            "add b, or use transport tap or netdev for a fibre to the outside",
        )
    if transport is TransportKind.MEMORY:
        for key in ("interface", "interface_a", "interface_b", "netns_a", "netns_b"):
            if key in given:
                table.complain(key, "transport memory has no interface", "leave it out")
    if transport is TransportKind.NETDEV:
        if not {"interface_a", "interface"} & given:
            table.complain(
                "transport",
                "netdev needs the name of an interface that exists",
                'add interface = "eth1"' if outward else 'add interface_a = "eth1"',
            )
        if not outward and "interface_b" not in given:
            table.complain(
                "transport",
                "netdev needs an interface for b, too",
                'add interface_b = "eth2", or leave b out when it is on another host',
            )
    if outward:
        for key in ("interface_b", "netns_b"):
            if key in given and "a" in given:
                table.complain(key, "the fibre has no end b here", "add b, or leave it out")
    apart = table.values.get("netns_a") != table.values.get("netns_b")
    if transport is TransportKind.TAP and not outward and apart:
        table.complain(
            "netns_a" if "netns_a" in given else "netns_b",
            "a bridge joins both ends of a tap fibre, so they cannot be apart",
            "use one namespace for both, or transport veth",
        )
    if "interface" in given and (not outward or "interface_a" in given):
        table.complain("interface", "it does not say which end", "use interface_a and interface_b")


def _read_ends(
    table: Table, fibre: str, taken: dict[tuple[str | None, str], str]
) -> dict[str, tuple[str | None, str | None]]:
    """(interface, netns) of each end."""
    ends: dict[str, tuple[str | None, str | None]] = {}
    for end in ("a", "b"):
        key = f"interface_{end}"
        if end == "a" and key not in table.values and "interface" in table.values:
            key = "interface"
        interface = table.text(key, "eth1")
        if interface is not None and (
            not _INTERFACE.fullmatch(interface) or interface in (".", "..")
        ):
            table.complain(
                key,
                f"{interface!r} cannot be an interface",
                f"use 1 to {INTERFACE_NAME_MAX} characters, none of them a blank, '/', ':' or '%'",
            )
            interface = None
        netns = table.text(f"netns_{end}", "rack1")
        if netns is not None and (not _NETNS.fullmatch(netns) or netns in (".", "..")):
            table.complain(
                f"netns_{end}", f"{netns!r} cannot be a namespace", "use letters, digits, '-', '_'"
            )
            netns = None
        if interface is not None:
            if (netns, interface) in taken:
                table.complain(
                    key,
                    f"{interface!r} carries {taken[netns, interface]} already",
                    "use one interface for one end",
                )
            taken.setdefault((netns, interface), f"{fibre}.{end} (line {table.line(key)})")
        ends[end] = (interface, netns)
    return ends


def _read_mtu(table: Table, transport: TransportKind | None, outward: bool) -> int:
    kind = transport or TransportKind.VETH
    default = MTU_DEFAULT[kind]
    if kind is TransportKind.TAP and outward:
        default = MTU_DEFAULT_TAP_OUTWARD
    mtu = table.integer("mtu", MTU_MIN, MTU_LIMIT[kind], default or 9000)
    return default if mtu is None else mtu


def _read_lane_map(
    table: Table, cards: Mapping[str, Card | None], port: PortId | None
) -> tuple[int, ...] | None:
    lane_map = table.integers("lane_map")
    card = cards.get(port.card) if port else None
    if lane_map is None or card is None:
        return None
    lanes = card.profile.lanes_per_oe
    remedy = f"name each of the {lanes} lanes 0 to {lanes - 1} once"
    if lanes == 1:
        remedy = "the only lane is 0: use [0], or leave it out"
    for place, lane in enumerate(lane_map):
        if not 0 <= lane < lanes:
            table.complain("lane_map", f"{lane} is no lane of {card.name}", remedy, place)
            return None
        if lane in lane_map[:place]:
            table.complain("lane_map", f"lane {lane} stands here twice", remedy, place)
            return None
    if len(lane_map) != lanes:
        table.complain("lane_map", f"{len(lane_map)} of {lanes} lanes", remedy)
        return None
    return tuple(lane_map)


def _read_inverted(
    table: Table, cards: Mapping[str, Card | None], port: PortId | None
) -> frozenset[int]:
    inverted = table.integers("inverted_lanes")
    card = cards.get(port.card) if port else None
    if inverted is None or card is None:
        return frozenset()
    lanes = card.profile.lanes_per_oe
    for place, lane in enumerate(inverted):
        if not 0 <= lane < lanes:
            remedy = f"use 0 to {lanes - 1}" if lanes > 1 else "its only lane is 0"
            table.complain("inverted_lanes", f"{lane} is no lane of {card.name}", remedy, place)
        elif lane in inverted[:place]:
            table.complain(
                "inverted_lanes", f"lane {lane} stands here twice", "name it once", place
            )
    return frozenset(inverted)


def _read_glass(table: Table) -> dict[str, Any]:
    """What the light meets on its way; absent keys keep the defaults of Fibre."""
    read = {
        "length_m": table.number("length_m", 0, LENGTH_M_MAX, 10),
        "attenuation_db_per_km": table.number("attenuation_db_per_km", 0, LOSS_DB_MAX, 0.35),
        "connectors": table.integer("connectors", 0, CONNECTORS_MAX, 2),
        "connector_loss_db": table.number("connector_loss_db", 0, LOSS_DB_MAX, 0.25),
        "extra_loss_db": table.number("extra_loss_db", 0, LOSS_DB_MAX, 0),
    }
    return {key: value for key, value in read.items() if value is not None}
