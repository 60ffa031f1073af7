"""What a port needs around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from accelhw.link.events import Report
from accelhw.model.event import Severity

if TYPE_CHECKING:
    from accelhw.device.port import Port


class Surroundings(Protocol):
    """A card in a worker, or a test's stand-in."""

    def tell(
        self, port: Port, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        """An event for the journal."""

    def show_step(self, port: Port, step: Report) -> None:
        """A step of training, for whoever watches."""

    def changed(self, port: Port) -> None:
        """Status rows are out of date."""
