"""Counters of many ports: bits and errors of each lane, codewords and bins of each link.

They move at the emulated line rate, traffic or not. Counts are drawn by the dice of their lane or
link, from what was expected under the light there was. With FEC the codewords come first: bins,
lost ones, and from them the symbols and bits that were wrong, dealt over the lanes by their share.
Each corrected symbol falls on one lane, with at least one wrong bit there; so a link's corrected
symbols are those of its lanes, and bits, symbols and words tell one story. Words that real frames
met are drawn where they are met.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from accelhw.model.profile import Profile
from accelhw.optics import ber, burst, chance, fec
from accelhw.optics.causes import Causes
from accelhw.optics.receiver import Receivers
from accelhw.optics.strikes import WORD_BITS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.uint64]
Ports = NDArray[np.intp]

BINS = 16
NEVER = -1
FECS: tuple[str, ...] = ("none", "kr4", "kp4")
NEGLIGIBLE = 1e-15  # a mean that never gives a count
ROUNDING = 1e-12  # far below what a double keeps of a sum
# Offsets of the keys; `turn` adds to them.
PURPOSES = {
    "words": 10, "lock": 20, "burst": 30, "split": 100, "bins": 200, "symbols": 300, "more": 400
}  # fmt: skip

# Bits of a codeword, by FEC; without one, of a step of the burst chain.
_WORD_BITS: Floats = np.array(
    [WORD_BITS if (code := fec.CODES[name]) is None else code.codeword_bits for name in FECS], float
)


class Counters:
    def __init__(self, profile: Profile, ports: int, causes: Causes, receivers: Receivers) -> None:
        """`causes`: lane arrays of shape [port, lane]."""
        self._profile = profile
        self._causes = causes
        self._rx = receivers
        shape = (ports, profile.lanes_per_oe)
        # Lanes
        self.rx_bits: Floats = np.zeros(shape)
        self.errors: Counts = np.zeros(shape, np.uint64)
        self.lane_symbols: Counts = np.zeros(shape, np.uint64)  # that FEC corrected
        # Links
        self.codewords: Counts = np.zeros(ports, np.uint64)
        self.corrected_bits: Counts = np.zeros(ports, np.uint64)
        self.corrected_symbols: Counts = np.zeros(ports, np.uint64)
        self.uncorrectable: Counts = np.zeros(ports, np.uint64)
        self.bins: Counts = np.zeros((ports, BINS), np.uint64)
        self.lock_losses: Counts = np.zeros(ports, np.uint64)
        # What the link uses
        self.used: Flags = np.zeros(shape, bool)
        self.fec: NDArray[np.int8] = np.full(ports, FECS.index(profile.lane.fec), np.int8)
        # Real frames since the last count: bits or codewords that they met, codewords that hit
        self.met: Floats = np.zeros(ports)
        self.struck: NDArray[np.int64] = np.zeros(ports, np.int64)
        self.lock_due_ns: Floats = np.full(ports, math.inf)
        self._lock_rate: Floats = np.zeros(ports)  # per ns
        self._counted_ns: NDArray[np.int64] = np.full(ports, NEVER, np.int64)
        self._carry: Floats = np.zeros(ports)
        # What to expect of a codeword, of ports whose link is up
        self._bins: Floats = np.zeros((ports, BINS))
        self._given: Floats = np.zeros((ports, BINS))  # P(bin j | at most bin j)
        self._lost: Floats = np.zeros(ports)
        self._excess: Floats = np.zeros(ports)
        self._bits_a_symbol: Floats = np.ones(ports)
        # By lane, what is wrong in a codeword, in parts of what is wrong in it on all lanes: bits;
        # symbols; and bits beyond the first of their symbol.
        self._shares: Floats = np.zeros(shape)
        self._symbol_shares: Floats = np.zeros(shape)
        self._more_shares: Floats = np.zeros(shape)
        self._bursts: dict[int, _Burst] = {}
        self._draw: Counts = np.zeros(ports, np.uint64)
        self._keys: Counts = np.zeros(ports, np.uint64)
        self._lane_keys: Counts = np.zeros(shape, np.uint64)

    def seed(self, port: int, key: int, lane_keys: Counts) -> None:
        self._keys[port] = key
        self._lane_keys[port] = lane_keys

    def _dice(self, ports: Ports, purpose: str, turn: int = 0) -> Counts:
        return chance.derived(self._keys[ports], PURPOSES[purpose] + turn)

    # ---- what to expect ----

    def word_rate(self, ports: Ports) -> Floats:
        """Codewords per nanosecond of a link at its width."""
        width = np.where(self.aligned(ports), self.used[ports].sum(axis=1), 0).astype(np.float64)
        return np.asarray(width * self._rate(ports) / _WORD_BITS[self.fec[ports]])

    def aligned(self, ports: Ports) -> Flags:
        """Links whose every lane in use has its clock: without one of them there is no codeword."""
        return np.asarray((self._rx.locked[ports] | ~self.used[ports]).all(axis=1))

    def _rate(self, ports: Ports) -> Floats:
        """Bits per nanosecond of a lane."""
        return np.asarray(self._profile.lane.line_rate_gbit_per_s / self._rx.slowdown[ports])

    def aim(self, ports: Ports, now_ns: int) -> None:
        """Light, lanes in use or FEC of these ports changed: expect anew."""
        self.lock_due_ns[ports] = math.inf
        for port, _ in self._bursting(ports):
            del self._bursts[port]
        width = self.used[ports].sum(axis=1)
        for kind, name in enumerate(FECS):
            code = fec.CODES[name]
            for lanes in np.unique(width[(self.fec[ports] == kind) & (width > 0)]).tolist():
                part = ports[(self.fec[ports] == kind) & (width == lanes)]
                if code is not None:
                    self._expect(part, lanes, code)
                self._expect_bursts(part, code)
                if code is not None:
                    self._await_lock_loss(part, now_ns)

    def _expect(self, ports: Ports, lanes: int, code: fec.Code) -> None:
        used = self.used[ports]
        errors = self._rx.even_ber[ports][used].reshape(len(ports), lanes)
        odds = fec.word_odds(errors, code)
        self._bins[ports] = 0.0
        self._bins[ports, : code.t + 1] = odds.bins
        below = np.cumsum(self._bins[ports], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            given = self._bins[ports] / below
        self._given[ports] = np.nan_to_num(np.minimum(given, 1.0))
        self._lost[ports] = odds.uncorrectable
        self._excess[ports] = odds.excess_symbols
        wrong = fec.symbol_error_ratio(errors)
        total = wrong.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            bits = fec.SYMBOL_BITS * errors.sum(axis=1) / total
        self._bits_a_symbol[ports] = np.where(total > 0.0, np.maximum(bits, 1.0), 1.0)
        wrong_bits = fec.SYMBOL_BITS * errors
        # Where errors are so rare that no symbol has two, rounding must not leave a share of 0.
        beyond = np.maximum(wrong_bits - wrong, ROUNDING * wrong_bits)
        for into, parts in (
            (self._shares, errors), (self._symbol_shares, wrong), (self._more_shares, beyond)
        ):  # fmt: skip
            shares = np.zeros(used.shape)
            shares[used] = parts.ravel()
            into[ports] = shares

    def _expect_bursts(self, ports: Ports, code: fec.Code | None) -> None:
        enter = np.where(self.used[ports], self._causes.burst_good_to_bad[ports], 0.0)
        for port in ports[enter.any(axis=1)].tolist():
            used = self.used[port]
            bad = self.bad_ber(port)[used]
            odds = None if code is None else fec.word_odds(bad, code)
            self._bursts[port] = _Burst(*self.burst_chain(port), used, bad, odds)

    def burst_chain(self, port: int) -> tuple[float, float]:
        """Chances per codeword to enter and to leave the bad state; one chain a port."""
        used, causes = self.used[port], self._causes
        enter = np.where(used, causes.burst_good_to_bad[port], 0.0).max()
        leave = np.where(used, causes.burst_bad_to_good[port], 0.0).max()
        return float(min(enter, 1.0)), float(np.clip(leave, 1e-9, 1.0))

    def bad_ber(self, port: int) -> Floats:
        """BER of a port's lanes inside a burst."""
        bad = self._rx.even_ber[port] + self._causes.burst_ber_bad[port]
        return np.asarray(np.minimum(bad, ber.DARK_BER))

    def _await_lock_loss(self, ports: Ports, now_ns: int) -> None:
        ratio = fec.lock_loss_ratio(self._lost[ports])
        for at, port in enumerate(ports.tolist()):
            if (chain := self._bursts.get(port)) is not None and chain.odds is not None:
                in_burst = burst.lock_loss_in_burst(float(chain.odds.uncorrectable[0]), chain.leave)
                ratio[at] += chain.arrivals_ratio * in_burst
        rate = ratio * self.word_rate(ports)
        wait = np.full(len(ports), math.inf)
        likely = rate > 1e-30
        dice = self._dice(ports[likely], "lock")
        wait[likely] = chance.exponential(dice, self._draw[ports[likely]]) / rate[likely]
        self._draw[ports] += np.uint64(1)
        self.lock_due_ns[ports] = now_ns + wait
        self._lock_rate[ports] = rate

    def lose_locks(self, ports: Ports, now_ns: int) -> None:
        """These met three uncorrectable codewords in a row; they are counted up to now."""
        # The three that did it: those drawn at large may have been none.
        self.codewords[ports] += np.uint64(fec.LOCK_LOSS_RUN)
        self.uncorrectable[ports] += np.uint64(fec.LOCK_LOSS_RUN)
        late = np.maximum(now_ns - self.lock_due_ns[ports], 0.0) * self._lock_rate[ports]
        again = chance.poisson(late, self._dice(ports, "lock", 1), self._draw[ports])
        self.lock_losses[ports] += (1 + again).astype(np.uint64)
        self._await_lock_loss(ports, now_ns)

    # ---- counting ----

    def count(self, ports: Ports, now_ns: int) -> None:
        """Bits, errors and codewords of these ports since their last count."""
        before = self._counted_ns[ports]
        elapsed_ns = np.where(before == NEVER, 0, now_ns - before)
        self._counted_ns[ports] = now_ns
        going = elapsed_ns > 0
        if not going.all():
            ports, elapsed_ns = ports[going], elapsed_ns[going]
        if len(ports) == 0:
            return
        elapsed = elapsed_ns.astype(np.float64)
        locked = self._rx.locked[ports]
        bits = np.where(locked, (self._rate(ports) * elapsed)[:, np.newaxis], 0.0)
        self.rx_bits[ports] += bits
        used = self.used[ports]
        up: Flags = np.asarray(used.any(axis=1))
        coded: Flags = up & (self.fec[ports] > 0) & self.aligned(ports)
        if up.any():
            bare = up & ~coded
            if bare.any():  # bits of real frames met their errors already
                met = self.met[ports[bare]] / used[bare].sum(axis=1)
                bits[bare] = np.maximum(bits[bare] - used[bare] * met[:, np.newaxis], 0.0)
                self.met[ports[bare]] = 0.0
                self.struck[ports[bare]] = 0
            bits[coded] = np.where(used[coded], 0.0, bits[coded])
        expected = bits * self._rx.even_ber[ports]
        draw = self._draw[ports]
        self.errors[ports] += chance.poisson(
            expected, self._lane_keys[ports], draw[:, np.newaxis]
        ).astype(np.uint64)
        self._draw[ports] += np.uint64(1)
        if coded.any():
            self._count_words(ports[coded], elapsed[coded])
        for port, place in self._bursting(ports):
            if not coded[place] and up[place]:
                self._burst_bits(port, float(bits[place][used[place]].sum()))

    def _bursting(self, ports: Ports) -> Iterator[tuple[int, int]]:
        """Ports with bursts, with their place in the array."""
        for port in sorted(self._bursts):
            for place in np.flatnonzero(ports == port).tolist():
                yield port, place

    def _burst_bits(self, port: int, bits: float) -> None:
        """Errors of bursts on a link without FEC."""
        chain = self._bursts[port]
        words = chain.draw_words(math.floor(bits / WORD_BITS), self._burst_dice(port))
        if words:
            share = words * WORD_BITS / len(chain.ber)
            drawn = self._burst_dice(port).poisson(share * chain.ber)
            self.errors[port, chain.used] += drawn.astype(np.uint64)

    def _burst_dice(self, port: int) -> np.random.Generator:
        key = int(chance.derived(self._keys[port : port + 1], PURPOSES["burst"])[0])
        self._draw[port] += np.uint64(1)
        return np.random.Generator(np.random.PCG64([key, int(self._draw[port])]))

    def _count_words(self, ports: Ports, elapsed_ns: Floats) -> None:
        exact = elapsed_ns * self.word_rate(ports) + self._carry[ports]
        words = np.maximum(np.floor(exact), self.struck[ports])
        self._carry[ports] = np.maximum(exact - words, 0.0)
        met = np.minimum(np.floor(self.met[ports]), words)
        struck = self.struck[ports].astype(np.float64)
        self.met[ports] = 0.0
        self.struck[ports] = 0
        draw = self._draw[ports]
        self._draw[ports] += np.uint64(1)
        in_bursts = np.zeros(len(ports))
        for port, place in self._bursting(ports):
            most = int(words[place] - max(met[place], struck[place]))
            in_bursts[place] = self._bursts[port].draw_words(most, self._burst_dice(port))
        unseen = np.maximum(words - met - in_bursts, 0.0)
        lost = np.minimum(
            chance.binomial(unseen, self._lost[ports], self._dice(ports, "words"), draw) + struck,
            words - in_bursts,
        )
        bins = self._deal_bins(ports, words - lost - in_bursts, draw)
        wrong_bits = self._wrong_bits(ports, lost, draw)
        self._deal_symbols(ports, bins @ np.arange(BINS), draw)
        for port, place in self._bursting(ports):
            if in_bursts[place]:
                chain, dice = self._bursts[port], self._burst_dice(port)
                kinds = chain.draw_bins(int(in_bursts[place]), dice)
                bins[place, : len(kinds) - 1] += kinds[:-1]
                lost[place] += kinds[-1]
                self._deal_burst(port, kinds, dice)
        symbols = bins @ np.arange(BINS)
        more = chance.poisson(
            symbols * (self._bits_a_symbol[ports] - 1.0), self._dice(ports, "words", 1), draw
        )
        corrected = symbols + more
        self.codewords[ports] += words.astype(np.uint64)
        self.uncorrectable[ports] += lost.astype(np.uint64)
        self.bins[ports] += bins.astype(np.uint64)
        self.corrected_symbols[ports] += symbols.astype(np.uint64)
        self.corrected_bits[ports] += corrected.astype(np.uint64)
        self._deal(ports, more.astype(np.float64), self._more_shares, "more", draw, self.errors)
        self._deal(ports, wrong_bits, self._shares, "split", draw, self.errors)

    def _deal_bins(self, ports: Ports, words: Floats, draw: Counts) -> Floats:
        """So many correctable codewords, by how many symbols were wrong: a multinomial draw."""
        bins = np.zeros((len(ports), BINS))
        left = words.copy()
        for j in range(BINS - 1, 0, -1):
            given = self._given[ports, j]
            if (left * given).max() < NEGLIGIBLE:
                continue
            bins[:, j] = chance.binomial(left, given, self._dice(ports, "bins", j), draw)
            left -= bins[:, j]
        bins[:, 0] = left
        return bins

    def _wrong_bits(self, ports: Ports, lost: Floats, draw: Counts) -> Floats:
        """In uncorrectable codewords, which go on as they came."""
        if not lost.any():
            return np.zeros(len(ports))
        mean = lost * self._excess[ports] * self._bits_a_symbol[ports]
        return chance.poisson(mean, self._dice(ports, "words", 2), draw).astype(np.float64)

    def _deal_symbols(self, ports: Ports, symbols: Floats, draw: Counts) -> None:
        """Corrected symbols, each with its first wrong bit."""
        self._deal(
            ports, symbols, self._symbol_shares, "symbols", draw, self.lane_symbols, self.errors
        )

    def _deal_burst(self, port: int, kinds: NDArray[np.int64], dice: np.random.Generator) -> None:
        """What was wrong in codewords of a burst, on the lanes that it hit; of each symbol one bit,
        as the others are dealt with all of the link's."""
        chain = self._bursts[port]
        symbols = dice.multinomial(int(kinds[:-1] @ np.arange(len(kinds) - 1)), chain.symbol_share)
        lost = dice.multinomial(round(kinds[-1] * chain.lost_bits), chain.bit_share)
        self.lane_symbols[port, chain.used] += symbols.astype(np.uint64)
        self.errors[port, chain.used] += (symbols + lost).astype(np.uint64)

    def _deal(
        self, ports: Ports, counts: Floats, by: Floats, purpose: str, draw: Counts, *into: Counts
    ) -> None:
        """Deal what was counted of links over their lanes, by the lanes' shares."""
        if not counts.any():
            return
        left = counts.copy()
        shares = by[ports]
        ahead = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]
        for lane in range(shares.shape[1]):
            share = shares[:, lane]
            if not share.any():
                continue
            part = np.where(share > 0.0, share / np.maximum(ahead[:, lane], 1e-300), 0.0)
            taken = chance.binomial(
                left, np.minimum(part, 1.0), self._dice(ports, purpose, lane), draw
            )
            for counter in into:
                counter[ports, lane] += taken.astype(np.uint64)
            left -= taken


