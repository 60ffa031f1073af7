"""A worker without cards inside: it answers as control.py asks, and dies on request.

`ResetCard` ends it, as a card would that takes its worker down; `TrainPort` answers BAD_STATE.
`ClearFlags` has it ask for the sockets of two virtual channels, and tell what it got.
"""

import os
import select
import signal
import socket
import sys
import time

import msgspec

from accelhw.chassis.control import (
    SocketsWanted,
    TransferStep,
    WorkerEvent,
    WorkerReady,
    WorkerStart,
    worker_channel,
)
from accelhw.interface.channel import ChannelClosed
from accelhw.interface.messages import (
    ClearFlags,
    Completion,
    ResetCard,
    StartTransfer,
    TrainPort,
    TransferInfo,
    TransferProgress,
)
from accelhw.model.transfer import TransferState


def info(command: StartTransfer, state: TransferState, good: int) -> TransferInfo:
    return TransferInfo(
        command.transfer_id,
        command.kind,
        int(state),
        command.local_card,
        command.remote_card,
        command.length,
        good_bytes=good,
        first_gap_offset=good,
        links=(f"{command.local_card}/oe0",),
        started_ns=time.time_ns(),
        wall_ns=1000,
        replayed_frames=3,
    )


SOCKETS = []  # the way that they come, once it is known


def main() -> None:
    channel = worker_channel(int(sys.argv[1]))
    try:
        while True:
            ready = readable(channel)
            channel.flush()
            if SOCKETS and SOCKETS[0].fileno() in ready:
                take_sockets(channel)
            if channel.fileno() not in ready:
                continue
            for message in channel.receive():
                handle(channel, message)
    except ChannelClosed:
        return


def readable(channel) -> set[int]:
    """What can be read, once anything can be done. Descriptors may be too large for select()."""
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN | (select.POLLOUT if channel.wants_write else 0))
    for each in SOCKETS:
        poll.register(each.fileno(), select.POLLIN)
    return {fd for fd, happened in poll.poll() if happened & ~select.POLLOUT}


def take_sockets(channel) -> None:
    name, fds, _, _ = socket.recv_fds(SOCKETS[0], 256, 8)
    if not name:
        SOCKETS.clear()
        return
    interfaces = " ".join(socket.socket(fileno=fd).getsockname()[0] for fd in fds)
    channel.send(WorkerEvent("GOT", 1, name.decode(), "sockets", {"interfaces": interfaces}))


def handle(channel, message) -> None:
    match message:
        case WorkerStart(cards=cards):
            assert set(message.cpus) >= os.sched_getaffinity(0)  # a worker may be kept to some
            SOCKETS.append(socket.socket(fileno=message.sockets_fd))
            for card in cards:
                assert os.fstat(card.hbm_fd).st_size == card.hbm_bytes
                for port in card.ports:
                    if port.fibre is not None:
                        os.fstat(port.fd)
                up = " ".join(f"{p.oe}" for p in card.ports if p.admin_up)
                first = card.channel_map[0].signal_line
                windows = " ".join(str(w.region_id) for w in card.windows)
                detail = {"up": up, "channel0": first, "windows": windows, "life": message.life}
                channel.send(WorkerEvent("TOLD", 1, card.name, "what I was told", detail))
            channel.send(WorkerReady())
            for resumed in message.transfers:
                channel.send(TransferStep("TRANSFER_WAITING", resumed.progress))
                whole, wall_ns = resumed.command.length, 2_578_000_000
                done = msgspec.structs.replace(
                    resumed.progress, state=4, good_bytes=whole, wall_ns=wall_ns
                )
                channel.send(TransferStep("TRANSFER_DONE", done))
                channel.send(TransferStep("TRANSFER_DONE", done))  # as if it had died in between
        case ResetCard():
            os.kill(os.getpid(), signal.SIGKILL)
        case ClearFlags():
            channel.send(SocketsWanted(message.card, message.oe, 2))
            channel.send(Completion(message.id))
        case TrainPort():
            channel.send(Completion(message.id, "BAD_STATE", "fake"))
        case StartTransfer():
            channel.send(Completion(message.id))
            half = info(message, TransferState.RUNNING, message.length // 2)
            channel.send(TransferProgress(half))
        case _:
            channel.send(Completion(message.id))


main()
