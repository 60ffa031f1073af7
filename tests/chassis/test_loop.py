"""The loop gives each its turn."""

import os
import select
import socket
from time import monotonic_ns

from accelhw.chassis.loop import PATIENCE_MS, Loop, Soonest


def test_an_alarm_that_is_set_anew_for_the_past_waits_for_the_next_turn():
    loop, rung, read = Loop(), [], []
    near, far = os.pipe()
    loop.add_reader(near, lambda now_ns: read.append(os.read(near, 1)))

    def ring(now_ns):
        rung.append(now_ns)
        assert len(rung) < 10, "nobody else ever gets a turn"
        loop.call_at(now_ns - 1, ring)

    loop.call_at(0, ring)
    loop.turn(0)
    os.write(far, b"x")
    loop.turn(0)
    assert (len(rung), read) == (2, [b"x"])
    os.close(near)
    os.close(far)


def test_alarms_ring_in_the_order_of_their_times():
    loop, rung = Loop(), []
    for at in (3, 1, 2):
        loop.call_at(at, lambda now_ns, at=at: rung.append(at))
    loop.turn(0)
    assert rung == [1, 2, 3]


def test_of_several_deadlines_only_the_soonest_rings_and_only_once():
    loop, rung = Loop(), []
    alarm = Soonest(loop, rung.append)
    now_ns = monotonic_ns()
    for deadline_ns in (now_ns - 1, None, now_ns - 3, now_ns - 2):
        alarm.set(deadline_ns)
    loop.turn(0)
    assert len(rung) == 1
    alarm.set(now_ns - 1)  # one that rang can be set again
    loop.turn(0)
    loop.turn(0)
    assert len(rung) == 2


def test_there_is_patience_while_nothing_else_is_to_be_done():
    loop = Loop()
    near, far = socket.socketpair()
    near_too, far_too = socket.socketpair()
    had = []

    def look(now_ns):
        had.append(loop.patience_ms())
        return False

    for end in (near, near_too):
        loop.add_reader(end.fileno(), lambda now_ns, end=end: end.recv(1) and look(now_ns))
    far.send(b"!")
    loop.turn(0)
    assert had == [PATIENCE_MS]
    far.send(b"!")
    far_too.send(b"!")
    loop.turn(0)
    assert had[1:] == [0, PATIENCE_MS]  # the second is the last one
    far.send(b"!")
    loop.soon(look)
    loop.turn(0)
    assert had[3:] == [0, PATIENCE_MS]
    loop.soon(look)
    loop.soon(lambda now_ns: look(now_ns))
    loop.turn(0)
    assert had[5:] == [0, PATIENCE_MS]
    for end in (near, far, near_too, far_too):
        end.close()


def test_patience_ends_with_the_next_alarm():
    loop = Loop()
    now_ns = monotonic_ns()
    loop.call_at(now_ns + 10**12, lambda now_ns: None)
    assert loop.patience_ms() == PATIENCE_MS
    loop.call_at(now_ns, lambda now_ns: None)
    assert loop.patience_ms() == 0


def test_the_loop_tells_who_is_ready_by_number():
    loop = Loop()
    near, far = socket.socketpair()
    loop.add_reader(near.fileno(), lambda now_ns: None)
    far.send(b"!")
    with select.epoll.fromfd(os.dup(loop.fileno())) as looker:
        assert looker.poll(0) == [(near.fileno(), select.EPOLLIN)]
    near.close()
    far.close()
