"""What transfer engines say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.wire.frame import MIN_MTU, MalformedFrame, payload_limit
from accelhw.wire.message import (
    MAX_CHUNKS,
    Accept,
    Done,
    End,
    Finish,
    Open,
    Pull,
    TransferMessage,
    Unknown,
    Widen,
    decode_message,
    encode_message,
)

ids = st.text(min_size=1, max_size=16)
u8, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 32, 64))
messages: st.SearchStrategy[TransferMessage] = st.one_of(
    st.builds(
        Open, ids, u8, st.booleans(), u32, u32, u32, u64, st.integers(1, 1 << 33),
        st.sampled_from([1 << 20, 1 << 24]), u32,
    ),
    st.builds(Accept, ids, st.binary(max_size=MAX_CHUNKS // 8)),
    st.builds(End, ids, u8, st.text(max_size=40)),
    st.builds(Finish, ids, u32),
    st.builds(Done, ids, u8, u32),
    st.builds(Pull, ids, u32, u32, u64, u64, u32),
    st.builds(Unknown, ids),
    st.builds(Widen, u8, st.booleans()),
)  # fmt: skip


@given(messages)
def test_what_is_said_is_heard(message: TransferMessage) -> None:
    payload = encode_message(message)
    assert decode_message(payload) == message
    assert len(payload) <= payload_limit(MIN_MTU)


@given(st.binary(max_size=120))
def test_noise_is_malformed_or_a_message(data: bytes) -> None:
    try:
        message = decode_message(data)
    except MalformedFrame:
        return
    assert encode_message(message) == data or isinstance(message, End | Open)


def test_a_long_detail_is_cut_between_characters() -> None:
    heard = decode_message(encode_message(End("t", 3, "é" * 200)))
    assert heard == End("t", 3, "é" * 80)


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"\x01", b"\x07\x00", b"\x07\x05abc", b"\x07\x01ab", b"\x09\x01a", b"\x04\x01a123",
        encode_message(Open("t", 1, False, 1, 1, 1, 0, 100, 3, 0)),  # no power of two
        encode_message(Open("t", 1, False, 1, 1, 1, 0, 1 << 40, 1 << 20, 0)),  # too many chunks
        encode_message(Accept("t", bytes(MAX_CHUNKS // 8 + 1))),
        b"\x08\x00", b"\x08\x00\x02", b"\x08\x00\x02\x01\x00",  # Widen, cut short or too long
        b"\x08\x01a\x02\x01",  # Widen is of no transfer
    ],
)  # fmt: skip
def test_bad_messages_are_refused(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode_message(payload)


def test_widen_is_of_the_link_and_needs_no_id() -> None:
    assert encode_message(Widen(2, answer=False)).hex() == "08000200"
    assert encode_message(Widen(0, answer=True)).hex() == "08000001"
    with pytest.raises(ValueError, match="not 0"):
        encode_message(Unknown(""))


def test_an_id_must_fit() -> None:
    with pytest.raises(ValueError, match="1 to 64 bytes"):
        encode_message(Unknown("x" * 65))
