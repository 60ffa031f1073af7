"""A stretch of a lane's line while a pattern runs on it: made, carried, spoilt, and checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelhw.optics import prbs

APART_BITS = 1_000_003  # lanes begin their patterns so far apart, as testers do


class LineSample:
    """One receiving lane. The bits are real: the far generator's, flipped at the lane's BER."""

    def __init__(
        self, lane: int, pattern: str, modulation: str, checker: str, dice: np.random.Generator
    ) -> None:
        self.pattern = replace(prbs.PATTERNS[pattern], pam4=modulation == "pam4")
        self.bits = 0
        self.errors = 0
        self.losses = 0
        self.locked = False
        self.inverted = False
        self._generator = prbs.Generator(self.pattern)
        self._generator.skip_to(lane * APART_BITS)
        self._checker = (
            prbs.SeededChecker(self.pattern)
            if checker == "seeded"
            else prbs.SelfSynchronousChecker(self.pattern)
        )
        self._dice = dice

    def take(self, count: int, ber: float, swapped: bool) -> None:
        """Check the next `count` bits, a multiple of 64. `swapped`: polarity on the way."""
        line = self._generator.bits(count)
        if self.pattern.inverted:
            line ^= 1
        line = self._spoilt(line, ber)
        if swapped:
            line = prbs.invert(line, self.pattern.pam4)
        seen = self._checker.check(line)
        self.losses += self.locked and not seen.locked
        self.locked = seen.locked
        if seen.locked:
            self.inverted = seen.inverted
            self.bits += seen.bits
            self.errors += seen.errors

    def _spoilt(self, line: prbs.Bits, ber: float) -> prbs.Bits:
        """Noise: NRZ bits flip; PAM4 levels are taken for a neighbour, which flips one bit."""
        if not self.pattern.pam4:
            line ^= self._dice.random(len(line)) < ber
            return line
        levels = prbs.symbols_of(line)
        # Three thresholds a symbol of two bits: BER is 3/4 of the chance to cross one of them.
        crossing = min(ber * 4.0 / 3.0, 0.5)
        chance = self._dice.random(len(levels))
        up = (chance < crossing) & (levels < 3)
        down = (chance > 1.0 - crossing) & (levels > 0)
        return prbs.bits_of(np.asarray(levels + up - down, np.uint8))
