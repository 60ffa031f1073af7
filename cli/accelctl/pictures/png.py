"""A small writer of PNG: rows of palette indices, one byte a pixel."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

Colour = tuple[int, int, int]

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + kind + body + struct.pack("!I", zlib.crc32(kind + body))


def png(rows: Sequence[bytes], palette: Sequence[Colour]) -> bytes:
    """Raises ValueError on rows of unequal length."""
    width = len(rows[0]) if rows else 0
    if not width or any(len(row) != width for row in rows):
        raise ValueError("an image needs rows of one length")
    header = struct.pack("!IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    raw = b"".join(b"\0" + row for row in rows)
    colours = b"".join(bytes(colour) for colour in palette)
    return (
        SIGNATURE
        + _chunk(b"IHDR", header)
        + _chunk(b"PLTE", colours)
        + _chunk(b"IDAT", zlib.compress(raw, 9))
        + _chunk(b"IEND", b"")
    )


def data_uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


def enlarged(rows: Sequence[bytes], factor: int) -> list[bytes]:
    """Each pixel a square of so many."""
    return [
        bytes(pixel for pixel in row for _ in range(factor)) for row in rows for _ in range(factor)
    ]


def ramp(stops: Sequence[tuple[float, Colour]]) -> list[Colour]:
    """256 colours through the stops, which run from 0 to 1."""
    out: list[Colour] = []
    for i in range(256):
        at = i / 255
        for (a, low), (b, high) in pairwise(stops):
            if at <= b:
                share = (at - a) / (b - a)
                red, green, blue = (
                    round(x + share * (y - x)) for x, y in zip(low, high, strict=True)
                )
                out.append((red, green, blue))
                break
    return out
