"""Racks from a few words: so many cards of a profile, joined in a shape; and one as TOML."""

from __future__ import annotations

from collections.abc import Callable

from accelhw.model.config import Card, Config, Fibre, FibreEnd, Hardware, TransportKind
from accelhw.model.ids import PortId
from accelhw.model.profile import Profile

MTU = 9000

Ends = list[tuple[PortId, PortId]]
Misfit = tuple[str, str, str]  # which word, what is wrong with it, what would work


def make_fleet(
    cards: int,
    profile: Profile,
    shape: str,
    length_m: float,
    transport: TransportKind = TransportKind.MEMORY,
    mtu: int = MTU,
) -> Config:
    """Cards card0, card1, ... with all their engines joined as `shape` says:

    pairs: card 0 with card 1, 2 with 3, engine by engine;
    ring:  engine 0 of each card to engine 1 of the next, 2 to 3, and so on;
    mesh:  a fibre between any two cards.

    What `MISFITS` complains about gives a rack that is not whole.
    """
    names = [f"card{number}" for number in range(cards)]
    ends = ENDS[shape](names, profile.oes)
    fibres = tuple(
        Fibre(f"fibre{i}", FibreEnd(a), FibreEnd(b), transport, mtu, length_m)
        for i, (a, b) in enumerate(ends)
    )
    made = tuple(Card(name, profile, profile.hbm_bytes) for name in names)
    return Config(made, fibres, Hardware())


def to_toml(config: Config) -> str:
    """The cards and fibres of a made rack as a configuration file."""
    parts = [f'[[card]]\nname = "{c.name}"\nprofile = "{c.profile.name}"\n' for c in config.cards]
    for fibre in config.fibres:
        assert fibre.b is not None
        parts.append(
            f'[[fibre]]\nname = "{fibre.name}"\na = "{fibre.a.port}"\nb = "{fibre.b.port}"\n'
            f'transport = "{fibre.transport}"\nmtu = {fibre.mtu}\nlength_m = {fibre.length_m:g}\n'
        )
    return "\n".join(parts)


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


ENDS: dict[str, Callable[[list[str], int], Ends]] = {"pairs": _pairs, "ring": _ring, "mesh": _mesh}
SHAPES = tuple(ENDS)


def _pairs_misfit(cards: int, profile: Profile) -> Misfit | None:
    return ("cards", f"{cards} do not make pairs", f"use {cards + 1}") if cards % 2 else None


def _ring_misfit(cards: int, profile: Profile) -> Misfit | None:
    if profile.oes >= 2:
        return None
    what = f"a ring needs two engines, {profile.name} has one"
    return "shape", what, 'use shape = "pairs"'


def _mesh_misfit(cards: int, profile: Profile) -> Misfit | None:
    if cards <= profile.oes + 1:
        return None
    what = f"{cards} cannot all meet: {profile.name} has {profile.oes} engines"
    return "cards", what, f"use at most {profile.oes + 1} cards, or another shape"


MISFITS: dict[str, Callable[[int, Profile], Misfit | None]] = {
    "pairs": _pairs_misfit, "ring": _ring_misfit, "mesh": _mesh_misfit,
}  # fmt: skip
