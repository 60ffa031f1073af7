"""kill -9 of each process in the middle of a copy: no wrong byte, and an outcome that is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

import pytest

from accel.plain import word
from accel.v1 import event_pb2, transfer_pb2

from .conftest import MakeRack
from .rack import LONG, PATIENCE_S, SLOW, Rack, interfaces, pair_config, until

pytestmark = pytest.mark.network

MIB = 1 << 20
ENDS = ("TRANSFER_DONE", "TRANSFER_FAILED", "TRANSFER_CANCELLED")
SLOW_PAIR = pair_config(fibre=SLOW)


def counters(rack: Rack) -> dict[str, int]:
    """All that only ever counts up."""
    found = {}
    for link in rack.links():
        for field, value in link.counters.ListFields():
            if field.name.endswith("_total"):
                found[f"{link.name} {field.name}"] = value
        for name in ("trainings_total", "downs_total", "training_failures_total"):
            found[f"{link.name} {name}"] = getattr(link, name)
    return found


def ends_counted(rack: Rack) -> tuple[int, int, int]:
    """Done, failed and cancelled transfers of the card that they were posted to."""
    card = rack.client.cards.get("card0")
    return card.transfers_done_total, card.transfers_failed_total, card.transfers_cancelled_total


def assert_one_wall_time(
    transfer: transfer_pb2.Transfer, events: Iterable[event_pb2.Event]
) -> None:
    """In the figures, between the stamps, in the event and in the rate."""
    wall_ns = transfer.end_time.ToNanoseconds() - transfer.start_time.ToNanoseconds()
    assert transfer.wall_ms == wall_ns / 1e6
    assert transfer.wall_gbyte_per_s == transfer.good_bytes / wall_ns
    done = next(event for event in events if event.kind == "TRANSFER_DONE")
    assert f"done in {transfer.wall_ms:.1f} ms" in done.message


def assert_none_stepped_back(before: dict[str, int], after: dict[str, int]) -> None:
    back = {name: (was, after.get(name, 0)) for name, was in before.items() if
            after.get(name, 0) < was}  # fmt: skip
    assert not back


def assert_whole_story(events: Iterable[event_pb2.Event]) -> list[str]:
    """No hole and no double among the revisions; each transfer begins and ends once."""
    events = list(events)
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions))
    assert sum(event.count for event in events) == revisions[-1]  # Repeats are one, and counted.
    told = [
        (event.kind, event.detail["transfer"])
        for event in events
        if event.kind in ("TRANSFER_STARTED", *ENDS)
    ]
    assert len(told) == len(set(told))
    begun = sorted(transfer for kind, transfer in told if kind == "TRANSFER_STARTED")
    assert sorted(transfer for kind, transfer in told if kind in ENDS) == begun
    once = [(e.kind, e.subject, e.time.ToNanoseconds()) for e in events]
    assert len(once) == len(set(once))
    return [event.kind for event in events]


@pytest.mark.parametrize("pull", [False, True], ids=["write", "read"])
@pytest.mark.parametrize("card", ["card0", "card1"])
def test_a_copy_survives_the_death_of_a_worker(make_rack: MakeRack, card: str, pull: bool) -> None:
    rack = make_rack(SLOW_PAIR)
    sha = rack.fill("card0:w", LONG)
    transfer = rack.begin("card0:w", "card1:w", pull=pull)
    rack.in_the_middle(transfer)
    before, victim = counters(rack), rack.worker_of(card)
    os.kill(victim, signal.SIGKILL)
    ended = rack.done(transfer)
    assert_one_wall_time(ended, rack.told("TRANSFER_DONE"))
    assert rack.sha256("card1:w") == rack.sha256("card0:w") == sha
    assert rack.worker_of(card) != victim
    rack.wait_up()
    assert_none_stepped_back(before, counters(rack))
    kinds = assert_whole_story(
        rack.told("WORKER_DIED", "FELL_OFF_BUS", "TRANSFER_DONE", *3 * ["CARD_READY"])
    )
    assert kinds.count("CARD_READY") == 3


def test_a_copy_goes_on_in_the_hardware_while_no_daemon_runs(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR, separate=True)
    sha = rack.fill("card0:w", LONG)
    epochs = {link.name: link.epoch for link in rack.links()}
    copying = rack.running("cp", "card0:w", "card1:w", "-o", "json")
    transfer = until(lambda: next(iter(rack.client.transfers.list()), None), "the copy begins").name
    rack.in_the_middle(transfer)
    before = counters(rack)
    rack.kill(rack.daemon)
    assert rack.cli("link", "list").returncode == 5
    rack.serve(chassis="attach")
    assert {link.name: link.epoch for link in rack.links()} == epochs
    rack.done(transfer)
    output, errors = copying.communicate(timeout=PATIENCE_S)
    assert copying.returncode == 0, errors
    assert '"DONE"' in output
    assert rack.sha256("card1:w") == sha
    assert {link.name: link.epoch for link in rack.links()} == epochs
    assert_none_stepped_back(before, counters(rack))
    kinds = assert_whole_story(rack.told("TRANSFER_STARTED", "TRANSFER_DONE", "LINK_UP", "LINK_UP"))
    assert kinds.count("TRANSFER_STARTED") == kinds.count("TRANSFER_DONE") == 1
    assert kinds.count("LINK_UP") == 2
    assert not {"LINK_DOWN", "CHASSIS_POWER_CYCLED", "REGION_LOST"} & set(kinds)


def test_a_copy_that_ends_while_no_daemon_runs_is_reported_by_the_next(
    make_rack: MakeRack,
) -> None:
    rack = make_rack(SLOW_PAIR, separate=True)
    sha = rack.fill("card0:w", 16 * MIB)
    transfer = rack.begin("card0:w", "card1:w")
    rack.in_the_middle(transfer, 0)
    rack.kill(rack.daemon)
    # The wire falls silent when the copy is over; the daemon's own counter cannot tell us.
    until(lambda: "transfer_done" in rack.logs(), "the chassis tells of the end")
    rack.serve(chassis="attach")
    assert word(rack.done(transfer), "state") == "DONE"
    assert rack.sha256("card1:w") == sha
    kinds = assert_whole_story(rack.told("TRANSFER_DONE"))
    assert kinds.count("TRANSFER_DONE") == 1


def test_a_copy_ends_when_the_hardware_is_powered_off_under_it(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR, separate=True)
    rack.fill("card0:w", LONG)
    boot = rack.client.host().chassis_boot_id
    copying = rack.running("cp", "card0:w", "card1:w", "-o", "json")
    transfer = until(lambda: next(iter(rack.client.transfers.list()), None), "the copy begins").name
    rack.in_the_middle(transfer)
    workers = [rack.worker_of(card) for card in ("card0", "card1")]
    made = rack.interfaces()
    rack.kill(rack.chassis)
    _, errors = copying.communicate(timeout=PATIENCE_S)
    assert copying.returncode == 6, errors
    assert "CARD_LOST" in errors
    assert word(rack.transfer(transfer), "state") == "FAILED"
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers), "workers follow")
    assert made <= interfaces(None)

    rack.power_on()
    until(lambda: rack.client.host().chassis_attached, "the daemon attaches again")
    assert rack.client.host().chassis_boot_id != boot
    rack.wait_up()
    assert_whole_story(
        rack.told(
            "CHASSIS_GONE", "TRANSFER_FAILED", "CHASSIS_POWER_CYCLED", "REGION_LOST",
            "INTERFACE_REAPED",
        )
    )  # fmt: skip
    assert ends_counted(rack) == (0, 1, 0)
    assert list(rack.client.regions.list()) == []
    sha = rack.fill("card0:w", MIB)
    rack.done(rack.begin("card0:w", "card1:w"))
    assert rack.sha256("card1:w") == sha


def test_a_daemon_powers_its_own_chassis_on_again(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR)
    rack.fill("card0:w", LONG)
    copying = rack.running("cp", "card0:w", "card1:w")
    transfer = until(lambda: next(iter(rack.client.transfers.list()), None), "the copy begins").name
    rack.in_the_middle(transfer)
    os.kill(rack.client.host().chassis_pid, signal.SIGKILL)
    _, errors = copying.communicate(timeout=PATIENCE_S)
    assert copying.returncode == 6, errors
    assert "CARD_LOST" in errors
    until(lambda: rack.client.host().chassis_attached, "it is powered on again")
    rack.wait_up()
    assert_whole_story(
        rack.told("CHASSIS_DIED", "TRANSFER_FAILED", "CHASSIS_POWER_CYCLED", "INTERFACE_REAPED")
    )
    assert ends_counted(rack) == (0, 1, 0)


def test_a_killed_daemon_takes_its_own_chassis_along(make_rack: MakeRack) -> None:
    rack = make_rack(SLOW_PAIR)
    rack.fill("card0:w", LONG)
    rack.in_the_middle(rack.begin("card0:w", "card1:w"))
    made = rack.interfaces()
    chassis = rack.client.host().chassis_pid
    assert os.getsid(rack.worker_of("card0")) == chassis, "calls do not wait behind frames"
    rack.kill(rack.daemon)
    until(lambda: not rack.processes(), "chassis and workers end")
    assert not made & interfaces(None)
    rack.serve()
    rack.wait_up()
    assert_whole_story(rack.told("TRANSFER_FAILED", "CHASSIS_POWER_CYCLED", "REGION_LOST"))
    assert ends_counted(rack) == (0, 1, 0)
    (transfer,) = rack.client.transfers.list()
    assert (word(transfer, "state"), transfer.error) == ("FAILED", "CARD_LOST")
