"""Tell the service manager how we are: the sd_notify protocol, one datagram a message."""

from __future__ import annotations

import os
import socket


class Notifier:
    """Silent when no service manager listens."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address if address is not None else os.environ.get("NOTIFY_SOCKET", "")

    def __call__(self, **fields: str) -> None:
        """`notify(READY="1", STATUS="2 cards")`."""
        if not self._address:
            return
        name = self._address
        if name.startswith("@"):
            name = "\0" + name[1:]
        text = "\n".join(f"{key}={value}" for key, value in fields.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.connect(name)
                sock.send(text.encode())
        except OSError:
            # The manager went away or its queue is full; it will notice by itself.
            return


def watchdog_interval_s() -> float | None:
    """Half of what the service manager allows between two beats; None when it does not watch."""
    text = os.environ.get("WATCHDOG_USEC", "")
    if not text.isdigit() or int(text) == 0:
        return None
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(text) / 2e6
