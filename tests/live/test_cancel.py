"""Ctrl-C, and its kin from service managers and closed terminals, in each phase of a copy."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from accel.errors import NotFound
from accel.plain import word

from .conftest import MakeRack
from .rack import LONG, PATIENCE_S, SLOW, Rack, pair_config, until

pytestmark = pytest.mark.network

GIB = 1 << 30
MIB = 1 << 20


def interrupted(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    """What it says at its end."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    return errors


def exists(rack: Rack, region: str) -> bool:
    try:
        rack.client.regions.get(region)
    except NotFound:
        return False
    return True


def test_an_interrupted_upload_leaves_no_region(pair: Rack, tmp_path: Path) -> None:
    source = tmp_path / "endless"
    with source.open("wb") as file:
        file.truncate(GIB)
    copying = pair.running("cp", str(source), "card0:upload")
    until(lambda: exists(pair, "card0:upload"), "the upload has begun")
    assert "freed again" in interrupted(copying)
    assert not exists(pair, "card0:upload")


def test_an_interrupted_upload_says_that_the_old_content_is_gone(
    pair: Rack, tmp_path: Path
) -> None:
    """From a pipe that stays open, so that the upload is surely in its middle."""
    pair.fill("card0:old", 4 * MIB)
    before = pair.sha256("card0:old")
    process = pair.running("cp", "-", "card0:old", "--length", "4MiB", stdin=subprocess.PIPE)
    assert process.stdin is not None
    os.write(process.stdin.fileno(), b"new" * MIB)
    until(lambda: pair.sha256("card0:old") != before, "some of it is overwritten")
    assert "partly overwritten" in interrupted(process)
    pair.client.regions.delete("card0:old")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_download_leaves_no_file(
    pair: Rack, tmp_path: Path, number: signal.Signals
) -> None:
    pair.client.regions.create("card0", "download", GIB)
    folder = tmp_path / "target"
    folder.mkdir()
    copying = pair.running("cp", "card0:download", str(folder / "copy"))
    until(lambda: any(path.stat().st_size for path in folder.iterdir()), "the download has begun")
    interrupted(copying, number)
    assert list(folder.iterdir()) == []
    pair.client.regions.delete("card0:download")


def test_an_interrupted_copy_by_light_is_cancelled_and_its_target_freed(
    make_rack: MakeRack,
) -> None:
    rack = make_rack(pair_config(fibre=SLOW))
    rack.fill("card0:w", LONG)
    for pull in ([], ["--pull"]):
        copying = rack.running("cp", "card0:w", "card1:w", *pull)
        running = until(lambda: list(rack.client.transfers.list(active_only=True)), "it has begun")
        rack.in_the_middle(running[0].name)
        said = interrupted(copying)
        assert "is cancelled; card1:w is freed again" in said
        cancelled = rack.transfer(running[0].name)
        assert word(cancelled, "state") == "CANCELLED"
        assert cancelled.good_bytes < cancelled.total_bytes
        assert not exists(rack, "card1:w")
    # Nothing of it lingers in the cards: the next copy has the links for itself.
    sha = rack.fill("card0:small", MIB)
    rack.done(rack.begin("card0:small", "card1:small"))
    assert rack.sha256("card1:small") == sha


def test_a_region_in_use_stays(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config())
    sha = rack.fill("card0:w", 4 * MIB)
    rack.client.links.set_admin("card0/oe0", False)
    transfer = rack.begin("card0:w", "card1:w")
    for region in ("card0:w", "card1:w"):
        refused = rack.cli("hbm", "free", region)
        assert refused.returncode == 6, refused.stderr
        assert "running transfer" in refused.stderr
    rack.client.links.set_admin("card0/oe0", True)
    rack.done(transfer)
    assert rack.sha256("card1:w") == sha
    assert rack.cli("hbm", "free", "card0:w", "card1:w").returncode == 0
