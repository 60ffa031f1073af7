"""accelctl version: of this program, and of the daemon where one answers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from accelctl.options import examples, lone, printed
from accelctl.session import Session
from accelctl.view import View

DISTRIBUTION = "acceld"


def own_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


@examples("accelctl version", "accelctl version -o json")
@printed
def _version(session: Session, view: View) -> None:
    """Print the versions of accelctl and of the daemon."""
    from accel.errors import AccelError

    row: dict[str, Any] = {"name": "accelctl", "version": own_version()}
    try:
        host = session.client.host()
        row |= {"daemon_version": host.version, "socket": session.client.socket}
        daemon = f"acceld {host.version} at {session.client.socket}"
    except AccelError as error:
        daemon = f"acceld: {error.message}"
    view.result(row, f"accelctl {row['version']}\n{daemon}")


cli = lone("version", _version)
