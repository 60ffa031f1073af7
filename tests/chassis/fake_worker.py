"""A worker without cards inside: it answers as control.py asks, and dies on request.

`ResetCard` ends it, as a card would that takes its worker down; `TrainPort` answers BAD_STATE.
"""

import os
import select
import signal
import sys
import time

from accelhw.chassis.control import WorkerEvent, WorkerReady, WorkerStart, worker_channel
from accelhw.interface.channel import ChannelClosed
from accelhw.interface.messages import (
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


def main() -> None:
    channel = worker_channel(int(sys.argv[1]))
    try:
        while True:
            select.select([channel], [channel] if channel.wants_write else [], [])
            channel.flush()
            for message in channel.receive():
                handle(channel, message)
    except ChannelClosed:
        return


def handle(channel, message) -> None:
    match message:
        case WorkerStart(cards=cards):
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
                good = resumed.progress.good_bytes
                event = WorkerEvent("TRANSFER_RESUMED", 1, "x", "goes on", {"good": good})
                channel.send(event)
                done = info(resumed.command, TransferState.DONE, resumed.command.length)
                channel.send(TransferProgress(done))
        case ResetCard():
            os.kill(os.getpid(), signal.SIGKILL)
        case TrainPort():
            channel.send(Completion(message.id, "BAD_STATE", "fake"))
        case StartTransfer():
            channel.send(Completion(message.id))
            half = info(message, TransferState.RUNNING, message.length // 2)
            channel.send(TransferProgress(half))
        case _:
            channel.send(Completion(message.id))


main()
