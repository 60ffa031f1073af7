"""`accelctl bench p2p` on a rack that runs: figures of real transfers, and nothing left behind."""

from __future__ import annotations

import signal

import pytest

from .rack import Rack, until

pytestmark = pytest.mark.network


def own_regions(rack: Rack) -> list[str]:
    return [r.name for r in rack.client.regions.list() if "/regions/p2p-" in r.name]


@pytest.mark.parametrize("way", [(), ("--bidirectional",)], ids=["one way", "both ways"])
def test_every_pair_is_measured(pair: Rack, way: tuple[str, ...]) -> None:
    rows = pair.ask("bench", "p2p", "--sizes", "4K,1M", "--repeat", "1", *way)
    assert [row["name"] for row in rows] == ["card0-card1"] * 2 + ["card1-card0"] * 2 * (not way)
    for row in rows:
        assert row["links_up_count"] == 1
        assert 0 < row["wall_gbyte_per_s_min"] <= row["wall_gbyte_per_s"]
        assert 0 < row["latency_us_p50"] <= row["latency_us_p99"]
        assert row["latency_us_p50"] < row["call_us_p50"]
        assert row["wall_gbyte_per_s"] < row["modelled_gbyte_per_s"]  # a card is faster than this
    assert own_regions(pair) == []


def test_ctrl_c_frees_what_it_had_allocated(pair: Rack) -> None:
    bench = pair.running("bench", "p2p", "--sizes", "64M", "--repeat", "1000")
    until(lambda: list(pair.client.transfers.list(active_only=True)), "a transfer runs")
    bench.send_signal(signal.SIGINT)
    _, err = bench.communicate(timeout=60)
    assert (bench.returncode, err) == (
        130,
        "accelctl: interrupted; what it had allocated is freed again\n",
    )
    assert own_regions(pair) == []
    assert not list(pair.client.transfers.list(active_only=True))
