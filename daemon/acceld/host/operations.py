"""Long work of this host on HBM: fill, checksum, streams in and out.

Each works chunk by chunk in a few threads, so the loop stays free, memory stays flat whatever the
size, and a cancelled caller stops it after the chunk at hand.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import crc32c
import numpy as np

from acceld.errors import Exhausted, Incomplete, InvalidRequest, OutOfRange, Unavailable
from acceld.host.hardware import Hardware
from acceld.host.regions import Regions, size_text
from acceld.records import Region

CHUNK_BYTES = 4 << 20
READ_BYTES = 1 << 20  # of one message of a stream out
RANDOM_BLOCK_BYTES = 1 << 20
THREADS = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    done_bytes: int
    total_bytes: int
    sha256: str = ""
    crc32c: int | None = None

    @property
    def is_done(self) -> bool:
        return self.done_bytes == self.total_bytes


def random_block(seed: int, block: int) -> bytes:
    """The mebibyte number `block` of a pseudo-random fill: PCG64 seeded with (seed, block)."""
    words = np.random.PCG64(np.random.SeedSequence([seed, block])).random_raw(
        RANDOM_BLOCK_BYTES // 8
    )
    return words.astype("<u8").tobytes()


class Operations:
    def __init__(self, hardware: Hardware, regions: Regions) -> None:
        self._hardware = hardware
        self._regions = regions
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hbm")

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def fill(
        self, card: str, name: str, offset: int, length: int, byte: int | None, seed: int | None
    ) -> AsyncIterator[Progress]:
        """With one byte, or pseudo-random bytes of a seed (counted from the fill's start)."""
        if byte is not None and byte > 255:
            raise InvalidRequest("BYTE_INVALID", f"{byte} is no byte; use 0 to 255", byte=byte)
        if (byte is None) == (seed is None):
            raise InvalidRequest(
                "PATTERN_MISSING", "say what to fill with: a byte or a random seed"
            )
        with self._regions.pinned(card, name) as region:
            address, length = _range(region, offset, length)
            hbm = self._hardware.hbm(card)
            pattern = bytes([byte]) * min(CHUNK_BYTES, length) if byte is not None else b""

            def step(done: int, size: int) -> None:
                first = address + done
                hbm.prepare(first, first + size, address, address + length)
                if seed is None:
                    hbm.write(memoryview(pattern)[:size], first)
                    return
                for start in range(done, done + size, RANDOM_BLOCK_BYTES):
                    block = random_block(seed, start // RANDOM_BLOCK_BYTES)
                    wanted = min(RANDOM_BLOCK_BYTES, done + size - start)
                    hbm.write(memoryview(block)[:wanted], address + start)

            async for progress in self._chunks(length, step):
                yield progress

    async def checksum(
        self, card: str, name: str, offset: int, length: int
    ) -> AsyncIterator[Progress]:
        """The last progress carries SHA-256 and CRC-32C."""
        with self._regions.pinned(card, name) as region:
            address, length = _range(region, offset, length)
            hbm = self._hardware.hbm(card)
            sha = hashlib.sha256()
            crc = 0
            buffer = bytearray(min(CHUNK_BYTES, length))

            def step(done: int, size: int) -> None:
                nonlocal crc
                view = memoryview(buffer)[:size]
                hbm.read_into(view, address + done)
                sha.update(view)
                crc = crc32c.crc32c(view, crc)

            async for progress in self._chunks(length, step):
                if progress.is_done:
                    progress = Progress(length, length, sha.hexdigest(), crc)
                yield progress

    async def write(
        self, card: str, name: str, offset: int, length: int, parts: AsyncIterable[bytes]
    ) -> Progress:
        """Host to HBM, in order. Raises Incomplete when the parts end before `length`."""
        with self._regions.pinned(card, name) as region:
            if length == 0:
                raise InvalidRequest("LENGTH_MISSING", "say in the header how many bytes will come")
            address, length = _range(region, offset, length)
            hbm = self._hardware.hbm(card)
            crc = 0
            done = 0

            def step(data: bytes, at: int) -> None:
                nonlocal crc
                hbm.prepare(at, at + len(data), address, address + length)
                hbm.write(data, at)
                crc = crc32c.crc32c(data, crc)

            # One chunk is written while the next arrives; never more.
            writing: asyncio.Future[None] | None = None
            try:
                async for data in parts:
                    if done + len(data) > length:
                        raise OutOfRange(
                            "TOO_MUCH_DATA",
                            f"more data came than the {length} bytes of the header",
                            length=length,
                        )
                    if writing is not None:
                        await writing
                    writing = self._submit(step, data, address + done)
                    done += len(data)
                if writing is not None:
                    await writing
            except OSError as error:
                raise _memory_refused(error) from error
            finally:
                await _finished(writing)
            if done < length:
                raise Incomplete(
                    "STREAM_INCOMPLETE",
                    f"the stream ended after {done} of {length} bytes; those are written",
                    written_bytes=done,
                    length=length,
                )
            return Progress(done, length, crc32c=crc)

    async def read(self, card: str, name: str, offset: int, length: int) -> AsyncIterator[bytes]:
        """HBM to host, in order; one chunk is read ahead."""
        with self._regions.pinned(card, name) as region:
            address, length = _range(region, offset, length)
            hbm = self._hardware.hbm(card)
            reading: asyncio.Future[bytes] | None = None
            try:
                for start in range(0, length, READ_BYTES):
                    data = await reading if reading else None
                    reading = self._submit(
                        hbm.read, address + start, min(READ_BYTES, length - start)
                    )
                    if data is not None:
                        yield data
                if reading is not None:
                    yield await reading
            finally:
                await _finished(reading)

    async def _chunks(
        self, length: int, step: Callable[[int, int], None]
    ) -> AsyncIterator[Progress]:
        done = 0
        work: asyncio.Future[None] | None = None
        try:
            while done < length:
                size = min(CHUNK_BYTES, length - done)
                work = self._submit(step, done, size)
                await asyncio.shield(work)
                done += size
                yield Progress(done, length)
        except OSError as error:
            raise _memory_refused(error) from error
        finally:
            await _finished(work)

    def _submit(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


async def _finished(work: asyncio.Future[Any] | None) -> None:
    """A thread cannot be stopped: the region stays pinned until its chunk is done."""
    if work is not None and not work.done():
        await asyncio.wait([work])


def _range(region: Region, offset: int, length: int) -> tuple[int, int]:
    """HBM address and length of a slice; length 0 is to the end. Raises OutOfRange."""
    if offset >= region.size or offset + length > region.size:
        end = offset + (length or 1)
        raise OutOfRange(
            "BEYOND_REGION",
            f"bytes {offset} to {end} reach beyond {region}, which holds {region.size}"
            f" ({size_text(region.size)})",
            region=region,
            offset=offset,
            length=length,
            size_bytes=region.size,
        )
    return region.address + offset, length or region.size - offset


def _memory_refused(error: OSError) -> Exhausted | Unavailable:
    if error.errno in (errno.ENOSPC, errno.ENOMEM):
        return Exhausted("MEMORY_EXHAUSTED", "this machine has no memory left to back these bytes")
    return Unavailable("HBM_UNREADABLE", f"the HBM memory does not answer: {error}")
