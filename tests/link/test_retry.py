"""Go-back-N: whatever the fibre does, each frame is taken once and in order."""

from __future__ import annotations

import random
from collections import deque

import pytest

from accelhw.link.retry import (
    ACK_EVERY_FRAMES,
    REPLAY_LIMIT,
    REPLAY_TIMER_MAX_NS,
    REPLAY_TIMER_MIN_NS,
    SEQUENCE_MASK,
    RetryReceiver,
    RetrySender,
    Verdict,
)

MS = 1_000_000


def sender_with(records: int, window: int = 8) -> RetrySender[int]:
    sender: RetrySender[int] = RetrySender()
    sender.start(window)
    for record in range(records):
        sender.sent(record, 0)
    return sender


def replayed(sender: RetrySender[int]) -> list[int]:
    records = []
    while sender.replaying:
        records.append(sender.next_replay()[1])
        sender.resent()
    return records


def test_credits_bound_what_is_in_flight() -> None:
    sender = sender_with(8)
    assert sender.room == 0
    assert sender.acknowledge(3, MS) == 3
    assert sender.take_run(3) == [0, 1, 2]
    assert sender.room == 3


def test_a_nack_sends_everything_from_the_gap_again() -> None:
    sender = sender_with(5)
    for _ in range(sender.acknowledge(2, MS)):
        sender.take_run(1)
    sender.nacked(MS)
    assert sender.room == 0  # nothing new before the replay is through
    assert replayed(sender) == [2, 3, 4]


def test_an_acknowledgement_in_the_middle_of_a_replay_shortens_it() -> None:
    sender = sender_with(5)
    sender.nacked(MS)
    assert sender.next_replay() == (0, 0)
    sender.resent()
    for _ in range(sender.acknowledge(3, MS)):
        sender.take_run(1)
    assert replayed(sender) == [3, 4]


def test_a_second_nack_during_a_replay_does_not_start_it_over() -> None:
    sender = sender_with(3)
    sender.nacked(MS)
    sender.resent()
    sender.nacked(MS)
    assert replayed(sender) == [1, 2]


def test_old_and_impossible_acknowledgements_change_nothing() -> None:
    sender = sender_with(4)
    assert sender.acknowledge(5, MS) == -1
    assert sender.acknowledge(SEQUENCE_MASK, MS) == 0
    assert len(sender.records) == 4


def test_the_timer_replays_backs_off_and_gives_up() -> None:
    sender = sender_with(1)
    now_ns, waits = 0, []
    while not sender.exhausted:
        deadline_ns = sender.deadline_ns()
        assert deadline_ns is not None
        assert not sender.expired(deadline_ns - 1)
        assert sender.expired(deadline_ns)
        waits.append(deadline_ns - now_ns)
        now_ns = deadline_ns
        replayed(sender)
    assert waits[0] == REPLAY_TIMER_MIN_NS
    assert waits == sorted(waits)
    assert waits[-1] <= REPLAY_TIMER_MAX_NS
    assert len(waits) == REPLAY_LIMIT + 1
    assert sender.deadline_ns() is None


def test_the_timer_asks_with_one_frame_and_the_answer_tells_what_was_lost() -> None:
    sender = sender_with(5)
    assert sender.expired(sender.deadline_ns() or 0)
    assert replayed(sender) == [0]
    assert sender.room == 0  # until it is known
    sender.take_run(sender.acknowledge(1, MS))
    assert replayed(sender) == [1, 2, 3, 4]  # nothing behind it arrived
    assert sender.expired(sender.deadline_ns() or 0)
    assert replayed(sender) == [1]
    sender.take_run(sender.acknowledge(4, MS))  # the far end had them, and was slow to say so
    assert not sender.replaying
    assert len(sender.records) == 1
    assert sender.room == sender.window - 1


def test_a_nack_for_the_frame_that_asked_sends_all_again() -> None:
    sender = sender_with(3)
    assert sender.expired(sender.deadline_ns() or 0)
    assert replayed(sender) == [0]
    sender.nacked(MS)
    assert replayed(sender) == [0, 1, 2]


def test_progress_forgives_earlier_replays() -> None:
    sender = sender_with(2)
    for _ in range(REPLAY_LIMIT):
        sender.nacked(MS)
        replayed(sender)
    for _ in range(sender.acknowledge(1, MS)):
        sender.take_run(1)
    sender.nacked(MS)
    assert not sender.exhausted


