"""The rack of a scenario: a configuration file, or a fleet made up from a few words."""

from __future__ import annotations

from collections.abc import Callable

from accelhw.model import configfile
from accelhw.model.config import Config
from accelhw.model.fibretable import LENGTH_M_MAX
from accelhw.model.fleet import MISFITS, SHAPES, make_fleet
from accelhw.model.profile import Profile, UnknownProfile, load_profile, profile_names
from accelhw.model.tomltable import Table

KEYS = ("config", "cards", "profile", "shape", "length_m")
LANES_MAX = 1 << 20
CARDS_MAX = 1 << 16


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
    misfit = MISFITS[shape](cards, profile)
    if misfit is not None:
        table.complain(*misfit)
        return False
    return True
