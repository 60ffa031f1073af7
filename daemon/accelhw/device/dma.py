"""A card's transfer engine: one-sided WRITE and READ over its ports, LOCAL over its own bus.

The card that sends keeps a Push, the card that receives a Sink; whichever of the two was given the
command by its driver also keeps a Job, which has the state, the clock and the report. Both sides
live through the loss of links, and of the other side: docs/wire.md tells the words they exchange.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from accelhw.device.hbm import Hbm
from accelhw.device.job import Job, Model
from accelhw.device.localcopy import LocalCopy
from accelhw.device.push import Cut, Push, chunk_bytes_for
from accelhw.device.refusal import EngineRefusal
from accelhw.device.sink import Landing, Sink
from accelhw.device.way import BULK_BYTES, Way
from accelhw.device.windows import Windows
from accelhw.interface.messages import StartTransfer, TransferInfo
from accelhw.model.transfer import TransferError, TransferKind, TransferState
from accelhw.wire.checksum import crc32c
from accelhw.wire.message import (
    MAX_ID_BYTES,
    Accept,
    Done,
    End,
    Finish,
    Open,
    Pull,
    TransferMessage,
    Unknown,
    decode_message,
)

PASSIVE_MAX = 1024  # transfers that far cards may have open here
ENDED_KEPT = 1024  # ends remembered, for a far card that did not hear of them
LOCAL_SLICES = 4  # copied in one turn
PASSIVE_GRACE_NS = 5_000_000_000  # past the far card's own deadline


class _Unreadable(Exception):
    """HBM that cannot be read; the message says where and what helps."""


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Of a commanded transfer; `kind` is one of the TRANSFER_ kinds of accelhw.model.event."""

    kind: str
    transfer: TransferInfo


@dataclass(slots=True)
class EngineCounters:
    """Names as in accelhw.interface.tables.CARD."""

    bus_read_bytes: int = 0
    bus_written_bytes: int = 0
    transfers_done: int = 0
    transfers_failed: int = 0


# The first address of a range of HBM that cannot be read, None if all of it can.
BadAddress = Callable[[int, int], int | None]


def _no_bad_address(start: int, length: int) -> int | None:
    return None


def _nothing_else(now_ns: int) -> None:
    pass


def _no_model(kind: int, nbytes: int, ports: tuple[str, ...]) -> tuple[int, int]:
    return 0, 0


