"""The port at the other end: who it is, what it said last, and whether a message is of any use.

Two things make a message useless: a newer one was heard before it, or it comes from a port that is
not the known peer while that one still talks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link import patience
from accelhw.link.newest import Newest
from accelhw.model.link import PeerId
from accelhw.wire.training import TrainingMessage


@dataclass(slots=True)
class FarEnd:
    """Times are of the own clock."""

    bound: tuple[PeerId, int] | None = None  # the peer and its session
    message: TrainingMessage | None = None  # the newest of this pair of sessions
    echo: tuple[int, int] = (0, 0)  # `sent_ns` of the newest message, and when it came
    last_heard: int = 0
    offers: int = 0  # better modes that it would bear, while up
    said_down: int | None = None  # when it said last that it is switched off
    rtt_min: int = 0  # in this attempt
    rtt_last: int = 0
    _messages: Newest = field(default_factory=Newest)
    _carriers: Newest = field(default_factory=Newest)

    def forget(self) -> None:
        """A new session of ours: nothing said before belongs to it."""
        self.bound = None
        self.message = None
        self.offers = 0
        self.echo = (0, 0)

    def begin(self) -> None:
        """A new attempt under the same session."""
        self.message = None
        self.rtt_min = 0

    def is_bound_to(self, message: TrainingMessage) -> bool:
        return self.bound == (message.sender, message.session)

    def is_fresh(self, message: TrainingMessage, now_ns: int) -> bool | None:
        """True: newer than all before. False: of the newest session, but late. None: stale."""
        sender = message.sender
        known = self.bound is None or self.bound[0] == sender
        if not known and now_ns - self.last_heard < patience.PEER_REPLACED_NS:
            return None  # A second port on this fibre, or an earlier life of the peer.
        if self._messages.advance(sender, (message.session, message.sequence)):
            return True
        newest = self._messages.of(sender)
        return False if newest is not None and newest[0] == message.session else None

    def is_fresh_carrier(self, sender: PeerId, sent_ns: int) -> bool:
        return self._carriers.advance(sender, (sent_ns,))

    def measure(self, message: TrainingMessage, now_ns: int) -> None:
        """The round trip, without the time that the far end held our message."""
        if message.echo_sent_ns:
            rtt = now_ns - message.echo_sent_ns - message.echo_held_ns
            if rtt > 0:
                self.rtt_last = rtt
                self.rtt_min = min(self.rtt_min or rtt, rtt)

    def talks(self, now_ns: int) -> bool:
        return self.bound is not None and now_ns - self.last_heard < patience.PEER_SILENCE_NS

    def is_down(self, now_ns: int) -> bool:
        said = self.said_down
        return said is not None and now_ns - said < patience.PEER_SILENCE_NS

    @property
    def slack_ns(self) -> int:
        """More patience on a busy machine, where a round trip takes long."""
        return 4 * self.rtt_last
