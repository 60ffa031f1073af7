"""Bandwidth and latency between cards, each with each: transfers by light between regions that
exist for the measurement alone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from accel.address import PortAddress, short
from accel.errors import AccelError, InvalidRequest, NotFound, WrongState
from accel.plain import word
from accel.transfer import check

if TYPE_CHECKING:
    from accel.client import Client

CARRIES_DATA = frozenset({"UP", "DEGRADED"})
SMALL_BYTES = 64 * 1024  # up to here the latency is what one asks for, and it takes many rounds
SMALL_ROUNDS = 20  # rounds of a small transfer for each of a large one
LET_GO_S = 5.0  # longest wait for a cancelled transfer to let go of its regions
POLL_S = 0.02
PREFIX = "p2p"
FILL_SEED = 1

Tell = Callable[[int, int, str], None]  # rounds done, rounds in all, what is measured now


@dataclass(frozen=True, slots=True)
class Pair:
    """Two different cards, in the direction of the bytes, and how many links join them now."""

    source: str
    target: str
    links_up: int


def pairs(cards: Sequence[str], links: Iterable[Any]) -> list[Pair]:
    """Each card with each other one, in the order of `cards` (short names)."""
    up: dict[tuple[str, str], int] = {}
    for link in links:
        if word(link, "state") in CARRIES_DATA and link.peer:
            ends = PortAddress.parse(link.name).card, PortAddress.parse(link.peer).card
            up[ends] = up.get(ends, 0) + 1
    return [Pair(a, b, up.get((a, b), 0)) for a in cards for b in cards if a != b]


@dataclass(frozen=True, slots=True)
class Round:
    """One transfer, or one each way at the same time."""

    wall_us: float  # in the hardware, from the first byte's start to the last one's proof
    call_us: float  # from the call of the client to its knowledge of the end
    modelled_us: float  # what the emulated card would need; of the slower direction
    replayed_frames: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair at one size. With `bidirectional` the bytes of both directions count."""

    pair: Pair
    size_bytes: int
    bidirectional: bool
    rounds: Sequence[Round]

    @property
    def total_bytes(self) -> int:
        return self.size_bytes * (2 if self.bidirectional else 1)

    @property
    def wall_gbyte_per_s(self) -> float:
        """Of the median round."""
        return self.total_bytes / self.latency_us(50) / 1e3

    @property
    def modelled_gbyte_per_s(self) -> float | None:
        """None where the hardware told no modelled time."""
        modelled_us = median(one.modelled_us for one in self.rounds)
        return self.total_bytes / modelled_us / 1e3 if modelled_us else None

    def latency_us(self, percent: int) -> float:
        """From the start of a transfer to the proof that all of it arrived: a round trip."""
        return _percentile([one.wall_us for one in self.rounds], percent)

    def call_us(self, percent: int) -> float:
        """The same as the client sees it, with its calls to the daemon."""
        return _percentile([one.call_us for one in self.rounds], percent)

    def plain(self) -> dict[str, Any]:
        walls = [one.wall_us for one in self.rounds]
        row: dict[str, Any] = {
            **_of_pair(self.pair),
            "size_bytes": self.size_bytes,
            "bidirectional": self.bidirectional,
            "rounds": len(self.rounds),
            "wall_gbyte_per_s": self.wall_gbyte_per_s,
            "wall_gbyte_per_s_min": self.total_bytes / max(walls) / 1e3,
            "wall_gbyte_per_s_max": self.total_bytes / min(walls) / 1e3,
            "latency_us_p50": self.latency_us(50),
            "latency_us_p99": self.latency_us(99),
            "call_us_p50": self.call_us(50),
            "call_us_p99": self.call_us(99),
        }
        if self.modelled_gbyte_per_s is not None:
            row["modelled_gbyte_per_s"] = self.modelled_gbyte_per_s
            row["modelled_us"] = median(one.modelled_us for one in self.rounds)
        row["replayed_frames_total"] = sum(one.replayed_frames for one in self.rounds)
        return {key: _short(value) for key, value in row.items()}


def absent(pair: Pair) -> dict[str, Any]:
    """A pair without a link that is up, as a row without figures."""
    return _of_pair(pair)


def _of_pair(pair: Pair) -> dict[str, Any]:
    return {
        "name": f"{pair.source}-{pair.target}",
        "source_card": pair.source,
        "target_card": pair.target,
        "links_up_count": pair.links_up,
    }


