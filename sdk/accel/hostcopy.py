"""Bytes between descriptors of this host and HBM, with bounded memory.

On the daemon's own host the HBM is mapped: the daemon's broker hands out its descriptor and no
byte passes through the daemon. Elsewhere, or where that is refused, the bytes are streamed.
The CRC-32C is taken while a chunk is still in the processor's cache.
"""

from __future__ import annotations

import array
import errno
import os
import secrets
import socket as sockets
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from crc32c import crc32c

from accel.address import RegionAddress
from accel.errors import (
    AccelError,
    Denied,
    InvalidRequest,
    LocalError,
    SourceShrank,
    Unsupported,
    WrongState,
)
from accel.v1 import memory_pb2
from accel.wire import Wire

CHUNK_BYTES = 512 * 1024  # fits the second-level cache, so reading, summing and writing share it
STREAM_BYTES = 1024 * 1024  # of one message
BROKER_TIMEOUT_S = 5.0

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class HostCopy:
    """What a copy between host and HBM did."""

    total_bytes: int
    wall_s: float
    crc32c: int
    mapped: bool  # HBM was written in place; otherwise the bytes went through the daemon

    @property
    def wall_gbyte_per_s(self) -> float:
        return self.total_bytes / self.wall_s / 1e9 if self.wall_s > 0 else 0.0


@dataclass(slots=True)
class MappedRegion:
    """An own descriptor of a card's HBM, and where the region lies in it."""

    descriptor: int
    base: int  # byte address in HBM where the copy begins

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)


def map_region(
    wire: Wire, stub: Any, request: Any, place: RegionAddress, length: int
) -> MappedRegion | None:
    """The region's HBM in place, or None where only streaming will do."""
    try:
        answer = wire.call(stub.MapRegion, request)
    except (Unsupported, Denied):
        return None  # Streaming asks for rights again and says so.
    except WrongState as error:
        if error.reason in ("MAP_UNAVAILABLE", "NOT_MAPPABLE"):
            return None
        raise
    if place.offset + length > answer.size_bytes:
        raise InvalidRequest(
            f"{length} bytes at offset {place.offset} do not fit into {place.card}:{place.region}, "
            f"which holds {answer.size_bytes}",
            reason="OUT_OF_RANGE",
        )
    try:
        descriptor = fetch_descriptor(answer.socket_path, answer.token)
    except OSError:
        return None  # The broker is out of reach, in another mount namespace perhaps.
    return MappedRegion(descriptor, answer.address + place.offset)


