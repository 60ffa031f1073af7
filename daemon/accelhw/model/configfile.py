"""The configuration file: TOML to values, or every mistake in it with its line and a remedy.

The schema, by table (defaults in brackets, * required):

    [[card]]    name*, profile*, hbm_gib [the profile's]
    [[fibre]]   name [fibre0, fibre1, ...], a*, b, transport [veth], mtu [by transport],
                length_m [10], attenuation_db_per_km [0.35], connectors [2],
                connector_loss_db [0.25], extra_loss_db [0], lane_map, inverted_lanes,
                interface_a, interface_b, interface (= interface_a of a fibre without b),
                netns_a, netns_b
    [hardware]  workers [one per CPU], hbm_budget_gib [half of what is free], seed [1]
    [daemon]    socket, state_dir, metrics
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable

from accelhw.model.config import Card, Config, Daemon, Hardware
from accelhw.model.fibretable import read_fibres
from accelhw.model.ids import BadAddress, check_name
from accelhw.model.profile import Profile, UnknownProfile, load_profile, profile_names
from accelhw.model.tomllines import key_lines
from accelhw.model.tomltable import Mistake, Table, split

CARDS_MAX = 128
HBM_GIB_MAX = 1024
HBM_GRAIN_BYTES = 1 << 20
WORKERS_MAX = 64
SEED_MAX = 2**63 - 1
SOCKET_PATH_BYTES_MAX = 107  # sun_path of Linux, without its closing zero
CARD_KEYS = ("name", "profile", "hbm_gib")
HARDWARE_KEYS = ("workers", "hbm_budget_gib", "seed")
DAEMON_KEYS = ("socket", "state_dir", "metrics")
TABLES = ("card", "fibre", "hardware", "daemon")

_SYNTAX_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")
_SYNTAX_WORDS = {
    "Illegal character '\\n'": (
        "a text is not closed at the end of its line",
        'write it as: name = "value"',
    ),
    "Cannot overwrite a value": ("this key stands here twice", "keep one of them"),
    "Cannot declare": ("this table stands here twice", "keep one, or use [[two brackets]]"),
}


def render(mistakes: Iterable[Mistake], path: str) -> str:
    """One line each, as compilers do: `pair.toml:12: fibre.b: ...`."""
    return "\n".join(f"{path}:{mistake.line}: {mistake}" for mistake in mistakes)


def load(text: str) -> Config | list[Mistake]:
    """The configuration, or all its mistakes in the order of their lines."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [syntax_mistake(str(error), text)]
    lines = key_lines(text)
    mistakes: list[Mistake] = []
    top = Table(document, (), "", lines, mistakes)
    top.refuse_unknown(TABLES, "table")

    cards = _read_cards(top)
    fibres = read_fibres(top, cards)
    hardware = _read_hardware(top.table("hardware"))
    daemon = _read_daemon(top.table("daemon"))
    if mistakes:
        return sorted(mistakes, key=lambda mistake: mistake.line)
    return Config(
        tuple(card for card in cards.values() if card is not None), fibres, hardware, daemon
    )


def syntax_mistake(message: str, text: str) -> Mistake:
    """What `tomllib` said of a text, as a mistake with its line."""
    place = _SYNTAX_PLACE.search(message)
    line = int(place.group(1)) if place and place.group(1) else max(1, len(text.splitlines()))
    problem = _SYNTAX_PLACE.sub("", message)
    for start, (words, remedy) in _SYNTAX_WORDS.items():
        if problem.startswith(start):
            return Mistake(line, "syntax", words, remedy)
    problem = problem[:1].lower() + problem[1:]
    return Mistake(line, "syntax", f"not TOML: {problem}", "write it as: name = value")


# ---- cards ---------------------------------------------------------------------------------------


def _read_cards(top: Table) -> dict[str, Card | None]:
    """By name; None where a card is named but wrong, so that its fibres are not blamed for it."""
    cards: dict[str, Card | None] = {}
    tables = top.tables("card")
    for table in tables:
        table.refuse_unknown(CARD_KEYS)
        name = table.text("name", f"card{len(cards)}", required=True)
        profile = _read_profile(table)
        hbm_bytes = _read_hbm_bytes(table, profile)
        if name is None:
            continue
        try:
            check_name(name, "card")
        except BadAddress as error:
            table.complain("name", *split(error))
            continue
        if name in cards:
            table.complain("name", f"a second card named {name!r}", "give each a name of its own")
            continue
        good = profile is not None and hbm_bytes is not None
        cards[name] = Card(name, profile, hbm_bytes) if good else None  # type: ignore[arg-type]
    if not tables and "card" not in top.values:
        top.complain("card", "there is none", "add [[card]] with a name and a profile")
    elif len(tables) > CARDS_MAX:
        top.complain("card", f"{len(tables)} cards", f"at most {CARDS_MAX} fit into one chassis")
    return cards


def _read_profile(table: Table) -> Profile | None:
    name = table.text("profile", "oio", required=True)
    if name is None:
        return None
    try:
        return load_profile(name)
    except UnknownProfile:
        table.reference("profile", dict.fromkeys(profile_names()), "profile")
        return None


def _read_hbm_bytes(table: Table, profile: Profile | None) -> int | None:
    if "hbm_gib" not in table.values:
        return profile.hbm_bytes if profile else None
    grain_gib = HBM_GRAIN_BYTES / (1 << 30)
    gib = table.number("hbm_gib", grain_gib, HBM_GIB_MAX, profile.hbm_gib if profile else 16)
    if gib is None:
        return None
    size = int(gib * (1 << 30))
    if size % HBM_GRAIN_BYTES:
        table.complain("hbm_gib", f"{gib:g} GiB is no whole number of MiB", "use e.g. 0.5 or 16")
        return None
    return size


# ---- hardware and daemon -------------------------------------------------------------------------


def _read_hardware(table: Table) -> Hardware:
    table.refuse_unknown(HARDWARE_KEYS)
    workers = table.integer("workers", 1, WORKERS_MAX, 2)
    budget_gib = table.number("hbm_budget_gib", 1 / 1024, 1 << 20, 8)
    seed = table.integer("seed", 0, SEED_MAX, 1)
    return Hardware(
        workers=workers,
        hbm_budget_bytes=None if budget_gib is None else int(budget_gib * (1 << 30)),
        seed=Hardware().seed if seed is None else seed,
    )


def _read_daemon(table: Table) -> Daemon:
    table.refuse_unknown(DAEMON_KEYS)
    socket = table.text("socket", "/run/acceld/acceld.sock")
    if socket is not None and not 0 < len(socket.encode()) <= SOCKET_PATH_BYTES_MAX:
        table.complain(
            "socket", f"{len(socket.encode())} bytes", f"use 1 to {SOCKET_PATH_BYTES_MAX} bytes"
        )
    state_dir = table.text("state_dir", "/var/lib/acceld")
    if state_dir == "":
        table.complain("state_dir", "empty", "name a folder, or leave it out")
    metrics = table.text("metrics", "127.0.0.1:9437")
    if metrics is not None and not _is_metrics_address(metrics):
        table.complain(
            "metrics", f"{metrics!r} is no HOST:PORT", 'use "127.0.0.1:9437", "[::1]:9437" or "off"'
        )
    return Daemon(socket=socket, state_dir=state_dir, metrics=metrics)


def _is_metrics_address(text: str) -> bool:
    if text == "off":
        return True
    host, colon, port = text.rpartition(":")
    return bool(host and colon) and port.isascii() and port.isdigit() and int(port) <= 65535
