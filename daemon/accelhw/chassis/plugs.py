"""Where workers get the sockets from that they ask for while they run."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence

from accelhw.model.ids import PortId


class Plugs:
    """The chassis' end of a way for descriptors to each worker."""

    def __init__(self) -> None:
        self._ends: dict[int, socket.socket] = {}

    def renew(self, worker: int) -> int:
        """For a new life of the worker: the descriptor that it inherits; the caller's."""
        self.close(worker)
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        self._ends[worker] = near
        return far.detach()

    def give(self, worker: int, port: PortId, fds: Sequence[int]) -> None:
        """Hand the sockets of a port's channels over; a worker that is gone needs none."""
        end = self._ends.get(worker)
        if end is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(end, [str(port).encode()], fds)
        for fd in fds:
            os.close(fd)

    def close(self, worker: int) -> None:
        end = self._ends.pop(worker, None)
        if end is not None:
            end.close()

    def close_all(self) -> None:
        for worker in list(self._ends):
            self.close(worker)
