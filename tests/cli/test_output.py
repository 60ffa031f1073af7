"""What each command prints, in each form, is a file in tests/golden/cli/."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest

from accel.v1 import link_pb2
from accelctl import render
from accelctl.session import FORMATS

from .conftest import Accelctl
from .fake_canned import EPOCH_S
from .fake_server import FakeDaemon
from .fake_state import State

pytestmark = pytest.mark.usefixtures("daemon")

Golden = Callable[[str, str], None]

SHOWN = {
    "card-list": "card list",
    "card-show": "card show card0",
    "diag-list": "diag list",
    "diag-show": "diag show 3f2a91c04d77",
    "event-list": "event list",
    "fault-catalogue": "fault catalogue",
    "fault-kind": "fault catalogue cdr_unlock",
    "fault-list": "fault list",
    "fault-show": "fault show 3f2a91",
    "hbm-list": "hbm list",
    "health-show": "health show",
    "health-show-all": "health show card0 --all",
    "lane-list": "lane list card0",
    "lane-show": "lane show card0/oe0/lane2",
    "lane-show-dark": "lane show card0/oe1/lane3",
    "link-list": "link list",
    "link-map": "link map card0",
    "link-show": "link show card0/oe1",
    "link-show-up": "link show card0/oe0",
    "oe-list": "oe list",
    "oe-show": "oe show card0/oe1",
    "topo-matrix": "topo matrix",
    "topo-show": "topo show",
    "transfer-list": "transfer list",
    "transfer-show": "transfer show 7f3a01",
}
DONE = {
    "card-reset": "card reset card0 card1",
    "card-clear-flags": "card clear-flags card0 card1",
    "oe-clear-flags": "oe clear-flags card0/oe0 card0/oe1",
    "cp-by-light": "cp card0:weights card1:weights",
    "diag-cancel": "diag cancel 3f2a91c04d77",
    "diag-ber": "diag run ber --on card0/oe0 --for 2s",
    "diag-eye": "diag run eye --on card0/oe0/lane3",
    "diag-eyes": "diag run eye --on card0/oe0",
    "diag-fec": "diag run fec --on card0/oe0",
    "diag-margin": "diag run margin --on card0/oe0",
    "link-prbs": "link prbs card0/oe0 --lanes 0-3",
    "bench-path": "bench path --bytes 64",
    "event-follow-wide": "event follow --after 2",
    "fault-clear": "fault clear 3f2a91 0b77d2",
    "fault-clear-all": "fault clear --all",
    "fault-inject": "fault inject bent_fibre --on card0/oe0",
    "fault-inject-lane": "fault inject esd_rx --on card0/oe0/lane3 --lane 5 --for 30s",
    "hbm-alloc": "hbm alloc card1:pages 64MiB",
    "hbm-alloc-unnamed": "hbm alloc card1 4K",
    "hbm-fill": "hbm fill card0:weights+4096 --byte 0xa5 --length 4K",
    "hbm-fill-random": "hbm fill card0:weights --random 7",
    "hbm-free": "hbm free card0:weights",
    "hbm-sha256": "hbm sha256 card0:weights card0:scratchpad",
    "link-down": "link down card0/oe0",
    "link-map-set": "link map card0 --set 0=7",
    "link-up": "link up card0/oe0",
    "transfer-cancel": "transfer cancel 7f3a02",
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str, form: str, accelctl: Accelctl, golden: Golden) -> None:
    outcome = accelctl(*SHOWN[name].split(), "-o", form)
    assert (outcome.code, outcome.err) == (0, "")
    golden(f"cli/{name}.{form}.txt", outcome.out)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("name", DONE)
def test_what_is_done(name: str, form: str, accelctl: Accelctl, golden: Golden) -> None:
    outcome = accelctl(*DONE[name].split(), "-o", form)
    if name != "event-follow-wide":  # The fake ends the endless stream with a refusal.
        assert (outcome.code, outcome.err) == (0, "")
    golden(f"cli/{name}.{form}.txt", outcome.out)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_the_status_screen(form: str, accelctl: Accelctl, golden: Golden) -> None:
    outcome = accelctl("-o", form)
    assert outcome.code == 0
    golden(f"cli/status.{form}.txt", outcome.out)


def test_the_status_screen_fits_80_columns(accelctl: Accelctl) -> None:
    assert max(map(len, accelctl().out.splitlines())) <= 80


def test_the_status_screen_without_hardware_shows_what_there_is(
    accelctl: Accelctl, state: State
) -> None:
    state.attached = False
    for method in ("ListCards", "ListLinks"):
        state.refuse[method] = ("UNAVAILABLE", "CHASSIS_GONE", "the hardware does not answer")
    outcome = accelctl()
    assert outcome.code == 0
    assert "no chassis attached: the hardware is off" in outcome.out
    assert "LINK_FAILED" in outcome.out


@pytest.mark.parametrize("name", SHOWN)
def test_on_a_terminal_it_fits_80_columns(name: str, terminal: Accelctl) -> None:
    outcome = terminal(*SHOWN[name].split())
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_a_narrow_terminal_loses_the_least_first(
    terminal: Accelctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    heading = terminal("link", "list").out.splitlines()[0]
    assert "BER" not in heading
    assert heading.endswith("REASON")


def test_a_pipe_gets_everything_uncut(accelctl: Accelctl, state: State) -> None:
    state.events[-1].message = "long " * 100
    assert "long " * 99 in accelctl("event", "list").out


def test_colours_are_words_for_the_eye_alone(accelctl: Accelctl) -> None:
    painted = accelctl("--color", "always", "link", "list").out
    assert "\x1b[32mUP\x1b[0m" in painted
    assert "\x1b[31;1mFAILED\x1b[0m" in painted
    assert "\x1b" not in accelctl("link", "list").out


def test_a_number_is_a_number_and_what_is_absent_has_no_key(accelctl: Accelctl) -> None:
    down = json.loads(accelctl("link", "show", "card0/oe1", "-o", "json").out)
    assert down["state"] == "FAILED"
    assert down["fibre"]["mtu_bytes"] == 9000
    assert down["counters"]["tx_bytes_total"] == 0
    assert {"up_time", "rtt_us", "peer"}.isdisjoint(down)
    assert down["reason"] == {
        "code": "BER_TOO_HIGH",
        "lane": 3,
        "next_action": "look at the lane's margin and Rx power; clean the connector",
        "lanes": [3],
    }


def test_an_end_that_says_nothing_itself_shows_what_the_far_end_says(
    accelctl: Accelctl, state: State
) -> None:
    state.links[0].state = link_pb2.LINK_STATE_DEGRADED
    state.links[0].peer_reason.code = "BER_TOO_HIGH"
    first = accelctl("link", "list").out.splitlines()[1]
    assert first.startswith("card0/oe0  DEGRADED")
    assert first.endswith("peer: BER_TOO_HIGH")


def test_a_mode_is_told_in_words(accelctl: Accelctl, state: State) -> None:
    state.links[0].mode = "kr4/2"
    shown = accelctl("link", "show", "card0/oe0").out
    assert "425 Gb/s, PAM4, FEC kr4 at half the rate\n" in shown


def test_a_csv_has_the_same_columns_with_and_without_rows(accelctl: Accelctl, state: State) -> None:
    full = accelctl("link", "list", "-o", "csv").out
    state.links.clear()
    empty = accelctl("link", "list", "-o", "csv").out
    assert next(csv.reader(io.StringIO(full))) == next(csv.reader(io.StringIO(empty)))
    assert empty.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "clear", "says"),
    [
        ("hbm list", "regions", "hbm alloc"),
        ("transfer list", "transfers", "accelctl cp"),
        ("card list", "cards", "no cards"),
    ],
)
def test_an_empty_list_says_so_to_people_and_nothing_to_programs(
    command: str, clear: str, says: str, accelctl: Accelctl, state: State
) -> None:
    getattr(state, clear).clear()
    assert says in accelctl(*command.split()).out
    assert accelctl(*command.split(), "-o", "json").out == "[]\n"
    assert accelctl(*command.split(), "-o", "name").out == ""


def test_words_from_another_host_cannot_steer_the_terminal(
    accelctl: Accelctl, state: State
) -> None:
    state.links[0].peer = "evil\x1b[2Jname"
    assert "\x1b" not in accelctl("link", "list").out


def test_watch_shows_it_again(
    accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    from accelctl import view

    rounds: list[float] = []

    def sleep(seconds: float) -> None:
        rounds.append(seconds)
        state.cards.pop()
        if len(rounds) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(view.time, "sleep", sleep)
    outcome = accelctl("card", "list", "-o", "name", "--watch=0.5")
    assert outcome.out == "card0\ncard1\ncard0\n"
    assert rounds == [0.5, 0.5]
    assert (outcome.code, outcome.err) == (130, "")


def test_output_options_stand_before_or_after_the_noun(accelctl: Accelctl) -> None:
    assert accelctl("-o", "name", "card", "list").out == "card0\ncard1\n"
    assert accelctl("-o", "json", "card", "list", "-o", "name").out == "card0\ncard1\n"


def test_training_streams_each_step(accelctl: Accelctl) -> None:
    outcome = accelctl("link", "train", "card0/oe0")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert [line.split()[2:5] for line in lines[:3]] == [
        ["SEEKING", "SEEK", "light"],
        ["TRAINING", "LOCK", "lane0"],
        ["TRAINING", "LOCK", "lane1"],
    ]
    assert lines[-1] == ("card0/oe0 is UP after 183 ms: 4 of 4 lanes to card1/oe0, 425 Gb/s")


def test_training_as_data_is_a_line_per_step(accelctl: Accelctl) -> None:
    lines = accelctl("link", "train", "card0/oe0", "-o", "jsonl").out.splitlines()
    steps = [json.loads(line) for line in lines]
    assert steps[1] == {"state": "TRAINING", "phase": "LOCK", "lane": 0, "text": "locked"}
    assert steps[-1]["link"]["name"] == "cards/card0/links/oe0"


def test_the_beginning_of_an_id_is_enough(accelctl: Accelctl, state: State) -> None:
    state.transfers[0].name = "transfers/" + "ab" * 16
    state.transfers[1].name = "transfers/" + "ac" * 16
    assert accelctl("transfer", "list").out.split()[7] == "abababababab"
    assert "transfer abab" in accelctl("transfer", "show", "abab").out
    ambiguous = accelctl("transfer", "cancel", "a")
    assert ambiguous.code == 2
    assert "'a' is the beginning of 2 transfers" in ambiguous.err
    assert accelctl("transfer", "show", "ad").code == 3


def test_a_resource_name_works_wherever_an_address_does(
    accelctl: Accelctl, daemon: FakeDaemon
) -> None:
    for short, long in (
        ("link show card0/oe0", "link show cards/card0/links/oe0"),
        ("lane show card0/oe0/lane1", "lane show cards/card0/engines/oe0/lanes/lane1"),
        ("card show card0", "card show cards/card0"),
        ("transfer show 7f3a01", "transfer show transfers/7f3a01"),
        ("hbm sha256 card0:weights", "hbm sha256 cards/card0/regions/weights"),
    ):
        assert accelctl(*short.split()).out == accelctl(*long.split()).out


def test_the_lanes_of_a_phase_share_a_line_on_a_terminal(terminal: Accelctl) -> None:
    lines = terminal("link", "train", "card0/oe0").out.replace("\r\x1b[K", "\n").splitlines()
    locked = [line.partition("LOCK")[2].strip() for line in lines if "LOCK" in line]
    assert locked == ["1 lane: 0", "2 lanes: 0-1", "3 lanes: 0-1 3", "4 lanes: 0-3"]


def test_watch_on_a_terminal_stays_on_one_screen(
    terminal: Accelctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelctl import view

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(view.time, "sleep", stop)
    monkeypatch.setenv("LINES", "10")
    outcome = terminal("lane", "list", "--watch")
    assert outcome.out.startswith("\x1b[2J\x1b[H")
    assert outcome.out.count("\n") == 9
    assert "..." in outcome.out
    assert (outcome.code, outcome.err) == (130, "")


def test_parts_flow_onto_further_lines_and_colours_take_no_room() -> None:
    parts = ["links up 2/2", render.paint("no chassis", "bad", True), "metrics 127.0.0.1:9437"]
    assert render.flow(parts, 24) == [f"{parts[0]}  {parts[1]}", parts[2]]
    assert render.flow(parts, 10) == parts
    assert render.flow([], 80) == []


@pytest.mark.parametrize("columns", [72, 80, 100])
def test_a_sentence_is_wrapped_and_not_cut(
    columns: int, terminal: Accelctl, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = [f"word{number}" for number in range(30)]
    state.events[-1].message = " ".join(words)
    lines = terminal("event", "list").out.splitlines()
    assert max(map(len, lines)) <= columns
    told = [word for line in lines for word in line.split() if word.startswith("word")]
    assert told == words


def test_wide_drops_and_cuts_nothing_on_a_terminal_either(
    accelctl: Accelctl, terminal: Accelctl
) -> None:
    line = ("lane", "list", "-o", "wide")
    assert terminal(*line).out == accelctl(*line).out


def test_a_slow_rate_is_not_nothing() -> None:
    assert [render.rate(value) for value in (12.345, 0.1, 0.00391)] == ["12.35", "0.10", "0.0039"]


def test_what_an_engine_is_goes_before_what_is_the_matter_with_it(terminal: Accelctl) -> None:
    heading = terminal("oe", "list").out.splitlines()[0]
    assert "LATCHED" in heading
    assert "MODULATION" not in heading


def test_long_names_of_regions_are_cut_to_the_terminal(terminal: Accelctl, state: State) -> None:
    for end in (state.transfers[0].source, state.transfers[0].target):
        end.region += "-of-a-name-that-is-long"
    lines = terminal("transfer", "list").out.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_time_of_another_day_has_its_date(
    accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = accelctl("fault", "inject", "bent_fibre", "--on", "card0/oe0", "--for", "1d")
    assert "until 2026-09-22 1" in made.out
    today, tomorrow = "2026-09-21", "2026-09-22"
    listed = accelctl("fault", "list").out
    assert (today in listed, tomorrow in listed) == (False, True)
    monkeypatch.setattr(render, "now_s", lambda: EPOCH_S + 86_400.0)
    for line in (("fault", "list"), ("event", "follow", "--after", "0"), ()):
        assert today in accelctl(*line).out
