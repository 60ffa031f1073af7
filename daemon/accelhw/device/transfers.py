"""All transfers of a card, commanded and passive: what moves their bytes, and how each ends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from accelhw.device.enginecounters import EngineCounters
from accelhw.device.job import Model
from accelhw.device.jobs import Jobs
from accelhw.device.localcopy import LocalCopy
from accelhw.device.peers import Peers
from accelhw.device.push import Push
from accelhw.device.pushes import Pushes
from accelhw.device.sink import Sink
from accelhw.device.windows import Windows
from accelhw.model.transfer import TransferError, TransferState
from accelhw.wire.message import Done, End

PASSIVE_MAX = 1024  # transfers that far cards may have open here
ENDED_KEPT = 1024  # ends remembered, for a far card that did not hear of them
PASSIVE_GRACE_NS = 5_000_000_000  # past the far card's own deadline
CHECKSUM_DETAIL = "the bytes that landed are not those that left; did the source change meanwhile?"

Fault = tuple[TransferError, str]


def passive_deadline_ns(deadline_ms: int) -> int:
    """Of a transfer whose far card gives up after `deadline_ms`."""
    return deadline_ms * 1_000_000 + PASSIVE_GRACE_NS


def deadline_ms(part: Push | Sink) -> int:
    """As it travels in a message."""
    return min(part.deadline_ns // 1_000_000, 0xFFFFFFFF)


def _shown_by_itself() -> None:
    pass


class Transfers:
    """A transfer has a Push, a Sink or a LocalCopy here for as long as it is under way."""

    def __init__(
        self, card: str, hbm_bytes: int, peers: Peers, model: Model, wall_ns: Callable[[], int]
    ) -> None:
        self.card = card
        self.counters = EngineCounters()
        self.windows = Windows(card, hbm_bytes)
        self.jobs = Jobs(card, model, wall_ns)
        self.pushes = Pushes()
        self.sinks: dict[str, Sink] = {}
        self.locals: OrderedDict[str, LocalCopy] = OrderedDict()
        self.ended: OrderedDict[str, Done | End] = OrderedDict()  # of far cards, by transfer id
        # Have what was counted seen by all; `show_passive` says when.
        self.show_counts: Callable[[], None] = _shown_by_itself
        self._peers = peers

    # ---- under way ----

    @property
    def active(self) -> bool:
        """Whether any is under way here, commanded or passive."""
        return bool(self.pushes or self.sinks or self.locals)

    def moves(self, name: str) -> bool:
        """Whether this one is under way."""
        return name in self.pushes or name in self.sinks or name in self.locals

    def show_passive(self, name: str) -> None:
        """Before a far card is told what lets it tell its driver that all is done. Of what this
        card's own driver commanded, the report itself shows it."""
        if name not in self.jobs:
            self.show_counts()

    def parts(self) -> list[Push | Sink]:
        """Of those with a far end."""
        return [*self.pushes.values(), *self.sinks.values()]

    def moving_with(self, peer: str) -> int:
        """How many are under way, commanded or passive, with that card at the far end."""
        return sum(part.peer == peer for part in self.parts())

    def standing(self, part: Push | Sink) -> tuple[int, int]:
        """Its good bytes and its first gap, as far as they are known."""
        job = self.jobs.get(part.transfer_id)
        if job is None:
            return part.good_bytes, part.first_gap_offset
        job.measure()
        return job.good_bytes, job.first_gap_offset

    def fault_of_one_more(self) -> Fault | None:
        """Why a far card may not open another; None if it may."""
        passive = sum(name not in self.jobs for name in (*self.pushes, *self.sinks))
        if passive >= PASSIVE_MAX:
            return TransferError.TOO_MANY, f"{PASSIVE_MAX} transfers are open at {self.card}"
        return None

    def add_push(self, push: Push) -> None:
        self.pushes.add(push)
        self._peers.wake(push.peer)

    def unlink(self, name: str, now_ns: int) -> None:
        """No link joins the cards now: the deadline runs."""
        part = self.pushes.get(name) or self.sinks[name]
        part.unlinked_since_ns = now_ns
        job = self.jobs.get(name)
        if job is not None:
            job.wait()
            self.jobs.report("TRANSFER_WAITING", name, now_ns)

    # ---- ends ----

    def done(self, name: str, crc: int, now_ns: int) -> None:
        job = self.jobs.get(name)
        if job is not None:
            job.crc = crc
        self._end(name, TransferState.DONE, now_ns)

    def fail(self, name: str, error: TransferError, detail: str, now_ns: int, tell: bool) -> None:
        """End without success; `tell` the far card, now or when a link is up again."""
        part = self.pushes.get(name) or self.sinks.get(name)
        job = self.jobs.get(name)
        if job is not None:
            job.error = error
            job.detail = detail
        cancelled = error is TransferError.CANCELLED
        state = TransferState.CANCELLED if cancelled else TransferState.FAILED
        self._end(name, state, now_ns)
        if part is not None and tell:
            end = End(name, int(error), detail)
            if isinstance(part, Sink) and job is None:
                self.remember(name, end)  # another link may open it before it hears of the end
            self._peers.tell(part.peer, end)

    def remember(self, name: str, answer: Done | End) -> None:
        """What a far card is told that asks to go on with what has ended."""
        self.ended[name] = answer
        while len(self.ended) > ENDED_KEPT:
            self.ended.popitem(last=False)

    def _end(self, name: str, state: TransferState, now_ns: int) -> None:
        job = self.jobs.get(name)
        if job is not None:
            job.end(state, now_ns)
        self._drop(name)
        if job is not None:
            self.jobs.report(f"TRANSFER_{state.name}", name, now_ns)

    def _drop(self, name: str) -> None:
        """Forget the moving parts of a transfer."""
        self.pushes.drop(name)
        sink = self.sinks.pop(name, None)
        if sink is not None:
            sink.drop_landings()
            for way in self._peers.ways(sink.peer):
                for stream in [s for s, bound in way.streams.items() if bound is sink]:
                    del way.streams[stream]
        self.locals.pop(name, None)
        self.windows.release(name)
