"""How long a link waits after it failed, and how a link that flaps is held down until it is quiet.

Two waits. After a training that failed, one that doubles. After a link that was up went down, none;
but each such fall adds to a penalty that decays by half in a fixed time, and above a limit the link
stays down until the penalty has decayed, as route flap damping does (RFC 2439).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelhw.link import patience


@dataclass(slots=True)
class HoldOff:
    """The wait after failed trainings: 1, 2, 4 .. 60 s."""

    failures: int = 0  # in a row

    def next_ns(self) -> int:
        wait_ns = min(patience.HOLD_OFF_NS << min(self.failures, 20), patience.HOLD_OFF_MAX_NS)
        self.failures += 1
        return wait_ns

    def forgive(self) -> None:
        self.failures = 0


@dataclass(slots=True)
class Damping:
    """Falls of a link that was up. The penalty counts falls: each adds one."""

    falls: int = 0  # since the penalty was last nothing
    _penalty: float = 0.0
    _at_ns: int = 0

    def penalty(self, now_ns: int) -> float:
        age = max(now_ns - self._at_ns, 0) / patience.FLAP_HALF_LIFE_NS
        return self._penalty * math.exp2(-age)

    def fall(self, now_ns: int) -> int | None:
        """The link fell. How long to hold it down, in nanoseconds; None: not at all."""
        before = self.penalty(now_ns)
        self.falls = self.falls + 1 if before > patience.FLAP_REUSE / 4 else 1
        self._penalty = min(before + 1.0, patience.FLAP_CEILING)
        self._at_ns = now_ns
        if self._penalty <= patience.FLAP_SUPPRESS:
            return None
        return self.wait_ns(now_ns)

    def wait_ns(self, now_ns: int) -> int:
        """Until the penalty has decayed so far that the link may be used again."""
        ratio = self.penalty(now_ns) / patience.FLAP_REUSE
        return math.ceil(patience.FLAP_HALF_LIFE_NS * math.log2(ratio)) if ratio > 1.0 else 0

    def forgive(self) -> None:
        self.falls = 0
        self._penalty = 0.0
