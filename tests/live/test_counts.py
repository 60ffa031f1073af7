"""What is counted of a copy is the same at both ends, and outlives an orderly power-off."""

from __future__ import annotations

import signal

import pytest

from accel.v1 import transfer_pb2

from .conftest import MakeRack
from .rack import LONG, SLOW, Rack, pair_config, until

pytestmark = pytest.mark.network

MIB = 1 << 20
SLOW_PAIR = pair_config(fibre=SLOW)


def moved(rack: Rack, out: str, into: str) -> dict[str, int]:
    """Bytes that a copy from one card to the other moves, wherever they are counted."""
    return {
        "read": rack.client.cards.get(out).bus_read_bytes_total,
        "sent": rack.link(f"{out}/oe0").counters.tx_payload_bytes_total,
        "received": rack.link(f"{into}/oe0").counters.rx_payload_bytes_total,
        "written": rack.client.cards.get(into).bus_written_bytes_total,
    }


@pytest.mark.parametrize("pull", [False, True], ids=["write", "read"])
@pytest.mark.parametrize("size", [5, MIB + 1, 40 * MIB])
def test_a_copy_that_is_done_is_counted_at_both_ends(pair: Rack, size: int, pull: bool) -> None:
    out, into = "card0:counted", "card1:counted"
    pair.fill(out, size)
    before = moved(pair, "card0", "card1")
    done = pair.done(pair.begin(out, into, pull=pull))
    after = moved(pair, "card0", "card1")
    if not done.replayed_frames_total:
        assert {place: after[place] - before[place] for place in after} == dict.fromkeys(
            after, size
        )
    for region in (out, into):
        pair.client.regions.delete(region)


def in_the_middle(rack: Rack) -> transfer_pb2.Transfer:
    rack.fill("card0:w", LONG)
    return rack.in_the_middle(rack.begin("card0:w", "card1:w"), 0.3)


def assert_counted(rack: Rack, seen: transfer_pb2.Transfer) -> None:
    """All that was known to be good, and no more at the far end than left at this one."""
    counted = moved(rack, "card0", "card1")
    kept = rack.transfer(seen.name)
    good = max(seen.good_bytes, kept.good_bytes)
    assert counted["received"] >= counted["written"] >= good, (counted, kept)
    assert counted["sent"] >= counted["received"], counted


def test_a_daemon_that_takes_its_chassis_along_keeps_the_last_counts(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR)
    seen = in_the_middle(rack)
    assert rack.end(rack.daemon) == 0
    rack.serve()
    assert_counted(rack, seen)


def test_a_chassis_that_is_powered_off_shows_its_last_counts(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR, separate=True)
    seen = in_the_middle(rack)
    assert rack.chassis is not None
    rack.chassis.send_signal(signal.SIGTERM)
    assert rack.chassis.wait(60) == 0
    until(lambda: not rack.client.host().chassis_attached, "it is gone", story=rack.logs)
    rack.power_on()
    until(lambda: rack.client.host().chassis_attached, "it is back", story=rack.logs)
    assert_counted(rack, seen)
