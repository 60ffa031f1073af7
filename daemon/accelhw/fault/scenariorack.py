"""The things a scenario may name: cards, ports and lanes of a rack, and patterns over them.

A pattern is an address with `*` in it, a part at a time: `*` are all cards, `card0/*` the ports of
card0 that have a fibre, `*/oe0/lane3` one lane of each first engine. `all ports` says `*/*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from accelhw.fault.scenario import Level, Subject
from accelhw.model.config import Config
from accelhw.model.ids import BadAddress, LaneId, PortId, nearest
from accelhw.model.profile import Profile

WORDS = {"all cards": "*", "all ports": "*/*", "all lanes": "*/*/*"}
_LEVELS = (Level.CARD, Level.PORT, Level.LANE)


@dataclass(frozen=True)
class Rack:
    """What there is: cards of some profile, and the ports with a fibre."""

    cards: Mapping[str, Profile]
    plugged: frozenset[PortId]

    @classmethod
    def of(cls, config: Config) -> Rack:
        ends = (end for fibre in config.fibres for end in (fibre.a, fibre.b) if end is not None)
        return cls(
            {card.name: card.profile for card in config.cards},
            frozenset(end.port for end in ends),
        )

    @cached_property
    def ports(self) -> tuple[PortId, ...]:
        """With a fibre, in order of cards and engines."""
        return tuple(
            port
            for card, profile in self.cards.items()
            for port in (PortId(card, oe) for oe in range(profile.oes))
            if port in self.plugged
        )

    def find(self, text: str, dark: bool = False) -> tuple[Level, tuple[Subject, ...]]:
        """The subjects of an address or pattern. Raises BadAddress where there are none.

        `dark`: a port that is named may be one without a fibre.
        """
        pattern = WORDS.get(text, text)
        level = self._level(pattern, text)
        if "*" in pattern:
            found = tuple(self._matching(pattern.split("/")))
            if not found:
                raise BadAddress(f"{text!r} matches no {level}; {self._known()}")
            return level, found
        return level, (self._one(level, pattern, dark),)

    def _level(self, pattern: str, text: str) -> Level:
        parts = pattern.split("/")
        if not text or len(parts) > len(_LEVELS) or "" in parts:
            raise BadAddress(
                f"{text!r} is no address; use card0, card0/oe1, card0/oe1/lane3,"
                " a pattern as card0/*, or all ports"
            )
        if " " in text and text not in WORDS:
            guess = nearest(text, WORDS)
            raise BadAddress(f"{text!r} is no address; did you mean {guess or 'all ports'!r}?")
        return _LEVELS[len(parts) - 1]

    def _one(self, level: Level, text: str, dark: bool) -> Subject:
        card, _, rest = text.partition("/")
        if card not in self.cards:
            guess = nearest(card, self.cards)
            meant = "/".join(filter(None, (guess, rest))) if guess else ""
            remedy = f"did you mean {meant!r}?" if meant else self._known()
            raise BadAddress(f"{text!r}: there is no card {card!r}; {remedy}")
        if level is Level.CARD:
            return card
        oes, lanes = self.cards[card].oes, self.cards[card].lanes_per_oe
        lane = LaneId.parse(text) if level is Level.LANE else None
        port = lane.port if lane is not None else PortId.parse(text)
        if port.oe >= oes:
            has = "only oe0" if oes == 1 else f"oe0 to oe{oes - 1}"
            raise BadAddress(f"{text!r}: {card} has {has}; use '{card}/oe{oes - 1}'")
        if port not in self.plugged and not dark:
            free = next((str(p) for p in self.ports if p.card == card), None)
            remedy = f"one with a fibre is {free!r}" if free else f"{card} has no fibre at all"
            raise BadAddress(f"{text!r}: no fibre is plugged in there; {remedy}")
        if lane is None:
            return port
        if lane.index >= lanes:
            has = "only lane0" if lanes == 1 else f"lane0 to lane{lanes - 1}"
            raise BadAddress(f"{text!r}: {port} has {has}; use '{port}/lane{lanes - 1}'")
        return lane

    def _matching(self, parts: list[str]) -> Iterator[Subject]:
        for card, profile in self.cards.items():
            if not fnmatchcase(card, parts[0]):
                continue
            if len(parts) == 1:
                yield card
                continue
            for port in self._ports_of(card):
                if not fnmatchcase(f"oe{port.oe}", parts[1]):
                    continue
                if len(parts) == 2:
                    yield port
                    continue
                for index in range(profile.lanes_per_oe):
                    if fnmatchcase(f"lane{index}", parts[2]):
                        yield LaneId(port, index)

    def _ports_of(self, card: str) -> Iterator[PortId]:
        ports = (PortId(card, oe) for oe in range(self.cards[card].oes))
        return (port for port in ports if port in self.plugged)

    def _known(self) -> str:
        names = list(self.cards)
        if len(names) > 4:
            return f"there are {names[0]} to {names[-1]}"
        return f"known are {', '.join(names)}" if names else "there are no cards"


def subject_of(text: str) -> Subject | None:
    """What an address names; None for what is no address, as "chassis/x"."""
    try:
        if text.count("/") == 2:
            return LaneId.parse(text)
        return PortId.parse(text) if "/" in text else text
    except BadAddress:
        return None
