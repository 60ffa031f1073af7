"""The receiving side of a card: answers the far ends that send, and counts what landed."""

from __future__ import annotations

from accelhw.device.peers import Peers, card_beyond
from accelhw.device.push import chunk_bytes_for
from accelhw.device.sink import Landing, Sink
from accelhw.device.transfers import (
    CHECKSUM_DETAIL,
    Fault,
    Transfers,
    deadline_ms,
    passive_deadline_ns,
)
from accelhw.device.way import Way
from accelhw.interface.messages import StartTransfer
from accelhw.model.transfer import TransferError, TransferKind
from accelhw.wire.message import Accept, Done, End, Finish, Open, Pull, Unknown


class Receiving:
    """Of one card."""

    def __init__(self, transfers: Transfers, peers: Peers) -> None:
        self._transfers = transfers
        self._peers = peers

    def start(self, command: StartTransfer, base: int, deadline_ns: int) -> Sink:
        """What this card's driver wants to have from a far card, at `base` in HBM."""
        name, length = command.transfer_id, command.length
        sink = self._transfers.sinks[name] = Sink(
            name, command.kind, command.remote_card, base, length,
            chunk_bytes_for(length), deadline_ns,
        )  # fmt: skip
        return sink

    def ask(self, sink: Sink, port: Way) -> None:
        """Have the far card send what this card's driver wants."""
        command = self._transfers.jobs[sink.transfer_id].command
        self._peers.say(
            port,
            Pull(
                sink.transfer_id,
                command.remote_region_id,
                command.remote_key,
                command.remote_offset,
                sink.total_bytes,
                deadline_ms(sink),
            ),
        )

    # ---- for the ways ----

    def landed_chunk(self, landing: Landing, now_ns: int) -> None:
        """A chunk is whole and every frame of it was checked."""
        sink = landing.sink
        self._transfers.counters.bus_written_bytes += landing.end - landing.chunk * sink.chunk_bytes
        sink.chunk_complete(landing)

    def memory_fault(self, landing: Landing, now_ns: int) -> None:
        """The machine could not back a page of the target."""
        sink = landing.sink
        detail = (
            f"{self._transfers.card} could not store at offset {sink.first_gap_offset} or after"
        )
        self._transfers.fail(sink.transfer_id, TransferError.MEMORY_FAULT, detail, now_ns, True)

    def port_lost(self, port: Way, now_ns: int) -> None:
        """Chunks that were partly here over it come again, from their start."""
        peer = card_beyond(port)
        ways = self._peers.ways(peer)
        for sink in list(self._transfers.sinks.values()):
            if sink.peer == peer:
                sink.drop_landings(port)
                if not ways and sink.unlinked_since_ns is None:
                    self._transfers.unlink(sink.transfer_id, now_ns)
                elif ways and sink.transfer_id in self._transfers.jobs:
                    self.ask(sink, ways[0])  # the request may have been lost with the link

    # ---- what the far end says; `sink` is the transfer it means, if it is known ----

    def on_open(self, port: Way, message: Open, sink: Sink | None) -> None:
        """It wants to send, or to send over this port, too."""
        transfers, name = self._transfers, message.transfer_id
        if message.join:
            if sink is None:
                ended = transfers.ended.get(name)
                self._peers.say(port, ended if ended is not None else Unknown(name))
            else:
                port.streams[message.stream] = sink
                transfers.jobs.note_link(name, port.name)
            return
        ended = transfers.ended.get(name)
        if ended is not None:
            self._peers.say(port, ended)
            return
        if message.kind == TransferKind.READ:
            if sink is None or name not in transfers.jobs or message.length != sink.total_bytes:
                detail = f"{transfers.card} does not ask for this"
                self._peers.say(port, End(name, int(TransferError.CANCELLED), detail))
                return
        else:
            fault = self._open_fault(message, sink)
            if fault is not None:
                self._peers.say(port, End(name, int(fault[0]), fault[1]))
                return
            if sink is None:
                sink = self._admit(port, message)
        sink.unlinked_since_ns = None
        transfers.jobs.far_end_answered(name)
        if sink.chunk_bytes != message.chunk_bytes:
            sink.start(message.chunk_bytes)
        port.streams[message.stream] = sink
        transfers.jobs.note_link(name, port.name)
        self._peers.say(port, Accept(name, sink.bitmap))

    def _open_fault(self, message: Open, sink: Sink | None) -> Fault | None:
        transfers = self._transfers
        fault = transfers.windows.remote_fault(
            message.region_id, message.key, message.offset, message.length
        )
        if fault is not None:
            return fault
        if message.kind != TransferKind.WRITE:
            return TransferError.REMOTE_OUT_OF_RANGE, f"kind {message.kind}"
        if sink is None:
            if message.transfer_id in transfers.sinks or message.transfer_id in transfers.jobs:
                return TransferError.TOO_MANY, "another transfer has this id"
            return transfers.fault_of_one_more()
        base = transfers.windows[message.region_id].base + message.offset
        if sink.kind != message.kind or sink.base != base or sink.total_bytes != message.length:
            return TransferError.REMOTE_OUT_OF_RANGE, "opened before with another range"
        return None

    def _admit(self, port: Way, message: Open) -> Sink:
        """A far card's driver commanded it."""
        transfers, name = self._transfers, message.transfer_id
        sink = transfers.sinks[name] = Sink(
            name,
            message.kind,
            card_beyond(port),
            transfers.windows[message.region_id].base + message.offset,
            message.length,
            message.chunk_bytes,
            passive_deadline_ns(message.deadline_ms),
        )
        transfers.windows.hold(name, message.region_id)
        return sink

    def on_finish(self, port: Way, message: Finish, sink: Sink | None, now_ns: int) -> None:
        """It has sent all, and this is the checksum of what left."""
        transfers, name = self._transfers, message.transfer_id
        if sink is None:
            ended = transfers.ended.get(name)
            self._peers.say(port, ended if ended is not None else Unknown(name))
            return
        if sink.complete_chunks < sink.chunks:
            self._peers.say(port, Accept(name, sink.bitmap))
            return
        crc = sink.crc
        right = crc == message.crc
        error = TransferError.NONE if right else TransferError.CHECKSUM_DIFFERS
        answer = Done(name, int(error), crc)
        transfers.remember(name, answer)
        transfers.show_passive(name)
        self._peers.say(port, answer)
        if right:
            transfers.done(name, crc, now_ns)
        else:
            transfers.fail(name, error, CHECKSUM_DETAIL, now_ns, False)
