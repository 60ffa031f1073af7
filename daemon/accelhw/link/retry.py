"""Go-back-N: what to send again and when, and what to accept. Pure; a record is whatever was sent.

The sender keeps records until a cumulative acknowledgement covers them. A NACK sends everything
from the oldest one again. The replay timer sends the oldest alone, as a probe: the answer tells
whether all behind it was lost, too, or the far end was only slow to answer. The receiver accepts
the expected sequence only and asks once per gap. Sequence numbers are 32 bit and start at 0 in each
link epoch.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Generic, TypeVar

SEQUENCE_MASK = 0xFFFFFFFF
_HALF = 1 << 31
REPLAY_TIMER_MIN_NS = 30_000_000  # a busy host may not schedule the far end for so long
REPLAY_TIMER_MAX_NS = 250_000_000
REPLAY_LIMIT = 16  # replays of the same frame before the link must train again
ACK_EVERY_FRAMES = 32
ACK_DELAY_NS = 1_000_000

Record = TypeVar("Record")


class RetrySender(Generic[Record]):
    """The sending half. `records` are in flight, oldest first; the first has sequence `base`."""

    __slots__ = (
        "_cursor", "_replays", "_sample", "_sample_ns", "_spread_ns", "_timer_from_ns", "base",
        "exhausted", "probing", "records", "rtt_ns", "window",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.rtt_ns = 0
        self.window = 0
        self.start(0)

    def start(self, window: int) -> None:
        """A new epoch: fresh numbers, nothing in flight, `window` frames of credit."""
        self.records.clear()
        self.base = 0
        self.window = window
        self.exhausted = False
        self.rtt_ns = 0
        self._spread_ns = 0
        self._cursor = 0  # records below it were sent in this pass; behind the end: replaying
        self.probing = False  # the oldest alone, until the far end answers
        self._replays = 0
        self._timer_from_ns = 0
        self._sample: int | None = None  # the sequence whose round trip is being measured
        self._sample_ns = 0

    @property
    def room(self) -> int:
        """How many new records may be sent now."""
        if self.probing or self._cursor < len(self.records):
            return 0
        return self.window - len(self.records)

    @property
    def replaying(self) -> bool:
        return self._cursor < (1 if self.probing else len(self.records))

    def sent(self, record: Record, now_ns: int) -> None:
        """A new record left, with sequence `next_sequence`."""
        if not self.records:
            self._timer_from_ns = now_ns
        if self._sample is None:
            self._sample = self.next_sequence
            self._sample_ns = now_ns
        self.records.append(record)
        self._cursor += 1

    def sent_run(self, record: Record, frames: int, now_ns: int) -> None:
        """New frames left, one behind the other; one record stands for each of them."""
        if frames:
            self.sent(record, now_ns)
            self.records.extend([record] * (frames - 1))
            self._cursor += frames - 1

    @property
    def next_sequence(self) -> int:
        return (self.base + len(self.records)) & SEQUENCE_MASK

    def next_replay(self) -> tuple[int, Record]:
        """The record to send again now; call `resent` when it left. Only while `replaying`."""
        return (self.base + self._cursor) & SEQUENCE_MASK, self.records[self._cursor]

    def resent(self) -> None:
        self._cursor += 1

    def acknowledge(self, ack: int, now_ns: int) -> int:
        """How many of the oldest records `ack` covers; the caller takes them with `take_run`.

        -1 for an acknowledgement of what was never sent.
        """
        count = (ack - self.base) & SEQUENCE_MASK
        if count == 0:
            return 0
        if count > len(self.records):
            return 0 if count >= _HALF else -1
        sample = self._sample
        if sample is not None and (ack - sample - 1) & SEQUENCE_MASK < _HALF:
            self._measure(now_ns - self._sample_ns)
            self._sample = None
        self._timer_from_ns = now_ns
        self._replays = 0
        if self.probing:
            self.probing = False
            if count > 1:
                self._cursor = len(self.records)  # It has what left behind the probe, too.
        return count

    def round_trip(self, rtt_ns: int) -> None:
        """Of frames that somebody else sent and heard of; 0: of none. What is being measured here
        would take in how long that took, and is forgotten."""
        self._sample = None
        if rtt_ns:
            self._measure(rtt_ns)

    def take_run(self, count: int) -> list[Record]:
        """Forget so many of the oldest: they arrived."""
        self.base = (self.base + count) & SEQUENCE_MASK
        self._cursor = max(0, self._cursor - count)
        take = self.records.popleft
        return [take() for _ in range(count)]

    def nacked(self, now_ns: int) -> None:
        """The far end misses the oldest record (acknowledge first)."""
        if self.records and (self.probing or not self.replaying):
            self.probing = False
            self._replay(now_ns)

    def resume(self, now_ns: int) -> None:
        """After a wait that was nobody's fault: the replay timer starts with all its patience."""
        self._replays = 0
        self.exhausted = False
        self.probing = False
        self._sample = None  # it would have measured the wait
        self._timer_from_ns = now_ns

    def _measure(self, rtt_ns: int) -> None:
        if not self.rtt_ns:
            self.rtt_ns, self._spread_ns = rtt_ns, rtt_ns // 2
        else:
            self._spread_ns += (abs(rtt_ns - self.rtt_ns) - self._spread_ns) // 4
            self.rtt_ns += (rtt_ns - self.rtt_ns) // 8

    def _replay(self, now_ns: int) -> None:
        self._replays += 1
        self._cursor = 0
        self._sample = None  # an answer could be to either copy
        self._timer_from_ns = now_ns
        if self._replays > REPLAY_LIMIT:
            self.exhausted = True

    def deadline_ns(self) -> int | None:
        """When the replay timer runs out; None with nothing in flight."""
        if not self.records or self.exhausted:
            return None
        timer_ns = max(REPLAY_TIMER_MIN_NS, self.rtt_ns + 4 * self._spread_ns)
        return self._timer_from_ns + min(timer_ns << min(self._replays, 3), REPLAY_TIMER_MAX_NS)

    def expired(self, now_ns: int) -> bool:
        """Start a probe if the timer ran out; True if it did."""
        deadline_ns = self.deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return False
        self._replay(now_ns)
        self.probing = True
        return True


