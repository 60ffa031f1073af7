"""CRC-32C and joining it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.wire.checksum import crc32c, crc32c_combine, prepare_combine

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "crc.json").read_text())["rows"]
MESSAGES = {
    "ascii_123456789": b"123456789",
    "empty": b"",
    "64_zero_octets": bytes(64),
    "64_ff_octets": b"\xff" * 64,
    "0_to_255": bytes(range(256)),
}


@pytest.mark.parametrize(
    "row", [r for r in VECTORS if r["crc"] == "crc32c"], ids=lambda r: r["message"]
)
def test_the_checksum_is_castagnolis(row: dict[str, str]) -> None:
    assert crc32c(MESSAGES[row["message"]]) == int(row["crc_hex"], 16)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_joined_checksums_are_those_of_the_joined_bytes(first: bytes, second: bytes) -> None:
    joined = crc32c_combine(crc32c(first), crc32c(second), len(second))
    assert joined == crc32c(first + second)


@pytest.mark.parametrize("length", [1, 64, 4096, 61696, 65472, 1 << 20, (1 << 20) + 1])
def test_a_prepared_length_gives_the_same_as_an_unprepared_one(length: int) -> None:
    first, second = bytes(range(200)), b"\xa5" * length
    whole = crc32c(first + second)
    assert crc32c_combine(crc32c(first), crc32c(second), length) == whole
    prepare_combine(length)
    assert crc32c_combine(crc32c(first), crc32c(second), length) == whole


def test_lengths_that_return_often_stay_right() -> None:
    pieces = [bytes([n]) * 777 for n in range(100)]
    total = 0
    for piece in pieces:
        total = crc32c_combine(total, crc32c(piece), len(piece))
    assert total == crc32c(b"".join(pieces))
