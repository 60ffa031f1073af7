"""sd_notify: tell the service manager how far we are. Without one it does nothing."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send e.g. `READY=1` to $NOTIFY_SOCKET (systemd, sd_notify(3)). Never fails the caller."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
    ):
        sock.sendto(state.encode(), address)
