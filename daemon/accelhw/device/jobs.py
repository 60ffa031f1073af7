"""The transfers that a card's driver commanded, and what it is told of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accelhw.device.job import Job, Model, Part
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.messages import StartTransfer, TransferInfo


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Of a commanded transfer; `kind` is one of the TRANSFER_ kinds of accelhw.model.event."""

    kind: str
    transfer: TransferInfo


class Jobs:
    """By transfer id, from the command until its driver acknowledged the end."""

    def __init__(self, card: str, model: Model, wall_ns: Callable[[], int]) -> None:
        self._card = card
        self._model = model
        self._wall_ns = wall_ns
        self._jobs: dict[str, Job] = {}
        self._events: list[EngineEvent] = []

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    def __getitem__(self, name: str) -> Job:
        """Raises KeyError."""
        return self._jobs[name]

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def begin(self, command: StartTransfer, part: Part, now_ns: int) -> Job:
        job = self._jobs[command.transfer_id] = Job(command, now_ns, self._wall_ns(), part)
        self.report("TRANSFER_STARTED", command.transfer_id, now_ns)
        return job

    def resume(self, command: StartTransfer, part: Part, earlier: TransferInfo) -> Job:
        """Of one that an earlier life of the worker began, and told."""
        job = self._jobs[command.transfer_id] = Job.resumed(command, part, earlier)
        return job

    def acknowledge(self, transfer_id: str) -> None:
        """Forget an ended transfer. Raises EngineRefusal UNKNOWN_TRANSFER or BAD_STATE."""
        job = self._jobs.get(transfer_id)
        if job is None:
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self._card}")
        if not job.state.ended:
            raise EngineRefusal("BAD_STATE", f"transfer {transfer_id} has not ended")
        del self._jobs[transfer_id]

    def note_link(self, name: str, port: str) -> None:
        """A transfer, perhaps of a far card's driver, moves over the port."""
        if name in self._jobs:
            self._jobs[name].note_link(port)

    def far_end_answered(self, name: str) -> None:
        """What is good of the transfer, perhaps of a far card's driver, is known afresh."""
        if name in self._jobs:
            self._jobs[name].far_end_answered()

    # ---- reports ----

    def info(self, transfer_id: str, now_ns: int) -> TransferInfo:
        """A snapshot. Raises EngineRefusal UNKNOWN_TRANSFER."""
        if transfer_id not in self._jobs:
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self._card}")
        return self._jobs[transfer_id].info(self._model, now_ns)

    def infos(self, now_ns: int) -> list[TransferInfo]:
        """Snapshots of all, running and ended-but-unacknowledged."""
        return [job.info(self._model, now_ns) for job in self._jobs.values()]

    def report(self, kind: str, name: str, now_ns: int) -> None:
        self._events.append(EngineEvent(kind, self._jobs[name].info(self._model, now_ns)))

    def take_events(self) -> list[EngineEvent]:
        events, self._events = self._events, []
        return events
