"""The way back to a better mode: which ones a receiver would bear, and since when.

A link that fell back measures its errors in the mode it has. What they would be at a higher rate
follows from the noise that a wider receiver lets in; what a weaker code makes of them is in its
limits. An end offers a mode after it would have borne it for a while, and each try that ends in a
lesser one doubles that while, so that a link at the edge does not go to and fro.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

from accelhw.link import patience
from accelhw.link.events import LaneQuality
from accelhw.link.lanemap import lanes_of
from accelhw.model.link import MODES, LinkMode

_NORMAL = NormalDist()
_BER_MIN = 1e-300


def expected_ber(ber: float, noise_ratio: float) -> float:
    """The BER of a lane whose noise grows so many times in power: Q falls by its root."""
    if ber >= 0.5:
        return 0.5
    q = -_NORMAL.inv_cdf(max(ber, _BER_MIN))
    return _NORMAL.cdf(-q / math.sqrt(noise_ratio))


def bears(quality: LaneQuality, lanes: int, now: LinkMode, then: LinkMode) -> bool:
    """Whether lanes that do so well in one mode would be let up in another."""
    noise_ratio = now.slowdown / then.slowdown
    lost_db = 5.0 * math.log10(noise_ratio)  # of optical margin
    needed_db = patience.MARGIN_MIN_DB.get(then.fec, -math.inf) + lost_db
    limit = patience.BER_LIMIT[then.fec]
    return all(
        quality.margin_db[lane] >= needed_db
        and expected_ber(quality.ber[lane], noise_ratio) <= limit
        for lane in lanes_of(lanes)
    )


def better_modes(common: int, now: LinkMode) -> list[LinkMode]:
    """Of a mask of modes, those before this one."""
    return [mode for mode in MODES[: now.number] if common >> mode.number & 1]


@dataclass(slots=True)
class WayBack:
    """One end's view; times are of the clock that is handed in."""

    wait_ns: int = 0  # 0: it never fell back
    _since: dict[int, int] = field(default_factory=dict)  # by mode number: borne since
    _best_since: int | None = None
    _tries: bool = False

    def came_up(self, is_best: bool, now_ns: int) -> None:
        """Training ended, in the best common mode or in a lesser one."""
        self._since.clear()
        if is_best:
            self._best_since, self._tries = now_ns, True
            return
        tried, self._tries = self._tries, False
        best_since, self._best_since = self._best_since, None
        was_good = best_since is not None and now_ns - best_since > patience.BETTER_FORGET_NS
        if not self.wait_ns or was_good:
            self.wait_ns = patience.BETTER_NS
        elif tried:
            self.wait_ns = min(self.wait_ns * 2, patience.BETTER_MAX_NS)

    def look(self, borne: list[LinkMode], now_ns: int) -> None:
        """What the receiver would bear now."""
        since = self._since
        self._since = {mode.number: since.get(mode.number, now_ns) for mode in borne}

    def offers(self, now_ns: int) -> int:
        """Modes that it has borne for long enough, as a mask."""
        return sum(
            1 << number for number, since in self._since.items() if now_ns >= since + self.wait_ns
        )

    def next_offer_ns(self, now_ns: int) -> int | None:
        """When `offers` grows by itself."""
        times = (since + self.wait_ns for since in self._since.values())
        return min((time for time in times if time > now_ns), default=None)

    def tries(self) -> None:
        """The link trains again for the sake of a better mode."""
        self._tries = True

    def give_up(self) -> None:
        """The link is in trouble, or down."""
        self._since.clear()

    def forgive(self) -> None:
        """An operator looked at it."""
        self.wait_ns = 0
        self._best_since, self._tries = None, False
        self._since.clear()
