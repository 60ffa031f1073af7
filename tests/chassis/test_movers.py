"""A mover obeys its worker in order, also while it waits for an answer; where movers run."""

import os
import socket
import threading
from types import SimpleNamespace

import pytest

from accelhw.chassis.loop import Loop
from accelhw.chassis.mover import Mover
from accelhw.chassis.movers import Movers, _Mover, cpu_of, decode_from_mover
from accelhw.chassis.plugs import Plugs
from accelhw.device.channelwords import (
    AsksLanding,
    Count,
    Down,
    Gone,
    Lands,
    Nowhere,
    Plug,
    Spent,
    Up,
    Void,
)
from accelhw.device.hbm import Hbm
from accelhw.interface.channel import ChannelClosed, LoopChannel
from accelhw.model.ids import PortId
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import CHANNELS_MAX, FrameFlag, FrameType, HeaderWriter, channel_epoch

HANG_S = 60  # only ever reached by a test that fails
EPOCH, WAY, NUMBER = 77, 5, 2
PAYLOAD = 4096


class Bench:
    """A mover in this thread, the worker's ends of its line, and the far end of its channel."""

    def __init__(self) -> None:
        fd = os.memfd_create("hbm")
        os.ftruncate(fd, 1 << 20)
        self.hbm = Hbm(fd, 1 << 20)
        near, far = socket.socketpair()
        sockets, far_sockets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.mover = Mover(far, far_sockets, {"card0": self.hbm})
        self.worker = LoopChannel(near, decode_from_mover)
        self.near = near
        self.fibre, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(sockets, [b"."], [end.fileno()])
        self.say(Plug(WAY, "card0/oe0", "card0", NUMBER, 9000, 1, 0, near=True), Up(WAY, EPOCH, 16))
        self.turn()
        self.heard = []

    def say(self, *words) -> None:
        """In one piece, as they may come."""
        for word in words:
            self.worker.keep(word)
        self.worker.flush()

    def wait_for(self, kind):
        """As a worker that waits; runs beside the mover."""
        while not any(isinstance(word, kind) for word in self.heard):
            self.near.settimeout(HANG_S)
            data = self.near.recv(1 << 16)
            self.near.setblocking(False)
            self.heard += self.worker._decoder.feed(data)
        return self.heard.pop(next(n for n, w in enumerate(self.heard) if isinstance(w, kind)))

    def turn(self) -> None:
        self.mover.loop.turn(0)

    def frame(self, sequence: int) -> None:
        """The next of a chunk that begins at 0."""
        payload = bytes([sequence + 1]) * PAYLOAD
        before = b"".join(bytes([n + 1]) * PAYLOAD for n in range(sequence))
        writer = HeaderWriter(channel=NUMBER)
        head = writer.write(
            FrameType.DATA, 255, FrameFlag.ACK_NOW, PAYLOAD, 16, channel_epoch(EPOCH, NUMBER),
            sequence, 0, 1, sequence * PAYLOAD, crc32c(before + payload),
        )  # fmt: skip
        self.fibre.send(bytes(head) + payload)


def test_what_is_told_behind_an_answer_waits_until_the_answer_was_used():
    """A worker that says where a chunk lands, and takes it back at once: after the answer to that,
    not a byte lands."""
    bench = Bench()
    bench.frame(0)
    whole = []

    def worker() -> None:
        bench.wait_for(AsksLanding)
        bench.say(Lands(WAY, 1, 0, 0, 4 * PAYLOAD, 4 * PAYLOAD), Void(WAY, 1))
        bench.wait_for(Gone)
        whole.append(bytes(bench.hbm.view))
        bench.frame(1)
        bench.wait_for(AsksLanding)
        bench.say(Nowhere(WAY, False))

    thread = threading.Thread(target=worker)
    thread.start()
    while thread.is_alive():
        bench.mover.loop.turn(10_000_000)
    thread.join()
    bench.turn()
    assert [bytes(bench.hbm.view)] == whole


def test_a_spent_channel_says_so_once():
    bench = Bench()
    channel = bench.mover._ways[WAY]
    for spent in (True, True, True, False, True):
        channel.port.exhausted = spent
        channel.work(0)
    bench.turn()
    bench.near.settimeout(HANG_S)
    said = bench.worker._decoder.feed(bench.near.recv(1 << 16))
    assert [type(word) for word in said if not isinstance(word, Count)] == [Spent, Spent]


@pytest.mark.parametrize("cpus", [(0, 1), (2, 5, 7), tuple(range(64))])
def test_a_fibres_channels_are_on_different_cpus_and_those_follow_its_name(cpus):
    for fibre in ("card0/oe0--card1/oe0", "x"):
        at = [cpu_of(fibre, number, cpus) for number in range(1, min(len(cpus), CHANNELS_MAX) + 1)]
        assert len(set(at)) == len(at)
        assert set(at) <= set(cpus)


@pytest.mark.parametrize(("cpus", "channels"), [((), 0), ((3,), 0), ((0, 1), 2), (range(99), 4)])
def test_one_cpu_alone_has_no_channels(cpus, channels):
    assert Movers(Loop(), tuple(cpus), 1, lambda port, channels: None).channels_max == channels


def test_without_a_process_more_the_link_keeps_the_channel_it_has(monkeypatch, capfd):
    def no_fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_fork)
    known = []
    port = SimpleNamespace(
        id=PortId("card0", 0),
        fibre=SimpleNamespace(name="fibre0"),
        channels=SimpleNamespace(opened=lambda ports, now_ns: known.append(tuple(ports))),
    )
    ends = socket.socketpair()
    fds = [os.dup(end.fileno()) for end in ends]
    for end in ends:
        end.close()
    movers = Movers(Loop(), (0, 1), 1, lambda port, channels: None)
    movers.opened(port, lambda now_ns: None, fds, 0)
    assert known == [()]
    assert "card0/oe0: no movers" in capfd.readouterr().err
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_a_mover_that_was_stopped_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("accelhw.chassis.movers.ANSWER_MS", 1)
    mover = _Mover(Loop(), lambda word, now_ns: None, lambda ways, now_ns: None)
    with pytest.raises(ChannelClosed, match="did not answer"):
        mover.ask(Down(WAY))


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_plugs_keep_no_socket_of_a_life_that_is_over():
    plugs, port = Plugs(), PortId("card0", 3)
    before = open_fds()
    first = plugs.renew(0)
    plugs.give(0, port, [os.dup(0), os.dup(0)])
    name, fds, _, _ = socket.recv_fds(socket.socket(fileno=os.dup(first)), 99, 9)
    assert (name, len(fds)) == (b"card0/oe3", 2)
    for fd in fds:
        os.close(fd)
    second = plugs.renew(0)
    with socket.socket(fileno=first) as old:
        assert old.recv(1) == b"", "the old life's way ends"
    plugs.give(0, port, [])
    with socket.socket(fileno=second) as new:
        assert socket.recv_fds(new, 99, 9)[:2] == (b"card0/oe3", [])
    plugs.give(0, port, [os.dup(0)])  # to a worker that died meanwhile
    plugs.give(7, port, [os.dup(0)])  # to one that never was
    plugs.close_all()
    assert open_fds() == before
