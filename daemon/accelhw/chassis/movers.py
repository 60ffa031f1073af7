"""The movers of a worker: made when a link first has much to carry, one on each CPU."""

from __future__ import annotations

import os
import select
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from zlib import crc32

import msgspec

from accelhw.chassis.loop import Loop
from accelhw.chassis.mover import become_mover
from accelhw.chassis.process import how_it_ended
from accelhw.device.channelport import ChannelPort
from accelhw.device.channelwords import FromMover, Gone, Plug, Word
from accelhw.device.hbm import Hbm
from accelhw.device.port import Port
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.model.config import TransportKind
from accelhw.wire.frame import CHANNELS_MAX

_from_mover = msgspec.msgpack.Decoder(FromMover)

ANSWER_MS = 20_000  # a mover answers between two frames, as soon as it gets the CPU
DYING_S = 1.0  # a process whose sockets are closed has ended, or is about to
LOOK_S = 0.01

Settle = Callable[[int], None]


def decode_from_mover(body: bytes | bytearray | memoryview) -> FromMover:
    return _from_mover.decode(body)


def cpu_of(fibre: str, number: int, cpus: Sequence[int]) -> int:
    """Where a channel of a fibre runs: at both ends the same."""
    return cpus[(crc32(fibre.encode()) + number) % len(cpus)]


class _Mover:
    """The worker's end of its line to one mover."""

    def __init__(
        self,
        loop: Loop,
        hear: Callable[[FromMover, int], None],
        settle: Callable[[Iterable[int], int], None],
    ) -> None:
        """`settle` is told the channels of which something was heard, when all of it was."""
        self._loop = loop
        self._hear = hear
        self._settle = settle
        near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sockets, self.far_sockets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel: LoopChannel[FromMover] = LoopChannel(near, decode_from_mover)
        self._waiting: deque[FromMover] = deque()

    def begin(self) -> None:
        """The mover lives: its ends are its own."""
        self.far.close()
        self.far_sockets.close()
        self._loop.add_reader(self._channel.fileno(), self.catch_up)

    def tell(self, word: Word) -> None:
        self._channel.send(word)
        self._flush_later()

    def ask(self, word: Word) -> Gone:
        self._channel.send(word)
        poll = select.poll()
        fd = self._channel.fileno()
        answer: Gone | None = None
        while answer is None:
            poll.register(fd, select.POLLIN | (select.POLLOUT if self._channel.wants_write else 0))
            if not poll.poll(ANSWER_MS):
                raise ChannelClosed(f"a mover did not answer in {ANSWER_MS} ms")
            self._channel.flush()
            for each in self._channel.receive():
                if isinstance(each, Gone):
                    answer = each
                else:
                    self._waiting.append(each)
        if self._waiting:
            self._loop.soon(self._hear_waiting)
        return answer

    def plug(self, word: Plug, fd: int) -> None:
        socket.send_fds(self._sockets, [b"."], [fd])
        os.close(fd)
        self.tell(word)

    def catch_up(self, now_ns: int) -> None:
        """Hear all that it has said until now."""
        self._waiting.extend(self._channel.receive())
        self._hear_waiting(now_ns)

    def _hear_waiting(self, now_ns: int) -> bool:
        # Hearing one may bring another to be heard from within: each is taken before it is heard.
        heard = set()
        while self._waiting:
            word = self._waiting.popleft()
            self._hear(word, now_ns)
            heard.add(word.way)
        self._settle(heard, now_ns)
        return False

    def _flush_later(self) -> None:
        if self._channel.wants_write:
            self._loop.when_writable(self._channel.fileno(), self._flush)

    def _flush(self, now_ns: int) -> None:
        self._channel.flush()
        self._flush_later()


