"""Frames through a TAP device, that a virtual machine, a container or a bridge picks up."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelhw.transport.direct import no_room
from accelhw.wire.frame import HEADER_BYTES, MAX_MTU

if TYPE_CHECKING:
    from typing_extensions import Buffer

QUEUE_FRAMES = 500  # a TAP device's default transmit queue, in frames
_TUNSETIFF = 0x400454CA
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_SCRATCH_BYTES = 1 << 17


def open_tap(name: str) -> int:
    """A descriptor on the TAP device, made if it is absent. Needs CAP_NET_ADMIN; raises OSError."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    except OSError:
        os.close(fd)
        raise
    return fd


class TapTransport:
    """One end of a fibre on a TAP device. Takes over `fd` from open_tap.

    A TAP device cannot be peeked at, so a frame is read into scratch first and copied once more
    by the kernel, which reports memory that it cannot back instead of ending the process.
    """

    __slots__ = (
        "_fd",
        "_frame",
        "_scratch",
        "_scratch_fd",
        "mtu",
        "peeked_bytes",
        "receive_frames",
    )

    def __init__(self, fd: int, mtu: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self.mtu = min(mtu, MAX_MTU)
        self.receive_frames = QUEUE_FRAMES // 4
        self.peeked_bytes = 0
        self._frame = False
        self._scratch_fd = os.memfd_create("accel-tap-scratch", os.MFD_CLOEXEC)
        os.ftruncate(self._scratch_fd, _SCRATCH_BYTES)
        self._scratch = memoryview(mmap.mmap(self._scratch_fd, _SCRATCH_BYTES))

    def fileno(self) -> int:
        return self._fd

    def send(self, parts: Sequence[Buffer]) -> bool:
        try:
            os.writev(self._fd, parts)
        except OSError as error:
            return not no_room(error)
        return True

    def peek(self) -> memoryview | None:
        if not self._frame:
            try:
                self.peeked_bytes = os.readv(self._fd, [self._scratch])
            except OSError as error:
                no_room(error)
                return None
            self._frame = True
        return self._scratch[: min(HEADER_BYTES, self.peeked_bytes)]

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        self._frame = False
        copied = os.preadv(self._scratch_fd, parts, 0)
        if copied < min(self.peeked_bytes, sum(map(len, parts))):
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return self.peeked_bytes

    def discard(self) -> None:
        self._frame = False

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._scratch_fd)
