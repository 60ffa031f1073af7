"""The hardware as the host sees it: what is attached now, and commands with refusals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from acceld.errors import (
    AlreadyExists,
    InvalidRequest,
    NotFound,
    OutOfRange,
    Refusal,
    Unavailable,
    WrongState,
    suggestion,
)
from acceld.host.hbm import Hbm
from acceld.host.snapshot import CardFacts, Counts
from accelhw.interface.client import ChassisLost, DeviceClient
from accelhw.interface.messages import COMPLETION_ERRORS, Command, Welcome
from accelhw.interface.tables import Tables
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState
from accelhw.model.profile import load_profile

REFUSALS: dict[str, tuple[type[Refusal], str]] = {
    "UNKNOWN_CARD": (NotFound, "CARD_NOT_FOUND"),
    "UNKNOWN_PORT": (NotFound, "PORT_NOT_FOUND"),
    "UNKNOWN_REGION": (NotFound, "REGION_NOT_FOUND"),
    "UNKNOWN_TRANSFER": (NotFound, "TRANSFER_NOT_FOUND"),
    "EXISTS": (AlreadyExists, "EXISTS"),
    "OUT_OF_RANGE": (OutOfRange, "BEYOND_HBM"),
    "BUSY": (WrongState, "REGION_BUSY"),
    "BAD_MAP": (InvalidRequest, "CHANNEL_MAP_INVALID"),
    "UNKNOWN_FAULT": (NotFound, "FAULT_NOT_FOUND"),
    "UNKNOWN_LANE": (NotFound, "LANE_NOT_FOUND"),
    "BAD_FAULT": (InvalidRequest, "FAULT_INVALID"),
    "CARD_LOST": (Unavailable, "CARD_LOST"),
    "BAD_STATE": (WrongState, "BAD_STATE"),
    "BAD_TEST": (InvalidRequest, "TEST_INVALID"),
    "LINK_BUSY": (WrongState, "LINK_BUSY"),
    "UNKNOWN_DIAG": (NotFound, "DIAG_NOT_FOUND"),
}


@dataclass(frozen=True)
class Attachment:
    """A chassis we are attached to, for as long as the connection lasts."""

    client: DeviceClient
    tables: Tables
    cards: dict[str, CardFacts]
    hbm: dict[str, Hbm]

    @classmethod
    def over(cls, client: DeviceClient) -> Attachment:
        """Raises UnknownProfile, or ValueError when the shared tables are not of our version."""
        welcome = client.welcome
        return cls(
            client,
            Tables.attach(client.tables_fd, welcome.table_rows, writable=False),
            {info.name: CardFacts(info, load_profile(info.profile)) for info in welcome.cards},
            {info.name: Hbm(client.hbm_fd(info.name)) for info in welcome.cards},
        )

    @property
    def welcome(self) -> Welcome:
        return self.client.welcome

    @cached_property
    def _fibre_rows(self) -> NDArray[np.intp]:
        ports = [port for card in self.cards.values() for port in card.info.ports]
        return np.array([port.port_row for port in ports if port.fibre is not None], np.intp)

    @property
    def counts(self) -> Counts:
        """In microseconds for hundreds of links: asked for at each change of one of them."""
        states = self.tables.port["state"][self._fibre_rows]
        up = np.isin(states, [state for state in LinkState if state.carries_data])
        return Counts(len(self.cards), len(states), int(np.count_nonzero(up)))

    @cached_property
    def far_ends(self) -> dict[PortId, PortId]:
        """The other end of each fibre that has both of its ends here."""
        ends: dict[str, list[PortId]] = {}
        for card in self.cards.values():
            for port in card.info.ports:
                if port.fibre is not None:
                    ends.setdefault(port.fibre.name, []).append(card.port_ids[port.oe])
        pairs = [pair for pair in ends.values() if len(pair) == 2]
        return {a: b for pair in pairs for a, b in (pair, pair[::-1])}


class Hardware:
    """Holds the attachment; None while the chassis is away."""

    def __init__(self) -> None:
        self.attachment: Attachment | None = None
        self.why_gone = "no chassis has answered yet"

    @property
    def now(self) -> Attachment:
        """The attachment. Raises Unavailable."""
        if self.attachment is None:
            raise self._gone()
        return self.attachment

    def _gone(self) -> Unavailable:
        return Unavailable(
            "CHASSIS_GONE",
            f"the emulated hardware does not answer ({self.why_gone}); the daemon attaches again"
            " by itself when the chassis runs",
        )

    async def command(self, command: Command) -> None:
        """Give a command and wait until the hardware has done it. Raises Refusal."""
        attachment = self.now
        try:
            completion = await attachment.client.command(command)
        except ChassisLost as error:
            self.why_gone = str(error)
            raise self._gone() from error
        if completion.error:
            kind, reason = REFUSALS.get(completion.error, (WrongState, completion.error))
            text = completion.detail or COMPLETION_ERRORS.get(completion.error, completion.error)
            raise kind(reason, text)

    def tell(self, command: Command) -> None:
        """Give a command whose completion nobody waits for. Hardware that is gone misses it."""
        if self.attachment is not None:
            self.attachment.client.tell(command)

    def card(self, name: str) -> CardFacts:
        """Raises NotFound, Unavailable."""
        cards = self.now.cards
        if name not in cards:
            hint = suggestion(name, cards, "card")
            raise NotFound("CARD_NOT_FOUND", f"there is no card {name!r}; {hint}", card=name)
        return cards[name]

    def port(self, port: PortId) -> CardFacts:
        """The card of a port that exists. Raises NotFound, Unavailable."""
        card = self.card(port.card)
        if card.port(port.oe) is None:
            known = [f"{card.name}/oe{p.oe}" for p in card.info.ports]
            hint = suggestion(str(port), known, "port")
            raise NotFound("PORT_NOT_FOUND", f"there is no port {port}; {hint}", port=port)
        return card

    def far_end(self, port: PortId) -> PortId | None:
        """Where the fibre of a port leads, if that is here."""
        return self.attachment.far_ends.get(port) if self.attachment is not None else None

    def hbm(self, card: str) -> Hbm:
        self.card(card)
        return self.now.hbm[card]
