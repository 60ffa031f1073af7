"""Alerts that no fault of the catalogue fires, from the cause to the page: plugs that are crossed,
a disk that is full, a worker that stops, one that does not come back.

A rack of its own, with a worker for each card. `alerting` says how time is scaled.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests/live")]

from alerting import Page, Watch, free_port, until, watching  # noqa: E402
from rack import Rack  # noqa: E402

pytestmark = [
    pytest.mark.system,
    pytest.mark.network,
    pytest.mark.skipif(
        not all(map(shutil.which, ("prometheus", "prometheus-alertmanager", "ip"))),
        reason="not installed: Debian packages prometheus, prometheus-alertmanager and iproute2",
    ),
]
LONELY = "card4"  # has no fibre, so that what befalls its worker is seen nowhere else
AGAIN_S = 15  # a second page of one cause would have come by then
FIBRES = {"straight0": ("card0", "card1"), "straight1": ("card2", "card3")}
# The pair of interfaces is one fibre: its plugs are crossed, and card0 hears card2.
CROSSED = (("oddx0", "oddy0"), ("oddx1", "oddy1"))
INTERFACES = {"straight0": ("oddx0", "oddx1"), "straight1": ("oddy0", "oddy1")}


def rack_config() -> str:
    text = "[hardware]\nworkers = 5\n"
    for number in range(5):
        text += f'[[card]]\nname = "card{number}"\nprofile = "single"\nhbm_gib = 1\n'
    for name, (a, b) in FIBRES.items():
        near, far = INTERFACES[name]
        text += (
            f'[[fibre]]\nname = "{name}"\na = "{a}/oe0"\nb = "{b}/oe0"\ntransport = "netdev"\n'
            f'interface_a = "{near}"\ninterface_b = "{far}"\n'
        )
    return text


@contextmanager
def crossed_plugs() -> Iterator[None]:
    try:
        for near, far in CROSSED:
            ip("link", "add", near, "mtu", "65535", "type", "veth", "peer", far, "mtu", "65535")
            for end in (near, far):
                ip("link", "set", end, "up")
        yield
    finally:
        for near, _ in CROSSED:
            subprocess.run(["ip", "link", "del", near], capture_output=True, check=False)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def full_disk(folder: Path) -> list[str]:
    """What a daemon is started by, so that its state folder has no room; nothing where no file
    system can be mounted."""
    folder.mkdir()
    script = 'mount -t tmpfs -o size=64k tmpfs "$1"'
    mounts = ["unshare", "--mount", "sh", "-euc"]
    if subprocess.run([*mounts, script, "sh", str(folder)], capture_output=True).returncode:
        return []
    fill = '{ cat /dev/zero > "$1/zeros" 2>/dev/null || true; }'
    return [*mounts, f'{script} && {fill}; shift; exec "$@"', "sh", str(folder)]


@dataclass(frozen=True)
class Scene:
    rack: Rack
    watch: Watch
    disk_is_full: bool

    @property
    def pages(self) -> list[Page]:
        return self.watch.receiver.pages

    def told(self, since: int = 0) -> list[tuple[str, list[str]]]:
        return sorted((page.alert, sorted(page.places())) for page in self.pages[since:])

    def firing(self, alert: str, **labels: str) -> bool:
        wanted = {"alertname": alert, **labels}.items()
        return any(wanted <= found.items() for found in self.watch.firing())

    def left_of_lonely(self) -> list[str]:
        """Alerts about that card and its worker that may still be told, or resolve."""
        return sorted(
            {
                found["alertname"]
                for found in self.watch.unsettled()
                if LONELY in (found.get("card"), f"card{found.get('worker')}")
            }
        )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    metrics = f"127.0.0.1:{free_port()}"
    with crossed_plugs():
        rack = Rack(tmp_path_factory.mktemp("r"), rack_config())
        disk = full_disk(rack.folder / "state")
        try:
            rack.serve("--metrics", metrics, wrapper=disk)
            rack.wait_up()
            with watching(metrics, tmp_path_factory.mktemp("watch")) as watch:
                yield Scene(rack, watch, bool(disk))
        finally:
            rack.close()


def test_crossed_plugs_a_full_disk_and_a_worker_that_stops_are_a_page_each(scene: Scene) -> None:
    expected = [("AccelLinkMiswired", ["card0/oe0"]), ("AccelLinkMiswired", ["card2/oe0"])]
    if scene.disk_is_full:
        expected.append(("AccelStoreNotDurable", [""]))
    expected.append(("AccelWorkerSilent", ["worker4"]))
    worker = scene.rack.worker_of(LONELY)
    os.kill(worker, signal.SIGSTOP)
    try:
        until(lambda: len(scene.pages) >= len(expected) or None, "pages", 90, scene.told)
        time.sleep(AGAIN_S)
        assert scene.told() == expected
    finally:
        os.kill(worker, signal.SIGCONT)
    until(lambda: not scene.firing("AccelWorkerSilent") or None, "it resolves")


def test_a_card_that_does_not_come_back_is_one_page(scene: Scene) -> None:
    """Its health is critical as well, and says nothing while an alert says why."""
    before, worker = len(scene.pages), scene.rack.worker_of(LONELY)
    os.kill(worker, signal.SIGKILL)
    successor = until(
        lambda: pid if (pid := scene.rack.worker_of(LONELY)) not in (0, worker) else None,
        "another worker is started",
    )
    os.kill(successor, signal.SIGSTOP)
    try:
        until(lambda: scene.pages[before:] or None, "a page", 90, scene.told)
        until(
            lambda: scene.firing("AccelHealthCritical", card=LONELY) or None,
            "its health is critical for long", 90,
        )  # fmt: skip
        assert scene.told(before) == [("AccelCardLost", [LONELY])]
    finally:
        os.kill(successor, signal.SIGCONT)
    until(lambda: not scene.left_of_lonely() or None, "all is over", 240, scene.left_of_lonely)
    assert scene.told(before) == [("AccelCardLost", [LONELY])]  # and not how it ended
