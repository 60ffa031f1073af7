"""promtool accepts what monitoring/ holds, and a real Prometheus scrapes a real daemon with it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "monitoring"
WAIT_S = 90

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("promtool") is None or shutil.which("prometheus") is None,
        reason="promtool and prometheus are not installed (Debian package prometheus)",
    ),
]


def promtool(*args: str | Path) -> str:
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_prometheus_accepts_the_configuration_and_its_rules() -> None:
    said = promtool("check", "config", MONITORING / "prometheus.yml")
    assert "3 rule files found" in said


@pytest.mark.parametrize(
    "tests", sorted((MONITORING / "alerts/tests").glob("*.yml")), ids=lambda p: p.name
)
def test_the_rules_fire_and_stay_quiet_as_told(tests: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", tests)


# ---- for real -----------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def serve(tmp_path: Path, metrics: str) -> list[str]:
    return [
        sys.executable, "-m", "acceld", "serve",
        "--config", str(ROOT / "examples/pair.toml"),
        "--chassis", "own",
        "--state-dir", str(tmp_path / "state"),
        "--socket", str(tmp_path / "acceld.sock"),
        "--hardware-socket", str(tmp_path / "hardware.sock"),
        "--metrics", metrics,
    ]  # fmt: skip


def until(answer: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            if (found := answer()) is not None:
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"never: {what}")


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@pytest.mark.network
def test_prometheus_scrapes_the_daemon_and_tells_when_it_ends(tmp_path: Path) -> None:
    metrics, web = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    config = (MONITORING / "prometheus.yml").read_text()
    config = config.replace("127.0.0.1:9437", metrics).replace(": 15s", ": 1s")
    (tmp_path / "prometheus.yml").write_text(config)
    (tmp_path / "alerts").mkdir()
    for rules in (MONITORING / "alerts").glob("*.rules.yml"):
        text = rules.read_text().replace("for: 2m", "for: 1s").replace("for: 1m", "for: 1s")
        (tmp_path / "alerts" / rules.name).write_text(text)

    def query(expr: str) -> list[Any]:
        question = urllib.parse.urlencode({"query": expr})
        found = get(f"http://{web}/api/v1/query?{question}")
        assert found["status"] == "success", found
        return list(found["data"]["result"])

    def firing() -> set[str]:
        alerts = get(f"http://{web}/api/v1/alerts")["data"]["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}

    prometheus = [
        "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={web}",
        f"--storage.tsdb.path={tmp_path}/tsdb",
    ]  # fmt: skip
    os.environ.setdefault("GOMAXPROCS", "2")
    with process(prometheus, tmp_path / "prometheus.log"):
        with process(serve(tmp_path, metrics), tmp_path / "acceld.log"):
            both_up = "count(accel_link_up == 1) == 2"
            until(lambda: query(both_up) or None, "both ends up, as Prometheus sees it")
            page = urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10).read()
            check = subprocess.run(
                ["promtool", "check", "metrics"], input=page, capture_output=True, check=False
            )
            assert (check.returncode, check.stderr.decode()) == (0, "")
            assert query("count(accel_lane_margin_db)")[0]["value"][1] == "32"
            until(lambda: "AccelDaemonAbsent" not in firing() or None, "no alert while it runs")
        until(lambda: "AccelDaemonAbsent" in firing() or None, "the alert of an absent daemon")
