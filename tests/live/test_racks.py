"""Larger racks, and more than one on a host."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .conftest import MakeRack
from .rack import interfaces, pair_config

pytestmark = pytest.mark.network

EIGHT = Path(__file__).parents[2] / "examples" / "eight.toml"


def test_eight_cards_come_up_and_all_of_them_is_scraped(make_rack: MakeRack) -> None:
    rack = make_rack(EIGHT.read_text())
    host = rack.client.host()
    assert (host.card_count, host.link_count, host.links_up_count) == (8, 32, 32)
    with urllib.request.urlopen(f"http://{host.metrics_address}/metrics") as answer:
        families = {f.name: f for f in text_string_to_metric_families(answer.read().decode())}
    up = [sample.value for sample in families["accel_link_up"].samples]
    assert up == [1.0] * 32
    # Of 512 lanes; the budget of 10,000 is for 256 of them.
    assert sum(len(family.samples) for family in families.values()) < 15_000
    sha = rack.fill("card0:w", 1 << 20)
    for near, far in ((n, (n + 1) % 8) for n in range(8)):
        target = f"card{far}:w" if far else "card0:back"
        rack.done(rack.begin(f"card{near}:w", target))
    assert rack.sha256("card0:back") == sha


def test_racks_share_a_host_and_the_next_one_reaps_what_a_dead_one_left(
    make_rack: MakeRack,
) -> None:
    dead = make_rack(pair_config(), separate=True)
    alive = make_rack(pair_config())
    left, kept = dead.interfaces(), alive.interfaces()
    dead.kill(dead.chassis)
    assert left | kept <= interfaces(None)
    next_one = make_rack(pair_config())
    reaped = [e for e in next_one.told("INTERFACE_REAPED") if e.kind == "INTERFACE_REAPED"]
    # The second end of a pair goes with the first.
    assert {event.detail["interface"] for event in reaped} <= left
    assert alive.never_told("LINK_DOWN")
    alive.wait_up()
    dead.hardware_socket.unlink()  # A file is nothing to others; its own next start replaces it.
