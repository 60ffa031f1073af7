"""The sending side of a card: deals chunks to its ways, and agrees with the far end on the rest."""

from __future__ import annotations

from accelhw.device.hbm import Hbm
from accelhw.device.peers import Peers, card_beyond
from accelhw.device.push import Cut, Push
from accelhw.device.readable import Readable, UnreadableError
from accelhw.device.transfers import CHECKSUM_DETAIL, Transfers, deadline_ms, passive_deadline_ns
from accelhw.device.way import BULK_BYTES, Way
from accelhw.interface.messages import StartTransfer
from accelhw.model.transfer import TransferError, TransferKind
from accelhw.wire.checksum import crc32c
from accelhw.wire.message import Accept, Done, End, Finish, Open, Pull

SOURCE_DETAIL = "the source was changed while it was being sent"


class Sending:
    """Of one card. Ways ask for chunks and tell what became of them."""

    def __init__(self, transfers: Transfers, peers: Peers, hbm: Hbm, readable: Readable) -> None:
        self._transfers = transfers
        self._pushes = transfers.pushes
        self._counters = transfers.counters
        self._peers = peers
        self._hbm = hbm
        self._readable = readable

    def start(self, command: StartTransfer, base: int, deadline_ns: int) -> Push:
        """What this card's driver commanded, from `base` in HBM."""
        push = Push(
            command.transfer_id,
            command.kind,
            self._pushes.new_stream(),
            command.remote_card,
            base,
            command.length,
            deadline_ns,
            command.remote_region_id,
            command.remote_key,
            command.remote_offset,
        )
        self._transfers.add_push(push)
        return push

    # ---- for the ways ----

    def next_cut(self, port: Way, now_ns: int) -> Cut | None:
        """The chunk that this port sends next; transfers take turns, chunk by chunk."""
        turns = self._pushes.turns(card_beyond(port))
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
                self._transfers.jobs.note_link(push.transfer_id, port.name)
                if push.total_bytes >= BULK_BYTES:
                    port.burdened()
                return cut
        return None

    def _readable_chunk(self, push: Push, chunk: int, now_ns: int) -> bool:
        """False: HBM cannot give it, and the transfer has ended for that."""
        try:
            start = push.base + chunk * push.chunk_bytes
            self._readable.check(start, push.chunk_length(chunk))
        except UnreadableError as error:
            self._transfers.fail(
                push.transfer_id, TransferError.HBM_ERROR, str(error), now_ns, True
            )
            self._peers.wake(push.peer)
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
        self._peers.say(
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
                deadline_ms(push),
            ),
        )

    def cut_left(self, cut: Cut, now_ns: int) -> None:
        """The last frame of the chunk was made."""
        self._counters.bus_read_bytes += cut.push.chunk_length(cut.chunk)
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

    def source_changed(self, cut: Cut, now_ns: int) -> None:
        """A frame had to be sent again, and its bytes are not those that left before."""
        push = cut.push
        if self._pushes.get(push.transfer_id) is push:
            self._transfers.fail(
                push.transfer_id, TransferError.CHECKSUM_DIFFERS, SOURCE_DETAIL, now_ns, True
            )

    def port_lost(self, port: Way, now_ns: int) -> None:
        """What had not arrived over it goes again over another way, or later."""
        peer = card_beyond(port)
        linked = bool(self._peers.ways(peer))
        for push in list(self._pushes.values()):
            if push.peer == peer:
                push.port_lost(port)
                if not linked and push.unlinked_since_ns is None:
                    self._transfers.unlink(push.transfer_id, now_ns)
                self._maybe_finish(push)

    # ---- the end of a transfer ----

    def _maybe_finish(self, push: Push) -> None:
        if push.transfer_id not in self._pushes:
            return
        port = push.finishing_port()
        if port is None:
            return
        if push.missing_crc is not None:
            if push not in self._pushes.scans:
                self._pushes.scans.append(push)
            return
        push.finish_port = port
        push.news.clear()
        self._transfers.show_passive(push.transfer_id)
        self._peers.say(port, Finish(push.transfer_id, push.crc))

    def scan(self) -> None:
        """One bounded turn of reading sources for CRCs that an earlier life of this card knew."""
        scans = self._pushes.scans
        if not scans:
            return
        push = scans[0]
        chunk = push.missing_crc
        if chunk is not None:
            start = push.base + chunk * push.chunk_bytes
            push.crcs[chunk] = crc32c(self._hbm.view[start : start + push.chunk_length(chunk)])
        if push.missing_crc is None:
            scans.remove(push)
            self._maybe_finish(push)

    # ---- what the far end says; `push` is the transfer it means, if it is known ----

    def on_pull(self, port: Way, message: Pull, push: Push | None) -> None:
        """Its driver wants to have a range of this card's HBM."""
        if push is not None:
            self._peers.wake(push.peer)
            return
        transfers, name = self._transfers, message.transfer_id
        fault = transfers.windows.remote_fault(
            message.region_id, message.key, message.offset, message.length
        )
        if fault is None and (name in self._pushes or name in transfers.jobs):
            fault = TransferError.TOO_MANY, "another transfer has this id"
        if fault is None:
            fault = transfers.fault_of_one_more()
        if fault is not None:
            self._peers.say(port, End(name, int(fault[0]), fault[1]))
            return
        transfers.add_push(
            Push(
                name,
                int(TransferKind.READ),
                self._pushes.new_stream(),
                card_beyond(port),
                transfers.windows[message.region_id].base + message.offset,
                message.length,
                passive_deadline_ns(message.deadline_ms),
            )
        )
        transfers.windows.hold(name, message.region_id)

    def on_accept(self, port: Way, message: Accept, push: Push | None) -> None:
        """It takes the transfer, and says which chunks it has."""
        if push is None:
            detail = f"{self._transfers.card} does not send this any more"
            self._peers.say(port, End(message.transfer_id, int(TransferError.CANCELLED), detail))
            return
        if push.accepted:
            push.finish_port = None  # the answer to a Finish: chunks are missing after all
        push.accepted = True
        self._transfers.jobs.far_end_answered(push.transfer_id)
        push.reconcile(message.complete)
        self._maybe_finish(push)
        self._peers.wake(push.peer)

    def on_done(self, port: Way, message: Done, push: Push, now_ns: int) -> None:
        """It has all, and this is the checksum of what it has."""
        name = message.transfer_id
        if message.error == TransferError.NONE and push.missing_crc is not None:
            # An earlier life of this card sent it: read the source, then Finish again.
            everything = b"\xff" * -(-push.chunks // 8)
            self.on_accept(port, Accept(name, everything), push)
        elif message.error != TransferError.NONE or message.crc != push.crc:
            error = TransferError.CHECKSUM_DIFFERS
            self._transfers.fail(name, error, CHECKSUM_DETAIL, now_ns, False)
        else:
            self._transfers.done(name, message.crc, now_ns)

    def on_unknown(self, push: Push) -> None:
        """It lost what it knew of the transfer."""
        self._transfers.jobs.far_end_answered(push.transfer_id)
        push.reopen()
        self._peers.wake(push.peer)
