"""What a port's receivers tell about their lanes, judged by the limits of its code."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelhw.link.confidence import ENOUGH, confidence
from accelhw.link.events import LaneQuality
from accelhw.link.lanemap import lanes_of
from accelhw.link.patience import (
    BER_LIMIT,
    BER_LIMIT_ACTIVE,
    MARGIN_MIN_DB,
    QUALITY_PERIOD_NS,
    QUALITY_STRIKES,
)


@dataclass(slots=True)
class Receiver:
    """Lane sets are masks."""

    fec: str
    bits_per_ns: float  # of one lane
    lit: int = 0
    locked: int = 0
    passing: int = 0  # good enough to come up
    quality: LaneQuality | None = None
    _judged_by: str | None = None  # the code whose limits `passing` goes by
    _strikes: int = 0
    _struck_ns: int = 0

    @property
    def hears(self) -> int:
        """Lanes that a frame can arrive on."""
        return self.lit & self.locked

    @property
    def usable(self) -> int:
        return self.hears & self.passing

    def measure(self, quality: LaneQuality) -> None:
        if quality is self.quality and self.fec == self._judged_by:
            return
        self._judged_by = self.fec
        limit, margin = BER_LIMIT[self.fec], MARGIN_MIN_DB.get(self.fec, -math.inf)
        self.quality = quality
        self.passing = sum(
            1 << lane
            for lane, (ber, spare) in enumerate(zip(quality.ber, quality.margin_db, strict=True))
            if ber <= limit and spare >= margin
        )

    def fair(self, strictly: int) -> int:
        """Lanes good enough to stay up; of those of the mask, lanes good enough to come up."""
        if self.quality is None:
            return 0
        limit = BER_LIMIT_ACTIVE[self.fec]
        return self.passing | sum(
            1 << lane
            for lane, ber in enumerate(self.quality.ber)
            if ber <= limit and not strictly >> lane & 1
        )

    def confidence(self, lane: int, watched_ns: int) -> float:
        """That a lane watched for so long is better than the limit to come up."""
        if self.quality is None:
            return 0.0
        bits = self.bits_per_ns * watched_ns
        return confidence(bits, bits * self.quality.ber[lane], BER_LIMIT[self.fec])

    def proved(self, watched_ns: int) -> int:
        """Lanes that passed, with enough bits seen to be sure."""
        return sum(
            1 << lane
            for lane in lanes_of(self.passing)
            if self.confidence(lane, watched_ns) >= ENOUGH
        )

    def text(self, lane: int) -> str:
        if self.quality is None:
            return "not measured"
        return f"BER {self.quality.ber[lane]:.1e}, margin {self.quality.margin_db[lane]:.1f} dB"

    def forgive(self) -> None:
        self._strikes = 0

    def worn_out(self, used: int, now_ns: int) -> list[int]:
        """The bad lanes in use, worst first, once some were bad for several periods in a row."""
        quality = self.quality
        if quality is None or (self._strikes and now_ns - self._struck_ns < QUALITY_PERIOD_NS):
            return []
        limit = BER_LIMIT_ACTIVE[self.fec]
        bad = [lane for lane in lanes_of(used) if quality.ber[lane] > limit]
        self._struck_ns = now_ns
        self._strikes = self._strikes + 1 if bad else 0
        if self._strikes < QUALITY_STRIKES:
            return []
        return sorted(bad, key=lambda lane: -quality.ber[lane])
