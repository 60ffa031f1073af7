"""Where the daemon listens when nobody says otherwise. It decides by the same rules."""

from __future__ import annotations

import os
from pathlib import Path

RUN = "/run"
SYSTEM_SOCKET = "/run/acceld/acceld.sock"
UID_MAP = Path("/proc/self/uid_map")


def default_socket() -> str:
    """Where the daemon listens: ACCEL_SOCKET, else the system's socket, else the user's own."""
    chosen = os.environ.get("ACCEL_SOCKET")
    if chosen:
        return chosen.removeprefix("unix:")
    if _is_system() or os.path.exists(SYSTEM_SOCKET):
        return SYSTEM_SOCKET
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "acceld" if runtime else Path(f"/tmp/acceld-{_uid_outside()}")
    own = str(folder / "acceld.sock")
    # With no daemon of our own, it says more that the system's is not for us.
    return SYSTEM_SOCKET if _system_is_closed() and not os.path.exists(own) else own


def _is_system() -> bool:
    """Whether we are the system's root. Root of a user namespace alone is still that user."""
    return os.geteuid() == 0 and os.access(RUN, os.W_OK)


def _system_is_closed() -> bool:
    folder = os.path.dirname(SYSTEM_SOCKET)
    return os.path.isdir(folder) and not os.access(folder, os.X_OK)


def _uid_outside() -> int:
    """Our user id as the namespace outside knows it, so that both sides name one folder."""
    uid = os.geteuid()
    try:
        lines = UID_MAP.read_text().splitlines()
    except OSError:
        return uid
    for first, outside, count in (map(int, line.split()) for line in lines):
        if first <= uid < first + count:
            return outside + uid - first
    return uid
