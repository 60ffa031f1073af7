"""promtool accepts what monitoring/ holds, and a real Prometheus scrapes a real daemon with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from alerting import MONITORING, free_port, process, until, watching

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = sorted((MONITORING / "alerts").glob("*.rules.yml"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not all(map(shutil.which, ("promtool", "prometheus", "prometheus-alertmanager"))),
        reason="not installed: Debian packages prometheus and prometheus-alertmanager",
    ),
]


def promtool(*args: str | Path) -> str:
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_prometheus_accepts_the_configuration_and_its_rules() -> None:
    said = promtool("check", "config", MONITORING / "prometheus.yml")
    assert f"{len(RULES)} rule files found" in said


@pytest.mark.skipif(
    shutil.which("amtool") is None,
    reason="amtool is not installed (Debian package prometheus-alertmanager)",
)
def test_alertmanager_accepts_its_configuration() -> None:
    subprocess.run(["amtool", "check-config", MONITORING / "alertmanager.yml"], check=True)


@pytest.mark.parametrize(
    "tests", sorted((MONITORING / "alerts/tests").glob("*.yml")), ids=lambda p: p.name
)
def test_the_rules_fire_and_stay_quiet_as_told(tests: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", tests)


# ---- for real -----------------------------------------------------------------------------------


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


@pytest.mark.network
def test_prometheus_scrapes_the_daemon_and_computes_the_records(tmp_path: Path) -> None:
    metrics = f"127.0.0.1:{free_port()}"
    daemon = process(serve(tmp_path, metrics), tmp_path / "acceld.log")
    with watching(metrics, tmp_path / "watch") as watch, daemon:
        both_up = "count(accel_link_up == 1) == 2"
        until(lambda: watch.query(both_up) or None, "both ends up, as Prometheus sees it")
        page = urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10).read()
        check = subprocess.run(
            ["promtool", "check", "metrics"], input=page, capture_output=True, check=False
        )
        assert (check.returncode, check.stderr.decode()) == (0, "")
        assert watch.query("count(accel_lane_margin_db)")[0]["value"][1] == "32"
        records = 'count(count by (__name__) ({__name__=~"accel:.+"})) > 10'
        until(lambda: watch.query(records) or None, "the records are computed")