class _Burst:
    """A port's burst chain, and what becomes of a codeword in its bad state."""

    def __init__(
        self, enter: float, leave: float, used: Flags, bad_ber: Floats, odds: fec.WordOdds | None
    ) -> None:
        self.leave = leave
        self.used = used
        self.ber = bad_ber
        self.odds = odds
        self.arrivals_ratio = enter * (1.0 - float(burst.share_bad(enter, leave)))
        if odds is not None:
            wrong = fec.symbol_error_ratio(bad_ber)
            self.lost_bits = float(odds.excess_symbols[0]) * float(
                fec.SYMBOL_BITS * bad_ber.sum() / wrong.sum()
            )
            self.symbol_share = wrong / wrong.sum()
            self.bit_share = bad_ber / bad_ber.sum()

    def draw_words(self, words: int, dice: np.random.Generator) -> int:
        """Codewords in the bad state among so many."""
        if words <= 0:
            return 0
        bursts = int(dice.poisson(words * self.arrivals_ratio))
        if not bursts:
            return 0
        return min(bursts + int(dice.negative_binomial(bursts, self.leave)), words)

    def draw_bins(self, words: int, dice: np.random.Generator) -> NDArray[np.int64]:
        """Bins 0 to t, and the uncorrectable ones last."""
        assert self.odds is not None
        p = np.append(self.odds.bins[0], self.odds.uncorrectable[0])
        return np.asarray(dice.multinomial(words, p / p.sum()))
