"""The table: every field, in the order of a scrape; its groups; and how many samples it makes."""

from __future__ import annotations

from dataclasses import dataclass

from acceld.fields.card import CARD_FIELDS, HBM_FIELDS
from acceld.fields.engine import ENGINE_FIELDS, LASER_FIELDS
from acceld.fields.field import Field, Noun
from acceld.fields.flags import FLAG_FIELDS, LANE_FLAG_FIELDS
from acceld.fields.host import HOST_FIELDS, WORKER_FIELDS
from acceld.fields.lane import LANE_FEC_FIELDS, LANE_FIELDS
from acceld.fields.link import FEC_FIELDS, LINK_FIELDS, PORT_FIELDS
from acceld.fields.trouble import FAULT_FIELDS, HEALTH_FIELDS

FIELDS: tuple[Field, ...] = (
    *HOST_FIELDS,
    *WORKER_FIELDS,
    *CARD_FIELDS,
    *HBM_FIELDS,
    *ENGINE_FIELDS,
    *LASER_FIELDS,
    *LINK_FIELDS,
    *FEC_FIELDS,
    *PORT_FIELDS,
    *LANE_FIELDS,
    *LANE_FEC_FIELDS,
    *FLAG_FIELDS,
    *LANE_FLAG_FIELDS,
    *FAULT_FIELDS,
    *HEALTH_FIELDS,
)

GROUPS: dict[str, str] = {
    "daemon": "the daemon itself, its store and scrapes, and the chassis it is attached to",
    "worker": "the processes that carry the cards",
    "card": "cards: identity, state, heat, supply and power",
    "bus": "the bus inside a card",
    "network": "the network module and its signal lines",
    "hbm": "the memory of the cards, and what this machine backs of it",
    "transfer": "transfers, by the card that they were posted to",
    "oe": "optical engines: identity and thresholds",
    "els": "external lasers, each of which feeds several lanes",
    "link": "links: state, reasons, training, recovery",
    "fec": "error correction of links, with its histogram",
    "port": "what crossed the interface of each port with a fibre, and its replay",
    "lane": "light, lasers and bits of every lane",
    "lane_fec": "which lane the symbols were on that FEC corrected",
    "flags": "flags that are on, and how many are latched and have changed",
    "lane_flags": "latches of each lane, and changes of each of its flags",
    "fault": "what was made wrong by command",
    "health": "health of every object, and why it is not ok",
}
OPT_IN = frozenset({"lane_fec", "lane_flags"})
DEFAULT = frozenset(GROUPS) - OPT_IN


LANES_PER_LASER = 4  # of an external laser


@dataclass(frozen=True, slots=True)
class Shape:
    """A host to count samples for, well and quiet. Every engine has a fibre; `fitted` names parts
    that its cards have beyond the least."""

    cards: int
    engines: int  # of a card
    lanes: int  # of an engine
    workers: int = 1
    fitted: frozenset[str] = frozenset()

    def nouns(self, noun: Noun) -> int:
        engines = self.cards * self.engines
        return {
            Noun.HOST: 1,
            Noun.WORKER: self.workers,
            Noun.CARD: self.cards,
            Noun.ENGINE: engines,
            Noun.LASER: engines * -(-self.lanes // LANES_PER_LASER),
            Noun.LINK: engines,
            Noun.LANE: engines * self.lanes,
        }[noun]


def series(field: Field, shape: Shape) -> int:
    """Samples of a family in one scrape of such a host."""
    if field.fitted and field.fitted not in shape.fitted:
        return 0
    return field.samples_each * sum(map(shape.nouns, field.counted or (field.noun,)))
