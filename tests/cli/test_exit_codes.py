"""What goes wrong: one line that says so, the right exit code, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from .conftest import Accelctl
from .fake_server import FakeDaemon
from .fake_state import State

LIST = ("card", "list")


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("NOT_FOUND", "CARD_NOT_FOUND", 3),
        ("INVALID_ARGUMENT", "SIZE_INVALID", 2),
        ("OUT_OF_RANGE", "OUT_OF_RANGE", 2),
        ("OUT_OF_RANGE", "REVISION_TOO_OLD", 6),
        ("PERMISSION_DENIED", "DENIED", 4),
        ("UNAUTHENTICATED", "DENIED", 4),
        ("UNAVAILABLE", "HARDWARE_GONE", 5),
        ("FAILED_PRECONDITION", "REGION_BUSY", 6),
        ("ALREADY_EXISTS", "REGION_EXISTS", 6),
        ("ABORTED", "STREAM_SHORT", 6),
        ("RESOURCE_EXHAUSTED", "BUDGET_EXCEEDED", 6),
        ("UNIMPLEMENTED", "OLD_DAEMON", 6),
        ("DEADLINE_EXCEEDED", "SLOW", 7),
        ("DATA_LOSS", "CHECKSUM_DIFFERS", 1),
        ("INTERNAL", "BUG", 70),
        ("UNKNOWN", "BUG", 70),
    ],
)
@pytest.mark.usefixtures("daemon")
def test_each_refusal_has_its_code(
    status: str, reason: str, code: int, accelctl: Accelctl, state: State
) -> None:
    state.refuse["ListCards"] = (status, reason, "the sentence of the daemon")
    outcome = accelctl(*LIST)
    assert outcome.code == code
    assert outcome.err == "accelctl: the sentence of the daemon\n"
    assert outcome.out == ""


@pytest.mark.usefixtures("daemon")
def test_json_gets_the_error_as_an_object_too(accelctl: Accelctl) -> None:
    outcome = accelctl("card", "show", "card7", "-o", "json")
    line, document = outcome.err.splitlines()
    assert line.startswith("accelctl: no card card7")
    assert json.loads(document) == {
        "error": {
            "exit_code": 3,
            "message": line.removeprefix("accelctl: "),
            "reason": "CARD_NOT_FOUND",
            "metadata": {"name": "cards/card7"},
        }
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("lnk list", "no command 'lnk'; did you mean link?"),
        ("link lst", "no command 'lst'; did you mean list?"),
        ("link show card0", "'card0' is not a port; try card0/oe1"),
        ("link show", "Missing argument 'PORT'"),
        ("lane show card0/oe0", "'card0/oe0' is not a lane; try card0/oe1/lane3"),
        ("card show Card0", "'Card0' is not a card; try card0"),
        ("hbm alloc card0:x 12Q", "'12Q' is not a size; use 4096, 64K, 1MiB or 2G"),
        (f"hbm alloc card0:x {10**30}", "is more than any card can hold"),
        (f"hbm fill card0:weights+{10**30}", "is not an offset"),
        (f"hbm fill card0:weights --random {10**30}", "is not a number from 0 to"),
        ("event list -n -1", "-n: '-1' is not a number from 0 to"),
        (f"event list -n {10**30}", "is not a number from 0 to"),
        ("event list --since yesterday", "--since: 'yesterday' is not a time; use 10m, 2h, 3d or"),
        (f"event follow --after {10**30}", "is not a number from 0 to"),
        ("lane list card0/oe0/lane3", "is not a card or a port; try card0 or card0/oe1"),
        ("hbm alloc card0:x+4096 4K", "a new region has no offset"),
        ("hbm free card0", "'card0' is not a region; try card0:weights"),
        ("hbm fill card0:weights --byte 300", "300 is not a byte"),
        ("hbm fill card0:weights --byte 1 --random 2", "exclude each other"),
        ("hbm sha256 card0:weights --expect abc", "'abc' is not a SHA-256"),
        ("link map card0 --set 3-12", "'3-12' is not CHANNEL=LINE; use 3=12"),
        ("link map card0 --set 3=1 --set 3=2", "--set names a channel twice"),
        ("link list -o xml", "'xml' is not one of"),
        ("link list --watch card0", "--watch=2"),
        ("--timeout never card list", "'never' is not a time"),
        ("cp ./a ./b", "neither side is a region"),
        ("cp card0:Weights ./b", "a file of this name is ./card0:Weights"),
        ("cp ./a card0:weights --pull", "--pull and --link-deadline are for copies between"),
        ("cp card0:weights card1:x --length 0", "copies nothing"),
        ("fault inject bent_fibre", "Missing option '--on'"),
        (
            "fault inject bent_fibre --on card0:x",
            "is not a card, a port or a lane; try card0, card0/oe1",
        ),
        ("fault inject bent_fibre --on card0/oe0 --shape wave", "'wave' is not one of"),
        ("fault inject bent_fibre --on card0/oe0 --scale much", "'much' is not a number"),
        ("fault inject bent_fibre --on card0/oe0 --for 0", "'0' is not a time"),
        (
            "fault inject bent_fibre --on card0/oe0 --lane x",
            "--lane: 'x' is not a lane number from 0 to 999",
        ),
        ("fault inject bent_fibre --on card0/oe0 --lane -1", "'-1' is not a lane number from 0"),
        (
            f"fault inject bent_fibre --on card0/oe0 --seed {10**20}",
            f"--seed: '{10**20}' is not a seed from 0 to {2**64 - 1}",
        ),
        (
            "fault inject bent_fibre --on card0/oe0 --for 10000000d",
            "--for: '10000000d' is too long; use at most 36500d",
        ),
        (f"fault inject bent_fibre --on card0/oe0 --ramp {10**400}d", "use at most 36500d"),
        ("--timeout 99999999999d link list", "--timeout: '99999999999d' is too long; use at most"),
        ("link list --watch=99999999999d", "--watch: '99999999999d' is too long; use at most"),
        ("link up card7/oe0 --wait 99999999999d", "--wait: '99999999999d' is too long"),
        ("diag run prbs --on card0/oe0 --for 99999999999d", "--for: '99999999999d' is too long"),
        ("cp card0:weights card1:x --link-deadline 99999999999d", "is too long; use at most"),
        ("link prbs card0/oe0 --lanes 0-9999", "names no lanes; use 0,3 or 4-7"),
        (f"link map card0 --set 3={10**20}", "is not CHANNEL=LINE; use 3=12"),
        (f"hbm alloc card0:x {'9' * 5000}", "is more than any card can hold"),
        (f"event list -n {'9' * 5000}", "is not a number from 0 to"),
        ("event list --since 9999-12-31T23:59:59-10:00", "is not a time; use 10m, 2h, 3d or"),
        ("fault clear", "name the faults to clear, or use --all"),
        ("fault clear 3f2a91 --all", "name the faults to clear, or use --all"),
        ("fault clear Nope!", "'Nope!' is not a fault"),
        ("-o csv", "the status screen"),
    ],
)
@pytest.mark.usefixtures("daemon")
def test_a_slip_of_the_hand_is_named_with_what_works(
    line: str, says: str, accelctl: Accelctl
) -> None:
    outcome = accelctl(*line.split())
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_daemon_that_is_slow_is_told_with_the_limit(
    accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    given_up = threading.Event()
    daemon.state.on_answer["ListCards"] = given_up.wait
    outcome = accelctl("--timeout", "0.25", *LIST)
    given_up.set()
    assert outcome.code == 7
    assert f"the daemon at {daemon.socket} did not answer within 0.25 s" in outcome.err


def test_the_version_is_told_without_a_daemon(accelctl: Accelctl) -> None:
    outcome = accelctl("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("accelctl ")


def test_help_has_a_short_form_at_each_level(accelctl: Accelctl) -> None:
    for words in ((), ("link",), ("link", "map")):
        assert accelctl(*words, "-h") == accelctl(*words, "--help")


def test_no_daemon(accelctl: Accelctl, tmp_path: Path) -> None:
    outcome = accelctl(*LIST)
    assert outcome.code == 5
    assert f"no daemon at {tmp_path}/acceld.sock; start one with" in outcome.err


def test_a_socket_that_nobody_serves(
    accelctl: Accelctl, daemon: FakeDaemon, tmp_path: Path
) -> None:
    import socket

    path = tmp_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    outcome = accelctl("--socket", str(path), *LIST)
    assert outcome.code == 5
    assert "connection refused" in outcome.err


def test_a_socket_of_somebody_else(
    accelctl: Accelctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel import wire

    class Forbidden(wire.sockets.socket):
        def connect(self, address: object) -> None:
            raise PermissionError

    (tmp_path / "acceld.sock").touch()
    monkeypatch.setattr(wire.sockets, "socket", Forbidden)
    outcome = accelctl(*LIST)
    assert outcome.code == 4
    assert "it belongs to user" in outcome.err


@pytest.mark.usefixtures("daemon")
def test_partly_done_says_what_is_not(accelctl: Accelctl) -> None:
    outcome = accelctl("hbm", "free", "card0:weights", "card0:none", "card0:scratchpad")
    assert outcome.code == 8
    assert outcome.out == "card0:weights freed\ncard0:scratchpad freed\n"
    assert outcome.err == "accelctl: 2 of 3 done; card0:none: no region card0:none\n"


@pytest.mark.usefixtures("daemon")
def test_nothing_done_is_the_refusal_itself(accelctl: Accelctl) -> None:
    assert accelctl("hbm", "free", "card0:none", "card0:nil").code == 3


@pytest.mark.usefixtures("daemon")
def test_an_expected_sum_that_differs_is_a_false_condition(accelctl: Accelctl) -> None:
    right = accelctl("hbm", "sha256", "card0:weights").out.split()[0]
    assert accelctl("hbm", "sha256", "card0:weights", "--expect", right.upper()).code == 0
    outcome = accelctl("hbm", "sha256", "card0:weights", "--expect", "0" * 64)
    assert (outcome.code, outcome.out.split()[0]) == (1, right)


@pytest.mark.parametrize(
    ("end", "code"), [("UP", 0), ("DEGRADED", 0), ("FAILED", 1), ("SEEKING", 7)]
)
@pytest.mark.usefixtures("daemon")
def test_training_ends_with_a_code_for_scripts(
    end: str, code: int, accelctl: Accelctl, state: State
) -> None:
    state.training_end = end
    outcome = accelctl("link", "train", "card0/oe1")
    assert outcome.code == code
    if code:
        assert f"card0/oe1 is {end}: BER_TOO_HIGH lane3; the peer says PEER_SILENT" in outcome.err


@pytest.mark.usefixtures("daemon")
def test_waiting_for_a_link_that_stays_down_times_out(accelctl: Accelctl) -> None:
    outcome = accelctl("link", "up", "card0/oe1", "--wait", "1ms")
    assert outcome.code == 7
    assert "not up in" in outcome.err


@pytest.mark.usefixtures("daemon")
def test_a_bug_is_one_line_too(accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch) -> None:
    from accelctl.view import View

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(View, "text", broken)
    outcome = accelctl(*LIST)
    assert outcome.code == 70
    assert outcome.err == (
        "accelctl: internal error: ZeroDivisionError: oops; ACCELCTL_TRACEBACK=1 shows where\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error(daemon: FakeDaemon, state: State) -> None:
    for event in list(state.events) * 400:
        state.events.append(event)
    state.page_size_max = 500
    command = f"{sys.executable} -m accelctl.main event list -n 0 | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env={**os.environ, "ACCEL_SOCKET": str(daemon.socket)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert done.returncode == 0


def test_a_terminal_of_few_letters_gets_a_question_mark(daemon: FakeDaemon) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "accelctl.main"],
        env={**os.environ, "ACCEL_SOCKET": str(daemon.socket), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "the bit error?" in done.stdout  # an event of another day has its date before


def test_help_needs_no_grpc() -> None:
    code = (
        "import sys\nfrom accelctl.root import run\n"
        "run(['--help']); run(['link', 'list', '--help'])\n"
        "heavy = {'grpc', 'numpy', 'google.protobuf'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_full_disk_behind_stdout_is_named(daemon: FakeDaemon) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "accelctl.main", "card", "list"],
            env={**os.environ, "ACCEL_SOCKET": str(daemon.socket)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (
        6,
        "accelctl: cannot write stdout: the disk is full\n",
    )


@pytest.mark.usefixtures("daemon")
def test_the_longest_time_that_is_taken_can_be_waited_for(accelctl: Accelctl) -> None:
    assert accelctl("--timeout", "36500d", *LIST).code == 0
    made = accelctl("fault", "inject", "bent_fibre", "--on", "card0/oe0", "--for", "36500d")
    assert (made.code, made.err) == (0, "")
    for form in ("table", "json"):
        assert accelctl("fault", "list", "-o", form).code == 0