def fetch_descriptor(path: str, token: str) -> int:
    """Shows the token to the broker and takes the descriptor it sends."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as broker:
        broker.settimeout(BROKER_TIMEOUT_S)
        broker.connect(path)
        broker.sendall(token.encode() + b"\n")
        fds = array.array("i")
        _, ancillary, _, _ = broker.recvmsg(256, sockets.CMSG_SPACE(fds.itemsize))
    for level, kind, data in ancillary:
        if level == sockets.SOL_SOCKET and kind == sockets.SCM_RIGHTS:
            fds.frombytes(data[: fds.itemsize])
            os.set_inheritable(fds[0], False)
            return fds[0]
    raise ConnectionError("the broker sent no descriptor")


def upload_mapped(
    descriptor: int, target: MappedRegion, length: int, progress: Progress | None, label: str
) -> HostCopy:
    started = time.perf_counter()
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(length, 1))))
    done, crc = 0, 0
    while done < length:
        chunk = _read_some(descriptor, buffer, done, length, label)
        crc = crc32c(chunk, crc)
        _write_hbm(target.descriptor, chunk, target.base + done)
        done += len(chunk)
        if progress is not None:
            progress(done, length)
    return HostCopy(length, time.perf_counter() - started, crc, True)


def download_mapped(
    source: MappedRegion, descriptor: int, length: int, progress: Progress | None, label: str
) -> HostCopy:
    started = time.perf_counter()
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(length, 1))))
    done, crc = 0, 0
    while done < length:
        count = os.preadv(
            source.descriptor, [buffer[: min(len(buffer), length - done)]], source.base + done
        )
        if count == 0:
            raise WrongState("the HBM ended before the region did", reason="OUT_OF_RANGE")
        crc = crc32c(buffer[:count], crc)
        _write_all(descriptor, buffer[:count], label)
        done += count
        if progress is not None:
            progress(done, length)
    return HostCopy(length, time.perf_counter() - started, crc, True)


def upload_streamed(
    wire: Wire,
    stub: Any,
    descriptor: int,
    place: RegionAddress,
    length: int,
    progress: Progress | None,
    label: str,
) -> HostCopy:
    started = time.perf_counter()
    failure: list[Exception] = []
    sent_crc = 0

    def requests() -> Iterator[Any]:
        # Runs on a thread of grpc, which would swallow an error: keep it for the caller.
        nonlocal sent_crc
        yield memory_pb2.WriteRegionRequest(
            header=memory_pb2.WriteRegionRequest.Header(
                name=place.name, offset=place.offset, length=length
            )
        )
        buffer = memoryview(bytearray(STREAM_BYTES))
        done = 0
        while done < length:
            try:
                chunk = _read_some(descriptor, buffer, done, length, label)
            except Exception as error:
                failure.append(error)
                return
            sent_crc = crc32c(chunk, sent_crc)
            yield memory_pb2.WriteRegionRequest(data=bytes(chunk))
            done += len(chunk)
            if progress is not None:
                progress(done, length)

    with wire.translated():
        call = stub.WriteRegion.future(requests())
        try:
            answer = call.result()
        except wire.rpc_error:
            if failure:
                raise failure[0] from None
            raise
        finally:
            call.cancel()
    if failure:
        raise failure[0]
    if answer.written_bytes != length or answer.crc32c != sent_crc:
        raise AccelError(f"{place}: what arrived is not what was sent", reason="CHECKSUM_DIFFERS")
    return HostCopy(length, time.perf_counter() - started, sent_crc, False)


def download_streamed(
    wire: Wire,
    stub: Any,
    place: RegionAddress,
    descriptor: int,
    length: int,
    progress: Progress | None,
    label: str,
) -> HostCopy:
    started = time.perf_counter()
    done, crc = 0, 0
    request = memory_pb2.ReadRegionRequest(name=place.name, offset=place.offset, length=length)
    for part in wire.stream(stub.ReadRegion, request):
        crc = crc32c(part.data, crc)
        _write_all(descriptor, memoryview(part.data), label)
        done += len(part.data)
        if progress is not None:
            progress(done, length)
    if done != length:
        raise AccelError(f"{place}: the daemon sent {done} of {length} bytes", reason="INCOMPLETE")
    return HostCopy(length, time.perf_counter() - started, crc, False)


def _read_some(
    descriptor: int, buffer: memoryview, done: int, length: int, label: str
) -> memoryview:
    try:
        count = os.readv(descriptor, [buffer[: min(len(buffer), length - done)]])
    except OSError as error:
        raise local_error(error, label, "read") from None
    if count == 0:
        raise SourceShrank(
            f"{label} ended after {done} of {length} bytes; did it shrink while it was read?",
            reason="SOURCE_SHRANK",
        )
    return buffer[:count]


def _write_hbm(descriptor: int, chunk: memoryview, position: int) -> None:
    while chunk:
        try:
            count = os.pwrite(descriptor, chunk, position)
        except OSError as error:
            raise local_error(error, "the card's HBM", "write") from None
        chunk, position = chunk[count:], position + count


def _write_all(descriptor: int, chunk: memoryview, label: str) -> None:
    while chunk:
        try:
            count = os.write(descriptor, chunk)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise local_error(error, label, "write") from None
        chunk = chunk[count:]


REFUSALS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.ENOMEM: "this machine has no memory left to back it",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "you have no right to",
    errno.EPERM: "you have no right to",
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of its path is not a folder",
    errno.EISDIR: "it is a folder",
}


def local_error(error: OSError, what: str, verb: str) -> LocalError:
    number = error.errno or 0
    why = REFUSALS.get(number, os.strerror(number).lower())
    if number == errno.ENOENT and verb == "write":
        why = "there is no such folder"
    return LocalError(f"cannot {verb} {what}: {why}", number)


# O_NONBLOCK: a named pipe that nobody writes to must not hold us; it is refused below.
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class open_source:
    """A file to read: a regular one, with the size it has now."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._descriptor = os.open(self.path, FLAGS)
        except OSError as error:
            raise local_error(error, self.path, "read") from None
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            folder = stat.S_ISDIR(status.st_mode)
            raise LocalError(
                f"cannot read {self.path}: it is "
                + ("a folder" if folder else "not a regular file; use - and a pipe"),
                errno.EISDIR if folder else errno.EINVAL,
            )
        self.size = status.st_size
        if self.size == 0:
            unsized = bool(os.read(self._descriptor, 1))  # as in /proc
            os.close(self._descriptor)
            why = (
                "does not tell its size; use - and a pipe"
                if unsized
                else "is empty; a region holds at least one byte"
            )
            raise InvalidRequest(f"{self.path} {why}", reason="EMPTY_SOURCE")

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)


class open_target:
    """A file to write: whole at the end of a clean `with`, untouched after any other.

    The bytes go to a temporary file beside it, which is renamed. A device or a pipe is written
    directly: there is nothing to rename.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(os.fspath(path))
        self._temporary = ""
        try:
            status = os.stat(self.path)
        except OSError:
            mode, exists = 0o666, False
        else:
            mode, exists = stat.S_IMODE(status.st_mode), True
            if stat.S_ISDIR(status.st_mode):
                raise LocalError(f"cannot write {path}: it is a folder", errno.EISDIR)
        try:
            if exists and not stat.S_ISREG(status.st_mode):
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
                return
            folder, name = os.path.split(self.path)
            temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(4)}.part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(temporary, flags, mode)
            self._temporary = temporary
        except OSError as error:
            raise local_error(error, os.fspath(path), "write") from None

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            os.close(self._descriptor)  # Some file systems tell of a full disk only here.
            if self._temporary and error is None:
                os.replace(self._temporary, self.path)
                self._temporary = ""
        except OSError as failure:
            raise local_error(failure, self.path, "write") from None
        finally:
            if self._temporary:
                os.unlink(self._temporary)
