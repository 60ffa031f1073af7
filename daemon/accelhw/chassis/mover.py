"""A mover: a process on one CPU that moves the frames of virtual channels for its worker.

Both ends of a channel have theirs on the same CPU, so a frame that one has just put into the
kernel is taken by the other while it is still in that CPU's cache. The worker makes a mover by
fork, with its memories mapped; it ends with the worker.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from time import monotonic_ns

import msgspec

from accelhw.chassis.loop import Loop, Soonest
from accelhw.chassis.process import die_with_parent, name_thread, work_in_long_strokes
from accelhw.device.channelengine import ChannelEngine
from accelhw.device.channelwords import (
    Aims,
    Down,
    Drop,
    Give,
    Gone,
    Hold,
    Lands,
    Nowhere,
    Plug,
    Release,
    Say,
    Spent,
    Taken,
    ToMover,
    Up,
    Void,
    Word,
)
from accelhw.device.engine import frame_dice
from accelhw.device.hbm import Hbm
from accelhw.device.pace import Pace
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.optics.strikes import Strikes
from accelhw.transport.base import InterfaceDown
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.packet import PacketTransport

COUNT_NS = 100_000_000  # the longest that frames wait to be counted at the worker
BATCHES_PER_TURN = 4
TURN_BYTES = 32 << 20  # a chunk of a large transfer
AHEAD_BYTES = 1 << 20  # with the place where it lands, half of a CPU's own cache
SLICE_NS = 100_000_000  # the longest there is; nobody works so long without waiting

_to_mover = msgspec.msgpack.Decoder(ToMover)


def decode_to_mover(body: bytes | bytearray | memoryview) -> ToMover:
    return _to_mover.decode(body)


class _Channel:
    """A channel in the loop."""

    def __init__(self, mover: Mover, plug: Plug, fd: int) -> None:
        self._mover = mover
        self._loop = mover.loop
        self._fd = fd
        self._alarm = Soonest(mover.loop, self._on_alarm)
        self._count_armed = False
        self._gone = False  # the interface is down; the worker will see it, too
        self._spent = False  # and it was told
        self.way = plug.way
        self.strikes = Strikes(frame_dice(plug.seed, plug.card, plug.oe, plug.number))
        # A straight cable costs nothing, and takes frames back that were taken by mistake.
        self._transport = Cable(PacketTransport(fd, plug.mtu), CableMap.straight_of(1))
        self.engine = ChannelEngine(
            plug.way, plug.name, plug.number, mover, mover.memories[plug.card], self._transport,
            self.strikes, Pace(TURN_BYTES, AHEAD_BYTES if plug.near else 0, mover.loop),
        )  # fmt: skip
        self.port = self.engine.port
        self._loop.add_reader(fd, self.on_readable)

    def on_readable(self, now_ns: int) -> None:
        port = self.port
        try:
            for _ in range(BATCHES_PER_TURN):
                if port.receive(now_ns) is None:
                    break
                # Light and training belong to channel 0.
                port.counters.malformed_frames += 1
                self._transport.discard()
        except InterfaceDown:
            self._gone = True
        self.after(monotonic_ns())

    def after(self, now_ns: int) -> None:
        """Anything happened here: send what may leave, set the clocks."""
        if self.work(now_ns):
            self._loop.soon(self.work)

    def work(self, now_ns: int) -> bool:
        """Send what may leave. True: again in the next turn."""
        port, more = self.port, False
        if not self._gone:
            try:
                more = port.pump(now_ns)
            except InterfaceDown:
                self._gone = True
        if port.exhausted and not self._spent:
            self._mover.tell(Spent(self.way))
        self._spent = port.exhausted
        if port.wants_write and not self._gone:
            self._loop.when_writable(self._fd, self.after)
        if not self._count_armed and port.up:
            self._count_armed = True
            self._loop.call_at(now_ns + COUNT_NS, self._tell_count)
        self._arm()
        return more

    def _arm(self) -> None:
        if self._gone or self.port.exhausted:
            return  # Nothing can be sent before the worker says so.
        self._alarm.set(self.port.next_deadline_ns())

    def _on_alarm(self, now_ns: int) -> None:
        deadline_ns = self.port.next_deadline_ns()
        if deadline_ns is not None and deadline_ns <= now_ns and not self._gone:
            with contextlib.suppress(InterfaceDown):
                self.port.on_deadline(now_ns)
        self.after(now_ns)

    def _tell_count(self, now_ns: int) -> None:
        self._count_armed = False
        self.engine.tell_count()
        self._mover.speak_soon()

    # ---- words of the worker ----

    def obey(self, word: Word, now_ns: int) -> None:
        engine, port = self.engine, self.port
        match word:
            case Up(epoch=epoch, credit_frames=credit_frames):
                with contextlib.suppress(InterfaceDown):
                    self._transport.peek()  # takes the error of an outage that is over
                self._gone = False
                engine.up(epoch, credit_frames, now_ns)
            case Down():
                lost = engine.down(now_ns)
                engine.tell_count()
                self._mover.answer(Gone(self.way, lost))
            case Hold():
                port.hold()
            case Release():
                port.release(now_ns)
            case Say(payload=payload):
                engine.say(payload)
            case Aims(at=at):
                self.strikes.aim(at)
            case Give():
                engine.give(word)
            case Drop(cut=cut):
                engine.drop(cut)
                self._mover.answer(Gone(self.way))
            case Void(landing=landing):
                engine.void(landing)
                self._mover.answer(Gone(self.way))


class Mover:
    """All channels of one worker on one CPU."""

    def __init__(
        self, sock: socket.socket, sockets: socket.socket, memories: Mapping[str, Hbm]
    ) -> None:
        """`sockets`: where the socket of each channel comes."""
        self.loop = Loop()
        self.memories = memories
        self._channel: LoopChannel[ToMover] = LoopChannel(sock, decode_to_mover)
        self._sockets = sockets
        self._ways: dict[int, _Channel] = {}
        self._heard: deque[ToMover] = deque()
        self.loop.add_reader(sock.fileno(), self._on_words)

    def run(self) -> None:
        """Until the worker closes its end. Raises ChannelClosed then."""
        self.loop.run()

    # ---- the worker's line ----

    def tell(self, word: Word, *, later: bool = False) -> None:
        """Behind this turn, with all that is told in it: each time the worker is woken costs more
        than what it is told. `later`: with whatever is told next."""
        self._channel.keep(word)
        if not later:
            self.speak_soon()

    def speak_soon(self) -> None:
        self.loop.soon(self._speak)

    def answer(self, word: Word) -> None:
        """At once: somebody waits for it."""
        self._channel.keep(word)
        self._flush(0)

    def _speak(self, now_ns: int) -> bool:
        self._flush(now_ns)
        return False

    def _flush(self, now_ns: int) -> None:
        self._channel.flush()
        if self._channel.wants_write:
            self.loop.when_writable(self._channel.fileno(), self._flush)

    def ask(self, word: Word) -> Lands | Nowhere | Taken:
        self._channel.send(word)
        poll = select.poll()
        fd = self._channel.fileno()
        while True:
            while self._heard:
                each = self._heard.popleft()
                if isinstance(each, Lands | Nowhere | Taken):
                    # What was told behind it is obeyed when it was made use of: it may be to
                    # stop just that.
                    self.loop.soon(self._obey_heard)
                    return each
                self._obey(each, monotonic_ns())
            wanted = select.POLLIN | (select.POLLOUT if self._channel.wants_write else 0)
            poll.register(fd, wanted)
            poll.poll()
            self._channel.flush()
            self._heard.extend(self._channel.receive())

    def _on_words(self, now_ns: int) -> None:
        self._heard.extend(self._channel.receive())
        self._obey_heard(now_ns)

    def _obey_heard(self, now_ns: int) -> bool:
        while self._heard:
            self._obey(self._heard.popleft(), now_ns)
        return False

    def _obey(self, word: ToMover, now_ns: int) -> None:
        if isinstance(word, Plug):
            _, fds, _, _ = socket.recv_fds(self._sockets, 1, 1)
            self._ways[word.way] = _Channel(self, word, fds[0])
            return
        channel = self._ways[word.way]
        channel.obey(word, now_ns)
        self.loop.soon(channel.work)


def become_mover(
    parent_pid: int, cpu: int, sock: socket.socket, sockets: socket.socket,
    memories: Mapping[str, Hbm],
) -> int:  # fmt: skip
    """What the child of the fork does for the rest of its life; its exit status."""
    die_with_parent(parent_pid)
    name_thread(f"accel-mover{cpu}")
    gc.freeze()  # what the worker made stays, though nobody here uses it: it owns descriptors
    keep = {0, 1, 2, sock.fileno(), sockets.fileno(), *(hbm.fd for hbm in memories.values())}
    close_all_but(keep)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    give_way()
    with contextlib.suppress(ChannelClosed):
        Mover(sock, sockets, memories).run()
    return 0


def give_way() -> None:
    """Each end works until it must wait for the other, instead of at every frame; but lets the
    worker and all small work of others in at once."""
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    with contextlib.suppress(OSError):
        if policy == os.SCHED_OTHER:
            work_in_long_strokes(SLICE_NS)
        elif policy in (os.SCHED_FIFO, os.SCHED_RR) and priority > 1:
            os.sched_setscheduler(0, policy, os.sched_param(priority - 1))


def close_all_but(keep: Iterable[int]) -> None:
    """Descriptors that the fork brought along."""
    kept = set(keep)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd not in kept:
            with contextlib.suppress(OSError):
                os.close(fd)
