"""The folder of the sockets where nobody says otherwise: the system's, or a user's own.

`accel.place` tells programs the same; they import nothing of the daemon.
"""

from __future__ import annotations

import os
from pathlib import Path

RUN = Path("/run")
SYSTEM_FOLDER = RUN / "acceld"
UID_MAP = Path("/proc/self/uid_map")


def is_system() -> bool:
    """Whether we are the system's root. Root of a user namespace alone is still that user."""
    return os.geteuid() == 0 and os.access(RUN, os.W_OK)


def user_folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "acceld" if runtime else Path(f"/tmp/acceld-{uid_outside()}")


def uid_outside() -> int:
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
