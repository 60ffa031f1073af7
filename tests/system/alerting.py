"""Prometheus, Alertmanager and a receiver of its notifications, all real, on a scaled clock.

Rules wait for minutes and look back over hours. Here every duration in them is divided by SCALE
and kept between SHORTEST_S (PATIENCE_S for a `for`) and LONGEST_S; evaluations come every second,
and scrapes every third. Thresholds, labels, inhibition and grouping are those of monitoring/.
Trainings, the grace of health and heat take real time.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "monitoring"
SCALE = 30
SHORTEST_S, LONGEST_S = 8, 40  # a busy machine misses a scrape or two, and holding on covers it
PATIENCE_S = 8  # the shortest `for`: a training is not scaled, and a busy machine takes its time
GROUP_WAIT_S, GROUP_INTERVAL_S = 6, 6
# A scrape has as long to answer, and one that is late is as bad as a daemon that is gone: all that
# is pending begins anew. On two busy CPUs a large rack may need seconds.
SCRAPE_S, EVALUATION_S = 3, 1

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"((?:for: |keep_firing_for: |\[|offset ))(\d+)([smhd])\b")


def scaled(rules: str) -> str:
    """The text of a rule file, for a day of some minutes."""

    def shorter(found: re.Match[str]) -> str:
        seconds = int(found[2]) * SECONDS[found[3]] / SCALE
        shortest_s = PATIENCE_S if found[1] == "for: " else SHORTEST_S
        return f"{found[1]}{round(min(max(seconds, shortest_s), LONGEST_S))}s"

    return _DURATION.sub(shorter, rules)


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
            running.wait(60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def until(
    answer: Callable[[], Any], what: str, wait_s: float = 90, story: Callable[[], object] = str
) -> Any:
    """The first answer that is not None; who does not listen yet has none."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            if (found := answer()) is not None:
                return found
        except OSError:
            pass  # Nobody listens yet, or answers late.
        time.sleep(0.2)
    raise AssertionError(f"never: {what}; {story()}")


@dataclass(frozen=True)
class Page:
    """A group that nobody was told of before, with what joined it while it was open: by the key of
    the group a receiver opens one incident, and no other for a lane or an end that comes later."""

    group: str
    receiver: str
    alert: str
    alerts: tuple[dict[str, Any], ...]
    at: float  # monotonic

    def places(self) -> set[str]:
        return {place(one["labels"]) for one in self.alerts}

    def fibres(self) -> set[str]:
        return {one["labels"]["fibre"] for one in self.alerts if "fibre" in one["labels"]}


def place(labels: dict[str, str]) -> str:
    """`card0/oe1/lane3`, as accelctl writes it; `worker0`; nothing for a host."""
    if "worker" in labels and "card" not in labels:
        return f"worker{labels['worker']}"
    return "/".join(labels[part] for part in ("card", "oe", "lane") if part in labels)


