"""Whether light can go from one card to another at all: by the fibres that are plugged in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from acceld.errors import WrongState
from accelhw.interface.messages import CardInfo


def _fibres(card: CardInfo) -> dict[str, int]:
    """By name: the engine that each is plugged into."""
    return {port.fibre.name: port.oe for port in card.ports if port.fibre is not None}


def require_path(cards: Sequence[CardInfo], local: str, remote: str) -> None:
    """Raises WrongState NO_PATH when no fibre can join the two cards.

    A fibre with one end on this host leads outside, to where only light can tell; two such may
    meet again here, over a bridge.
    """
    plugged = {card.name: _fibres(card) for card in cards}
    ends = Counter(name for fibres in plugged.values() for name in fibres)
    here, there = plugged[local], plugged.get(remote)
    if any(ends[name] == 1 for name in here) and (
        there is None or any(ends[name] == 1 for name in there)
    ):
        return
    if there is not None and not here.keys().isdisjoint(there):
        return
    neighbours = [
        f"{card} (oe{here[name]})"
        for card, fibres in plugged.items()
        for name in fibres
        if name in here and card != local
    ]
    leads = f"its fibres lead to {', '.join(neighbours)}" if neighbours else "it has no fibre"
    raise WrongState(
        "NO_PATH",
        f"no fibre joins {local} and {remote}: {leads}; copy by way of a card that both reach, or"
        " add a [[fibre]] to the configuration",
        local_card=local,
        remote_card=remote,
    )
