"""What outlives a restart, and what happens when the disk does not want it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceld.records import Boot, EventFilter, NewEvent, Region, Slice, Transfer
from acceld.store.schema import STEPS
from acceld.store.store import DIAGS_MAX, FILE_NAME, Store, StoreLocked, StoreUnusable
from accelhw.model.ids import PortId
from accelhw.model.transfer import TransferEnds, TransferKind, TransferState, TransferStatus

REGION = Region("card0", "weights", 1, 2**32 - 1, 4096, 8192, 7)


def event(sequence: int = 0, subject: str = "card0", severity: int = 1) -> NewEvent:
    return NewEvent(5, severity, "LINK_UP", subject, "Up.", {"lanes": 8}, sequence)


def transfer(number: int, state: TransferState) -> Transfer:
    status = TransferStatus(
        f"{number:032x}", TransferKind.WRITE, state, "card0", "card1", 100, links=("card0/oe0",)
    )
    return Transfer(Slice("card0", "a"), Slice("card1", "", 3, 9, 4096), status, number)


def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.set_boot("b1")
    store.put_region(REGION)
    store.set_link_admin(PortId("card0", 1), False)
    store.set_channel_map("card0", {0: 1, 1: 0})
    store.append_events([event(1), event(2)])
    running = transfer(1, TransferState.RUNNING)
    store.put_transfer(running)
    store.close()

    again = Store.in_folder(tmp_path)
    assert again.boot() == Boot("b1", 2)
    assert again.regions() == [REGION]
    assert again.link_admin() == {PortId("card0", 1): False}
    assert again.channel_maps() == {"card0": {0: 1, 1: 0}}
    assert [e.revision for e in again.events()] == [1, 2]
    assert again.transfers(active_only=True) == [running]
    assert again.append_events([event(3)])[0].revision == 3
    again.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=6), max_size=12), st.integers(3, 20))
def test_revisions_have_no_hole_and_no_event_is_kept_twice(
    batches: list[list[int]], kept: int
) -> None:
    store = Store(None, events_max=kept)
    newest_sequence, expected = 0, 0
    for batch in batches:
        stored = store.append_events([event(sequence) for sequence in batch])
        for sequence in batch:
            if sequence == 0 or sequence > newest_sequence:
                expected += 1
                newest_sequence = max(newest_sequence, sequence)
        assert store.newest_revision == expected
        assert [e.revision for e in stored] == list(range(expected - len(stored) + 1, expected + 1))
    revisions = [e.revision for e in store.events()]
    assert revisions == list(range(max(1, expected - kept + 1), expected + 1))
    assert store.oldest_revision == max(1, expected - kept + 1)
    store.close()


def repeat(time_s: float, kind: str = "LINK_DOWN", reason: str = "SIGNAL_LOST") -> NewEvent:
    time_ns = int(time_s * 10**9)
    return NewEvent(
        time_ns, 2, kind, "card0/oe0", f"at {time_s}", {}, reason=reason, collapse_ns=60 * 10**9
    )


def told(store: Store) -> list[tuple[int, str, int]]:
    return [(e.revision, e.kind, e.count) for e in store.events()]


def test_repeats_are_one_event_with_a_count_a_new_revision_and_both_times() -> None:
    store = Store(None)
    store.append_events([repeat(100)])
    store.append_events([repeat(101, "LINK_UP", ""), repeat(130)])
    store.append_events([repeat(160, "LINK_UP", ""), repeat(161)])
    assert told(store) == [(4, "LINK_UP", 2), (5, "LINK_DOWN", 3)]
    last = store.events()[-1]
    assert (last.first_time_ns, last.time_ns, last.message) == (100 * 10**9, 161 * 10**9, "at 161")
    assert store.newest_revision == 5
    assert store.oldest_revision == 1  # Moved is not forgotten.
    store.close()


def test_a_repeat_after_a_pause_or_for_another_reason_stands_for_itself() -> None:
    store = Store(None)
    store.append_events([repeat(100), repeat(161), repeat(162, reason="CDR_NO_LOCK"), event()])
    assert told(store) == [
        (1, "LINK_DOWN", 1), (2, "LINK_DOWN", 1), (3, "LINK_DOWN", 1), (4, "LINK_UP", 1),
    ]  # fmt: skip
    store.close()


def test_what_never_rests_still_has_a_history() -> None:
    store = Store(None)
    store.append_events([repeat(second) for second in range(0, 1500, 30)])
    counts = [e.count for e in store.events()]
    assert (len(counts), sum(counts)) == (3, 50)
    store.close()


def test_counting_goes_on_over_a_restart(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.append_events([repeat(100), repeat(101)])
    store.close()
    again = Store.in_folder(tmp_path)
    (stored,) = again.append_events([repeat(102)])
    assert (stored.revision, stored.count, again.oldest_revision) == (3, 3, 1)
    again.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=12), st.integers(3, 20))
def test_the_log_is_bounded_and_counts_what_it_saw(batches: list[list[int]], kept: int) -> None:
    store, seen = Store(None, events_max=kept), 0
    for turn, batch in enumerate(batches):
        stored = store.append_events([repeat(turn, f"LINK_{number}") for number in batch])
        seen += len(batch)
        assert [e.revision for e in stored] == list(range(seen - len(batch) + 1, seen + 1))
    revisions = [e.revision for e in store.events()]
    assert revisions == sorted(set(revisions))
    assert all(store.oldest_revision <= one <= seen for one in revisions)
    assert store.oldest_revision == max(1, seen - kept + 1)
    store.close()


def test_an_older_store_is_brought_up_with_its_events(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE_NAME)
    db.executescript(f"BEGIN; {STEPS[0]} PRAGMA user_version = 1; COMMIT;")
    rows = [(n, 5, 1, "LINK_UP", "card0", "Up.", "{}") for n in (7, 8, 9)]
    db.executemany("INSERT INTO events VALUES (?,?,?,?,?,?,?)", rows)
    db.commit()
    db.close()
    store = Store.in_folder(tmp_path)
    assert (store.oldest_revision, store.newest_revision) == (7, 9)
    first = store.events()[0]
    assert (first.count, first.first_time_ns, first.reason) == (1, 5, "")
    assert store.append_events([event(1)])[0].revision == 10
    store.close()


def test_events_are_chosen_by_kind_severity_and_age() -> None:
    store = Store(None)
    store.append_events([repeat(100), repeat(200, "LINK_UP"), event(severity=3)])

    def kinds(**wanted: Any) -> list[str]:
        return [e.kind for e in store.events(wanted=EventFilter(**wanted))]

    assert kinds(kinds=("LINK_DOWN",)) == ["LINK_DOWN"]
    assert kinds(since_ns=150 * 10**9) == ["LINK_UP"]
    assert kinds(min_severity=3) == ["LINK_UP"]
    assert kinds(subject="card0", kinds=("LINK_UP", "LINK_DOWN"), min_severity=2) == [
        "LINK_DOWN", "LINK_UP", "LINK_UP",
    ]  # fmt: skip
    store.close()


def test_events_of_a_subject_are_those_of_it_and_inside_it() -> None:
    store = Store(None)
    for subject in ("card0", "card0/oe1", "card0:weights", "card01", "card1", "daemon"):
        store.append_events([event(subject=subject)])
    assert [e.subject for e in store.events(wanted=EventFilter("card0"))] == [
        "card0", "card0/oe1", "card0:weights",
    ]  # fmt: skip
    store.close()


def test_old_ended_transfers_are_forgotten_and_running_ones_never() -> None:
    store = Store(None, transfers_max=3)
    store.put_transfer(transfer(0, TransferState.RUNNING))
    for number in range(1, 6):
        store.put_transfer(transfer(number, TransferState.DONE))
    assert [t.created_ns for t in store.transfers()] == [5, 4, 3, 0]
    store.close()


def test_each_end_is_counted_once_whoever_tells_it_again(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    ends = (TransferState.DONE, TransferState.FAILED, TransferState.CANCELLED)
    for number, state in enumerate((ends[0], *ends, ends[2], ends[2])):
        store.put_transfer(transfer(number, TransferState.RUNNING))
        store.put_transfer(transfer(number, state))
        store.put_transfer(transfer(number, state))
    assert store.transfer_ends("card0") == TransferEnds(done=2, failed=1, cancelled=3)
    assert store.transfer_ends("card1") == TransferEnds()
    store.close()
    again = Store.in_folder(tmp_path)
    again.put_transfer(transfer(0, TransferState.DONE))
    assert again.transfer_ends("card0") == TransferEnds(done=2, failed=1, cancelled=3)
    again.close()


def test_what_the_hardware_counted_before_an_upgrade_is_gone_on_from(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE_NAME)
    for number, step in enumerate(STEPS[:4], 1):
        db.executescript(f"BEGIN; {step} PRAGMA user_version = {number}; COMMIT;")
    for base, column, count in (
        (0, "transfers_done", 300), (0, "transfers_failed", 2), (1, "transfers_done", 9),
    ):  # fmt: skip
        figures = np.array([count], "u8").tobytes()
        row = (base, "card0 dr8", "card", column, figures)
        db.execute("INSERT INTO totals VALUES (?,?,?,?,?)", row)
    db.commit()
    db.close()
    store = Store.in_folder(tmp_path)
    assert store.transfer_ends("card0") == TransferEnds(done=300, failed=2)
    store.close()


def test_the_last_tests_of_links_are_kept(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    for number in range(DIAGS_MAX + 3):
        store.put_diag(f"t{number}", number, bytes([number]))
    store.put_diag("t9", 9, b"again")
    store.close()
    again = Store.in_folder(tmp_path)
    kept = again.diags()
    assert len(kept) == DIAGS_MAX
    assert kept[0] == bytes([3])
    assert kept[-1] == bytes([DIAGS_MAX + 2])
    assert kept[6] == b"again"
    again.close()


def test_a_full_disk_is_told_once_and_the_store_goes_on_in_memory(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.put_region(REGION)
    told: list[str] = []
    store.on_trouble = told.append
    # SQLite says "database or disk is full" at this bound, as it does for a disk.
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(1, 400):
        store.append_events([event(number)])
    assert len(told) == 1
    assert "full" in told[0]
    assert not store.is_durable
    assert store.regions() == [REGION]
    assert [e.revision for e in store.events()] == list(range(1, 400))
    store.close()
    assert Store.in_folder(tmp_path).regions() == [REGION]


@pytest.mark.other_users
def test_a_store_that_cannot_be_written_is_read_and_kept_in_memory(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.put_region(REGION)
    store.close()
    path = tmp_path / FILE_NAME
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    pid = os.fork()
    if pid == 0:  # Root writes everywhere; somebody else does not.
        code = 1
        try:
            if os.getuid() == 0:
                os.chown(tmp_path, 65534, -1)
                for parent in tmp_path.parents:
                    if parent.name.startswith(("pytest-", "popen-")):
                        parent.chmod(0o755)
                os.setuid(65534)
            denied = Store.in_folder(tmp_path)
            denied.append_events([event(1)])
            good = denied.regions() == [REGION] and denied.trouble and not denied.is_durable
            code = 0 if good else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    tmp_path.chmod(0o755)


def test_a_store_that_cannot_be_made_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).symlink_to("no folder/file")  # For root, too, there is no way.
    store = Store.in_folder(tmp_path)
    assert "unable to open" in store.trouble
    assert not store.is_durable
    store.put_region(REGION)
    assert store.regions() == [REGION]


@pytest.mark.parametrize("junk", [b"this is no database at all" * 50, None])
def test_a_damaged_store_is_named_with_what_to_do(tmp_path: Path, junk: bytes | None) -> None:
    path = tmp_path / FILE_NAME
    if junk is None:
        store = Store.in_folder(tmp_path)
        store.append_events([event(n) for n in range(1, 500)])
        store.close()
        data = bytearray(path.read_bytes())
        data[4096:20480] = b"\xaa" * 16384
        path.write_bytes(data)
    else:
        path.write_bytes(junk)
    with pytest.raises(StoreUnusable, match=r"acceld\.db.*mv .*acceld\.db"):
        Store.in_folder(tmp_path)


def test_a_store_of_a_newer_daemon_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreUnusable, match="newer"):
        Store.in_folder(tmp_path)


def test_two_daemons_cannot_share_a_folder(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    with pytest.raises(StoreLocked, match="--state-dir"):
        Store.in_folder(tmp_path)
    store.close()
    Store.in_folder(tmp_path).close()
