"""Pseudo-random bit sequences as link testers send them: generated, and checked.

b[i] is the XOR of b[i-d] over a pattern's delays d, begun from a history of ones. Squared over
GF(2) the recurrence holds for the delays 64 d as well, so a stream is made 64 bits a word, each
word an XOR of earlier words, in blocks that grow. Bits go out most significant first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from accelhw.model.diag import PATTERN_NAMES

Bits = NDArray[np.uint8]  # one bit a byte, 0 or 1
Words = NDArray[np.uint64]  # 64 bits a word, in the byte order of the line

WORD_BITS = 64
GRAY = np.array((0, 1, 3, 2), np.uint8)  # two bits, first the greater, to a level: 00 01 11 10
UNGRAY = np.array((0, 1, 3, 2), np.uint8)  # and back; this code is its own inverse
SYNC_BITS = 512  # what a checker looks at to find its place
SYNC_ERRORS_MAX = SYNC_BITS // 4  # more than this is no lock


@dataclass(frozen=True, slots=True)
class Pattern:
    """`inverted`: as usually sent, every bit is complemented. `pam4`: two bits a symbol."""

    name: str
    degree: int
    delays: tuple[int, ...]
    inverted: bool = False
    pam4: bool = False

    @property
    def period_bits(self) -> int:
        return (1 << self.degree) - 1

    @property
    def counts_per_error(self) -> int:
        """How often a self-synchronous checker counts one wrong bit."""
        return len(self.delays) + 1


PATTERNS = {
    pattern.name: pattern
    for pattern in (
        Pattern("prbs7", 7, (6, 7)),
        Pattern("prbs9", 9, (5, 9)),
        Pattern("prbs11", 11, (9, 11)),
        # The training patterns of IEEE 802.3 clause 136: one a lane, so that lanes can be told.
        Pattern("prbs13", 13, (1, 2, 12, 13)),
        Pattern("prbs13_lane1", 13, (2, 3, 7, 13)),
        Pattern("prbs13_lane2", 13, (2, 4, 8, 13)),
        Pattern("prbs13_lane3", 13, (2, 5, 9, 13)),
        # ITU-T O.150 sends the longer ones inverted.
        Pattern("prbs15", 15, (14, 15), inverted=True),
        Pattern("prbs23", 23, (18, 23), inverted=True),
        Pattern("prbs31", 31, (28, 31), inverted=True),
        Pattern("prbs13q", 13, (1, 2, 12, 13), pam4=True),
        Pattern("prbs31q", 31, (28, 31), inverted=True, pam4=True),
    )
}
assert tuple(PATTERNS) == PATTERN_NAMES


# ---- making them ---------------------------------------------------------------------------------


class Generator:
    """A pattern's endless stream, not inverted, from `history` (its newest bit last)."""

    def __init__(self, pattern: Pattern, history: int | None = None) -> None:
        """`history` holds the `degree` bits before the first; all ones unless told otherwise.

        Raises ValueError on a history of zeros, from which only zeros follow.
        """
        ones = pattern.period_bits
        start = ones if history is None else history & ones
        if not start:
            raise ValueError("a history of zeros makes no pattern")
        self.pattern = pattern
        self._state = start
        self._words: Words = np.zeros(0, np.uint64)  # made, and not yet handed out
        self._past: Words = np.zeros(0, np.uint64)  # the newest words, as long as the delays reach

    def words(self, count: int) -> Words:
        """The next 64 * count bits."""
        delays = self.pattern.delays
        reach = max(delays)
        if not len(self._past):
            self._begin(reach)
        ready = self._words[:count]
        self._words = self._words[count:]
        missing = count - len(ready)
        if not missing:
            return ready
        line = np.empty(reach + missing, np.uint64)
        line[:reach] = self._past
        at, leap = reach, 1
        while at < len(line):
            # All delays doubled reach twice as far back, and a block twice as long is free of
            # itself: the leaps grow with what is there.
            while 2 * leap * reach <= at:
                leap *= 2
            size = min(leap * min(delays), len(line) - at)
            block = line[at : at + size]
            first, *others = (line[at - leap * d : at - leap * d + size] for d in delays)
            np.copyto(block, first)
            for other in others:
                np.bitwise_xor(block, other, out=block)
            at += size
        self._past = line[-reach:].copy()
        return np.concatenate((ready, line[reach:]))

    def bits(self, count: int) -> Bits:
        """The next bits; count must be a multiple of 64."""
        if count % WORD_BITS:
            raise ValueError(f"{count=} is no multiple of {WORD_BITS}")
        return np.unpackbits(self.words(count // WORD_BITS).view(np.uint8))

    def skip_to(self, bit: int) -> None:
        """Go on from bit number `bit` after the history, however far. Before the first word."""
        self._state = _leap(self.pattern, self._state, bit)

    def _begin(self, reach: int) -> None:
        """The first words bit by bit: what the leaps grow from."""
        degree, state = self.pattern.degree, self._state
        value = 0
        for _ in range(reach * WORD_BITS):
            bit = 0
            for delay in self.pattern.delays:
                bit ^= state >> (delay - 1)
            bit &= 1
            state = (state << 1 | bit) & ((1 << degree) - 1)
            value = value << 1 | bit
        self._past = np.frombuffer(value.to_bytes(reach * 8, "big"), np.uint64).copy()
        self._words = self._past


def _leap(pattern: Pattern, history: int, distance: int) -> int:
    """The history that stands `distance` bits later: z^distance modulo the pattern's polynomial."""
    degree = pattern.degree
    # b[i] = XOR b[i-d] with n = degree reads z^n = XOR z^(n-d).
    modulus = 1 << degree
    for delay in pattern.delays:
        modulus ^= 1 << (degree - delay)
    power = _power(distance % pattern.period_bits, modulus, degree)
    # Bits from the oldest of the history on: s[0..2n-2]; s[j + distance] = XOR_k power_k s[j + k].
    line = [history >> (degree - 1 - i) & 1 for i in range(degree)]
    while len(line) < 2 * degree:
        line.append(sum(line[-d] for d in pattern.delays) & 1)
    later = 0
    for j in range(degree):
        bit = 0
        for k in range(degree):
            bit ^= (power >> k & 1) & line[j + k]
        later = later << 1 | bit
    return later


def _power(exponent: int, modulus: int, degree: int) -> int:
    result = 1
    for digit in bin(exponent)[2:]:
        result = _times(result, result, modulus, degree)
        if digit == "1":
            result <<= 1
            if result >> degree & 1:
                result ^= modulus
    return result


def _times(a: int, b: int, modulus: int, degree: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        b >>= 1
        a <<= 1
        if a >> degree & 1:
            a ^= modulus
    return product


# ---- PAM4 ----------------------------------------------------------------------------------------


def symbols_of(bits: Bits) -> Bits:
    """Levels 0 to 3 of bit pairs, Gray coded."""
    pairs = bits.reshape(-1, 2)
    return np.asarray(GRAY[2 * pairs[:, 0] + pairs[:, 1]])


def bits_of(symbols: Bits) -> Bits:
    pairs = UNGRAY[symbols]
    return np.stack((pairs >> 1, pairs & 1), axis=-1).reshape(-1).astype(np.uint8)


def invert(bits: Bits, pam4: bool) -> Bits:
    """What swapped polarity makes of a line: NRZ complements all, PAM4 turns level k into 3 - k."""
    return bits_of(3 - symbols_of(bits)) if pam4 else np.asarray(bits ^ 1)


# ---- checking ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """`errors` are wrong bits, whatever the checker had to count to know them."""

    bits: int
    errors: int
    locked: bool
    inverted: bool = False  # the line's polarity is swapped
    counts: int = 0  # mismatches before the division, of a self-synchronous checker


class SeededChecker:
    """Finds its place once, from bits of the line, then runs free and counts each wrong bit once.

    It knows the pattern as usually sent, and tells swapped polarity from an inverted pattern only
    by that. Where more than a quarter of the bits differ it lets go, and seeks again.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._reference: Generator | None = None
        self.inverted = False
        self.losses = 0  # times it lost its place

    def check(self, received: Bits) -> Checked:
        """A stretch of the line, which follows the one before; a multiple of 64 bits."""
        if self._reference is None and not self._seek(received):
            return Checked(0, 0, False)
        assert self._reference is not None
        errors = int(np.count_nonzero(self._expected(len(received)) != received))
        if errors > len(received) // 4:
            self._reference = None
            self.losses += 1
            return Checked(0, 0, False)
        return Checked(len(received), errors, True, self.inverted, errors)

    def _expected(self, count: int) -> Bits:
        assert self._reference is not None
        bits = self._reference.bits(count)
        if self.pattern.inverted:
            bits ^= 1
        return invert(bits, self.pattern.pam4) if self.inverted else bits

    def _seek(self, received: Bits) -> bool:
        """Take the first bits that stand free of errors as the seed."""
        pattern = self.pattern
        for inverted in (False, True):
            line = invert(received, pattern.pam4) if inverted else received
            plain = line ^ 1 if pattern.inverted else line
            for start in range(0, len(plain) - SYNC_BITS - pattern.degree, SYNC_BITS):
                seed = plain[start : start + pattern.degree]
                history = int("".join(map(str, seed.tolist())), 2)
                if not history:
                    continue
                ahead = Generator(pattern, history).bits(SYNC_BITS)
                there = plain[start + pattern.degree : start + pattern.degree + SYNC_BITS]
                if np.count_nonzero(ahead != there) <= SYNC_ERRORS_MAX:
                    self.inverted = inverted
                    # Back to the stretch's first bit: the sequence repeats after its period.
                    begun = Generator(pattern, history)
                    begun.skip_to(-(start + pattern.degree))
                    self._reference = begun
                    return True
                if start >= 16 * SYNC_BITS:
                    break
        return False


class SelfSynchronousChecker:
    """Predicts each bit from earlier ones of the line, so it needs no place; but one wrong bit
    spoils every prediction it takes part in, and is counted 3 times (5 with four delays)."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._tail: Bits = np.zeros(0, np.uint8)

    def check(self, received: Bits) -> Checked:
        """A stretch of the line, which follows the one before."""
        pattern = self.pattern
        line = np.concatenate((self._tail, received))
        self._tail = line[-pattern.degree :].copy()
        syndrome, inverted = self._syndrome(line), False
        if pattern.inverted:
            syndrome ^= 1  # The delays are even in number: a complement turns each outcome over.
        if np.count_nonzero(syndrome) > len(syndrome) // 8:
            if pattern.pam4:  # Swapped polarity turns over the first bit of each pair alone.
                other = self._syndrome(_invert_pairs(line, received))
                other ^= pattern.inverted
            else:
                other = np.asarray(syndrome ^ 1, np.uint8)
            if np.count_nonzero(other) < np.count_nonzero(syndrome):
                syndrome, inverted = other, True
        counts = int(np.count_nonzero(syndrome))
        stuck = received.min() == received.max()  # fits any recurrence, and is no pattern
        if stuck or counts > len(syndrome) * 3 // 8:
            return Checked(0, 0, False)
        errors = errors_of_counts(counts, len(syndrome), pattern)
        return Checked(len(received), errors, True, inverted, counts)

    def _syndrome(self, line: Bits) -> Bits:
        degree = self.pattern.degree
        wrong = line[degree:].copy()
        for delay in self.pattern.delays:
            wrong ^= line[degree - delay : len(line) - delay]
        return wrong


def _invert_pairs(line: Bits, received: Bits) -> Bits:
    """`line` ends with the whole pairs of `received`; before them may stand half a pair."""
    odd = (len(line) - len(received)) % 2
    return np.concatenate((line[:odd], invert(line[odd:], True)))


def errors_of_counts(counts: int, bits: int, pattern: Pattern) -> int:
    """Wrong bits behind so many failed predictions.

    A prediction fails when an odd number of its bits is wrong: P = (1 - (1 - 2p)^(t+1)) / 2. For
    few errors this divides by t + 1; for many it allows for those that hide each other.
    """
    if bits == 0:
        return 0
    failing = min(counts / bits, 0.5)
    p: float = (1.0 - (1.0 - 2.0 * failing) ** (1.0 / pattern.counts_per_error)) / 2.0
    return round(p * bits)


@cache
def usual_pattern(modulation: str) -> str:
    """What a lane of this modulation is tested with unless told otherwise."""
    return "prbs31q" if modulation == "pam4" else "prbs31"
