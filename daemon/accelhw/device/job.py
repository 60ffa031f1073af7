"""A transfer that a card's driver commanded: its state, its clock and its report.

It may begin in one life of a worker and end in another; there is one clock for all of it.
"""

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
    begun_ns: int
    started_ns: int  # wall clock, at `begun_ns`
    part: Part | None  # until the end
    state: TransferState = TransferState.QUEUED
    ended_ns: int | None = None
    links: tuple[str, ...] = ()
    good_bytes: int = 0
    first_gap_offset: int = 0
    replayed_frames: int = 0
    crc: int | None = None
    error: TransferError = TransferError.NONE
    detail: str = ""
    earlier: TransferInfo | None = None  # as an earlier life of the worker left it
    vouched: bool = False  # what that life proved good counts until it is known afresh

    @classmethod
    def resumed(cls, command: StartTransfer, part: Part, earlier: TransferInfo) -> Job:
        """What an earlier life began."""
        return cls(
            command,
            earlier.begun_ns,
            earlier.started_ns,
            part,
            links=tuple(earlier.links),
            earlier=earlier,
            vouched=True,
        )

    def run(self) -> None:
        self.state = TransferState.RUNNING

    def wait(self) -> None:
        """For a link."""
        self.state = TransferState.WAITING

    def end(self, state: TransferState, now_ns: int) -> None:
        self.measure()
        self.part = None
        self.state = state
        self.ended_ns = now_ns
        if state is TransferState.DONE:
            self.good_bytes = self.first_gap_offset = self.command.length

    def far_end_answered(self) -> None:
        """It told what it has, or what it has is written anew: that is the truth from now on."""
        self.vouched = False

    def measure(self) -> None:
        """Take over how far the bytes are."""
        part, earlier = self.part, self.earlier
        if part is None:
            return
        self.good_bytes = part.good_bytes
        self.first_gap_offset = part.first_gap_offset
        self.replayed_frames = part.replayed_frames if isinstance(part, Push) else 0
        if earlier is not None:
            self.replayed_frames += earlier.replayed_frames
            if self.vouched:
                self.good_bytes = max(self.good_bytes, earlier.good_bytes)
                self.first_gap_offset = max(self.first_gap_offset, earlier.first_gap_offset)

    def note_link(self, port: str) -> None:
        if port not in self.links:
            self.links = (*self.links, port)

    def info(self, model: Model, now_ns: int) -> TransferInfo:
        """As the device interface tells it."""
        self.measure()
        command, has_ended = self.command, self.ended_ns is not None
        wall_ns = (now_ns if self.ended_ns is None else self.ended_ns) - self.begun_ns
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
            # One clock: what is read off the wall differs by as much as was measured.
            ended_ns=self.started_ns + wall_ns if has_ended else 0,
            wall_ns=wall_ns,
            begun_ns=self.begun_ns,
            modelled_ns=modelled_ns,
            modelled_pcie_ns=pcie_ns,
            crc32c=self.crc,
            replayed_frames=self.replayed_frames,
            error=int(self.error),
            error_detail=self.detail,
        )