@dataclass
class Receiver:
    """Keeps what Alertmanager sends."""

    pages: list[Page] = field(default_factory=list)
    resolved: list[dict[str, Any]] = field(default_factory=list)
    firing: dict[str, dict[str, Any]] = field(default_factory=dict)  # by fingerprint
    _open: dict[str, set[str]] = field(default_factory=dict)  # fingerprints, by group
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, post: dict[str, Any]) -> None:
        with self._lock:
            group = post["groupKey"]
            still_open = self._open.setdefault(group, set())
            was_open, new = bool(still_open), []
            for alert in post["alerts"]:
                key = alert["fingerprint"]
                if alert["status"] == "resolved":
                    still_open.discard(key)
                    if self.firing.pop(key, None):
                        self.resolved.append(alert)
                elif key not in self.firing:
                    still_open.add(key)
                    self.firing[key] = alert
                    new.append(alert)
            if new and was_open:
                last = max(i for i, page in enumerate(self.pages) if page.group == group)
                page = self.pages[last]
                self.pages[last] = replace(page, alerts=(*page.alerts, *new))
            elif new:
                name = post["groupLabels"]["alertname"]
                told = tuple(new)
                self.pages.append(Page(group, post["receiver"], name, told, time.monotonic()))

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Its address, host and port."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@dataclass(frozen=True)
class Watch:
    """The three of them, while they run."""

    web: str
    manager: str
    receiver: Receiver

    def query(self, expr: str) -> list[Any]:
        question = urllib.parse.urlencode({"query": expr})
        found = get(f"http://{self.web}/api/v1/query?{question}")
        assert found["status"] == "success", found
        return list(found["data"]["result"])

    def firing(self) -> list[dict[str, str]]:
        """Labels of what fires in Prometheus, told or not."""
        return [a["labels"] for a in self._rules_say() if a["state"] == "firing"]

    def unsettled(self) -> list[dict[str, str]]:
        """Labels of what could still be told: pending or firing in Prometheus, or held by
        Alertmanager, silent or not; and of what was told and not yet resolved."""
        held = get(f"http://{self.manager}/api/v2/alerts")
        told = list(self.receiver.firing.values())
        return [a["labels"] for a in [*self._rules_say(), *held, *told]]

    def scrapes_missed(self) -> int:
        """In all; for people who wonder why something was told late."""
        counts = self.query("count_over_time(up[1h]) - sum_over_time(up[1h])")
        return sum(int(count["value"][1]) for count in counts)

    def _rules_say(self) -> list[dict[str, Any]]:
        return list(get(f"http://{self.web}/api/v1/alerts")["data"]["alerts"])


@contextmanager
def watching(metrics: str, folder: Path) -> Iterator[Watch]:
    """Over one daemon, by the address of its metrics."""
    web, manager = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    receiver = Receiver()
    os.environ.setdefault("GOMAXPROCS", "2")
    with ExitStack() as stack:
        hook = stack.enter_context(receiver.listening())
        _configure(folder, metrics, manager, hook)
        stack.enter_context(
            process(
                [
                    "prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml",
                    f"--web.listen-address={manager}", f"--storage.path={folder}/alertmanager",
                    "--cluster.listen-address=",
                ],
                folder / "alertmanager.log",
            )
        )  # fmt: skip
        until(lambda: get(f"http://{manager}/api/v2/status"), "Alertmanager answers")
        stack.enter_context(
            process(
                [
                    "prometheus", f"--config.file={folder}/prometheus.yml",
                    f"--web.listen-address={web}", f"--storage.tsdb.path={folder}/tsdb",
                    "--rules.alert.resend-delay=2s", "--rules.alert.for-grace-period=1s",
                ],
                folder / "prometheus.log",
            )
        )  # fmt: skip
        yield Watch(web, manager, receiver)


def _configure(folder: Path, metrics: str, manager: str, hook: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = (MONITORING / "prometheus.yml").read_text()
    config = config.replace("127.0.0.1:9437", metrics).replace("127.0.0.1:9093", manager)
    config = config.replace("scrape_interval: 15s", f"scrape_interval: {SCRAPE_S}s")
    config = config.replace("evaluation_interval: 15s", f"evaluation_interval: {EVALUATION_S}s")
    (folder / "prometheus.yml").write_text(config)
    (folder / "alerts").mkdir(exist_ok=True)
    for rules in (MONITORING / "alerts").glob("*.rules.yml"):
        (folder / "alerts" / rules.name).write_text(scaled(rules.read_text()))
    config = (MONITORING / "alertmanager.yml").read_text().replace("127.0.0.1:9095", hook)
    config = re.sub(r"group_wait: \w+", f"group_wait: {GROUP_WAIT_S}s", config)
    config = re.sub(r"group_interval: \w+", f"group_interval: {GROUP_INTERVAL_S}s", config)
    (folder / "alertmanager.yml").write_text(config)