class Verdict(Enum):
    EXPECTED = 1
    DUPLICATE = 2  # came before: acknowledge again, for that was lost
    GAP = 3  # frames before it are missing, and it was not asked for yet
    AFTER_GAP = 4  # the same gap, asked for already


class RetryReceiver:
    """The receiving half."""

    __slots__ = ("_ack_due_ns", "_asked", "expected", "missing", "owed")

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.expected = 0
        self.owed = 0  # frames accepted since the last acknowledgement
        self.missing = 0  # frames in the gap that `judge` found last
        self._asked = False
        self._ack_due_ns = 0

    def judge(self, sequence: int) -> Verdict:
        ahead = (sequence - self.expected) & SEQUENCE_MASK
        if ahead == 0:
            return Verdict.EXPECTED
        if ahead >= _HALF:
            return Verdict.DUPLICATE
        if self._asked:
            return Verdict.AFTER_GAP
        self._asked = True
        self.missing = ahead
        return Verdict.GAP

    def accept(self, now_ns: int) -> None:
        """The expected frame is good."""
        self.accept_run(1, now_ns)

    def accept_run(self, frames: int, now_ns: int) -> None:
        """So many frames, as expected one after the other, are good."""
        if frames:
            self.expected = (self.expected + frames) & SEQUENCE_MASK
            self._asked = False
            if not self.owed:
                self._ack_due_ns = now_ns + ACK_DELAY_NS
            self.owed += frames

    def refuse(self) -> None:
        """The expected frame came but is damaged: ask for it, each time it comes so."""
        self._asked = True

    def ack_due(self, now_ns: int) -> bool:
        return self.owed >= ACK_EVERY_FRAMES or (self.owed > 0 and now_ns >= self._ack_due_ns)

    def acknowledged(self) -> None:
        """An acknowledgement left, alone or on a frame."""
        self.owed = 0

    def deadline_ns(self) -> int | None:
        return self._ack_due_ns if self.owed else None
