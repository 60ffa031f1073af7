"""The receiving side of a transfer: where each frame lands, and which chunks are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accelhw.wire.checksum import crc32c_combine

if TYPE_CHECKING:
    from accelhw.device.way import Way


class Landing:
    """A chunk as it comes in over one port: `next` is where its next frame must begin, `backed`
    up to where pages were asked for, `share` the length of a frame of it."""

    __slots__ = (
        "backed", "base", "chunk", "crc", "end", "next", "port", "share", "sink", "stream"
    )  # fmt: skip

    def __init__(self, sink: Sink, chunk: int, port: Way, stream: int) -> None:
        self.sink = sink
        self.port = port
        self.chunk = chunk
        self.stream = stream
        self.base = sink.base
        self.next = chunk * sink.chunk_bytes
        self.end = min(self.next + sink.chunk_bytes, sink.total_bytes)
        self.crc = 0
        self.backed = 0
        self.share = 0

    def void(self) -> None:
        """Not a byte of it lands any more."""
        self.end = -1
        self.port.void(self)


class Sink:
    """Takes `total_bytes` to `base`. Only bytes inside it, in a chunk not yet complete, land."""

    __slots__ = (
        "base", "chunk_bytes", "chunks", "complete", "complete_chunks", "crcs", "deadline_ns",
        "kind", "landings", "peer", "total_bytes", "transfer_id", "unlinked_since_ns",
    )  # fmt: skip

    def __init__(
        self, transfer_id: str, kind: int, peer: str, base: int, total_bytes: int,
        chunk_bytes: int, deadline_ns: int,
    ) -> None:  # fmt: skip
        self.transfer_id = transfer_id
        self.kind = kind
        self.peer = peer
        self.base = base
        self.total_bytes = total_bytes
        self.deadline_ns = deadline_ns
        self.unlinked_since_ns: int | None = None
        self.landings: dict[int, Landing] = {}
        self.start(chunk_bytes)

    def start(self, chunk_bytes: int) -> None:
        """Empty: nothing has landed."""
        self.chunk_bytes = chunk_bytes
        self.chunks = -(-self.total_bytes // chunk_bytes)
        self.complete = bytearray(self.chunks)
        self.complete_chunks = 0
        self.crcs = [0] * self.chunks
        self.drop_landings()

    def drop_landings(self, port: Way | None = None) -> None:
        """Forget chunks that are partly here: all, or those that came over the port."""
        for chunk, landing in list(self.landings.items()):
            if port is None or landing.port is port:
                del self.landings[chunk]
                landing.void()

    def landing(self, port: Way, stream: int, offset: int, length: int) -> Landing | None:
        """Where a frame lands, None if nowhere: out of place, or its chunk is complete.

        A frame at a chunk's start takes the chunk over from whichever port brought it before: that
        port's later frames must not touch it again, for they could be damaged.
        """
        chunk = offset // self.chunk_bytes
        if chunk >= self.chunks or self.complete[chunk]:
            return None
        landing = self.landings.get(chunk)
        if offset == chunk * self.chunk_bytes:
            if landing is not None:
                landing.void()
            landing = self.landings[chunk] = Landing(self, chunk, port, stream)
        elif landing is None or landing.port is not port or landing.next != offset:
            return None
        return landing if length and offset + length <= landing.end else None

    def has(self, offset: int) -> bool:
        """Whether the chunk around `offset` is complete."""
        chunk = offset // self.chunk_bytes
        return chunk < self.chunks and bool(self.complete[chunk])

    def chunk_complete(self, landing: Landing) -> None:
        self.landings.pop(landing.chunk, None)
        landing.end = -1
        self.complete[landing.chunk] = 1
        self.complete_chunks += 1
        self.crcs[landing.chunk] = landing.crc

    @property
    def bitmap(self) -> bytes:
        """A bit per complete chunk, without trailing zero bytes."""
        bits = np.packbits(np.frombuffer(self.complete, np.uint8), bitorder="little")
        return bits.tobytes().rstrip(b"\0")

    @property
    def crc(self) -> int:
        """CRC-32C of all bytes; only when every chunk is complete."""
        total = self.crcs[0]
        for chunk in range(1, self.chunks):
            start = chunk * self.chunk_bytes
            length = min(self.chunk_bytes, self.total_bytes - start)
            total = crc32c_combine(total, self.crcs[chunk], length)
        return total

    @property
    def good_bytes(self) -> int:
        short = self.chunks * self.chunk_bytes - self.total_bytes
        return self.complete_chunks * self.chunk_bytes - (short if self.complete[-1] else 0)

    @property
    def first_gap_offset(self) -> int:
        gap = self.complete.find(0)
        return self.total_bytes if gap < 0 else gap * self.chunk_bytes