def test_the_timer_follows_a_slow_round_trip_but_no_replayed_one() -> None:
    sender = sender_with(1)
    for _ in range(sender.acknowledge(1, 100 * MS)):
        sender.take_run(1)
    assert sender.rtt_ns == 100 * MS
    sender.sent(1, 100 * MS)
    assert sender.deadline_ns() == 100 * MS + REPLAY_TIMER_MAX_NS
    sender.nacked(101 * MS)
    replayed(sender)
    for _ in range(sender.acknowledge(2, 102 * MS)):
        sender.take_run(1)
    assert sender.rtt_ns == 100 * MS


def test_a_receiver_asks_once_per_gap_and_again_for_each_damaged_copy() -> None:
    receiver = RetryReceiver()
    receiver.accept(0)
    assert receiver.judge(3) is Verdict.GAP
    assert receiver.missing == 2
    assert receiver.judge(4) is Verdict.AFTER_GAP
    assert receiver.judge(1) is Verdict.EXPECTED
    receiver.refuse()
    assert receiver.judge(2) is Verdict.AFTER_GAP
    receiver.accept(0)
    assert receiver.judge(0) is Verdict.DUPLICATE
    assert receiver.judge(3) is Verdict.GAP


def test_an_acknowledgement_waits_for_company_but_not_long() -> None:
    receiver = RetryReceiver()
    assert receiver.deadline_ns() is None
    receiver.accept(0)
    assert not receiver.ack_due(0)
    assert receiver.ack_due(receiver.deadline_ns() or 0)
    for _ in range(ACK_EVERY_FRAMES - 1):
        receiver.accept(0)
    assert receiver.ack_due(0)


@pytest.mark.parametrize("start", [0, SEQUENCE_MASK - 20], ids=["fresh", "wrapping"])
@pytest.mark.parametrize("seed", range(200))
def test_a_bad_fibre_only_delays(seed: int, start: int) -> None:
    """Both halves over two lossy, doubling, reordering, damaging queues."""
    chance = random.Random(seed)
    bad = chance.uniform(0, 0.3)
    sender: RetrySender[int] = RetrySender()
    receiver = RetryReceiver()
    sender.start(8)
    sender.base = receiver.expected = start
    forth: deque[tuple[int, int, bool]] = deque()
    back: deque[tuple[int, bool]] = deque()
    taken: list[int] = []
    made, now_ns = 0, 0

    def carry(queue: deque, frame: tuple) -> None:  # type: ignore[type-arg]
        for _ in range(1 + (chance.random() < bad / 3)):
            if chance.random() >= bad:
                queue.insert(len(queue) - (chance.random() < bad and len(queue) > 0), frame)

    while len(taken) < 60 or sender.records:
        now_ns += MS
        assert now_ns < 120_000 * MS
        if sender.expired(now_ns):
            assert not sender.exhausted
        while sender.replaying:
            sequence, record = sender.next_replay()
            carry(forth, (sequence, record, chance.random() < bad / 3))
            sender.resent()
        while made < 60 and sender.room > 0:
            carry(forth, (sender.next_sequence, made, chance.random() < bad / 3))
            sender.sent(made, now_ns)
            made += 1
        for _ in range(min(len(forth), chance.randrange(8))):
            sequence, record, damaged = forth.popleft()
            verdict = receiver.judge(sequence)
            nack = verdict is Verdict.GAP
            if verdict is Verdict.EXPECTED:
                nack = damaged
                if damaged:
                    receiver.refuse()
                else:
                    taken.append(record)
                    receiver.accept(now_ns)
            carry(back, (receiver.expected, nack))
        for _ in range(len(back)):
            ack, nack = back.popleft()
            for _ in range(max(0, sender.acknowledge(ack, now_ns))):
                sender.take_run(1)
            if nack and ack == sender.base:
                sender.nacked(now_ns)
    assert taken == list(range(60))


def test_a_round_trip_that_somebody_else_measured_takes_the_place_of_ours():
    sender = RetrySender()
    sender.start(8)
    sender.sent("a", 1000)
    sender.round_trip(400)
    assert sender.rtt_ns == 400
    assert sender.acknowledge(1, 1_000_000) == 1
    assert sender.rtt_ns == 400
    sender.take_run(1)
    sender.sent("b", 2_000_000)
    sender.round_trip(0)
    assert sender.acknowledge(2, 9_000_000) == 1
    assert sender.rtt_ns == 400
