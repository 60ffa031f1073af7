"""A file in, across by light, a file out, over everything that can be a fibre."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from accel.plain import word

from .conftest import MakeRack
from .rack import SLOW, Rack, interfaces, pair_config

pytestmark = pytest.mark.network

MIB = 1 << 20
ETHERTYPE = 0x88B5


def a_file(folder: Path, size: int) -> Path:
    path = folder / f"file-{size}"
    path.write_bytes(os.urandom(size))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def carry(rack: Rack, folder: Path, size: int, way: str = "card0 card1") -> None:
    """With accelctl alone, as the README tells it."""
    near, far = way.split()
    source, target, name = a_file(folder, size), folder / f"copy-{size}", f"f{size}"
    for command in (
        (str(source), f"{near}:{name}"),
        (f"{near}:{name}", f"{far}:{name}"),
        (f"{far}:{name}", str(target)),
    ):
        done = rack.cli("cp", *command)
        assert done.returncode == 0, (command, done.stderr, rack.logs())
    assert sha256(target) == sha256(source)
    assert rack.cli("hbm", "free", f"{near}:{name}", f"{far}:{name}").returncode == 0


@pytest.mark.parametrize("size", [1, 4095, 4097, MIB + 1, 64 * MIB])
def test_a_file_comes_out_as_it_went_in(pair: Rack, tmp_path: Path, size: int) -> None:
    carry(pair, tmp_path, size)


@pytest.mark.parametrize("transport", ["memory", "veth", "tap"])
def test_crossed_and_inverted_lanes_change_no_byte(
    make_rack: MakeRack, tmp_path: Path, transport: str
) -> None:
    lanes = list(range(15, -1, -1))
    cable = f'transport = "{transport}"\nlane_map = {lanes}\ninverted_lanes = [2, 9]'
    rack = make_rack(pair_config(profile="oio", fibre=cable))
    carry(rack, tmp_path, 3 * MIB + 7, "card1 card0")


def test_each_end_of_a_fibre_may_live_in_a_namespace_of_its_own(
    make_rack: MakeRack, tmp_path: Path
) -> None:
    near, far = (f"live-{os.getpid()}-{end}" for end in "ab")
    before = interfaces(None)
    rack = make_rack(pair_config(fibre=f'netns_a = "{near}"\nnetns_b = "{far}"'))
    assert interfaces(None) == before
    assert (interfaces(near), interfaces(far)) == ({"lo", "card0-oe0"}, {"lo", "card1-oe0"})
    carry(rack, tmp_path, MIB)
    carry(rack, tmp_path, 9 * MIB)  # over virtual channels


def test_the_wire_shows_frames_of_our_ethertype(pair: Rack) -> None:
    sha = pair.fill("card0:seen", 4 * MIB)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) as sniffer:
        sniffer.bind((pair.link("card1/oe0").fibre.interface, ETHERTYPE))
        pair.done(pair.begin("card0:seen", "card1:seen"))
        sniffer.setblocking(False)
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frames.append(sniffer.recv(1 << 17))
    assert {frame[12:14] for frame in frames} == {ETHERTYPE.to_bytes(2)}
    # A sniffer may miss some when its buffer is full; one page of a card's memory tells enough.
    assert max(map(len, frames)) > 4096
    assert pair.sha256("card1:seen") == sha
    for card in ("card0", "card1"):
        pair.client.regions.delete(f"{card}:seen")


def test_reading_is_as_good_as_writing(pair: Rack) -> None:
    sha = pair.fill("card0:pulled", 5 * MIB + 3)
    pair.done(pair.begin("card0:pulled", "card1:pulled", pull=True))
    assert pair.sha256("card1:pulled") == sha
    for card in ("card0", "card1"):
        pair.client.regions.delete(f"{card}:pulled")


def test_copies_run_side_by_side_in_both_directions(pair: Rack) -> None:
    names = [(f"card{n % 2}", f"card{1 - n % 2}", f"side{n}") for n in range(6)]

    def move(job: tuple[str, str, str]) -> None:
        near, far, name = job
        sha = pair.fill(f"{near}:{name}", 4 * MIB, seed=int(name[-1]))
        pair.done(pair.begin(f"{near}:{name}", f"{far}:{name}"))
        assert pair.sha256(f"{far}:{name}") == sha
        for card in (near, far):
            pair.client.regions.delete(f"{card}:{name}")

    with ThreadPoolExecutor(len(names)) as hands:
        list(hands.map(move, names))


def test_several_links_of_a_pair_carry_one_copy(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(profile="oio", fibres="012", fibre=SLOW))
    sha = rack.fill("card0:wide", 24 * MIB)
    done = rack.done(rack.begin("card0:wide", "card1:wide"))
    assert sorted(done.links) == [f"cards/card0/links/oe{n}" for n in range(3)]
    assert rack.sha256("card1:wide") == sha
    carried = [link.counters.tx_payload_bytes_total for link in rack.client.links.list("card0")]
    assert all(payload > MIB for payload in carried[:3]), carried


def test_a_region_moves_inside_its_card(pair: Rack) -> None:
    sha = pair.fill("card0:here", MIB + 5)
    done = pair.done(pair.begin("card0:here", "card0:there"))
    assert word(done, "kind") == "LOCAL"
    assert pair.sha256("card0:there") == sha
    for name in ("here", "there"):
        pair.client.regions.delete(f"card0:{name}")