class Movers:
    """Raises ChannelClosed wherever a mover has died: the worker cannot go on without it."""

    def __init__(
        self,
        loop: Loop,
        cpus: Sequence[int],
        seed: int,
        want_sockets: Callable[[Port, int], None],
    ) -> None:
        """`want_sockets` asks the chassis for so many; `opened` follows."""
        self._loop = loop
        self._cpus = tuple(cpus)
        self._seed = seed
        self._want_sockets = want_sockets
        self._memories: dict[str, Hbm] = {}
        self._movers: dict[int, _Mover] = {}  # by CPU
        self._pids: dict[int, int] = {}  # of movers that live, with their CPU
        self._ways: dict[int, tuple[ChannelPort, Port, Settle]] = {}

    @property
    def channels_max(self) -> int:
        """One CPU alone gains nothing."""
        return min(len(self._cpus), CHANNELS_MAX) if len(self._cpus) > 1 else 0

    def know(self, memories: Mapping[str, Hbm]) -> None:
        """Of all cards, before the first mover is made."""
        self._memories.update(memories)

    def want(self, port: Port) -> None:
        self._want_sockets(port, self.channels_max)

    def opened(self, port: Port, settle: Settle, fds: Sequence[int], now_ns: int) -> None:
        """The sockets of a port's channels, 1 and up; they are the movers' from now on."""
        assert port.fibre is not None
        name = port.fibre.name
        cpus = [cpu_of(name, number, self._cpus) for number in range(1, len(fds) + 1)]
        try:
            movers = [self._mover(cpu) for cpu in cpus]
        except OSError as error:  # No process more: the link goes on with the channel it has.
            print(f"{port.id}: no movers, all goes over channel 0: {error}", file=sys.stderr)
            for fd in fds:
                os.close(fd)
            port.channels.opened((), now_ns)
            return
        channels = []
        for number, (mover, fd) in enumerate(zip(movers, fds, strict=True), start=1):
            way = len(self._ways) + 1
            channel = ChannelPort(
                str(port.id), way, mover, port.memory, port.counters, port.optics.met
            )
            self._ways[way] = channel, port, settle
            mover.plug(
                Plug(
                    way, str(port.id), port.id.card, number, port.transport.mtu, self._seed,
                    port.id.oe, port.fibre.transport is TransportKind.VETH,
                ),
                fd,
            )  # fmt: skip
            if port.optics.aim is not None:
                channel.aim(port.optics.aim)
            channels.append(channel)
        port.channels.opened(channels, now_ns)
        settle(now_ns)

    def catch_up(self, now_ns: int) -> None:
        for mover in self._movers.values():
            mover.catch_up(now_ns)

    def how_one_ended(self) -> str:
        """For people, after ChannelClosed; "" if all live."""
        deadline_s = monotonic() + DYING_S
        while True:
            for pid, cpu in self._pids.items():
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    how = how_it_ended(os.waitstatus_to_exitcode(status))
                    return f"its mover on CPU {cpu} {how}"
            if monotonic() > deadline_s:
                return ""
            sleep(LOOK_S)

    def _mover(self, cpu: int) -> _Mover:
        mover = self._movers.get(cpu)
        if mover is None:
            mover = _Mover(self._loop, self._hear, self._settle)
            worker_pid = os.getpid()
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    status = become_mover(
                        worker_pid, cpu, mover.far, mover.far_sockets, self._memories
                    )
                except BaseException:
                    traceback.print_exc()  # nobody else would: the fork must not return from here
                finally:
                    os._exit(status)
            mover.begin()
            self._pids[pid] = cpu
            self._movers[cpu] = mover
        return mover

    def _hear(self, word: FromMover, now_ns: int) -> None:
        channel, port, _ = self._ways[word.way]
        channel.hear(word, now_ns)
        if channel.exhausted:
            port.after_data(now_ns)

    def _settle(self, ways: Iterable[int], now_ns: int) -> None:
        for settle in {
            id(settle): settle for *_, settle in map(self._ways.__getitem__, ways)
        }.values():
            settle(now_ns)


class PortChannels:
    """A port's share of the worker's movers."""

    def __init__(self, movers: Movers, port: Port) -> None:
        self._movers = movers
        self._port = port

    @property
    def channels_max(self) -> int:
        return self._movers.channels_max

    def open_channels(self) -> None:
        self._movers.want(self._port)
