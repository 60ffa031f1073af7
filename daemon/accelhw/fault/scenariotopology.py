"""The rack of a scenario: a configuration file, or a fleet made up from a few words."""

from __future__ import annotations

from collections.abc import Callable

from accelhw.model import configfile
from accelhw.model.config import Card, Config, Fibre, FibreEnd, Hardware, TransportKind
from accelhw.model.fibretable import LENGTH_M_MAX
from accelhw.model.ids import PortId
from accelhw.model.profile import Profile, UnknownProfile, load_profile, profile_names
from accelhw.model.tomltable import Table

KEYS = ("config", "cards", "profile", "shape", "length_m")
SHAPES = ("pairs", "ring", "mesh")
LANES_MAX = 1 << 20
CARDS_MAX = 1 << 16
MTU = 9000

Ends = list[tuple[PortId, PortId]]


def read_topology(top: Table, open_config: Callable[[str], str], needed: bool) -> Config | None:
    """None if absent or wrong."""
    if "topology" not in top.values:
        if needed:
            top.complain(
                "topology",
                "missing, and there is no rack to run on",
                'add [topology] with config = "FILE", or with cards and profile',
            )
        return None
    table = top.table("topology")
    table.refuse_unknown(KEYS)
    if "config" in table.values:
        for key in KEYS[1:]:
            if key in table.values:
                table.complain(key, "beside a config", "the file says it all; leave this out")
        return _read_config(table, open_config)
    return _read_fleet(table)


def _read_config(table: Table, open_config: Callable[[str], str]) -> Config | None:
    path = table.text("config", "pair.toml")
    if path is None:
        return None
    try:
        text = open_config(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        table.complain("config", f"{path!r}: {why}", "name a file, from this one's folder on")
        return None
    loaded = configfile.load(text)
    if isinstance(loaded, list):
        count = f"{len(loaded)} mistake" + "s" * (len(loaded) != 1)
        first = f"line {loaded[0].line}: {loaded[0]}"
        table.complain("config", f"{path!r} has {count}: {first}", "see acceld check-config")
        return None
    return loaded


def _read_fleet(table: Table) -> Config | None:
    cards = table.integer("cards", 2, CARDS_MAX, 16)
    if "cards" not in table.values:
        table.complain("cards", "missing", 'add cards = 16, or config = "FILE"')
    profile = _read_profile(table)
    shape = table.text("shape", "ring") or "pairs"
    if shape not in SHAPES:
        table.reference("shape", dict.fromkeys(SHAPES), "shape")
    length_m = table.number("length_m", 0, LENGTH_M_MAX, 10)
    if cards is None or profile is None or shape not in SHAPES:
        return None
    if not _fits(table, cards, profile, shape):
        return None
    return make_fleet(cards, profile, shape, 10.0 if length_m is None else length_m)


def _read_profile(table: Table) -> Profile | None:
    name = table.text("profile", "dr8")
    if name is None and "profile" in table.values:
        return None
    try:
        return load_profile(name or "dr8")
    except UnknownProfile:
        table.reference("profile", dict.fromkeys(profile_names()), "profile")
        return None


def _fits(table: Table, cards: int, profile: Profile, shape: str) -> bool:
    lanes = cards * profile.signal_lines
    if lanes > LANES_MAX:
        most = LANES_MAX // profile.signal_lines
        table.complain("cards", f"{lanes} lanes", f"use at most {most} cards of {profile.name}")
        return False
    if shape == "pairs" and cards % 2:
        table.complain("cards", f"{cards} do not make pairs", f"use {cards + 1}")
        return False
    if shape == "ring" and profile.oes < 2:
        table.complain(
            "shape", f"a ring needs two engines, {profile.name} has one", 'use shape = "pairs"'
        )
        return False
    if shape == "mesh" and cards > profile.oes + 1:
        table.complain(
            "cards",
            f"{cards} cannot all meet: {profile.name} has {profile.oes} engines",
            f"use at most {profile.oes + 1} cards, or another shape",
        )
        return False
    return True


def make_fleet(cards: int, profile: Profile, shape: str, length_m: float) -> Config:
    """Cards card0, card1, ... with all their engines joined as `shape` says:

    pairs: card 0 with card 1, 2 with 3, engine by engine;
    ring:  engine 0 of each card to engine 1 of the next, 2 to 3, and so on;
    mesh:  a fibre between any two cards.
    """
    names = [f"card{number}" for number in range(cards)]
    ends = {"pairs": _pairs, "ring": _ring, "mesh": _mesh}[shape](names, profile.oes)
    fibres = tuple(
        Fibre(f"fibre{i}", FibreEnd(a), FibreEnd(b), TransportKind.MEMORY, MTU, length_m)
        for i, (a, b) in enumerate(ends)
    )
    made = tuple(Card(name, profile, profile.hbm_bytes) for name in names)
    return Config(made, fibres, Hardware())


def _pairs(names: list[str], oes: int) -> Ends:
    return [
        (PortId(a, oe), PortId(b, oe))
        for a, b in zip(names[::2], names[1::2], strict=True)
        for oe in range(oes)
    ]


def _ring(names: list[str], oes: int) -> Ends:
    return [
        (PortId(name, oe), PortId(names[(i + 1) % len(names)], oe + 1))
        for i, name in enumerate(names)
        for oe in range(0, oes - 1, 2)
    ]


def _mesh(names: list[str], oes: int) -> Ends:
    free = dict.fromkeys(names, 0)
    ends = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            ends.append((PortId(a, free[a]), PortId(b, free[b])))
            free[a] += 1
            free[b] += 1
    return ends
