"""Framing over a stream: any message, in any pieces; descriptors arrive as they were sent."""

import asyncio
import contextlib
import itertools
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.interface.channel import (
    FDS_MAX,
    HEADER,
    MESSAGE_BYTES_MAX,
    Channel,
    ChannelClosed,
    Decoder,
    LoopChannel,
    MalformedMessage,
    pack,
    receive_bare,
    send_bare,
)
from accelhw.interface.messages import (
    Completion,
    Event,
    Hello,
    RegisterWindow,
    TrainingProgress,
    decode,
)

words = st.text(max_size=60)
numbers = st.integers(0, 2**63 - 1)
any_message = st.one_of(
    st.builds(Hello, version=numbers, boot_id=words, last_event=numbers),
    st.builds(Completion, id=numbers, error=words, detail=words),
    st.builds(
        RegisterWindow,
        id=numbers,
        card=words,
        region_id=numbers,
        key=numbers,
        base=numbers,
        length=numbers,
    ),
    st.builds(
        Event,
        sequence=numbers,
        time_ns=numbers,
        severity=st.integers(1, 3),
        kind=words,
        subject=words,
        message=words,
        detail=st.dictionaries(words, st.one_of(words, numbers, st.booleans()), max_size=4),
    ),
    st.builds(
        TrainingProgress,
        card=words,
        oe=numbers,
        state=numbers,
        phase=numbers,
        lane=st.none() | numbers,
        text=words,
    ),
)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(any_message, max_size=8), st.lists(st.integers(0, 5000), max_size=12))
def test_whatever_is_packed_comes_out_however_the_stream_is_cut(sent, cuts):
    decoder = Decoder(decode)
    pieces = in_pieces(b"".join(pack(m) for m in sent), cuts)
    assert [m for piece in pieces for m in decoder.feed(piece)] == sent
    assert decoder.pending_bytes == 0


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_waited_for_but_never_crash(noise):
    with contextlib.suppress(MalformedMessage):
        Decoder(decode).feed(noise)


def test_an_absurd_length_is_refused_before_its_body_is_awaited():
    with pytest.raises(MalformedMessage, match="at most"):
        Decoder(decode).feed(HEADER.pack(MESSAGE_BYTES_MAX + 1))


def test_a_message_too_large_to_be_read_is_not_sent():
    with pytest.raises(ValueError, match="Completion takes"):
        pack(Completion(1, detail="x" * (MESSAGE_BYTES_MAX + 1)))


def test_a_polling_channel_keeps_what_the_socket_does_not_take():
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sender, receiver = LoopChannel(near, decode), LoopChannel(far, decode)
    sent = [Completion(number, detail="x" * 1000) for number in range(200)]
    for message in sent:
        sender.send(message)
    assert sender.wants_write
    got = []
    while len(got) < len(sent):
        got += receiver.receive()
        sender.flush()
    assert got == sent
    assert not sender.wants_write
    assert receiver.receive() == []
    sender.close()
    with pytest.raises(ChannelClosed):
        receiver.receive()
    receiver.close()


async def test_descriptors_arrive_in_order_and_no_byte_is_read_ahead():
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    files = [os.memfd_create(f"hbm{n}") for n in range(65)]
    for number, fd in enumerate(files):
        os.write(fd, str(number).encode())
    message = Completion(7, detail="y" * 300_000)  # larger than a socket buffer

    async def send():
        await send_bare(near, message, files)
        await send_bare(near, Completion(8))

    sending = asyncio.create_task(send())
    got, fds = await receive_bare(far, decode)
    await sending
    assert got == message
    assert [os.pread(fd, 9, 0) for fd in fds] == [str(n).encode() for n in range(65)]
    assert not any(os.get_inheritable(fd) for fd in fds)
    channel = await Channel.over(far, decode)
    assert await channel.receive() == Completion(8)
    near.close()
    with pytest.raises(ChannelClosed):
        await channel.receive()
    await channel.close()
    for fd in (*fds, *files):
        os.close(fd)


async def test_descriptors_of_a_message_we_refuse_are_closed():
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)

    class Unknown(Hello, tag="Unknown", frozen=True):
        pass

    await send_bare(near, Unknown(1), [write_end])
    os.close(write_end)
    with pytest.raises(MalformedMessage):
        await receive_bare(far, decode)
    assert os.read(read_end, 1) == b""  # End of file: nobody holds the writing end.
    os.close(read_end)
    near.close()
    far.close()


async def test_more_descriptors_than_linux_carries_are_refused():
    near, far = socket.socketpair()
    near.setblocking(False)
    with pytest.raises(ValueError, match="at most 253"):
        await send_bare(near, Completion(1), range(FDS_MAX + 1))
    near.close()
    far.close()
