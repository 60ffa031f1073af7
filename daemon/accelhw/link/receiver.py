"""What a port's receivers tell about their lanes, judged by the limits of its code."""

from __future__ import annotations

from dataclasses import dataclass

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
    lit: int = 0
    locked: int = 0
    passing: int = 0  # good enough to come up
    quality: LaneQuality | None = None
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
        limit, margin = BER_LIMIT[self.fec], MARGIN_MIN_DB[self.fec]
        self.quality = quality
        self.passing = sum(
            1 << lane
            for lane, (ber, spare) in enumerate(zip(quality.ber, quality.margin_db, strict=True))
            if ber <= limit and spare >= margin
        )

    def text(self, lane: int) -> str:
        if self.quality is None:
            return "not measured"
        return f"BER {self.quality.ber[lane]:.1e}, margin {self.quality.margin_db[lane]:.1f} dB"

    def forgive(self) -> None:
        self._strikes = 0

    def worn_out(self, used: int, now_ns: int) -> int | None:
        """The worst lane in use, once some were over the limit for several periods in a row."""
        quality = self.quality
        if quality is None or (self._strikes and now_ns - self._struck_ns < QUALITY_PERIOD_NS):
            return None
        limit = BER_LIMIT_ACTIVE[self.fec]
        bad = [lane for lane in lanes_of(used) if quality.ber[lane] > limit]
        self._struck_ns = now_ns
        self._strikes = self._strikes + 1 if bad else 0
        if self._strikes < QUALITY_STRIKES:
            return None
        return max(bad, key=lambda lane: quality.ber[lane])
