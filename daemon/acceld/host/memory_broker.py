"""Hands out HBM descriptors to clients on this host, so that bytes need no daemon in between.

The protocol, on a Unix stream socket: the client sends the token that MapRegion gave it and a
newline. The answer is one byte `+` with one descriptor (SCM_RIGHTS) of the card's whole
HBM, or a sentence that begins with `-`; then the daemon closes. A token works once, for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from acceld.host.hbm import Hbm

log = structlog.get_logger()

TOKEN_CHARS = 32
TOKEN_LIFE_S = 60.0
TOKENS_MAX = 4096
ANSWER_S = 5.0
CLIENTS_MAX = 64


@dataclass(frozen=True, slots=True)
class Grant:
    hbm: Hbm
    writable: bool
    expires_s: float  # on the loop's clock


class MemoryBroker:
    def __init__(self, path: Path, now_s: Callable[[], float] | None = None) -> None:
        self.path = path
        self._grants: dict[str, Grant] = {}
        self._listener: socket.socket | None = None
        self._now_s = now_s
        self._clients = asyncio.Semaphore(CLIENTS_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    def grant(self, hbm: Hbm, writable: bool) -> str:
        """A token that fetches a descriptor of this memory once."""
        now = self._now()
        for token in [t for t, g in self._grants.items() if g.expires_s <= now]:
            del self._grants[token]
        while len(self._grants) >= TOKENS_MAX:
            del self._grants[next(iter(self._grants))]
        token = secrets.token_hex(TOKEN_CHARS // 2)
        self._grants[token] = Grant(hbm, writable, now + TOKEN_LIFE_S)
        return token

    def forget_all(self) -> None:
        """The chassis is gone: what tokens name is gone with it."""
        self._grants.clear()

    def take_over(self, listener: socket.socket) -> None:
        """A bound, listening socket at `path`."""
        listener.setblocking(False)
        self._listener = listener

    async def run(self) -> None:
        assert self._listener is not None
        loop = asyncio.get_running_loop()
        while True:
            await self._clients.acquire()
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                self._clients.release()
                log.warning("memory_client_not_accepted", error=str(error))
                await asyncio.sleep(1)  # Too many open files: what helps is time.
                continue
            except asyncio.CancelledError:
                self._clients.release()
                raise
            task = asyncio.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._listener is not None:
            self._listener.close()

    async def _serve(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError, TimeoutError):
                client.setblocking(False)
                async with asyncio.timeout(ANSWER_S):
                    token = await self._read_token(client)
                    grant = self._grants.pop(token, None)
                    if grant is None or grant.expires_s <= self._now():
                        await asyncio.get_running_loop().sock_sendall(
                            client, b"-this token is unknown, used or too old; ask MapRegion again"
                        )
                        return
                    fd = grant.hbm.reopened(grant.writable)
                    try:
                        socket.send_fds(client, [b"+"], [fd])
                    finally:
                        os.close(fd)
        finally:
            self._clients.release()

    async def _read_token(self, client: socket.socket) -> str:
        data = b""
        while b"\n" not in data and len(data) <= TOKEN_CHARS:
            piece = await asyncio.get_running_loop().sock_recv(client, TOKEN_CHARS + 1)
            if not piece:
                break
            data += piece
        return data.partition(b"\n")[0].decode("ascii", "replace")

    def _now(self) -> float:
        return self._now_s() if self._now_s else asyncio.get_running_loop().time()
