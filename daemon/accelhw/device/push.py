"""The sending side of a transfer: which chunks left, on which link, and which are proved good."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from accelhw.wire.checksum import crc32c_combine
from accelhw.wire.message import MAX_CHUNKS

if TYPE_CHECKING:
    from accelhw.device.way import Way

CHUNK_BYTES_MIN = 1 << 20
CHUNK_BYTES_USUAL = 32 << 20  # at most, but for what is so large that MAX_CHUNKS would not do
CHUNKS_USUAL = 16  # a chunk costs two processes at each end a wake: as few as still deal evenly
TODO, LEAVING, ARRIVED = range(3)


def chunk_bytes_for(total_bytes: int) -> int:
    """The chunk of a transfer: a power of two, so that at most MAX_CHUNKS of them make it up."""
    chunk_bytes = CHUNK_BYTES_MIN
    while chunk_bytes < CHUNK_BYTES_USUAL and chunk_bytes * CHUNKS_USUAL < total_bytes:
        chunk_bytes *= 2
    while chunk_bytes * MAX_CHUNKS < total_bytes:
        chunk_bytes *= 2
    return chunk_bytes


class Cut:
    """One chunk on its way over one port."""

    __slots__ = (
        "backed",
        "base",
        "chunk",
        "crc",
        "end",
        "in_flight",
        "next",
        "port",
        "proved",
        "push",
        "stream",
        "total_bytes",
    )

    def __init__(self, push: Push, chunk: int, port: Way) -> None:
        self.push = push
        self.port = port
        self.chunk = chunk
        self.stream = push.stream
        self.base = push.base  # of the transfer in HBM
        self.next = chunk * push.chunk_bytes  # offset in the transfer of the next byte to leave
        self.end = min(self.next + push.chunk_bytes, push.total_bytes)
        self.total_bytes = push.total_bytes
        self.backed = 0  # offset in the transfer up to where pages were looked at
        self.crc = 0  # of the bytes that left
        self.in_flight = 0  # frames
        self.proved = True  # no acknowledgement of it said that something was dropped


class Push:
    """Sends `total_bytes` from `base` to the peer. Knows chunks, not frames."""

    __slots__ = (
        "accepted", "arrived_chunks", "base", "bound", "chunk_bytes", "chunks", "crcs", "cuts",
        "deadline_ns", "finish_port", "fresh", "key", "kind", "left_chunks", "news", "offset",
        "opener", "peer", "region_id", "replayed_frames", "states", "stream", "todo", "total_bytes",
        "transfer_id", "unlinked_since_ns",
    )  # fmt: skip

    def __init__(
        self, transfer_id: str, kind: int, stream: int, peer: str, base: int, total_bytes: int,
        deadline_ns: int, region_id: int = 0, key: int = 0, offset: int = 0,
    ) -> None:  # fmt: skip
        self.transfer_id = transfer_id
        self.kind = kind
        self.stream = stream
        self.peer = peer
        self.base = base
        self.total_bytes = total_bytes
        self.deadline_ns = deadline_ns  # longest time without a link
        self.region_id = region_id
        self.key = key
        self.offset = offset
        self.chunk_bytes = chunk_bytes_for(total_bytes)
        self.chunks = -(-total_bytes // self.chunk_bytes)
        self.states = bytearray(self.chunks)
        self.crcs: list[int | None] = [None] * self.chunks
        self.todo = deque(range(self.chunks))
        self.left_chunks = 0  # whole chunks handed to ports or arrived
        self.arrived_chunks = 0
        # Arrived since the far end was last asked which are there: its answer may be older.
        self.news: set[int] = set()
        self.replayed_frames = 0
        self.cuts: dict[int, Cut] = {}  # by chunk: on their way
        self.bound: set[Way] = set()  # ports that told the far end our stream
        self.opener: Way | None = None  # where Open waits for its answer
        self.accepted = False
        self.fresh = True  # nothing known to have arrived: worth sending a chunk unasked
        self.finish_port: Way | None = None
        self.unlinked_since_ns: int | None = None

    # ---- chunks ----

    def chunk_length(self, chunk: int) -> int:
        start = chunk * self.chunk_bytes
        return min(self.chunk_bytes, self.total_bytes - start)

    @property
    def next_chunk(self) -> int | None:
        """The chunk that `take_chunk` would give."""
        return next((chunk for chunk in self.todo if self.states[chunk] == TODO), None)

    def take_chunk(self, port: Way) -> Cut | None:
        while self.todo:
            chunk = self.todo.popleft()
            if self.states[chunk] == TODO:
                self.states[chunk] = LEAVING
                cut = self.cuts[chunk] = Cut(self, chunk, port)
                return cut
        return None

    def chunk_left(self, cut: Cut) -> None:
        """Its last frame was handed to the link."""
        if self.cuts.get(cut.chunk) is cut:
            self.crcs[cut.chunk] = cut.crc
            self.left_chunks += 1

    def chunk_arrived(self, cut: Cut) -> None:
        """The link proved every frame of it."""
        if self.cuts.get(cut.chunk) is cut:
            del self.cuts[cut.chunk]
            self.states[cut.chunk] = ARRIVED
            self.arrived_chunks += 1
            self.news.add(cut.chunk)

    def _back_to_todo(self, chunk: int) -> None:
        self.states[chunk] = TODO
        self.todo.appendleft(chunk)

    def reconcile(self, complete: bytes) -> None:
        """Take the far end's word for which chunks are good; those on their way stay so."""
        for chunk in range(self.chunks):
            there = chunk >> 3 < len(complete) and complete[chunk >> 3] >> (chunk & 7) & 1
            state = self.states[chunk]
            if state == LEAVING:
                cut = self.cuts[chunk]
                if cut.next < cut.end or cut.in_flight:
                    continue
                # It was in doubt.
                if there:
                    self.chunk_arrived(cut)
                else:
                    del self.cuts[chunk]
                    self.left_chunks -= 1
                    self._back_to_todo(chunk)
                continue
            if there and state == TODO:
                self.states[chunk] = ARRIVED
                self.arrived_chunks += 1
                self.left_chunks += 1
            elif not there and state == ARRIVED and chunk not in self.news:
                self.arrived_chunks -= 1
                self.left_chunks -= 1
                self._back_to_todo(chunk)

    # ---- links ----

    def port_lost(self, port: Way) -> None:
        """What was on its way over the port goes again from each chunk's start."""
        for chunk, cut in sorted(self.cuts.items(), reverse=True):
            if cut.port is port:
                del self.cuts[chunk]
                if cut.next == cut.end:
                    self.left_chunks -= 1
                self._back_to_todo(chunk)
        self.bound.discard(port)
        if self.opener is port:
            self.opener = None
        if self.finish_port is port:
            self.finish_port = None
        self.fresh = False
        if not self.bound:
            self.reopen()

    def reopen(self) -> None:
        """Nothing is agreed any more: the next port must Open and hear what is there."""
        self.bound.clear()
        self.opener = None
        self.accepted = False
        self.fresh = False
        self.finish_port = None

    def finishing_port(self) -> Way | None:
        """Where Finish may go now: behind every chunk that has not arrived yet."""
        if self.left_chunks < self.chunks or self.finish_port is not None or not self.bound:
            return None
        ports = {cut.port for cut in self.cuts.values()}
        if len(ports) > 1:
            return None
        port = next(iter(ports or self.bound))
        return port if port in self.bound else None

    # ---- the whole ----

    @property
    def missing_crc(self) -> int | None:
        """A chunk that an earlier life sent, so that its CRC must be read from the source."""
        return self.crcs.index(None) if None in self.crcs else None

    @property
    def crc(self) -> int:
        """CRC-32C of all bytes; only when every chunk left."""
        total = 0
        for chunk, crc in enumerate(self.crcs):
            assert crc is not None
            total = crc32c_combine(total, crc, self.chunk_length(chunk)) if chunk else crc
        return total

    @property
    def good_bytes(self) -> int:
        short = self.chunks * self.chunk_bytes - self.total_bytes
        last = self.states[-1] == ARRIVED
        return self.arrived_chunks * self.chunk_bytes - (short if last else 0)

    @property
    def first_gap_offset(self) -> int:
        gap = next((i for i, state in enumerate(self.states) if state != ARRIVED), self.chunks)
        return min(gap * self.chunk_bytes, self.total_bytes)
