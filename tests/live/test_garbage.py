"""Whatever a stranger says at a door, nothing breaks, nothing hangs, and memory stays as it is."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

from accelhw.interface import messages
from accelhw.wire.frame import ETHERTYPE

from .conftest import MakeRack
from .rack import Rack, pair_config, until

pytestmark = pytest.mark.network

MIB = 1 << 20


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    from .rack import running_rack

    with running_rack(tmp_path_factory.mktemp("r"), pair_config()) as rack:
        yield rack


@pytest.fixture
def unharmed(target: Rack) -> Iterator[Rack]:
    """The same processes afterwards, the same bytes, and a copy still works."""
    sha = target.fill("card1:safe", MIB)
    before = target.processes()
    yield target
    assert target.sha256("card1:safe") == sha
    sha = target.fill("card0:after", MIB)
    target.done(target.begin("card0:after", "card1:after"))
    assert target.sha256("card1:after") == sha
    for region in ("card1:safe", "card0:after", "card1:after"):
        target.client.regions.delete(region)
    assert target.processes() == before
    assert target.never_told("WORKER_DIED")
    assert "Traceback" not in target.logs()


def says(path: Path, *parts: bytes, answer: bool = True) -> bytes:
    """Say something at a Unix socket, and read until the other side hangs up."""
    heard = b""
    with closing(socket.socket(socket.AF_UNIX)) as client, suppress(ConnectionError):
        client.settimeout(60)
        client.connect(str(path))
        for part in parts:
            client.sendall(part)
        client.shutdown(socket.SHUT_WR)
        while answer and (piece := client.recv(1 << 16)):
            heard += piece
    return heard


def framed(body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + body


RANDOM = random.Random(7)
NOISE: dict[str, bytes] = {
    "nothing": b"",
    "one byte": b"\0",
    "zeros": bytes(10_000),
    "ones": b"\xff" * 10_000,
    "random": RANDOM.randbytes(100_000),
    "a web browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an HTTP/2 preface and noise": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + RANDOM.randbytes(5_000),
    "a length beyond all measure": struct.pack("!I", 0xFFFF_FFFF),
    "a length and no body": struct.pack("!I", 100),
    "an empty body": framed(b""),
    "a body of noise": framed(RANDOM.randbytes(1_000)),
    "deep nesting": framed(b"\x91" * 100_000),
    "a map of an unknown kind": framed(msgspec.msgpack.encode({"t": "Nonsense"})),
    "a huge string": framed(b"\xdb\xff\xff\xff\xff"),
    "a hello of a wrong kind": framed(msgspec.msgpack.encode({"t": "Hello", "version": "x"})),
    "a command before a hello": framed(messages.encode(messages.ResetCard(1, "card0"))),
    "a hello of a later version": framed(messages.encode(messages.Hello(99))),
    "a hello while a driver is there": framed(messages.encode(messages.Hello(1))),
}


@pytest.mark.parametrize("door", ["acceld.sock", "hardware.sock", "memory.sock"])
def test_noise_at_a_door(unharmed: Rack, door: str) -> None:
    for noise in NOISE.values():
        says(unharmed.folder / door, noise)


def test_many_at_the_doors_who_say_nothing(unharmed: Rack) -> None:
    waiting = []
    for door in ("acceld.sock", "hardware.sock", "memory.sock"):
        for _ in range(100):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(str(unharmed.folder / door))
            waiting.append(client)
    assert unharmed.cli("link", "list").returncode == 0
    for client in waiting:
        client.close()


def test_a_driver_that_turns_mad_is_dropped_and_the_next_one_served(make_rack: MakeRack) -> None:
    rack = make_rack(pair_config(), separate=True)
    sha = rack.fill("card1:safe", MIB)
    before = rack.processes()
    assert rack.daemon is not None
    rack.kill(rack.daemon)
    before.remove(rack.daemon.pid)
    hello = framed(messages.encode(messages.Hello(1)))
    entry = messages.ChannelMapEntry(0, 0, 0, 0)
    big = 2**63
    commands = [
        messages.ResetCard(1, "nobody"),
        messages.SetPortAdmin(2, "card0", -1, True),
        messages.TrainPort(3, "card0", big),
        messages.SetChannelMap(4, "card0", (entry, entry)),
        messages.SetChannelMap(5, "card0", ()),
        messages.RegisterWindow(6, "card0", -1, -1, -1, -1),
        messages.RegisterWindow(7, "card0", 1, 1, big, big),
        messages.UnregisterWindow(8, "card0", big),
        messages.StartTransfer(9, "x", 99, "card0", 9, 0, 1, "card1", 1, 1, 0),
        messages.StartTransfer(10, "x" * 10_000, 1, "card1", 1, big, -5, "\0", big, big, big),
        messages.CancelTransfer(11, ""),
        messages.AcknowledgeTransfer(12, "none"),
        messages.AcknowledgeEvents(13, big),
        messages.AcknowledgeEvents(14, -big),
    ]
    said = [framed(messages.encode(command)) for command in commands]
    heard = says(rack.hardware_socket, hello, *said)
    completions = {
        message.id: message.error
        for message in decoded(heard)
        if isinstance(message, messages.Completion)
    }
    assert set(completions) == {command.id for command in commands}
    assert all(completions[number] for number in range(1, 13)), completions
    for noise in NOISE.values():
        says(rack.hardware_socket, hello, noise)
    says(rack.hardware_socket, hello, framed(messages.encode(messages.Refused("no"))))
    assert rack.processes() == before
    rack.serve(chassis="attach")
    rack.wait_up()
    assert rack.sha256("card1:safe") == sha
    assert "Traceback" not in rack.logs()


def decoded(data: bytes) -> Iterator[messages.Message]:
    while len(data) >= 4:
        (length,) = struct.unpack_from("!I", data)
        yield messages.decode(data[4 : 4 + length])
        data = data[4 + length :]


def frames(sniffed: list[bytes]) -> Iterator[bytes]:
    """Noise for the wire: none of ours, almost ours, and ours bent in one place."""
    header = bytes(6) + bytes(6) + ETHERTYPE.to_bytes(2)
    yield header
    yield from (header + RANDOM.randbytes(RANDOM.randrange(1, 1400)) for _ in range(300))
    yield from (header + sniffed[0][14:18] + RANDOM.randbytes(n) for n in range(0, 200, 7))
    yield bytes(12) + b"\x08\x00" + RANDOM.randbytes(100)
    for frame in sniffed:
        for _ in range(40):
            bent = bytearray(frame)
            bent[RANDOM.randrange(14, len(bent))] ^= 1 << RANDOM.randrange(8)
            yield bytes(bent)
        yield frame[: RANDOM.randrange(15, len(frame))]
        yield frame + RANDOM.randbytes(50)
        yield frame  # As it was: a replay.


def test_noise_on_the_wire(unharmed: Rack) -> None:
    near, far = (unharmed.link(f"card{n}/oe0").fibre.interface for n in (0, 1))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) as wire:
        wire.bind((far, ETHERTYPE))
        wire.settimeout(60)
        sniffed = [wire.recv(1 << 17) for _ in range(4)]
        for interface in (near, far):
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
                out.bind((interface, 0))
                for frame in frames(sniffed):
                    out.send(frame)

    def counted() -> bool:
        seen = [unharmed.link(f"card{n}/oe0").counters for n in (0, 1)]
        return all(c.malformed_frames_total > 300 and c.crc_errors_total > 100 for c in seen)

    until(counted, "noise is counted at both ends")
    unharmed.wait_up()
