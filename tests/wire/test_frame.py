"""Frames: fixed bytes for fixed values, and nothing else passes for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.wire.frame import (
    CHANNELS_MAX,
    ETHERNET_MIN_BYTES,
    HEADER_BYTES,
    NO_LANE,
    ChecksumDiffers,
    ForeignFrame,
    FrameFlag,
    FrameType,
    Header,
    HeaderWriter,
    MalformedFrame,
    channel_epoch,
    decode_frame,
    decode_header,
    encode_frame,
    payload_limit,
    rewrite_lane,
    source_address,
)

DATA = Header(
    type=FrameType.DATA, lane=NO_LANE, flags=FrameFlag.ACK_NOW, length=5, credit=63,
    epoch=0x01020304, sequence=0x11121314, ack=0x21222324, stream=0x31323334,
    offset=0x4142434445464748, payload_crc=0x9A71BB4C,
)  # fmt: skip
GOLDEN = (
    "03acce1d0000" "02acce1d0000" "88b5"
    "acce" "01" "04" "ff" "02" "0005" "003f" "01020304" "11121314" "21222324" "31323334"
    "4142434445464748" "9a71bb4c" "{header_crc}" "68656c6c6f"
)  # fmt: skip


def test_the_layout_is_the_documented_one() -> None:
    frame = DATA.encode(b"hello")
    assert frame.hex() == GOLDEN.format(header_crc=frame[52:56].hex())
    assert frame[52:56].hex() == "e062759b"


def test_the_writer_makes_the_same_bytes() -> None:
    writer = HeaderWriter()
    writer.write(*DATA._replace(sequence=9))  # what was there before leaves no trace
    assert bytes(writer.write(*DATA)) == DATA.encode(b"hello")[:HEADER_BYTES]


@pytest.mark.parametrize("channel", range(CHANNELS_MAX + 1))
def test_a_channel_is_the_upper_half_of_the_flags(channel: int) -> None:
    writer = HeaderWriter(channel=channel)
    flags = FrameFlag.NACK | FrameFlag.DROPPED
    header = decode_header(writer.write(*DATA._replace(flags=flags, length=0)), HEADER_BYTES)
    assert (header.channel, header.flags & 0xF) == (channel, flags)
    # The frames of a run, the last of them told apart.
    writer.begin_run(0, 8, 9, 10)
    assert writer.buffer[19] == channel << 4
    writer.end_run(FrameFlag.ACK_NOW, 8)
    assert writer.buffer[19] == channel << 4 | FrameFlag.ACK_NOW


@given(st.integers(0, 2**32 - 1))
def test_the_channels_of_an_epoch_tell_their_frames_apart(epoch: int) -> None:
    epochs = {channel_epoch(epoch, channel) for channel in range(64)}
    assert len(epochs) == 64
    assert channel_epoch(epoch, 0) == epoch
    assert all(0 <= each < 2**32 for each in epochs)


headers = st.builds(
    Header,
    type=st.sampled_from(FrameType), lane=st.integers(0, 255), flags=st.integers(0, 255),
    length=st.just(0), credit=st.integers(0, 0xFFFF), epoch=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**32 - 1), ack=st.integers(0, 2**32 - 1),
    stream=st.integers(0, 2**32 - 1), offset=st.integers(0, 2**64 - 1), payload_crc=st.just(0),
)  # fmt: skip


@given(headers, st.binary(max_size=200))
def test_what_is_encoded_is_decoded(header: Header, payload: bytes) -> None:
    decoded, found = decode_frame(header.encode(payload))
    assert bytes(found) == payload
    assert decoded == header._replace(length=len(payload), payload_crc=decoded.payload_crc)


@given(headers, st.binary(max_size=40), st.data())
def test_no_flipped_bit_passes(header: Header, payload: bytes, data: st.DataObject) -> None:
    frame = bytearray(header.encode(payload))
    bit = data.draw(st.integers(8 * 12, 8 * len(frame) - 1))  # addresses may be anyone's
    frame[bit >> 3] ^= 1 << (bit & 7)
    with pytest.raises(MalformedFrame):
        decode_frame(frame)


@given(st.binary(max_size=300))
def test_random_bytes_are_no_frame(data: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode_header(data[:HEADER_BYTES], len(data))


@pytest.mark.parametrize("size", range(HEADER_BYTES + 5))
def test_a_truncated_frame_is_malformed(size: int) -> None:
    with pytest.raises(MalformedFrame):
        decode_header(DATA.encode(b"hello")[:size], size)


def test_ethernet_padding_is_accepted_and_no_other_length() -> None:
    short = encode_frame(FrameType.ACK)
    assert decode_header(short, ETHERNET_MIN_BYTES).length == 0
    with pytest.raises(MalformedFrame, match="61 bytes where the header says 56"):
        decode_header(short, ETHERNET_MIN_BYTES + 1)
    frame = DATA.encode(b"hello")
    for wrong in (len(frame) - 1, len(frame) + 1, ETHERNET_MIN_BYTES):
        with pytest.raises(MalformedFrame):
            decode_header(frame[:HEADER_BYTES], wrong)


def test_the_reason_is_told_apart() -> None:
    frame = bytearray(DATA.encode(b"hello"))
    with pytest.raises(ForeignFrame, match="0x0800"):
        decode_frame(frame[:12] + b"\x08\x00" + frame[14:])
    frame[-1] ^= 1
    with pytest.raises(ChecksumDiffers, match="payload"):
        decode_frame(frame)
    frame[30] ^= 1
    with pytest.raises(ChecksumDiffers, match="header"):
        decode_frame(frame)


def test_a_rewritten_lane_keeps_the_frame_valid() -> None:
    frame = bytearray(encode_frame(FrameType.TRAINING, b"ramp", lane=3, epoch=8))
    rewrite_lane(frame, 5)
    header, payload = decode_frame(frame)
    assert (header.lane, header.epoch, bytes(payload)) == (5, 8, b"ramp")


def test_sizes_and_addresses() -> None:
    assert payload_limit(65535) == 65488
    assert payload_limit(9000) == 8952
    address = source_address("card0/oe1")
    assert len(address) == 6
    assert address[0] & 3 == 2  # unicast, locally assigned
    assert address == source_address("card0/oe1") != source_address("card0/oe2")