@dataclass(slots=True)
class Bench:
    """Measures pairs; use it in a `with`, which frees its regions whatever happens.

    Ctrl-C inside leaves a transfer running until the end of the `with`, which cancels it.
    """

    client: Client
    sizes: Sequence[int]
    repeats: int = 5
    bidirectional: bool = False
    tell: Tell = lambda done, total, what: None
    # Around a call whose answer must not get lost: what is made must be known to be freed.
    uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext
    _mark: str = field(default_factory=lambda: secrets.token_hex(4))
    _made: list[str] = field(default_factory=list)
    _done: int = 0

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise InvalidRequest("a transfer moves at least one byte")
        if self.repeats < 1:
            raise InvalidRequest("nothing is measured in no rounds")

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, wanted: Sequence[Pair]) -> Iterator[Measured]:
        """Each pair at each size, smallest first. Raises AccelError.

        In both directions at the same time a pair is the same as its reverse, and measured once.
        """
        work = [pair for pair in wanted if pair.links_up]
        if self.bidirectional:
            work = [p for i, p in enumerate(work) if not any(_same(p, q) for q in work[:i])]
        self._done = 0
        total = len(work) * sum(map(self.rounds_of, self.sizes))
        for source in dict.fromkeys(pair.source for pair in work):
            with self._region(source, "out", fill=True) as out:
                for pair in (pair for pair in work if pair.source == source):
                    yield from self._pair(pair, out, total)

    def rounds_of(self, size_bytes: int) -> int:
        return self.repeats * (SMALL_ROUNDS if size_bytes <= SMALL_BYTES else 1)

    def close(self) -> None:
        """Frees what was allocated; transfers that still use it are cancelled first."""
        for region in list(self._made):
            self._free(region)

    # ---- one pair --------------------------------------------------------------------------------

    def _pair(self, pair: Pair, out: str, total: int) -> Iterator[Measured]:
        with self._region(pair.target, "in") as into:
            if not self.bidirectional:
                yield from self._sizes(pair, [(out, into)], total)
                return
            with (
                self._region(pair.target, "out", fill=True) as back_out,
                self._region(pair.source, "in") as back_into,
            ):
                yield from self._sizes(pair, [(out, into), (back_out, back_into)], total)

    def _sizes(self, pair: Pair, ways: list[tuple[str, str]], total: int) -> Iterator[Measured]:
        self._round(ways, max(self.sizes))  # The first one also maps the pages.
        for size in sorted(self.sizes):
            rounds = []
            for _ in range(self.rounds_of(size)):
                self.tell(self._done, total, f"{pair.source} -> {pair.target}")
                rounds.append(self._round(ways, size))
                self._done += 1
            self.tell(self._done, total, f"{pair.source} -> {pair.target}")
            yield Measured(pair, size, self.bidirectional, rounds)

    def _round(self, ways: list[tuple[str, str]], size: int) -> Round:
        transfers = self.client.transfers
        began = time.perf_counter()
        with self.uninterrupted():
            started = [transfers.create(source, target, length=size) for source, target in ways]
        ended = []
        for transfer in started:
            *_, last = transfers.follow(transfer.name)
            ended.append(check(last))
        call_us = (time.perf_counter() - began) * 1e6
        return Round(
            _wall_us(ended),
            call_us,
            max(one.modelled_us for one in ended),
            sum(one.replayed_frames_total for one in ended),
        )

    # ---- regions ---------------------------------------------------------------------------------

    @contextmanager
    def _region(self, card: str, end: str, *, fill: bool = False) -> Iterator[str]:
        name = f"{PREFIX}-{self._mark}-{end}"
        region = f"{card}:{name}"
        with self.uninterrupted():
            self.client.regions.create(card, name, max(self.sizes))
            self._made.append(region)
        if fill:
            for _ in self.client.regions.fill(region, seed=FILL_SEED):
                pass
        yield region
        self._free(region)

    def _free(self, region: str) -> None:
        deadline = time.monotonic() + LET_GO_S
        while True:
            try:
                with suppress(NotFound):  # Somebody else freed it.
                    self.client.regions.delete(region)
                self._made.remove(region)
                return
            except WrongState:
                if time.monotonic() > deadline:
                    raise
                self._cancel_on(region)
                time.sleep(POLL_S)

    def _cancel_on(self, region: str) -> None:
        for transfer in self.client.transfers.list(active_only=True):
            if region in (short(transfer.source.region), short(transfer.target.region)):
                with suppress(AccelError):
                    self.client.transfers.cancel(transfer.name)


def _same(pair: Pair, other: Pair) -> bool:
    return (pair.source, pair.target) == (other.target, other.source)


def _wall_us(ended: Sequence[Any]) -> float:
    """Of one transfer the hardware's own time; of several from the first start to the last end."""
    if len(ended) == 1:
        return float(ended[0].wall_ms) * 1e3
    first = min(one.start_time.ToNanoseconds() for one in ended)
    last = max(one.end_time.ToNanoseconds() for one in ended)
    longest_ms = max(float(one.wall_ms) for one in ended)
    return max(float(last - first) / 1e3, longest_ms * 1e3)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) == 1:
        return values[0]
    return float(quantiles(values, n=100, method="inclusive")[percent - 1])


def _short(value: Any) -> Any:
    """Figures of a noisy machine: six digits are plenty."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
