"""Tests of links from the command line: exit codes, pictures, Ctrl-C."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from accel.v1 import diag_pb2
from accelctl.pictures import blocks, png

from .conftest import Accelctl
from .fake_diag import COLUMNS, ROWS
from .fake_state import State

pytestmark = pytest.mark.usefixtures("daemon")

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> str:
    return " ".join(node.text or "" for node in ElementTree.parse(path).iter(f"{SVG}text"))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("diag run margin --on card0/oe0", "Margin of card0/oe0"),
        ("diag run eye --on card0/oe0/lane3", "Eye of card0/oe0/lane3"),
        ("diag run eye --on card0/oe0", "Eyes of card0/oe0"),
        ("diag run fec --on card0/oe0", "Codewords of card0/oe0"),
        ("diag run ber --on card0/oe0", "Ber on card0/oe0"),
        ("link prbs card0/oe0", "PRBS31Q on card0/oe0"),
    ],
)
def test_each_result_can_be_drawn(line: str, wanted: str, accelctl: Accelctl, tmp_path: Path):
    file = tmp_path / "x.svg"
    assert accelctl(*line.split(), "--svg", str(file)).code == 0
    assert wanted in texts(file)
    root = ElementTree.parse(file).getroot()
    assert float(root.attrib["width"]) > 0
    assert "nan" not in file.read_text()
    assert "inf" not in file.read_text().replace("information", "")


def test_an_eye_makes_a_png(accelctl: Accelctl, tmp_path: Path):
    file = tmp_path / "eye.png"
    line = ("diag", "run", "eye", "--on", "card0/oe0/lane1", "--png", str(file))
    assert accelctl(*line).code == 0
    body = file.read_bytes()
    assert body.startswith(png.SIGNATURE)
    assert struct.unpack("!II", body[16:24]) == (COLUMNS * 5, ROWS * 5)


def test_a_png_holds_its_pixels_and_checks_them():
    body = png.png([bytes([0, 1, 2]), bytes([2, 1, 0])], [(0, 0, 0), (9, 9, 9), (255, 0, 7)])
    chunks, at = {}, len(png.SIGNATURE)
    while at < len(body):
        (length,) = struct.unpack("!I", body[at : at + 4])
        kind, content = body[at + 4 : at + 8], body[at + 8 : at + 8 + length]
        (crc,) = struct.unpack("!I", body[at + 8 + length : at + 12 + length])
        assert crc == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    assert zlib.decompress(chunks[b"IDAT"]) == b"\0\0\1\2\0\2\1\0"
    assert chunks[b"PLTE"][6:9] == bytes((255, 0, 7))


def test_what_was_asked_reaches_the_daemon(accelctl: Accelctl, state: State):
    accelctl(
        "link", "prbs", "card0/oe0", "--pattern", "prbs7", "--for", "500ms", "--lanes", "0,2-3",
        "--checker", "self-sync", "--ber", "1e-9", "--confidence", "99%", "--force",
    )  # fmt: skip
    asked = state.started
    assert asked.link == "cards/card0/links/oe0"
    assert asked.kind == diag_pb2.DIAG_KIND_PRBS
    assert list(asked.lanes) == [0, 2, 3]
    assert (asked.pattern, asked.checker) == ("prbs7", "self-sync")
    assert (asked.duration.nanos, asked.target_ber) == (500_000_000, 1e-9)
    assert asked.confidence_ratio == pytest.approx(0.99)
    assert asked.stop_early
    assert asked.force


def test_a_loop_is_near_or_far(accelctl: Accelctl, state: State):
    accelctl("diag", "run", "loopback", "--loop", "far", "--on", "card0/oe0")
    assert state.started.kind == diag_pb2.DIAG_KIND_LOOPBACK_FAR


def _failed(diag: Any) -> None:
    diag.verdict = diag_pb2.DIAG_VERDICT_FAILED
    diag.errors[3].verdict = diag_pb2.DIAG_VERDICT_FAILED


def _impossible(diag: Any) -> None:
    diag.state = diag_pb2.DIAG_STATE_FAILED
    diag.error, diag.error_detail = "NO_LOOP", "the own light does not return"


def _cancelled(diag: Any) -> None:
    diag.state = diag_pb2.DIAG_STATE_CANCELLED


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (_failed, 1, "failed the test on lane3"),
        (_impossible, 6, "does not return"),
        (_cancelled, 6, "cancelled"),
    ],
)
def test_an_exit_code_tells_how_it_ended(
    change: Callable[[Any], None], code: int, words: str, accelctl: Accelctl, state: State
):
    state.on_diag = change
    outcome = accelctl("link", "prbs", "card0/oe0")
    assert outcome.code == code
    assert words in outcome.err
    assert "card0/oe0" in outcome.out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("link prbs card0/oe0 --lanes x", "names no lanes"),
        ("link prbs card0/oe0 --ber 2", "not between 0 and 1"),
        ("diag run eye --on card0", "not a port"),
        ("diag run nothing --on card0/oe0", "nothing"),
        ("bench path --length nan", "nan m"),
        ("bench path --bytes 0", "0 bytes"),
    ],
)
def test_nonsense_is_told_before_anything_starts(line, words, accelctl: Accelctl, state: State):
    outcome = accelctl(*line.split())
    assert outcome.code == 2
    assert words in outcome.err
    assert not state.calls


def test_a_file_that_cannot_be_written_is_told_before_the_test(accelctl: Accelctl, state: State):
    outcome = accelctl("diag", "run", "margin", "--on", "card0/oe0", "--svg", "/no/such/x.svg")
    assert outcome.code == 3
    assert not state.calls


def test_ctrl_c_cancels_the_test(accelctl: Accelctl, state: State, monkeypatch: pytest.MonkeyPatch):
    def interrupt(diag: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("accelctl.testing.to_plain", interrupt)
    outcome = accelctl("link", "prbs", "card0/oe0", "-o", "jsonl")
    assert outcome.code == 130
    assert "cancelled" in outcome.err
    assert "CancelDiag diags/3f2a91c04d77" in state.calls


def test_json_lines_carry_each_step(accelctl: Accelctl):
    lines = accelctl("link", "prbs", "card0/oe0", "-o", "jsonl").out.splitlines()
    assert len(lines) == 2
    assert '"state": "RUNNING"' in lines[0]
    assert '"state": "DONE"' in lines[1]


def test_a_bar_is_as_long_as_its_share():
    assert blocks.bar(0.0, 8) == ""
    assert blocks.bar(0.5, 8) == "████"
    assert blocks.bar(1.5, 8) == "████████"
    assert len(blocks.bar(0.51, 8)) == 5


def test_a_comparison_needs_no_daemon(accelctl: Accelctl, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACCEL_SOCKET", "/nowhere/acceld.sock")
    outcome = accelctl("bench", "path", "--compare", "pcie", "--bytes", "1G", "--length", "10")
    assert outcome.code == 0
    assert "oio" in outcome.out
    assert "pcie reaches 0.4 m, not 10 m" in outcome.out
