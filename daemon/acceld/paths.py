"""Where sockets and state live, as the system's service and as a user's own daemon."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from accelhw.interface import place

SYSTEM_STATE = Path("/var/lib/acceld")


def _is_system() -> bool:
    """Root, or the service's account under systemd, which then says where to live."""
    return place.is_system() or "RUNTIME_DIRECTORY" in os.environ


def runtime_folder() -> Path:
    """Of the sockets."""
    given = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    return place.SYSTEM_FOLDER if _is_system() else place.user_folder()


def api_socket() -> Path:
    """Of the gRPC API."""
    chosen = os.environ.get("ACCEL_SOCKET", "").removeprefix("unix:")
    return Path(chosen) if chosen else runtime_folder() / "acceld.sock"


def hardware_socket(beside: Path) -> Path:
    """Of the chassis; by default in the same folder as the API's."""
    chosen = os.environ.get("ACCEL_HARDWARE_SOCKET", "")
    return Path(chosen) if chosen else beside.parent / "hardware.sock"


def memory_socket(beside: Path) -> Path:
    """Of the memory broker; beside the API's socket."""
    return beside.parent / "memory.sock"


def state_folder() -> Path:
    """Of the store."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    if _is_system():
        return SYSTEM_STATE
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "acceld"
    try:
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        home = Path(os.environ.get("HOME", "/tmp"))
    return Path(os.environ.get("HOME", home)) / ".local/state/acceld"