class TransferEngine:
    """Per card. Time is handed in: `now_ns` monotonic, `wall_ns()` for stamps.

    The loop: after any call look at `ready` (ports that have something to send: pump them), at
    `take_events()`, and keep `next_deadline_ns`; call `pump` while it returns True.
    """

    def __init__(
        self,
        card: str,
        hbm: Hbm,
        *,
        model: Model = _no_model,
        wall_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        self.card = card
        self.hbm = hbm
        self.counters = EngineCounters()
        self.ready: set[Way] = set()
        self.bad_address: BadAddress = _no_bad_address
        # Hear what others who move data of this card have said until now.
        self.catch_up: Callable[[int], None] = _nothing_else
        self._model = model
        self._wall_ns = wall_ns
        self.windows = Windows(card, hbm.size_bytes)
        self._ports: dict[str, list[Way]] = {}  # by peer card: up
        self._jobs: dict[str, Job] = {}
        self._pushes: dict[str, Push] = {}
        self._turns: dict[str, deque[Push]] = {}  # by peer card: whose chunk is next
        self._sinks: dict[str, Sink] = {}
        self._locals: OrderedDict[str, LocalCopy] = OrderedDict()
        self._scans: deque[Push] = deque()  # whose source must be read for a CRC
        self._ended: OrderedDict[str, Done | End] = OrderedDict()
        self._unsaid: dict[str, list[End]] = {}  # by peer card: for when a link is up
        self._next_stream = 1
        self._events: list[EngineEvent] = []

    # ---- commands ----

    def start(self, command: StartTransfer, now_ns: int) -> None:
        """Raises EngineRefusal: EXISTS, UNKNOWN_REGION, OUT_OF_RANGE, BAD_STATE."""
        name = command.transfer_id
        if not 1 <= len(name.encode()) <= MAX_ID_BYTES:
            raise EngineRefusal("BAD_STATE", f"a transfer id has 1 to {MAX_ID_BYTES} bytes")
        if name in self._jobs or name in self._pushes or name in self._sinks:
            raise EngineRefusal("EXISTS", f"transfer {name} is known here")
        length, offset = command.length, command.local_offset
        local = self.windows.local(command.local_region_id, offset, length)
        if command.remote_offset < 0:
            raise EngineRefusal("OUT_OF_RANGE", f"remote offset {command.remote_offset}")
        base = local.base + offset
        deadline_ns = max(0, int(command.deadline_s * 1e9))
        job = Job(command, self._wall_ns())
        match command.kind:
            case TransferKind.LOCAL:
                self._start_local(command, base)
            case TransferKind.WRITE:
                self._add_push(
                    Push(
                        name,
                        command.kind,
                        self._stream(),
                        command.remote_card,
                        base,
                        length,
                        deadline_ns,
                        command.remote_region_id,
                        command.remote_key,
                        command.remote_offset,
                    )
                )
            case TransferKind.READ:
                self._sinks[name] = Sink(
                    name, command.kind, command.remote_card, base, length,
                    chunk_bytes_for(length), deadline_ns,
                )  # fmt: skip
            case _:
                raise EngineRefusal("BAD_STATE", f"transfer kind {command.kind}")
        self.windows.hold(name, command.local_region_id)
        self._jobs[name] = job
        self._report("TRANSFER_STARTED", name)
        if command.kind == TransferKind.LOCAL:
            job.run(now_ns)
            return
        ports = self._ports.get(command.remote_card, [])
        if ports:
            job.run(now_ns)
        else:
            self._unlink(name, now_ns)
        if ports and command.kind == TransferKind.READ:
            self._ask(self._sinks[name], ports[0])

    def resume(self, command: StartTransfer, now_ns: int) -> None:
        """Go on with a transfer that an earlier life of this engine began. Raises as `start`.

        The far card still knows which chunks are good, so only the rest is sent.
        """
        self.start(command, now_ns)
        self._events = [event for event in self._events if event.kind != "TRANSFER_STARTED"]

    def _start_local(self, command: StartTransfer, base: int) -> None:
        fault = self.windows.remote_fault(
            command.remote_region_id, command.remote_key, command.remote_offset, command.length
        )
        if fault is not None:
            code = {
                TransferError.REMOTE_NO_REGION: "UNKNOWN_REGION",
                TransferError.REMOTE_OUT_OF_RANGE: "OUT_OF_RANGE",
            }.get(fault[0], "BAD_STATE")
            raise EngineRefusal(code, fault[1])
        target = self.windows[command.remote_region_id].base + command.remote_offset
        self._locals[command.transfer_id] = LocalCopy(base, target, command.length)
        self.windows.hold(command.transfer_id, command.remote_region_id)

    def cancel(self, transfer_id: str, now_ns: int) -> None:
        """Ends it here at once and tells the far card. Raises EngineRefusal UNKNOWN_TRANSFER."""
        if not self._active(transfer_id):
            if transfer_id in self._jobs:
                raise EngineRefusal("BAD_STATE", f"transfer {transfer_id} has ended")
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self.card}")
        self._fail(transfer_id, TransferError.CANCELLED, f"cancelled at {self.card}", now_ns, True)

    def acknowledge(self, transfer_id: str) -> None:
        """Forget an ended transfer. Raises EngineRefusal UNKNOWN_TRANSFER or BAD_STATE."""
        job = self._jobs.get(transfer_id)
        if job is None:
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self.card}")
        if not job.state.ended:
            raise EngineRefusal("BAD_STATE", f"transfer {transfer_id} has not ended")
        del self._jobs[transfer_id]

    def reset(self, now_ns: int) -> None:
        """The card was reset: every transfer ends, windows are forgotten; links are not touched.

        The ends stay known: a far card may ask to go on before it hears of them.
        """
        for name in [*self._locals, *self._pushes, *self._sinks]:
            mine = name in self._jobs
            error = TransferError.CARD_RESET if mine else TransferError.REMOTE_RESET
            self._fail(name, error, f"{self.card} was reset", now_ns, True)
        self.windows.clear()

    # ---- reports ----

    def info(self, transfer_id: str, now_ns: int) -> TransferInfo:
        """A snapshot. Raises EngineRefusal UNKNOWN_TRANSFER."""
        if transfer_id not in self._jobs:
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self.card}")
        return self._info(transfer_id, now_ns)

    def infos(self, now_ns: int) -> list[TransferInfo]:
        """Snapshots of all commanded transfers, running and ended-but-unacknowledged."""
        return [self._info(name, now_ns) for name in self._jobs]

    def take_events(self) -> list[EngineEvent]:
        events, self._events = self._events, []
        return events

    @property
    def active(self) -> bool:
        """Whether any transfer is under way here, commanded or passive."""
        return bool(self._pushes or self._sinks or self._locals)

    @property
    def busy(self) -> bool:
        """Whether `pump` has something to do."""
        return bool(self._locals or self._scans)

    def moving_with(self, peer: str) -> int:
        """Transfers under way, commanded or passive, with that card at the far end."""
        return sum(part.peer == peer for part in self._parts())

    def passive_transfers(self) -> int:
        return sum(name not in self._jobs for name in (*self._pushes, *self._sinks))

    def _info(self, name: str, now_ns: int | None = None) -> TransferInfo:
        job = self._jobs[name]
        if not job.state.ended:
            self._measure(name, job)
        return job.info(self._model, now_ns)

    def _measure(self, name: str, job: Job) -> None:
        part = self._pushes.get(name) or self._sinks.get(name)
        if part is not None:
            job.good_bytes = part.good_bytes
            job.first_gap_offset = part.first_gap_offset
            if isinstance(part, Push):
                job.replayed_frames = part.replayed_frames
        elif name in self._locals:
            local = self._locals[name]
            job.good_bytes = local.moved
            job.first_gap_offset = local.first_gap_offset

    def _report(self, kind: str, name: str, now_ns: int | None = None) -> None:
        self._events.append(EngineEvent(kind, self._info(name, now_ns)))

    # ---- states of a transfer ----

    def _active(self, name: str) -> bool:
        return name in self._pushes or name in self._sinks or name in self._locals

    def _parts(self) -> list[Push | Sink]:
        return [*self._pushes.values(), *self._sinks.values()]

    def _stream(self) -> int:
        self._next_stream = (self._next_stream % 0xFFFFFFFF) + 1
        return self._next_stream

    def _add_push(self, push: Push) -> None:
        self._pushes[push.transfer_id] = push
        self._turns.setdefault(push.peer, deque()).append(push)
        self._wake(push.peer)

    def _wake(self, peer: str) -> None:
        self.ready.update(self._ports.get(peer, ()))

    def _unlink(self, name: str, now_ns: int) -> None:
        """No link joins the cards now: the deadline runs."""
        part = self._pushes.get(name) or self._sinks[name]
        part.unlinked_since_ns = now_ns
        job = self._jobs.get(name)
        if job is not None:
            job.wait(now_ns)
            self._report("TRANSFER_WAITING", name)

    def _note_link(self, name: str, port: Way) -> None:
        if name in self._jobs:
            self._jobs[name].note_link(port.name)

    def _drop(self, name: str) -> None:
        """Forget the moving parts of a transfer."""
        push = self._pushes.pop(name, None)
        if push is not None:
            self._turns[push.peer].remove(push)
            if push in self._scans:
                self._scans.remove(push)
            for cut in push.cuts.values():
                cut.port.drop_cut(cut)
            push.cuts.clear()
        sink = self._sinks.pop(name, None)
        if sink is not None:
            sink.drop_landings()
            for port in self._ports.get(sink.peer, ()):
                for stream in [s for s, bound in port.streams.items() if bound is sink]:
                    del port.streams[stream]
        self._locals.pop(name, None)
        self.windows.release(name)

    def _end(self, name: str, state: TransferState, now_ns: int) -> None:
        job = self._jobs.get(name)
        if job is not None:
            self._measure(name, job)
            job.end(state, now_ns, self._wall_ns())
            if state is TransferState.DONE:
                self.counters.transfers_done += 1
            else:
                self.counters.transfers_failed += 1
        self._drop(name)
        if job is not None:
            self._report(f"TRANSFER_{state.name}", name)

    def _fail(self, name: str, error: TransferError, detail: str, now_ns: int, tell: bool) -> None:
        """End without success; `tell` the far card, now or when a link is up again."""
        part = self._pushes.get(name) or self._sinks.get(name)
        job = self._jobs.get(name)
        if job is not None:
            job.error = error
            job.detail = detail
        cancelled = error is TransferError.CANCELLED
        state = TransferState.CANCELLED if cancelled else TransferState.FAILED
        self._end(name, state, now_ns)
        if part is not None and tell:
            end = End(name, int(error), detail)
            if isinstance(part, Sink) and job is None:
                self._remember(name, end)  # another link may open it before it hears of the end
            self._tell(part.peer, end)

    def _done(self, name: str, crc: int, now_ns: int) -> None:
        job = self._jobs.get(name)
        if job is not None:
            job.crc = crc
        self._end(name, TransferState.DONE, now_ns)

    def _remember(self, name: str, answer: Done | End) -> None:
        self._ended[name] = answer
        while len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    # ---- links ----

    def _say(self, port: Way, message: TransferMessage) -> None:
        port.say(message)
        self.ready.add(port)

    def port_up(self, port: Way, now_ns: int) -> None:
        """The port trained; its `peer` says to which card."""
        assert port.peer is not None
        peer = port.peer.card
        self._ports.setdefault(peer, []).append(port)
        for end in self._unsaid.pop(peer, ()):
            self._say(port, end)
        for part in self._parts():
            if part.peer == peer and part.unlinked_since_ns is not None:
                job = self._jobs.get(part.transfer_id)
                if job is not None or isinstance(part, Push):
                    part.unlinked_since_ns = None  # a passive sink's clock stops at the next Open
                if job is not None:
                    job.run(now_ns)
                    self._report("TRANSFER_RESUMED", part.transfer_id, now_ns)
                    if isinstance(part, Sink):
                        self._ask(part, port)
        self.ready.add(port)

    def port_down(self, port: Way, lost: list[bytes], now_ns: int) -> None:
        """What had not arrived over it is sent again over another, or later."""
        assert port.peer is not None
        peer = port.peer.card
        ports = self._ports[peer]
        ports.remove(port)
        self.ready.discard(port)
        for push in list(self._pushes.values()):
            if push.peer == peer:
                push.port_lost(port)
                if not ports and push.unlinked_since_ns is None:
                    self._unlink(push.transfer_id, now_ns)
                self._maybe_finish(push)
        for sink in list(self._sinks.values()):
            if sink.peer == peer:
                sink.drop_landings(port)
                if not ports and sink.unlinked_since_ns is None:
                    self._unlink(sink.transfer_id, now_ns)
                elif ports and sink.transfer_id in self._jobs:
                    self._ask(sink, ports[0])  # the request may have been lost with the link
        for payload in lost:
            message = decode_message(payload)
            if isinstance(message, End):  # all else is said again by what asks for it
                self._tell(peer, message)
        self._wake(peer)

    def _tell(self, peer: str, end: End) -> None:
        ports = self._ports.get(peer)
        if ports:
            self._say(ports[0], end)
        else:
            unsaid = self._unsaid.setdefault(peer, [])
            unsaid.append(end)
            del unsaid[:-ENDED_KEPT]

    def _ask(self, sink: Sink, port: Way) -> None:
        command = self._jobs[sink.transfer_id].command
        self._say(
            port,
            Pull(
                sink.transfer_id,
                command.remote_region_id,
                command.remote_key,
                command.remote_offset,
                sink.total_bytes,
                _milliseconds(sink.deadline_ns),
            ),
        )

    # ---- sending side, for the ports ----

    def next_cut(self, port: Way, now_ns: int) -> Cut | None:
        """The chunk that this port sends next; transfers take turns, chunk by chunk."""
        assert port.peer is not None
        turns = self._turns.get(port.peer.card)
        if not turns:
            return None
        for _ in range(len(turns)):
            push = turns[0]
            turns.rotate(-1)
            if not port.carries(push.total_bytes) or not self._bind(push, port):
                continue
            chunk = push.next_chunk
            if chunk is not None and not self._readable_chunk(push, chunk, now_ns):
                return None
            cut = push.take_chunk(port)
            if cut is not None:
                push.fresh = False
                self._note_link(push.transfer_id, port)
                if push.total_bytes >= BULK_BYTES:
                    port.burdened()
                return cut
        return None

    def _readable_chunk(self, push: Push, chunk: int, now_ns: int) -> bool:
        """False: HBM cannot give it, and the transfer has ended for that."""
        try:
            start = push.base + chunk * push.chunk_bytes
            self._check_readable(start, push.chunk_length(chunk))
        except _Unreadable as error:
            self._fail(push.transfer_id, TransferError.HBM_ERROR, str(error), now_ns, True)
            self._wake(push.peer)
            return False
        return True

    def _bind(self, push: Push, port: Way) -> bool:
        """Whether the port may carry data of this transfer now; says what is needed for it."""
        if push.accepted:
            if port not in push.bound:
                if not push.todo:
                    return False
                self._open(push, port, join=True)
            return True
        if push.opener is None:
            push.opener = port
            self._open(push, port, join=False)
        # One chunk goes unasked, so that a small transfer costs one round trip. Of a large one it
        # would keep the answer waiting, and all other ways with it.
        return push.fresh and push.opener is port and push.total_bytes < BULK_BYTES

    def _open(self, push: Push, port: Way, join: bool) -> None:
        push.bound.add(port)
        if not join:
            push.news.clear()
        self._say(
            port,
            Open(
                push.transfer_id,
                push.kind,
                join,
                push.stream,
                push.region_id,
                push.key,
                push.offset,
                push.total_bytes,
                push.chunk_bytes,
                _milliseconds(push.deadline_ns),
            ),
        )

    def cut_left(self, cut: Cut, now_ns: int) -> None:
        """The last frame of the chunk was made."""
        self.counters.bus_read_bytes += cut.push.chunk_length(cut.chunk)
        cut.push.chunk_left(cut)
        self._maybe_finish(cut.push)

    def cut_arrived(self, cut: Cut, proved: bool, now_ns: int) -> None:
        """The last frame of the chunk was acknowledged; `proved`: and surely stored.

        The far end takes frames of a transfer that it does not know, or no longer, from the link
        without storing them, and says so beside the acknowledgement. Then only its engine can tell.
        """
        push = cut.push
        if proved:
            push.chunk_arrived(cut)
        elif push.accepted and cut.port in push.bound:
            self._open(push, cut.port, join=False)
        self._maybe_finish(push)

    def _maybe_finish(self, push: Push) -> None:
        if push.transfer_id not in self._pushes:
            return
        port = push.finishing_port()
        if port is None:
            return
        if push.missing_crc is not None:
            if push not in self._scans:
                self._scans.append(push)
            return
        push.finish_port = port
        push.news.clear()
        self._say(port, Finish(push.transfer_id, push.crc))

    # ---- receiving side, for the ports ----

    def landed_chunk(self, landing: Landing, now_ns: int) -> None:
        """A chunk is whole and every frame of it was checked."""
        self.counters.bus_written_bytes += landing.end - landing.chunk * landing.sink.chunk_bytes
        landing.sink.chunk_complete(landing)

    def memory_fault(self, landing: Landing, now_ns: int) -> None:
        """The machine could not back a page of the target."""
        sink = landing.sink
        detail = f"{self.card} could not store at offset {sink.first_gap_offset} or after"
        self._fail(sink.transfer_id, TransferError.MEMORY_FAULT, detail, now_ns, True)

    def source_changed(self, cut: Cut, now_ns: int) -> None:
        """A frame had to be sent again, and its bytes are not those that left before."""
        push = cut.push
        if self._pushes.get(push.transfer_id) is push:
            self._fail(
                push.transfer_id, TransferError.CHECKSUM_DIFFERS, _SOURCE_DETAIL, now_ns, True
            )

    # ---- messages ----

    def on_message(self, port: Way, message: TransferMessage, now_ns: int) -> None:
        """A message that came whole and in order over an up port."""
        if isinstance(message, Finish):
            self.catch_up(now_ns)  # chunks that landed over other ways, before this was said
        assert port.peer is not None
        peer = port.peer.card
        name = message.transfer_id
        push = self._pushes.get(name)
        if push is not None and push.peer != peer:
            push = None
        sink = self._sinks.get(name)
        if sink is not None and sink.peer != peer:
            sink = None
        match message:
            case Open():
                self._on_open(port, message, sink)
            case Pull():
                self._on_pull(port, message, push)
            case Accept():
                self._on_accept(port, message, push)
            case Finish():
                self._on_finish(port, message, sink, now_ns)
            case Done() if push is not None:
                if message.error == TransferError.NONE and push.missing_crc is not None:
                    # An earlier life of this card sent it: read the source, then Finish again.
                    everything = b"\xff" * -(-push.chunks // 8)
                    self._on_accept(port, Accept(name, everything), push)
                elif message.error != TransferError.NONE or message.crc != push.crc:
                    error = TransferError.CHECKSUM_DIFFERS
                    self._fail(name, error, _CHECKSUM_DETAIL, now_ns, False)
                else:
                    self._done(name, message.crc, now_ns)
            case Unknown() if push is not None:
                push.reopen()
                self._wake(peer)
            case End() if push is not None or sink is not None:
                error = _error(message.error)
                self._fail(name, error, message.detail, now_ns, False)
            case _:
                pass  # About a transfer that ended here meanwhile.

    def _on_open(self, port: Way, message: Open, sink: Sink | None) -> None:
        name = message.transfer_id
        if message.join:
            if sink is None:
                ended = self._ended.get(name)
                self._say(port, ended if ended is not None else Unknown(name))
            else:
                port.streams[message.stream] = sink
                self._note_link(name, port)
            return
        ended = self._ended.get(name)
        if ended is not None:
            self._say(port, ended)
            return
        if message.kind == TransferKind.READ:
            if sink is None or name not in self._jobs or message.length != sink.total_bytes:
                error = TransferError.CANCELLED
                self._say(port, End(name, int(error), f"{self.card} does not ask for this"))
                return
        else:
            fault = self._open_fault(message, sink)
            if fault is not None:
                self._say(port, End(name, int(fault[0]), fault[1]))
                return
            if sink is None:
                assert port.peer is not None
                window = self.windows[message.region_id]
                sink = self._sinks[name] = Sink(
                    name,
                    message.kind,
                    port.peer.card,
                    window.base + message.offset,
                    message.length,
                    message.chunk_bytes,
                    message.deadline_ms * 1_000_000 + PASSIVE_GRACE_NS,
                )
                self.windows.hold(name, message.region_id)
        sink.unlinked_since_ns = None
        if sink.chunk_bytes != message.chunk_bytes:
            sink.start(message.chunk_bytes)
        port.streams[message.stream] = sink
        self._note_link(name, port)
        self._say(port, Accept(name, sink.bitmap))

    def _on_accept(self, port: Way, message: Accept, push: Push | None) -> None:
        name = message.transfer_id
        if push is None:
            detail = f"{self.card} does not send this any more"
            self._say(port, End(name, int(TransferError.CANCELLED), detail))
            return
        if push.accepted:
            push.finish_port = None  # the answer to a Finish: chunks are missing after all
        push.accepted = True
        push.reconcile(message.complete)
        self._maybe_finish(push)
        self._wake(push.peer)

    def _open_fault(self, message: Open, sink: Sink | None) -> tuple[TransferError, str] | None:
        fault = self.windows.remote_fault(
            message.region_id, message.key, message.offset, message.length
        )
        if fault is not None:
            return fault
        if message.kind != TransferKind.WRITE:
            return TransferError.REMOTE_OUT_OF_RANGE, f"kind {message.kind}"
        if sink is None:
            if message.transfer_id in self._sinks or message.transfer_id in self._jobs:
                return TransferError.TOO_MANY, "another transfer has this id"
            if self.passive_transfers() >= PASSIVE_MAX:
                return TransferError.TOO_MANY, f"{PASSIVE_MAX} transfers are open at {self.card}"
            return None
        base = self.windows[message.region_id].base + message.offset
        if sink.kind != message.kind or sink.base != base or sink.total_bytes != message.length:
            return TransferError.REMOTE_OUT_OF_RANGE, "opened before with another range"
        return None

    def _on_pull(self, port: Way, message: Pull, push: Push | None) -> None:
        if push is not None:
            self._wake(push.peer)
            return
        assert port.peer is not None
        name = message.transfer_id
        fault = self.windows.remote_fault(
            message.region_id, message.key, message.offset, message.length
        )
        if fault is None and (name in self._pushes or name in self._jobs):
            fault = TransferError.TOO_MANY, "another transfer has this id"
        if fault is None and self.passive_transfers() >= PASSIVE_MAX:
            fault = TransferError.TOO_MANY, f"{PASSIVE_MAX} transfers are open at {self.card}"
        if fault is not None:
            self._say(port, End(name, int(fault[0]), fault[1]))
            return
        base = self.windows[message.region_id].base + message.offset
        self._add_push(
            Push(
                name,
                int(TransferKind.READ),
                self._stream(),
                port.peer.card,
                base,
                message.length,
                message.deadline_ms * 1_000_000 + PASSIVE_GRACE_NS,
            )
        )
        self.windows.hold(name, message.region_id)

    def _on_finish(self, port: Way, message: Finish, sink: Sink | None, now_ns: int) -> None:
        name = message.transfer_id
        if sink is None:
            ended = self._ended.get(name)
            self._say(port, ended if ended is not None else Unknown(name))
            return
        if sink.complete_chunks < sink.chunks:
            self._say(port, Accept(name, sink.bitmap))
            return
        crc = sink.crc
        right = crc == message.crc
        error = TransferError.NONE if right else TransferError.CHECKSUM_DIFFERS
        answer = Done(name, int(error), crc)
        self._remember(name, answer)
        self._say(port, answer)
        if right:
            self._done(name, crc, now_ns)
        else:
            self._fail(name, error, _CHECKSUM_DETAIL, now_ns, False)

    # ---- turns and time ----

    def pump(self, now_ns: int) -> bool:
        """Copies inside the card and source checksums: one bounded turn. True: more to do."""
        began_ns = self._wall_ns()
        for _ in range(LOCAL_SLICES):
            if not self._locals:
                break
            name, local = next(iter(self._locals.items()))
            self._locals.move_to_end(name)
            try:
                start, length = local.next_slice
                self._check_readable(local.source + start, length)
                self._count_bus(local.step(self.hbm))
            except _Unreadable as error:
                self._fail(name, TransferError.HBM_ERROR, str(error), now_ns, False)
                continue
            except OSError as error:
                self._fail(name, TransferError.MEMORY_FAULT, str(error), now_ns, False)
                continue
            if local.done:
                # The turn's own time counts: a small copy begins and ends in it.
                self._done(name, local.crc, now_ns + self._wall_ns() - began_ns)
        if self._scans:
            self._scan(self._scans[0])
        return self.busy

    def _count_bus(self, copied_bytes: int) -> None:
        self.counters.bus_read_bytes += copied_bytes
        self.counters.bus_written_bytes += copied_bytes

    def _check_readable(self, start: int, length: int) -> None:
        """Raises _Unreadable."""
        bad = self.bad_address(start, length)
        if bad is not None:
            raise _Unreadable(
                f"an uncorrectable error in the HBM of {self.card} at 0x{bad:x};"
                f" accelctl card reset {self.card} puts a spare row there"
            )

    def _scan(self, push: Push) -> None:
        chunk = push.missing_crc
        if chunk is not None:
            start = push.base + chunk * push.chunk_bytes
            push.crcs[chunk] = crc32c(self.hbm.view[start : start + push.chunk_length(chunk)])
        if push.missing_crc is None:
            self._scans.remove(push)
            self._maybe_finish(push)

    def next_deadline_ns(self) -> int | None:
        """When the first transfer without a link gives up."""
        return min(
            (
                part.unlinked_since_ns + part.deadline_ns
                for part in self._parts()
                if part.unlinked_since_ns is not None
            ),
            default=None,
        )

    def on_deadline(self, now_ns: int) -> None:
        """End the transfers that waited too long for a link."""
        for part in self._parts():
            since_ns = part.unlinked_since_ns
            if since_ns is None or now_ns < since_ns + part.deadline_ns:
                continue
            good, total = part.good_bytes, part.total_bytes
            detail = (
                f"no link from {self.card} to {part.peer} for {part.deadline_ns / 1e9:g} s;"
                f" {good} of {total} bytes are good, the first gap is at {part.first_gap_offset}"
            )
            tell = part.transfer_id in self._jobs
            self._fail(part.transfer_id, TransferError.LINK_DEADLINE, detail, now_ns, tell)


_SOURCE_DETAIL = "the source was changed while it was being sent"
_CHECKSUM_DETAIL = "the bytes that landed are not those that left; did the source change meanwhile?"


def _milliseconds(ns: int) -> int:
    return min(ns // 1_000_000, 0xFFFFFFFF)


def _error(code: int) -> TransferError:
    """The far end's word, or CARD_LOST for one that we do not know."""
    try:
        return TransferError(code)
    except ValueError:
        return TransferError.CARD_LOST
