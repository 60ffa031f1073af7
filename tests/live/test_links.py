"""Links that are pulled, and channels that move, while a copy runs."""

from __future__ import annotations

from typing import Any

import pytest

from accel.plain import word
from accelhw.chassis import netlink

from .conftest import MakeRack
from .rack import LONG, SLOW, Rack, pair_config, until

pytestmark = pytest.mark.network

MIB = 1 << 20


def set_interface(name: str, state: str) -> None:
    """As `ip link set NAME up|down`."""

    async def work(ip: Any) -> None:
        (index,) = await ip.link_lookup(ifname=name)
        await ip.link("set", index=index, state=state)

    netlink.with_netlink(None, work)


def down_reason(rack: Rack, port: str) -> str:
    link = rack.link(port)
    return link.reason.code if word(link, "state") in ("DOWN", "SEEKING") else ""


def test_a_copy_waits_for_a_pulled_link_and_goes_on(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(fibre=SLOW))
    sha = rack.fill("card0:w", LONG)
    transfer = rack.begin("card0:w", "card1:w")
    rack.in_the_middle(transfer)
    interface = rack.link("card0/oe0").fibre.interface
    set_interface(interface, "down")
    until(lambda: down_reason(rack, "card0/oe0") == "INTERFACE_DOWN", "the link is down")
    until(lambda: word(rack.transfer(transfer), "state") == "WAITING", "the copy waits")
    set_interface(interface, "up")
    done = rack.done(transfer)
    assert done.good_bytes == LONG
    assert rack.sha256("card1:w") == sha
    told = rack.told("LINK_DOWN", subject="card0/oe0")
    downs = [event for event in told if event.kind == "LINK_DOWN"]
    assert [event.detail["reason"] for event in downs] == ["INTERFACE_DOWN"]
    assert interface in downs[0].detail["next_action"]
    # An end whose light goes dark sees the light go, and says so.
    rack.told("LINK_DOWN", subject="card1/oe0")


def test_a_copy_whose_link_stays_away_names_what_is_good(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(fibre=SLOW))
    rack.fill("card0:w", LONG)
    rack.client.regions.create("card1", "w", LONG)
    copying = rack.running("cp", "card0:w", "card1:w", "--link-deadline", "1")
    running = until(lambda: list(rack.client.transfers.list(active_only=True)), "it has begun")
    name = running[0].name
    until(lambda: rack.transfer(name).first_gap_offset, "its beginning is good", story=rack.logs)
    set_interface(rack.link("card1/oe0").fibre.interface, "down")
    failed = rack.ended(name)
    assert (word(failed, "state"), failed.error) == ("FAILED", "LINK_DEADLINE")
    _, errors = copying.communicate(timeout=60)
    assert copying.returncode in (7, 8), errors
    good = failed.first_gap_offset
    assert 0 < good <= failed.good_bytes < failed.total_bytes
    assert f"{failed.good_bytes} of {failed.total_bytes} bytes are good" in errors
    assert f"the first gap is at {good}" in errors
    # What it calls good is.
    assert first(rack, "card1:w", good) == first(rack, "card0:w", good)


def first(rack: Rack, region: str, length: int) -> str:
    return list(rack.client.regions.checksum(region, length=length))[-1].sha256


def channel_map(rack: Rack, card: str = "card0") -> dict[int, int]:
    return {c.channel: c.signal_line for c in rack.client.links.channel_map(card).channels}


def test_channels_move_during_a_copy_and_stay_where_they_are_put(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(profile="oio", fibres="01", fibre=SLOW), separate=True)
    before = channel_map(rack)
    sha = rack.fill("card0:w", LONG)
    transfer = rack.begin("card0:w", "card1:w")
    rack.in_the_middle(transfer)
    # Within an engine, and from one engine to another.
    changed = rack.cli("link", "map", "card0", "--set", "0=1", "--set", "2=17")
    assert changed.returncode == 0, changed.stderr
    wanted = {**before, 0: before[1], 1: before[0], 2: before[17], 17: before[2]}
    assert channel_map(rack) == wanted
    rack.done(transfer)
    assert rack.sha256("card1:w") == sha
    rack.told("CHANNEL_MAP_CHANGED", subject="card0")

    rack.kill(rack.daemon)
    rack.serve(chassis="attach")
    assert channel_map(rack) == wanted

    assert rack.end(rack.chassis) == 0
    until(lambda: not rack.client.host().chassis_attached, "the daemon sees it go")
    rack.power_on()
    until(lambda: rack.client.host().chassis_attached, "the daemon attaches")
    until(lambda: channel_map(rack) == wanted, "the daemon applies the map to the new hardware")
    rack.wait_up()
    sha = rack.fill("card0:w", MIB)
    rack.done(rack.begin("card0:w", "card1:w"))
    assert rack.sha256("card1:w") == sha


def test_a_switched_off_port_stays_off_over_restarts(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(profile="oio", fibres="01"), separate=True)
    assert rack.cli("link", "down", "card0/oe1").returncode == 0
    until(lambda: down_reason(rack, "card0/oe1") == "ADMIN_DOWN", "it is down")
    assert rack.end(rack.daemon) == 0
    assert rack.end(rack.chassis) == 0
    rack.power_on()
    rack.serve(chassis="attach")
    until(lambda: down_reason(rack, "card0/oe1") == "ADMIN_DOWN", "it is switched off again")
    rack.wait_up(2)
    assert rack.cli("link", "up", "card0/oe1", "--wait", "60").returncode == 0
    rack.wait_up()
