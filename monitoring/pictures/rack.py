"""A rack to look at: a real daemon with emulated cards, scraped by a real Prometheus, while a story
happens to it. It makes network interfaces: run it in a network namespace of its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from boards.grafana import Span
from pictures.prometheus import Prometheus

HERE = Path(__file__).resolve().parent
RACK, STORY = HERE / "rack.toml", HERE / "story.toml"
ACCELCTL = Path(sys.executable).with_name("accelctl")
SCRAPE_S = 2.0  # also the longest that a scrape may take, on a busy machine
WAIT_S = 180  # only ever reached by a rack that hangs
COPY_BYTES = 24 << 20
COPY_PAUSE_S = 0.5
ROUTES = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5))  # copies go from card to card, in turn
HISTORY_S = 60.0  # before anything happens: marks compare with a minute ago
QUIET_S, PEAK_BEFORE_END_S, AFTER_S = 8.0, 4.0, 6.0

CONFIG = """\
global: {{scrape_interval: {scrape:g}s}}
scrape_configs:
  - job_name: acceld
    static_configs: [{{targets: ["{metrics}"], labels: {{instance: rack1}}}}]
"""


@dataclass(frozen=True, slots=True)
class Told:
    """Moments of a story that is over, Unix time."""

    well_s: float  # nothing has happened yet
    start_s: float  # a worker and the daemon were restarted, and the faults begin
    peak_s: float  # everything is broken
    end_s: float  # everything is repaired

    @property
    def before(self) -> Span:
        return Span(self.well_s - HISTORY_S, self.well_s, SCRAPE_S, SCRAPE_S)

    @property
    def faults(self) -> Span:
        return Span(self.start_s, self.peak_s, SCRAPE_S, SCRAPE_S)

    @property
    def all_until_the_peak(self) -> Span:
        return Span(self.well_s, self.peak_s, SCRAPE_S, SCRAPE_S)

    @property
    def all(self) -> Span:
        return Span(self.well_s, self.end_s, SCRAPE_S, SCRAPE_S)


@dataclass(slots=True)
class Rack:
    prometheus: Prometheus
    folder: Path
    chassis: Process
    daemon: Process

    def accelctl(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            [ACCELCTL, "--socket", self.folder / "acceld.sock", "--timeout", str(WAIT_S), *words],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def tell(self) -> Told:
        """The story, with copies from card to card all the while. Takes its time."""
        file = self.folder / "weights"
        file.write_bytes(os.urandom(COPY_BYTES))
        for card in sorted({card for route in ROUTES for card in route}):
            self.accelctl("cp", str(file), f"card{card}:weights")
        over = threading.Event()
        copier = threading.Thread(target=self._copy, args=(over,))
        copier.start()
        try:
            time.sleep(HISTORY_S)
            well_s = time.time()
            self._lose_a_worker()
            self._restart_the_daemon()
            time.sleep(QUIET_S)
            start_s = time.time() - QUIET_S
            self.accelctl("scenario", "run", str(STORY))
            peak_s = time.time() - PEAK_BEFORE_END_S
            self.accelctl("card", "reset", "card2")  # A spare row takes the place of the bad one.
            self.wait_until('min(accel_link_state{state="UP"}) == 1')
            self.wait_until("max(accel_hbm_rows_pending) == 0")
            time.sleep(AFTER_S)
        finally:
            over.set()
            copier.join()
        return Told(well_s, start_s, peak_s, time.time() - SCRAPE_S)

    def _copy(self, over: threading.Event) -> None:
        turn = 0
        while not over.wait(COPY_PAUSE_S):
            source, target = ROUTES[turn % len(ROUTES)]
            words = "cp", f"card{source}:weights", f"card{target}:weights", "--link-deadline", "3"
            self.accelctl(*words, check=False)  # The story makes some fail.
            turn += 1

    def _lose_a_worker(self) -> None:
        """Its cards fall off the bus, and come back by themselves."""
        os.kill(self.chassis.children()[-1], signal.SIGKILL)
        self.wait_until("max(accel_worker_restarts_total) > 0 and min(accel_link_up) == 1")

    def _restart_the_daemon(self) -> None:
        """The links know nothing of it."""
        self.daemon.stop()
        stopped_s = time.time()
        self.daemon.start()
        self.wait_until(
            f"max(accel_daemon_start_time_seconds) > {stopped_s} and min(accel_link_up) == 1"
        )

    def wait_until(self, true: str) -> None:
        """Until that query has an answer."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if self.prometheus.at(true, time.time()):
                    return
            except urllib.error.URLError:
                pass  # It does not listen yet.
            time.sleep(0.2)
        raise AssertionError(f"never: {true}")


@dataclass(slots=True)
class Process:
    """With its output in a file, and its end when we end."""

    command: list[str]
    log: Path
    _running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            self._running = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def stop(self) -> None:
        if self._running is None:
            return
        self._running.terminate()
        try:
            self._running.wait(30)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running = None

    def children(self) -> list[int]:
        if self._running is None:
            return []
        tasks = Path(f"/proc/{self._running.pid}/task").glob("*/children")
        return sorted(int(pid) for task in tasks for pid in task.read_text().split())


@contextmanager
def watched(folder: Path) -> Iterator[Rack]:
    """With all links up, as Prometheus sees it."""
    metrics, web = (f"127.0.0.1:{_free_port()}" for _ in range(2))
    hardware = str(folder / "hardware.sock")
    (folder / "prometheus.yml").write_text(CONFIG.format(scrape=SCRAPE_S, metrics=metrics))
    acceld = [sys.executable, "-m", "acceld"]
    chassis = Process(
        [*acceld, "chassis", "--config", str(RACK), "--socket", hardware], folder / "chassis.log"
    )
    daemon = Process(
        [
            *acceld, "serve", "--config", str(RACK), "--chassis", "attach",
            "--hardware-socket", hardware, "--state-dir", str(folder / "state"),
            "--socket", str(folder / "acceld.sock"), "--metrics", metrics,
        ],
        folder / "acceld.log",
    )  # fmt: skip
    prometheus = Process(
        [
            "prometheus", f"--config.file={folder / 'prometheus.yml'}",
            f"--web.listen-address={web}", f"--storage.tsdb.path={folder / 'tsdb'}",
        ],
        folder / "prometheus.log",
    )  # fmt: skip
    with ExitStack() as stack:
        for process in (prometheus, chassis, daemon):
            process.start()
            stack.callback(process.stop)
        rack = Rack(Prometheus(f"http://{web}"), folder, chassis, daemon)
        rack.wait_until("min(accel_link_up) == 1")
        yield rack


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
