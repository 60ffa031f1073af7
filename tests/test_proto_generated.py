"""The committed modules of accel.v1 are what proto/ says."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from proto import generate  # noqa: E402


def test_generated_modules_are_up_to_date(tmp_path: Path) -> None:
    generate(tmp_path)
    made = {p.name: p.read_text() for p in (tmp_path / "accel/v1").iterdir()}
    kept = {p.name: p.read_text() for p in (ROOT / "sdk/accel/v1").glob("*_pb2*")}
    assert kept == made, "run `make proto`"
