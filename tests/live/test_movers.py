"""Bulk over veth is moved by processes of its own; whatever happens to them, no byte is wrong and
none of them stays."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from accel.plain import word

from .conftest import MakeRack
from .rack import LONG, SLOW, Rack, pair_config, until
from .test_kills import assert_none_stepped_back, assert_whole_story, counters
from .test_links import down_reason, set_interface

CPUS = len(os.sched_getaffinity(0))
pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(CPUS < 2, reason="one CPU alone gains nothing from movers"),
]

MIB = 1 << 20
BULK = 8 * MIB
SLOW_PAIR = pair_config(fibre=SLOW)


def movers(rack: Rack) -> dict[int, list[int]]:
    """The movers that live, by the process that is their parent."""
    found: dict[int, list[int]] = {}
    for pid in rack.processes():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().startswith("accel-mover"):
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if stat[0] != "Z":
                    found.setdefault(int(stat[1]), []).append(pid)
    return found


def workers(rack: Rack) -> set[int]:
    return {rack.worker_of(card) for card in ("card0", "card1")}


def moving(rack: Rack, *, pull: bool = False) -> tuple[str, str]:
    """A bulk copy in its middle, moved by movers; its name, and what must arrive."""
    sha = rack.fill("card0:w", LONG)
    transfer = rack.begin("card0:w", "card1:w", pull=pull)
    until(lambda: set(movers(rack)) == workers(rack), "each worker has its movers", story=rack.logs)
    rack.in_the_middle(transfer)
    return transfer, sha


def gone(rack: Rack, pids: list[int]) -> None:
    until(lambda: not set(pids) & set(rack.processes()), "they are gone", story=rack.logs)


def carried(rack: Rack, card: str, way: str) -> int:
    """Payload, as the card's link shows it."""
    return counters(rack)[f"cards/{card}/links/oe0 {way}_payload_bytes_total"]


def all_of(made: dict[int, list[int]]) -> list[int]:
    return [pid for pids in made.values() for pid in pids]


def test_bulk_is_moved_by_children_of_the_workers_and_small_copies_are_not(
    make_rack: MakeRack,
) -> None:
    rack = make_rack(pair_config())
    rack.fill("card0:small", BULK - 1)
    rack.done(rack.begin("card0:small", "card1:small"))
    assert movers(rack) == {}
    before = counters(rack)
    for pull in (False, True):
        name = "read" if pull else "write"
        sha = rack.fill(f"card0:{name}", 4 * BULK + 1)
        rack.done(rack.begin(f"card0:{name}", f"card1:{name}", pull=pull))
        assert rack.sha256(f"card1:{name}") == sha
    made = movers(rack)
    assert set(made) == workers(rack)
    assert {len(pids) for pids in made.values()} == {min(CPUS, 4)}, "one on each CPU"
    until(lambda: carried(rack, "card0", "tx") == 9 * BULK + 1, "it is counted where it left")
    until(lambda: carried(rack, "card1", "rx") == 9 * BULK + 1, "and where it came")
    assert_none_stepped_back(before, counters(rack))
    assert rack.end(rack.daemon) == 0
    gone(rack, all_of(made))


@pytest.mark.parametrize("pull", [False, True], ids=["write", "read"])
def test_a_worker_whose_mover_dies_begins_anew_and_the_copy_goes_on(
    make_rack: MakeRack, pull: bool
) -> None:
    rack = make_rack(SLOW_PAIR)
    transfer, sha = moving(rack, pull=pull)
    victim = rack.worker_of("card1")
    before, made = counters(rack), movers(rack)
    os.kill(made[victim][0], signal.SIGKILL)
    gone(rack, [victim, *made[victim]])
    rack.done(transfer)
    assert rack.sha256("card1:w") == sha
    assert_none_stepped_back(before, counters(rack))
    # A copy may end before the death is noticed: the card's return is waited for.
    kinds = assert_whole_story(
        rack.told("WORKER_DIED", "FELL_OFF_BUS", "TRANSFER_DONE", *3 * ["CARD_READY"])
    )
    for kind in ("WORKER_DIED", "FELL_OFF_BUS", "TRANSFER_DONE"):
        assert kinds.count(kind) == 1
    assert kinds.count("CARD_READY") == 3
    (died,) = rack.client.events.list(kinds=["WORKER_DIED"])
    assert "gave up: its mover on CPU" in died.message
    assert died.message.endswith("was ended by SIGKILL")


