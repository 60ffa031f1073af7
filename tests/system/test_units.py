"""The units as files: systemd accepts them, and finds them tight."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parent.parent.parent
UNITS = ROOT / "systemd"
NAMES = ("accel-chassis.service", "acceld.service")
EXPOSURE_MAX = 2.0

analyze = shutil.which("systemd-analyze")
if analyze is None:
    pytestmark = [pytestmark, pytest.mark.skip(reason="systemd-analyze is not installed")]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A root where our units lie beside the system's own, and `acceld` can be run."""
    units = tmp_path / "usr/lib/systemd/system"
    shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
    for name in NAMES:
        shutil.copy(UNITS / name, units)
    binary = tmp_path / "usr/bin/acceld"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_systemd_has_nothing_to_say_against_a_unit(installed: Path, name: str) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={installed}", name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_exposes_little(name: str) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout
    assert float(found[1]) <= EXPOSURE_MAX, done.stdout


def test_only_the_chassis_has_rights_on_the_network() -> None:
    def capabilities(name: str) -> list[str]:
        return re.findall(r"^\w*Capabilit\w+=(.*)$", (UNITS / name).read_text(), re.M)

    assert capabilities("accel-chassis.service") == ["CAP_NET_ADMIN CAP_NET_RAW"] * 2
    assert capabilities("acceld.service") == ["", ""]


@pytest.mark.parametrize("tool", ["sysusers", "tmpfiles"])
def test_the_user_and_the_folder_can_be_made(tool: str, tmp_path: Path) -> None:
    for folder in ("etc", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d"):
        (tmp_path / folder).mkdir(parents=True)
    for kind in ("sysusers", "tmpfiles"):
        shutil.copy(UNITS / f"accel.{kind}", tmp_path / f"usr/lib/{kind}.d/accel.conf")
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}"], check=True, capture_output=True)
    assert "accel:" in (tmp_path / "etc/passwd").read_text()
    if tool == "tmpfiles":
        subprocess.run(
            ["systemd-tmpfiles", "--create", f"--root={tmp_path}"], check=True, capture_output=True
        )
        assert (tmp_path / "run/acceld").stat().st_mode & 0o777 == 0o750
