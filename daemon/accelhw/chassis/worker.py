"""A worker: the insides of some cards, run by one loop. Started by the chassis, ends with it."""

from __future__ import annotations

import gc
import select
import signal
import socket
import sys
from collections.abc import Sequence
from time import monotonic_ns, time_ns

from accelhw.chassis.cardrunner import CardRunner
from accelhw.chassis.control import (
    NO_FD,
    GivesUp,
    SocketsWanted,
    ToWorker,
    WorkerReady,
    WorkerStart,
    worker_channel,
)
from accelhw.chassis.loop import Loop
from accelhw.chassis.movers import Movers
from accelhw.chassis.process import die_with_parent, sleep_exactly
from accelhw.chassis.shared import Shared
from accelhw.chassis.voice import Voice
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelTransfer,
    ClearFault,
    Completion,
    Message,
    StartTransfer,
)
from accelhw.interface.tables import Tables
from accelhw.model.ids import PortId
from accelhw.optics.banks import Banks
from accelhw.wire.frame import CHANNELS_MAX

TICK_NS = 1_000_000_000  # of the worker: optics, heat and counters of all its lanes
PROGRESS_NS = 100_000_000
PORT_NAME_BYTES = 256


class Worker:
    """All cards of this process."""

    def __init__(self, start: WorkerStart, channel: LoopChannel[ToWorker]) -> None:
        self._loop = Loop()
        self._channel = channel
        self._voice = Voice(self._loop, channel)
        tables = Tables.attach(start.tables_fd, start.table_rows, writable=True)
        self._row = tables.worker[start.worker]
        self._movers = Movers(self._loop, start.cpus, start.seed, self._want_sockets)
        self._sockets: socket.socket | None = None
        if start.sockets_fd != NO_FD:
            self._sockets = socket.socket(fileno=start.sockets_fd)
            self._loop.add_reader(start.sockets_fd, self._on_sockets)
        self._banks = Banks(
            (card.profile for card in start.cards), start.seed, time_ns() - monotonic_ns()
        )
        shared = Shared(
            start.chassis_id, start.seed, self._loop, self._voice, tables, self._movers, self._banks
        )
        self._cards = {
            card.name: CardRunner(shared, card, index, self._watch_progress)
            for index, card in enumerate(start.cards)
        }
        self._movers.know({name: runner.card.memory.hbm for name, runner in self._cards.items()})
        self._transfers: dict[str, CardRunner] = {}
        self._progress_armed = False
        self._ticked = False
        self._loop.add_reader(channel.fileno(), self._on_control)
        now_ns = monotonic_ns()
        for resumed in start.transfers:
            runner = self._cards.get(resumed.command.local_card)
            if runner is not None:
                self._transfers[resumed.command.transfer_id] = runner
                runner.resume_transfer(resumed, now_ns)
        for runner in self._cards.values():
            runner.power_on(now_ns)
        self._tick(now_ns)
        self._voice.send(WorkerReady())

    def run(self) -> None:
        """Until the chassis closes the control socket."""
        self._loop.run()
        now_ns = monotonic_ns()
        for runner in self._cards.values():
            runner.part(now_ns)

    def give_up(self, closed: ChannelClosed) -> None:
        """A mover is gone: what it had of channels and chunks went with it. A new life has all."""
        for runner in self._cards.values():
            runner.card.write_counts()
        self._voice.send(GivesUp(self._movers.how_one_ended() or str(closed)))
        self._voice.flush()

    # ---- virtual channels ----

    def _want_sockets(self, port: Port, channels: int) -> None:
        self._voice.send(SocketsWanted(port.id.card, port.id.oe, channels))

    def _on_sockets(self, now_ns: int) -> None:
        assert self._sockets is not None
        name, fds, _, _ = socket.recv_fds(self._sockets, PORT_NAME_BYTES, CHANNELS_MAX)
        if not name:
            self._loop.remove(self._sockets.fileno())  # The control socket says so, too.
            return
        port = PortId.parse(name.decode())
        self._cards[port.card].sockets_came(port.oe, fds, now_ns)

    # ---- commands ----

    def _on_control(self, now_ns: int) -> None:
        try:
            commands = self._channel.receive()
        except ChannelClosed:
            self._loop.stop()
            return
        for command in commands:
            self._obey(command, now_ns)

    def _obey(self, command: ToWorker, now_ns: int) -> None:
        if isinstance(command, WorkerStart):
            return
        try:
            runner = self._runner(command)
            runner.obey(command, now_ns)
        except EngineRefusal as refusal:
            self._voice.send(Completion(command.id, refusal.code, refusal.detail))
            return
        if isinstance(command, StartTransfer):
            self._transfers[command.transfer_id] = runner
        elif isinstance(command, AcknowledgeTransfer):
            self._transfers.pop(command.transfer_id, None)
        self._voice.send(Completion(command.id))
        runner.settle(now_ns)

    def _runner(self, command: Message) -> CardRunner:
        """The card that a command is for. Raises EngineRefusal."""
        if isinstance(command, CancelTransfer | AcknowledgeTransfer):
            runner = self._transfers.get(command.transfer_id)
            if runner is None:
                raise EngineRefusal("UNKNOWN_TRANSFER", f"no transfer {command.transfer_id}")
            return runner
        if isinstance(command, ClearFault):
            return self._runner_with(command.fault_id)
        name = (
            command.local_card
            if isinstance(command, StartTransfer)
            else getattr(command, "card", "")
        )
        runner = self._cards.get(name)
        if runner is None:
            raise EngineRefusal("UNKNOWN_CARD", f"no card {name} in this worker")
        return runner

    def _runner_with(self, fault_id: str) -> CardRunner:
        for runner in self._cards.values():
            if fault_id in runner.card.faults:
                return runner
        raise EngineRefusal("UNKNOWN_FAULT", f"no fault {fault_id}")

    # ---- time ----

    def _tick(self, now_ns: int) -> None:
        self._loop.call_at(now_ns + TICK_NS, self._tick)
        late_ns = now_ns - int(self._row["beat_ns"]) - TICK_NS
        if self._row["beat_ns"] and late_ns > TICK_NS:
            self._row["tick_overruns"] += 1
        self._row["beat_ns"] = now_ns
        self._banks.advance(now_ns, max(late_ns, 0) if self._ticked else 0)
        self._ticked = True

    def _watch_progress(self, now_ns: int) -> None:
        """Tell of transfers and tests from now on, for as long as some run."""
        if not self._progress_armed:
            self._progress_armed = True
            self._loop.call_at(now_ns + PROGRESS_NS, self._progress)

    def _progress(self, now_ns: int) -> None:
        self._progress_armed = False
        for runner in self._cards.values():
            runner.send_progress(now_ns)
            if runner.has_progress:
                self._watch_progress(now_ns)


def receive_start(channel: LoopChannel[ToWorker]) -> tuple[WorkerStart, Sequence[ToWorker]]:
    """Wait for the first message. Raises ChannelClosed when the chassis is gone already."""
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    while True:
        poll.poll()
        messages = channel.receive()
        if messages:
            first = messages[0]
            if not isinstance(first, WorkerStart):
                raise ChannelClosed(f"the first message was {type(first).__name__}")
            return first, messages[1:]


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print("a worker is started by the chassis: python -m accelhw.chassis", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = worker_channel(int(sys.argv[1]))
    try:
        start, early = receive_start(channel)
        die_with_parent(start.chassis_pid)
        sleep_exactly()
        worker = Worker(start, channel)
    except ChannelClosed:
        return 0
    for command in early:
        worker._obey(command, monotonic_ns())
    gc.collect()
    gc.freeze()  # what start-up made stays; the collector need not look at it again
    try:
        worker.run()
    except ChannelClosed as closed:
        worker.give_up(closed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
