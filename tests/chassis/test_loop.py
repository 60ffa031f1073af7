"""The loop gives each its turn."""

import os
from time import monotonic_ns

from accelhw.chassis.loop import Loop, Soonest


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
