"""What every rule looks at: one snapshot, what was before, and what time it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from acceld.health.history import RECENT_NS, History, Now, PortPast, S, far_ends
from acceld.health.reasons import CRITICAL, WARNING
from acceld.health.report import HealthState
from acceld.host.snapshot import CARD_STATES, CardSnapshot, HostSnapshot, PortSnapshot
from accelhw.model.ids import PortId

STALE_NS = 10 * S  # a worker beats once a second
STALE_LONG_NS = 60 * S
RECENT_TEXT = f"the last {RECENT_NS // S // 60} min"
LOST = CARD_STATES[3]


@dataclass(frozen=True)
class Scene:
    snapshot: HostSnapshot
    history: History
    now: Now

    @cached_property
    def ports(self) -> dict[PortId, PortSnapshot]:
        return {port.id: port for card in self.snapshot.cards for port in card.ports}

    @cached_property
    def cards(self) -> dict[str, CardSnapshot]:
        return {card.name: card for card in self.snapshot.cards}

    @cached_property
    def _ends(self) -> dict[PortId, PortId]:
        return far_ends(self.snapshot)

    def wired_to(self, port: PortId) -> PortId | None:
        """The other end of its fibre, where that is on this host."""
        return self._ends.get(port)

    def far(self, port: PortId) -> PortSnapshot | None:
        end = self._ends.get(port)
        return self.ports.get(end) if end else None

    def past(self, port: PortId) -> PortPast:
        return self.history.ports[port]

    def silent_ns(self, worker: int) -> int:
        """How long a worker gave no sign of life; 0 for one that never did or is known dead."""
        for one in self.snapshot.workers:
            if one.index == worker and one.alive and one.beat_ns:
                return max(0, self.now.mono_ns - one.beat_ns)
        return 0

    def stale(self, worker: int) -> HealthState | None:
        """What the silence of a worker puts its cards into; None while it beats."""
        silent_ns = self.silent_ns(worker)
        if silent_ns <= STALE_NS:
            return None
        return CRITICAL if silent_ns > STALE_LONG_NS else WARNING
