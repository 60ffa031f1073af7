"""A card's transfer engine: one-sided WRITE and READ over its ports, LOCAL over its own bus.

The card that sends keeps a Push (`sending`), the card that receives a Sink (`receiving`); whichever
of the two was given the command by its driver also keeps a Job, which has the state, the clock and
the report. Both sides live through the loss of links, and of the other side: docs/wire.md tells the
words they exchange.
"""

from __future__ import annotations

from collections.abc import Callable

from accelhw.device.copying import Copying
from accelhw.device.hbm import Hbm
from accelhw.device.job import Model, Part
from accelhw.device.peers import Peers, card_beyond
from accelhw.device.push import Push
from accelhw.device.readable import Readable
from accelhw.device.receiving import Receiving
from accelhw.device.refusal import EngineRefusal
from accelhw.device.sending import Sending
from accelhw.device.sink import Sink
from accelhw.device.transfers import Transfers
from accelhw.device.way import Way
from accelhw.interface.messages import StartTransfer, TransferInfo
from accelhw.model.transfer import TransferError, TransferKind
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


def _nothing_else(now_ns: int) -> None:
    pass


def _no_model(kind: int, nbytes: int, ports: tuple[str, ...]) -> tuple[int, int]:
    return 0, 0


class TransferEngine:
    """Per card. Time is handed in: `now_ns` monotonic, `wall_ns()` for stamps.

    The loop: after any call look at `ready` (ports that have something to send: pump them), at
    `jobs.take_events()`, and keep `next_deadline_ns`; call `pump` while it returns True.
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
        self.readable = Readable(card)
        # Hear what others who move data of this card have said until now.
        self.catch_up: Callable[[int], None] = _nothing_else
        self._peers = Peers()
        self.ready = self._peers.ready
        self.transfers = Transfers(card, hbm.size_bytes, self._peers, model, wall_ns)
        self.jobs = self.transfers.jobs
        self.windows = self.transfers.windows
        self.counters = self.transfers.counters
        self._copying = Copying(self.transfers, hbm, self.readable, wall_ns)
        self._sending = Sending(self.transfers, self._peers, hbm, self.readable)
        self._receiving = Receiving(self.transfers, self._peers)
        # What ports say of chunks goes straight to the side that it is for.
        self.next_cut = self._sending.next_cut
        self.cut_left = self._sending.cut_left
        self.cut_arrived = self._sending.cut_arrived
        self.source_changed = self._sending.source_changed
        self.landed_chunk = self._receiving.landed_chunk
        self.memory_fault = self._receiving.memory_fault

    # ---- commands ----

    def start(self, command: StartTransfer, now_ns: int) -> None:
        """Raises EngineRefusal: EXISTS, UNKNOWN_REGION, OUT_OF_RANGE, BAD_STATE."""
        self._begin(command, None, now_ns)

    def resume(self, command: StartTransfer, earlier: TransferInfo, now_ns: int) -> None:
        """Go on with a transfer that an earlier life of this engine began; `earlier` is how far
        it was told to be, and since when. Raises as `start`.

        The far card of a WRITE still knows which chunks are good, so only the rest is sent.
        """
        self._begin(command, earlier if earlier.started_ns else None, now_ns)

    def _begin(self, command: StartTransfer, earlier: TransferInfo | None, now_ns: int) -> None:
        transfers, name = self.transfers, command.transfer_id
        if not 1 <= len(name.encode()) <= MAX_ID_BYTES:
            raise EngineRefusal("BAD_STATE", f"a transfer id has 1 to {MAX_ID_BYTES} bytes")
        if name in self.jobs or name in transfers.pushes or name in transfers.sinks:
            raise EngineRefusal("EXISTS", f"transfer {name} is known here")
        offset = command.local_offset
        local = self.windows.local(command.local_region_id, offset, command.length)
        if command.remote_offset < 0:
            raise EngineRefusal("OUT_OF_RANGE", f"remote offset {command.remote_offset}")
        part = self._make_part(command, local.base + offset)
        self.windows.hold(name, command.local_region_id)
        if earlier is None:
            job = self.jobs.begin(command, part, now_ns)
        else:
            job = self.jobs.resume(command, part, earlier)
            if isinstance(part, Push) and earlier.good_bytes:
                part.fresh = False  # nothing goes unasked that may be there
        if command.kind == TransferKind.LOCAL:
            job.run()
            return
        ways = self._peers.ways(command.remote_card)
        if not ways:
            transfers.unlink(name, now_ns)
            return
        job.run()
        if isinstance(part, Sink):
            self._receiving.ask(part, ways[0])

    def _make_part(self, command: StartTransfer, base: int) -> Part:
        """What moves the bytes, from or to `base` in HBM."""
        deadline_ns = max(0, int(command.deadline_s * 1e9))
        match command.kind:
            case TransferKind.LOCAL:
                return self._copying.start(command, base)
            case TransferKind.WRITE:
                return self._sending.start(command, base, deadline_ns)
            case TransferKind.READ:
                return self._receiving.start(command, base, deadline_ns)
            case _:
                raise EngineRefusal("BAD_STATE", f"transfer kind {command.kind}")

    def cancel(self, transfer_id: str, now_ns: int) -> None:
        """Ends it here at once and tells the far card. Raises EngineRefusal UNKNOWN_TRANSFER."""
        if not self.transfers.moves(transfer_id):
            if transfer_id in self.jobs:
                raise EngineRefusal("BAD_STATE", f"transfer {transfer_id} has ended")
            raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {transfer_id} on {self.card}")
        detail = f"cancelled at {self.card}"
        self.transfers.fail(transfer_id, TransferError.CANCELLED, detail, now_ns, True)

    def reset(self, now_ns: int) -> None:
        """The card was reset: every transfer ends, windows are forgotten; links are not touched.

        The ends stay known: a far card may ask to go on before it hears of them.
        """
        transfers = self.transfers
        for name in [*transfers.locals, *transfers.pushes, *transfers.sinks]:
            mine = name in self.jobs
            error = TransferError.CARD_RESET if mine else TransferError.REMOTE_RESET
            transfers.fail(name, error, f"{self.card} was reset", now_ns, True)
        self.windows.clear()

    # ---- links ----

    def port_up(self, port: Way, now_ns: int) -> None:
        """The port trained; its `peer` says to which card."""
        peer = card_beyond(port)
        self._peers.add(port)
        for part in self.transfers.parts():
            if part.peer == peer and part.unlinked_since_ns is not None:
                job = self.jobs.get(part.transfer_id)
                if job is not None or isinstance(part, Push):
                    part.unlinked_since_ns = None  # a passive sink's clock stops at the next Open
                if job is not None:
                    job.run()
                    self.jobs.report("TRANSFER_RESUMED", part.transfer_id, now_ns)
                    if isinstance(part, Sink):
                        self._receiving.ask(part, port)
        self.ready.add(port)

    def port_down(self, port: Way, lost: list[bytes], now_ns: int) -> None:
        """What had not arrived over it is sent again over another, or later."""
        peer = card_beyond(port)
        self._peers.remove(port)
        self._sending.port_lost(port, now_ns)
        self._receiving.port_lost(port, now_ns)
        for payload in lost:
            message = decode_message(payload)
            if isinstance(message, End):  # all else is said again by what asks for it
                self._peers.tell(peer, message)
        self._peers.wake(peer)

    def on_message(self, port: Way, message: TransferMessage, now_ns: int) -> None:
        """A message that came whole and in order over an up port."""
        if isinstance(message, Finish):
            self.catch_up(now_ns)  # chunks that landed over other ways, before this was said
        peer = card_beyond(port)
        name = message.transfer_id
        push = self.transfers.pushes.get(name)
        if push is not None and push.peer != peer:
            push = None
        sink = self.transfers.sinks.get(name)
        if sink is not None and sink.peer != peer:
            sink = None
        match message:
            case Open():
                self._receiving.on_open(port, message, sink)
            case Pull():
                self._sending.on_pull(port, message, push)
            case Accept():
                self._sending.on_accept(port, message, push)
            case Finish():
                self._receiving.on_finish(port, message, sink, now_ns)
            case Done() if push is not None:
                self._sending.on_done(port, message, push, now_ns)
            case Unknown() if push is not None:
                self._sending.on_unknown(push)
            case End() if push is not None or sink is not None:
                error = _error(message.error)
                self.transfers.fail(name, error, message.detail, now_ns, False)
            case _:
                pass  # About a transfer that ended here meanwhile.

    # ---- turns and time ----

    @property
    def busy(self) -> bool:
        """Whether `pump` has something to do."""
        return bool(self.transfers.locals or self.transfers.pushes.scans)

    def pump(self, now_ns: int) -> bool:
        """Copies inside the card and source checksums: one bounded turn. True: more to do."""
        self._copying.pump(now_ns)
        self._sending.scan()
        return self.busy

    def next_deadline_ns(self) -> int | None:
        """When the first transfer without a link gives up."""
        return min(
            (
                part.unlinked_since_ns + part.deadline_ns
                for part in self.transfers.parts()
                if part.unlinked_since_ns is not None
            ),
            default=None,
        )

    def on_deadline(self, now_ns: int) -> None:
        """End the transfers that waited too long for a link."""
        for part in self.transfers.parts():
            since_ns = part.unlinked_since_ns
            if since_ns is None or now_ns < since_ns + part.deadline_ns:
                continue
            (good, gap), total = self.transfers.standing(part), part.total_bytes
            detail = (
                f"no link from {self.card} to {part.peer} for {part.deadline_ns / 1e9:g} s;"
                f" {good} of {total} bytes are good, the first gap is at {gap}"
            )
            tell = part.transfer_id in self.jobs
            error = TransferError.LINK_DEADLINE
            self.transfers.fail(part.transfer_id, error, detail, now_ns, tell)


def _error(code: int) -> TransferError:
    """The far end's word, or CARD_LOST for one that we do not know."""
    try:
        return TransferError(code)
    except ValueError:
        return TransferError.CARD_LOST
