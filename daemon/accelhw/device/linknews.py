"""What the journal hears of a port's link: each turn it takes, why, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelhw.device.surroundings import Surroundings
from accelhw.link.events import LinkDown, LinkResumed, LinkUp
from accelhw.model.event import Severity
from accelhw.model.link import DownReason, LinkMode, ranges

if TYPE_CHECKING:
    from accelhw.device.port import Port

# Reasons for a link's end that somebody asked for.
QUIET = frozenset(
    {
        DownReason.ADMIN_DOWN, DownReason.RETRAIN_COMMANDED, DownReason.TEST, DownReason.PEER_TEST,
    }
)  # fmt: skip


class LinkNews:
    """Of one port. Call it when the turn was taken."""

    def __init__(self, port: Port, around: Surroundings) -> None:
        self._port = port
        self._around = around
        self._width = 0  # at the last change
        self._mode: LinkMode | None = None  # when it was last up

    def training(self) -> None:
        peer = self._port.trainer.peer
        self._tell("LINK_TRAINING", Severity.INFO, f"training with {peer}", peer=str(peer))

    def failed(self) -> None:
        self._tell_why("LINK_FAILED", Severity.ERROR, "training failed")

    def damped(self) -> None:
        self._tell_why("LINK_DAMPED", Severity.ERROR, "held down")

    def up(self, link: LinkUp) -> None:
        trainer = self._port.trainer
        self._width = link.width
        took_ms = round(trainer.training_ns / 1e6, 1)
        self._tell(
            "LINK_UP",
            Severity.WARNING if link.degraded else Severity.INFO,
            f"up with {link.width} of {self._port.optics.lanes} lanes to {link.peer}"
            f" after {took_ms:g} ms",
            peer=str(link.peer),
            width_lanes=link.width,
            epoch=link.epoch,
            training_ms=took_ms,
            mode=str(trainer.mode),
        )
        self._tell_mode()

    def _tell_mode(self) -> None:
        """After a fallback, or the way back from one."""
        trainer = self._port.trainer
        before, self._mode = self._mode, trainer.mode
        own = trainer.config.modes[0]
        if self._mode == (own if before is None else before):
            return
        what = f"runs with {self._mode.words}"
        if before is not None:
            what += f", with {before.words} before"
        severity = Severity.INFO if self._mode == own else Severity.WARNING
        self._tell_why("LINK_MODE_CHANGED", severity, what, mode=str(self._mode))

    def resumed(self, resumed: LinkResumed) -> None:
        link = resumed.link
        before, self._width = self._width, link.width
        held_ms = round(resumed.held_ns / 1e6, 1)
        if link.width != before:
            severity = Severity.WARNING if link.degraded else Severity.INFO
            what = f"goes on with {link.width} of {self._port.trainer.config.data_lanes} lanes"
            self._tell_why("LINK_WIDTH_CHANGED", severity, what, width_lanes=link.width)
        else:
            self._tell(
                "LINK_RECOVERED", Severity.WARNING, f"recovered; data waited {held_ms:g} ms",
                held_ms=held_ms,
            )  # fmt: skip

    def down(self, link: LinkDown) -> None:
        severity = Severity.INFO if link.reason.code in QUIET else Severity.WARNING
        self._tell_why("LINK_DOWN", severity, "down")

    def _tell_why(
        self, kind: str, severity: Severity, what: str, **detail: str | int | float
    ) -> None:
        """Why, where there is a reason, and what to do."""
        reason = self._port.trainer.reason
        if not reason.code:
            self._tell(kind, severity, what, **detail)
            return
        message = f"{what}: {reason}"
        detail["reason"] = reason.code.name
        if reason.blamed.bit_count() > 1:
            detail["lanes"] = ranges(reason.blamed)
        if reason.lane is not None:
            detail["lane"] = reason.lane
        if reason.detail:
            message += f" ({reason.detail})"
        if action := reason.next_action(str(self._port.id), self._port.interface):
            message += f"; {action.removeprefix('none: ')}"
            detail["next_action"] = action
        self._tell(kind, severity, message, **detail)

    def _tell(
        self, kind: str, severity: Severity, message: str, **detail: str | int | float
    ) -> None:
        self._around.tell(self._port, kind, severity, message, **detail)
