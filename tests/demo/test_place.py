"""The demo's parts that need no daemon."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path

import pytest

from acceld.demo.place import example, with_transport, workplace
from acceld.demo.screen import Screen, duration, rate, size


def test_any_rack_can_be_put_on_another_transport() -> None:
    for text in (example("pair.toml"), example("pair.toml").replace(
            'b = "card1/oe0"', 'b = "card1/oe0"\ntransport = "veth"')):  # fmt: skip
        fibres = tomllib.loads(with_transport(text, "memory"))["fibre"]
        assert [fibre["transport"] for fibre in fibres] == ["memory"] * len(fibres)


def test_a_workplace_in_use_is_left_to_its_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with workplace() as first:
        with workplace() as second:
            assert first.exists()
            assert second.exists()
        assert not second.exists()
    assert list(tmp_path.iterdir()) == []


def test_progress_is_silent_where_nobody_sees_it_move() -> None:
    out = io.StringIO()
    screen = Screen(out)
    screen.progress("copy", 1, 2, 1.0)
    screen.line("done")
    assert out.getvalue() == "done\n"


def test_figures_read_well() -> None:
    assert [size(1), size(256 << 20), size(96 << 30)] == ["1 B", "256.0 MiB", "96.0 GiB"]
    assert [duration(5e-7), duration(0.25), duration(12)] == ["0.5 µs", "250.00 ms", "12.00 s"]
    assert rate(2e9, 1) == "2.00 GB/s"
