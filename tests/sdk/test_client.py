"""The client against a fake daemon: pages, restarts, files."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel import (
    Client,
    InvalidRequest,
    LocalError,
    NotFound,
    TimedOut,
    TransferFailed,
    Unreachable,
    WrongState,
    default_socket,
    span,
)
from accel.plain import word
from accelhw.model import span as daemons

from ..cli.fake_canned import MIB
from ..cli.fake_server import FakeDaemon
from ..cli.fake_state import PATTERN, State


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    fake = FakeDaemon(tmp_path, State()).start()
    yield fake
    fake.stop()


@pytest.fixture
def client(daemon: FakeDaemon) -> Iterator[Client]:
    with Client(daemon.socket) as made:
        yield made


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self, client: Client) -> None:
        self.now_s = 0.0
        self.pauses_s: list[float] = []
        client._wire.monotonic = lambda: self.now_s
        client._wire.sleep = self.sleep

    def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds


def test_a_list_reads_every_page(client: Client, daemon: FakeDaemon) -> None:
    daemon.state.page_size_max = 3
    names = [lane.name for lane in client.lanes.list("card1")]
    assert len(names) == len(set(names)) == 8
    assert daemon.state.calls.count("ListLanes") == 3


def test_lanes_are_asked_of_a_port_a_card_or_all(client: Client) -> None:
    assert [len(list(client.lanes.list(o))) for o in ("card0/oe1", "card0", None)] == [4, 8, 16]


def test_the_newest_events_come_oldest_first(client: Client) -> None:
    assert [event.revision for event in client.events.latest(4)] == [2, 3, 4, 5]


def test_a_stream_that_is_left_early_is_cancelled(client: Client, daemon: FakeDaemon) -> None:
    daemon.state.transfer_end = "HANG"
    for _ in client.transfers.watch("7f3a02"):
        break
    assert client.host().version == "0.1.0"


def test_a_copy_is_followed_through_a_restart(client: Client, daemon: FakeDaemon) -> None:
    def restart() -> None:
        daemon.stop()
        daemon.start()

    daemon.state.on_watch = threading.Thread(target=restart).start
    daemon.state.add_region("card1", "model", bytes(MIB), 0x900000)
    done = client.transfers.copy("card0:weights", "card1:model")
    assert word(done, "state") == "DONE"
    assert bytes(daemon.state.memory["cards/card1/regions/model"]) == PATTERN * (MIB // 256)
    assert daemon.state.calls.count("CreateTransfer") == 1


def test_a_daemon_too_busy_to_take_a_connection_is_not_away(tmp_path: Path) -> None:
    """It listens, and says nothing for longer than a connection is given by default."""
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(tmp_path / "acceld.sock"))
        busy.listen()
        with Client(tmp_path / "acceld.sock", timeout_s=0.3) as client, pytest.raises(TimedOut):
            client.host()


def test_a_daemon_that_stays_away_is_given_up_in_bounded_time(
    client: Client, daemon: FakeDaemon
) -> None:
    clock = Clock(client)
    daemon.stop()
    with pytest.raises(Unreachable, match="no daemon at"):
        list(client.transfers.follow("7f3a02", reconnect_s=10))
    assert clock.now_s == pytest.approx(10)
    assert clock.pauses_s[:3] == [0.05, 0.1, 0.2]
    assert max(clock.pauses_s) == 1.0


def test_a_daemon_without_its_hardware_may_not_know_the_transfer_yet(
    client: Client, daemon: FakeDaemon
) -> None:
    Clock(client)
    state = daemon.state
    hidden, state.transfers = state.transfers, []
    state.attached = False
    state.refuse["WatchTransfer"] = ("UNAVAILABLE", "HARDWARE_GONE", "no chassis attached")

    def come_back(seconds: float) -> None:
        if "WatchTransfer" in state.refuse:
            del state.refuse["WatchTransfer"]  # First it answers, but knows nothing.
        else:
            state.transfers, state.attached = hidden, True

    client._wire.sleep = come_back
    assert word(list(client.transfers.follow("7f3a01"))[-1], "state") == "DONE"


def test_a_transfer_that_never_was_is_not_waited_for(client: Client) -> None:
    with pytest.raises(NotFound):
        list(client.transfers.follow("ffff"))


def test_a_failed_copy_carries_its_transfer(client: Client, daemon: FakeDaemon) -> None:
    daemon.state.transfer_end = "FAILED"
    with pytest.raises(TransferFailed, match="524288 of 1048576 bytes are good") as caught:
        client.transfers.copy("card0:weights", "card1:model", length=MIB)
    assert caught.value.reason == "LINK_DEADLINE"
    assert caught.value.transfer.good_bytes == MIB // 2


def test_events_are_followed_from_the_last_one_seen(client: Client, daemon: FakeDaemon) -> None:
    clock = Clock(client)
    seen = []
    daemon.state.refuse["ListEvents"] = ("UNAVAILABLE", "RESTARTING", "not asked for")

    def look() -> None:
        for event in client.events.follow(2):
            seen.append(event.revision)
            if event.revision == 3:
                daemon.stop()
                daemon.start()

    with pytest.raises(WrongState, match="no more events"):
        look()
    assert seen == [3, 4, 5]
    assert clock.now_s < 5


@pytest.mark.parametrize("mappable", [False, True])
def test_a_file_makes_the_round_trip(tmp_path: Path, mappable: bool) -> None:
    daemon = FakeDaemon(tmp_path, State(mappable=mappable)).start()
    try:
        with Client(daemon.socket) as client:
            source, back = tmp_path / "source", tmp_path / "back"
            source.write_bytes(os.urandom(1_234_567))
            steps: list[tuple[int, int]] = []
            there = client.regions.upload(
                source, "card1:model", create=True, progress=lambda *step: steps.append(step)
            )
            here = client.regions.download("card1:model", back)
            assert back.read_bytes() == source.read_bytes()
            assert there.crc32c == here.crc32c
            assert there.mapped is here.mapped is mappable
            assert steps[-1] == (1_234_567, 1_234_567)
            assert steps == sorted(steps)
    finally:
        daemon.stop()


def test_no_byte_is_written_beyond_a_region(tmp_path: Path) -> None:
    daemon = FakeDaemon(tmp_path, State(mappable=True)).start()
    try:
        (tmp_path / "long").write_bytes(bytes(8193))
        with Client(daemon.socket) as client, pytest.raises(InvalidRequest, match="do not fit"):
            client.regions.upload(tmp_path / "long", "card0:scratchpad")
    finally:
        daemon.stop()


def test_a_broker_out_of_reach_is_no_reason_to_fail(tmp_path: Path) -> None:
    daemon = FakeDaemon(tmp_path, State(mappable=True)).start()
    try:
        (tmp_path / "memory.sock").unlink()
        (tmp_path / "file").write_bytes(b"x" * 100)
        with Client(daemon.socket) as client:
            done = client.regions.upload(tmp_path / "file", "card0:scratchpad")
        assert done.mapped is False
        assert daemon.state.memory["cards/card0/regions/scratchpad"][:100] == b"x" * 100
    finally:
        daemon.stop()


def test_a_copy_makes_its_target_where_that_is_absent(client: Client) -> None:
    client.transfers.copy("card0:weights", "card1:fresh+4096", create=True)
    assert client.regions.get("card1:fresh").size_bytes == MIB + 4096
    client.transfers.copy("card0:weights", "card1:fresh+4096", create=True)


def test_a_failed_transfer_tells_once_how_much_is_good() -> None:
    from accel.transfer import check
    from accel.v1 import transfer_pb2

    transfer = transfer_pb2.Transfer(
        name="transfers/7f3a", state=transfer_pb2.TRANSFER_STATE_FAILED, total_bytes=9
    )
    for detail in ("", "no link; 0 of 9 bytes are good, the first gap is at 0"):
        transfer.error_detail = detail
        with pytest.raises(TransferFailed) as caught:
            check(transfer)
        assert str(caught.value).count("0 of 9 bytes are good") == 1


def test_a_folder_is_not_a_file(client: Client, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="it is a folder"):
        client.regions.upload(tmp_path, "card0:weights")
    with pytest.raises(LocalError, match="it is a folder"):
        client.regions.download("card0:weights", tmp_path)


def test_a_device_is_written_to_as_it_is(client: Client) -> None:
    assert client.regions.download("card0:weights", "/dev/null").total_bytes == MIB
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("environment", "uid", "wanted"),
    [
        ({"ACCEL_SOCKET": "/x/y.sock"}, 1000, "/x/y.sock"),
        ({"ACCEL_SOCKET": "unix:/x/y.sock"}, 0, "/x/y.sock"),
        ({"XDG_RUNTIME_DIR": "/run/user/1"}, 0, "/run/acceld/acceld.sock"),
        ({"XDG_RUNTIME_DIR": "/run/user/1"}, 1000, "/run/user/1/acceld/acceld.sock"),
        ({}, 1000, "/tmp/acceld-1000/acceld.sock"),
    ],
)
def test_where_the_daemon_is_looked_for(
    environment: dict[str, str], uid: int, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import place

    for name in ("ACCEL_SOCKET", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    monkeypatch.setattr(place, "UID_MAP", Path("/nonexistent"))
    assert default_socket() == wanted


def test_root_of_a_user_namespace_looks_where_that_user_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import place

    for name in ("ACCEL_SOCKET", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "uid_map").write_text("         0       1000          1\n")
    monkeypatch.setattr(place, "UID_MAP", tmp_path / "uid_map")
    monkeypatch.setattr(place, "SYSTEM_SOCKET", str(tmp_path / "system/acceld.sock"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert default_socket() == "/tmp/acceld-1000/acceld.sock"


def test_a_system_daemon_that_is_not_for_us_does_not_hide_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import place

    monkeypatch.delenv("ACCEL_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    closed = tmp_path / "system"
    closed.mkdir()
    monkeypatch.setattr(place, "SYSTEM_SOCKET", str(closed / "acceld.sock"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert default_socket() == str(closed / "acceld.sock")
    own = tmp_path / "acceld/acceld.sock"
    own.parent.mkdir()
    own.touch()
    assert default_socket() == str(own)


def test_a_span_that_the_api_does_not_take_is_refused_here(
    client: Client, daemon: FakeDaemon
) -> None:
    assert (span.LONGEST, span.LONGEST_S) == (daemons.LONGEST, daemons.LONGEST_S)
    active = len(list(client.faults.list()))
    for seconds in (1e12, 1e300, float("inf"), float("nan")):
        with pytest.raises(InvalidRequest, match="use at most 36500d"):
            client.faults.inject("bent_fibre", "card0/oe0", duration_s=seconds)
        with pytest.raises(InvalidRequest, match="use at most 36500d"):
            client.diags.start("card0/oe0", "PRBS", duration_s=seconds)
        with pytest.raises(InvalidRequest, match="use at most 36500d"):
            client.transfers.create("card0:weights", "card1:x", link_deadline_s=seconds)
    assert len(list(client.faults.list())) == active


@pytest.mark.parametrize("timeout_s", [86_400.0 * 30, 1e12, float("inf")])
def test_a_client_may_be_as_patient_as_it_likes(daemon: FakeDaemon, timeout_s: float) -> None:
    with Client(daemon.socket, timeout_s=timeout_s) as client:
        assert list(client.cards.list())
