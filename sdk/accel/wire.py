"""The gRPC channel to the daemon, and the few ways the nouns use it."""

from __future__ import annotations

import os
import socket as sockets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accel.errors import AccelError, Denied, TimedOut, Unreachable, from_rpc
from accel.span import LONGEST_S

PAGE_SIZE = 500
RECONNECT_FIRST_S = 0.05
RECONNECT_LAST_S = 1.0
CLOSE_S = 1.0
BACKOFF_MS_MAX = 2**31 - 1  # an option of grpc is a C int; 24 days
CONNECT_SLACK_S = 1.0  # a call gives up before its connection does
KNOCKS_S = (0.05, 0.2, 0.5)  # pauses before a daemon that is there is asked again


class Wire:
    """One channel on one Unix socket. Every error leaves as an AccelError."""

    def __init__(self, path: str, timeout_s: float) -> None:
        import grpc

        self.path = path
        self.timeout_s = timeout_s = min(timeout_s, LONGEST_S)
        self.monotonic: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], None] = time.sleep
        self.rpc_error = grpc.RpcError
        self._streams: set[Any] = set()  # calls that somebody may still be reading
        self.channel: Any = grpc.insecure_channel(
            f"unix:{path}",
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", 50),
                # Also how long a connection may take, 0.1 s else: a busy daemon is no lost one.
                ("grpc.min_reconnect_backoff_ms", _backoff_ms(timeout_s)),
                ("grpc.max_reconnect_backoff_ms", 1000),
                # Two clients of one process must not share the fate of one connection.
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.enable_http_proxy", 0),
            ],
        )

    def close(self) -> None:
        for call in list(self._streams):
            call.cancel()
        # A Ctrl-C that hit grpc while it was making a call leaves one that never ends, and closing
        # waits for it. Nothing is lost by leaving: the process ends, or the daemon sees it go.
        closing = threading.Thread(target=self.channel.close, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def call(self, method: Any, request: Any, timeout_s: float | None = None) -> Any:
        """One unary call."""
        limit_s = self.timeout_s if timeout_s is None else min(timeout_s, LONGEST_S)
        with self.translated(limit_s):
            for pause_s in KNOCKS_S:
                try:
                    return method(request, timeout=limit_s)
                except self.rpc_error as error:
                    if not self._never_left(error):
                        raise
                self.sleep(pause_s)
            return method(request, timeout=limit_s)

    def _never_left(self, error: Any) -> bool:
        """Whether a call failed before it was sent, though somebody listens.

        A busy daemon's queue of connections may be full for a moment, which looks like nobody.
        """
        return "failed to connect" in (error.details() or "") and self.probe() is None

    def stream(self, method: Any, request: Any) -> Iterator[Any]:
        """The messages of a server stream; leaving the loop early cancels the call."""
        with self.translated():
            call = method(request)
            self._streams.add(call)
            try:
                yield from call
            finally:
                self._streams.discard(call)
                call.cancel()

    def pages(self, method: Any, request: Any, field: str) -> Iterator[Any]:
        """Every item of a list method, page after page."""
        request.page_size = request.page_size or PAGE_SIZE
        while True:
            page = self.call(method, request)
            yield from getattr(page, field)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    @contextmanager
    def translated(self, limit_s: float | None = None) -> Iterator[None]:
        """`limit_s` is the time that the caller gave the daemon, if it gave one."""
        try:
            yield
        except self.rpc_error as error:
            raise self._explain(from_rpc(error), limit_s) from None

    def _explain(self, error: AccelError, limit_s: float | None) -> AccelError:
        """Says why nobody answers: asked only after a failure, so it costs nothing otherwise."""
        if isinstance(error, TimedOut) and not error.reason and limit_s is not None:
            return self.probe() or TimedOut(
                f"the daemon at {self.path} did not answer within {limit_s:g} s",
                reason="NO_ANSWER",
                metadata={"socket": self.path},
            )
        if not isinstance(error, Unreachable) or error.reason:
            return error
        return self.probe() or Unreachable(
            f"the daemon at {self.path} went away; is it restarting?",
            reason="DAEMON_UNREACHABLE",
            metadata={"socket": self.path},
        )

    def probe(self) -> AccelError | None:
        """What the socket itself says; None when something listens there."""
        metadata = {"socket": self.path}
        try:
            with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                probe.connect(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return Unreachable(
                f"no daemon at {self.path}; start one with 'acceld serve --config FILE', "
                "or name another with ACCEL_SOCKET",
                reason="DAEMON_UNREACHABLE",
                metadata=metadata,
            )
        except PermissionError:
            return Denied(
                f"you may not use {self.path}; it belongs to {_owner(self.path)}",
                reason="SOCKET_DENIED",
                metadata=metadata,
            )
        except OSError as error:
            return Unreachable(
                f"nobody answers at {self.path} ({os.strerror(error.errno or 0).lower()}); "
                "is acceld running?",
                reason="DAEMON_UNREACHABLE",
                metadata=metadata,
            )
        return None


def _backoff_ms(timeout_s: float) -> int:
    return min(int(1000 * (timeout_s + CONNECT_SLACK_S)), BACKOFF_MS_MAX)


def _owner(path: str) -> str:
    """The user and group that may use a socket, for a sentence."""
    import grp
    import pwd

    try:
        try:
            status = os.stat(path)
        except PermissionError:
            status = os.stat(os.path.dirname(path))  # Its folder is closed to us already.
        return (
            f"user {pwd.getpwuid(status.st_uid).pw_name}, "
            f"group {grp.getgrgid(status.st_gid).gr_name}"
        )
    except (OSError, KeyError):
        return "another user"


class Patience:
    """How long to go on asking a daemon that went away: bounded, with growing pauses."""

    def __init__(self, wire: Wire, limit_s: float) -> None:
        self._wire = wire
        self._limit_s = limit_s
        self.restart()

    @property
    def waiting(self) -> bool:
        """Whether the daemon is away at the moment."""
        return self._deadline is not None

    def restart(self) -> None:
        """The daemon answered."""
        self._deadline: float | None = None
        self._pause_s = RECONNECT_FIRST_S

    def wait(self) -> bool:
        """Pauses before the next try; False when the time is over."""
        now = self._wire.monotonic()
        if self._deadline is None:
            self._deadline = now + self._limit_s
        if now >= self._deadline:
            return False
        self._wire.sleep(min(self._pause_s, self._deadline - now))
        self._pause_s = min(self._pause_s * 2, RECONNECT_LAST_S)
        return True