def test_movers_end_with_their_worker_and_with_their_chassis(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR, separate=True)
    transfer, sha = moving(rack)
    victim = rack.worker_of("card0")
    made = movers(rack)
    os.kill(victim, signal.SIGKILL)
    gone(rack, [victim, *made[victim]])
    rack.done(transfer)
    assert rack.sha256("card1:w") == sha
    until(lambda: len(movers(rack)) == 2, "the new worker has movers, too", story=rack.logs)
    left = all_of(movers(rack))
    rack.kill(rack.chassis)
    gone(rack, left)
    rack.hardware_socket.unlink()
    rack.power_on()  # which reaps the interfaces


def test_movers_end_with_a_killed_daemon_that_owns_the_chassis(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR)
    moving(rack)
    made = all_of(movers(rack))
    rack.kill(rack.daemon)
    gone(rack, made)
    until(lambda: not rack.processes(), "all of it ends")
    rack.serve()  # which reaps what they left
    rack.wait_up()


@pytest.mark.parametrize("end", ["card0", "card1"])
def test_a_pulled_cable_stops_bulk_and_the_same_movers_go_on(make_rack: MakeRack, end: str) -> None:
    rack = make_rack(SLOW_PAIR)
    transfer, sha = moving(rack)
    made = movers(rack)
    interface = rack.link(f"{end}/oe0").fibre.interface
    set_interface(interface, "down")
    until(lambda: down_reason(rack, f"{end}/oe0") == "INTERFACE_DOWN", "it is down", 8, rack.logs)
    until(
        lambda: word(rack.transfer(transfer), "state") == "WAITING",
        "the copy waits",
        story=rack.logs,
    )
    set_interface(interface, "up")
    rack.done(transfer)
    assert rack.sha256("card1:w") == sha
    assert movers(rack) == made, rack.logs()
    kinds = assert_whole_story(rack.client.events.list())
    assert kinds.count("TRANSFER_WAITING") == kinds.count("TRANSFER_RESUMED") == 1


@pytest.mark.parametrize("pull", [False, True], ids=["write", "read"])
def test_a_cancelled_bulk_copy_writes_nothing_more(make_rack: MakeRack, pull: bool) -> None:
    rack = make_rack(SLOW_PAIR)
    transfer, _ = moving(rack, pull=pull)
    rack.client.transfers.cancel(transfer)
    cancelled = rack.ended(transfer)
    assert word(cancelled, "state") == "CANCELLED"
    assert cancelled.good_bytes < cancelled.total_bytes
    if not pull:  # The far end must hear of it first; a copy behind it says that it has.
        rack.fill("card0:small", MIB, seed=2)
        rack.done(rack.begin("card0:small", "card1:small"))
    before = rack.sha256("card1:w")
    sha = rack.fill("card0:next", BULK, seed=3)
    rack.done(rack.begin("card0:next", "card1:next", pull=pull))
    assert rack.sha256("card1:next") == sha
    assert rack.sha256("card1:w") == before


def test_bits_that_light_flips_in_bulk_are_found_and_sent_again(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(profile="oio"))
    sha = rack.fill("card0:w", LONG)
    rack.done(rack.begin("card0:w", "card1:first"))
    assert len(movers(rack)) == 2
    rack.client.faults.inject("dirty_connector_mild", "card1/oe0", target_ber=1e-7)
    until(
        lambda: max(lane.pre_fec_ber for lane in rack.client.lanes.list("card1/oe0")) > 2e-8,
        "its lanes are bad",
        story=rack.logs,
    )
    rack.wait_up()
    before = rack.link("card1/oe0").counters.crc_errors_total
    done = rack.done(rack.begin("card0:w", "card1:w"))
    assert rack.sha256("card1:w") == rack.sha256("card1:first") == sha
    # 5e8 bits at about 1e-7: some 50 of them flip.
    assert done.replayed_frames_total > 0
    assert rack.link("card1/oe0").counters.crc_errors_total > before
