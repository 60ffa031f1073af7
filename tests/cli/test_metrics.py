"""accelctl metrics: what a host costs a Prometheus, counted there or in advance."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Accelctl
from .fake_server import FakeDaemon

SCRAPE = Path(__file__).resolve().parents[1] / "golden" / "metrics" / "scrape.txt"
Golden = Callable[[str, str], None]


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An exporter that answers with the golden scrape."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = SCRAPE.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_plan_needs_no_daemon(accelctl: Accelctl, golden: Golden) -> None:
    line = "metrics budget --cards 8 --engines 4 --lanes 8"
    outcome = accelctl(*line.split())
    assert (outcome.code, outcome.err) == (0, "")
    golden("cli/metrics-budget.table.txt", outcome.out)
    answer = json.loads(accelctl(*line.split(), "-o", "json").out)
    families = answer["families"]
    assert answer["series_total"] < 10_000
    assert answer["series_total"] == sum(f["series"] for f in families if not f["opt_in"])
    assert answer["opt_in_series_total"] == 8 * 4 * 8 * (27 + 1)


def test_a_profile_brings_its_own_lanes_and_parts(accelctl: Accelctl) -> None:
    answer = json.loads(accelctl("metrics", "budget", "--profile", "oio", "-o", "json").out)
    series = {family["metric"]: family["series"] for family in answer["families"]}
    assert series["accel_lane_heater_watts"] == 64
    assert series["accel_els_bias_amperes"] == 16


def test_an_unknown_profile_is_named(accelctl: Accelctl) -> None:
    outcome = accelctl("metrics", "budget", "--profile", "dr9")
    assert outcome.code == 2
    assert outcome.err == "accelctl: no profile 'dr9'; there is dr8, oio, single\n"


def test_a_daemon_is_counted_by_its_scrape(
    daemon: FakeDaemon, endpoint: str, accelctl: Accelctl
) -> None:
    daemon.state.metrics_address = endpoint
    answer = json.loads(accelctl("metrics", "budget", "-o", "json").out)
    lines = [line for line in SCRAPE.read_text().splitlines() if not line.startswith("#")]
    assert answer["series_total"] == len(lines)
    series = {family["metric"]: family["series"] for family in answer["families"]}
    assert series["accel_lane_los"] == sum(line.startswith("accel_lane_los{") for line in lines)


def test_a_daemon_without_metrics_says_how_to_count_else(
    daemon: FakeDaemon, accelctl: Accelctl
) -> None:
    daemon.state.metrics_address = ""
    outcome = accelctl("metrics", "budget")
    assert outcome.code == 6
    assert "--cards N counts without it" in outcome.err


def test_an_endpoint_that_is_gone_is_unreachable(daemon: FakeDaemon, accelctl: Accelctl) -> None:
    daemon.state.metrics_address = "127.0.0.1:1"
    outcome = accelctl("metrics", "budget")
    assert outcome.code == 5
    assert "cannot read http://127.0.0.1:1/metrics: Connection refused; " in outcome.err
    assert "--cards N counts without it" in outcome.err
