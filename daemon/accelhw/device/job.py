"""A transfer that a card's driver commanded: its state, its clock and its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accelhw.device.localcopy import LocalCopy
from accelhw.device.push import Push
from accelhw.device.sink import Sink
from accelhw.interface.messages import StartTransfer, TransferInfo
from accelhw.model.transfer import TransferError, TransferState

# (modelled ns, modelled PCIe ns) of a TransferKind, so many bytes, over these ports.
Model = Callable[[int, int, tuple[str, ...]], tuple[int, int]]
Part = Push | Sink | LocalCopy  # what moves the bytes


@dataclass(slots=True)
class Job:
    command: StartTransfer
    started_ns: int  # wall clock
    part: Part | None  # until the end
    state: TransferState = TransferState.QUEUED
    running_since_ns: int | None = None
    ran_ns: int = 0
    ended_ns: int = 0  # wall clock
    links: tuple[str, ...] = ()
    good_bytes: int = 0
    first_gap_offset: int = 0
    replayed_frames: int = 0
    crc: int | None = None
    error: TransferError = TransferError.NONE
    detail: str = ""

    def run(self, now_ns: int) -> None:
        self.state = TransferState.RUNNING
        self.running_since_ns = now_ns

    def wait(self, now_ns: int) -> None:
        """For a link."""
        self._stop_clock(now_ns)
        self.state = TransferState.WAITING

    def end(self, state: TransferState, now_ns: int, wall_ns: int) -> None:
        self._measure()
        self.part = None
        self._stop_clock(now_ns)
        self.state = state
        self.ended_ns = wall_ns
        if state is TransferState.DONE:
            self.good_bytes = self.first_gap_offset = self.command.length

    def _measure(self) -> None:
        """Take over how far the bytes are."""
        part = self.part
        if part is None:
            return
        self.good_bytes = part.good_bytes
        self.first_gap_offset = part.first_gap_offset
        if isinstance(part, Push):
            self.replayed_frames = part.replayed_frames

    def _stop_clock(self, now_ns: int) -> None:
        if self.running_since_ns is not None:
            self.ran_ns += now_ns - self.running_since_ns
            self.running_since_ns = None

    def note_link(self, port: str) -> None:
        if port not in self.links:
            self.links = (*self.links, port)

    def info(self, model: Model, now_ns: int | None = None) -> TransferInfo:
        """As the device interface tells it. Without a time, up to when the clock last stopped."""
        self._measure()
        ran_ns = self.ran_ns
        if self.running_since_ns is not None and now_ns is not None:
            ran_ns += now_ns - self.running_since_ns
        command = self.command
        modelled_ns, pcie_ns = model(command.kind, command.length, self.links)
        return TransferInfo(
            transfer_id=command.transfer_id,
            kind=int(command.kind),
            state=int(self.state),
            local_card=command.local_card,
            remote_card=command.remote_card,
            total_bytes=command.length,
            good_bytes=self.good_bytes,
            first_gap_offset=self.first_gap_offset,
            links=self.links,
            started_ns=self.started_ns,
            ended_ns=self.ended_ns,
            wall_ns=ran_ns,
            modelled_ns=modelled_ns,
            modelled_pcie_ns=pcie_ns,
            crc32c=self.crc,
            replayed_frames=self.replayed_frames,
            error=int(self.error),
            error_detail=self.detail,
        )
