"""Flags and counters on real hardware: latched by a fault, cleared by command, kept over lives."""

from __future__ import annotations

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .conftest import MakeRack
from .rack import Rack, pair_config, until

pytestmark = pytest.mark.network
LANE = "card0/oe0/lane0"


def flags(rack: Rack) -> dict[str, tuple[bool, bool]]:
    """Active and latched, by name."""
    return {f.name: (f.active, f.latched) for f in rack.client.lanes.get(LANE).flags}


def counters(rack: Rack) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    address = rack.client.host().metrics_address
    with urllib.request.urlopen(f"http://{address}/metrics") as page:
        text = page.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        if family.type == "counter"
        for sample in family.samples
    }


def test_a_flag_latches_is_cleared_and_outlives_its_chassis(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config())
    until(lambda: rack.client.links.get("card0/oe0").width_lanes, "the link is up")
    rack.client.links.set_admin("card1/oe0", False)
    until(lambda: flags(rack).get("los") == (True, True), "light is lost, and latched")
    rack.client.links.set_admin("card1/oe0", True)
    until(lambda: flags(rack).get("los") == (False, True), "light is back, and the latch stays")
    assert rack.client.engines.get("card0/oe0").flags_latched_count > 0
    before = counters(rack)

    rack.end(rack.daemon)  # and its chassis with it
    rack.serve()
    assert flags(rack)["los"][1]
    until(lambda: rack.client.links.get("card0/oe0").width_lanes, "the link is up again")
    after = counters(rack)
    back = {name for (name, at), value in before.items() if after[name, at] < value}
    assert back <= {"accel_daemon_scrapes_total"}
    assert len(before) > 80

    until(lambda: flags(rack).get("los") == (False, True), "there is light")
    count = rack.client.engines.get("card0/oe0").flag_changes_total
    engine = rack.client.engines.clear_flags("card0/oe0")
    assert (engine.flags_latched_count, engine.flag_changes_total) == (0, count)
    assert flags(rack)["los"] == (False, False)
