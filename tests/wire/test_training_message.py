"""Whatever a training or carrier message can hold, it brings to the other end."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.model.link import MODES, DownReason, LinkState, PeerId, TrainingPhase
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.frame import MalformedFrame
from accelhw.wire.shape import LaneShape, TapRequest, TapResult
from accelhw.wire.training import (
    MODULATIONS,
    TrainingDecoder,
    TrainingMessage,
    complement,
)

U64 = st.integers(0, (1 << 64) - 1)
U32 = st.integers(0, (1 << 32) - 1)
U16 = st.integers(0, (1 << 16) - 1)
LANE = st.none() | st.integers(0, 63)
PEER = st.builds(
    PeerId,
    st.integers(0, (1 << 64) - 1).map("{:016x}".format),
    st.builds(
        str.__add__,
        st.sampled_from(string.ascii_lowercase),
        st.text(string.ascii_lowercase + string.digits + "-", max_size=30),
    ),
    U16,
)


U8, TAP = st.integers(0, 255), st.integers(-100, 100)
MODE_SET = st.integers(0, (1 << len(MODES)) - 1)
SHAPE = st.builds(
    LaneShape, U8, st.sampled_from(TapRequest), U8, st.sampled_from(TapResult), TAP, TAP, U16
)


@st.composite
def training_messages(draw: st.DrawFn) -> TrainingMessage:
    lanes = draw(st.integers(1, 64))
    mask = st.integers(0, (1 << lanes) - 1)
    return TrainingMessage(
        draw(PEER), draw(U64), draw(U64), draw(U32), draw(st.sampled_from(TrainingPhase)),
        draw(st.sampled_from(DownReason)), draw(LANE), lanes, draw(st.integers(0, lanes - 1)),
        draw(U32), draw(st.sampled_from(MODULATIONS)), draw(MODE_SET), draw(MODE_SET),
        draw(st.sampled_from(MODES)), draw(U32), draw(U64), draw(U64), draw(U64),
        draw(mask), draw(mask), draw(mask), draw(mask),
        tuple(draw(st.lists(LANE, min_size=lanes, max_size=lanes))),
        draw(U16), draw(st.booleans()),
        tuple(draw(st.just([]) | st.lists(SHAPE, min_size=lanes, max_size=lanes))),
    )  # fmt: skip


LIGHT = st.builds(
    LaneLight, st.booleans(), st.integers(0, 255), st.integers(-32768, 32767), U16, U16, U32
)
CARRIER = st.builds(
    CarrierMessage, PEER, U64, U64, st.sampled_from(LinkState), st.sampled_from(DownReason), LANE,
    st.lists(LIGHT, max_size=64).map(tuple),
)  # fmt: skip


@given(training_messages(), st.integers(0, 63), st.booleans())
def test_training_arrives_as_sent_whatever_the_polarity(
    message: TrainingMessage, tx_lane: int, swapped: bool
) -> None:
    payload = message.encode(tx_lane)
    heard = TrainingDecoder().decode(complement(payload) if swapped else payload)
    assert (heard.message, heard.tx_lane, heard.inverted) == (message, tx_lane, swapped)


@given(st.lists(training_messages(), min_size=2, max_size=4))
def test_one_decoder_does_not_mix_messages(messages: list[TrainingMessage]) -> None:
    decoder = TrainingDecoder()
    for message in messages * 2:
        assert decoder.decode(message.encode(1)).message == message


@given(CARRIER)
def test_light_arrives_as_sent(message: CarrierMessage) -> None:
    assert CarrierMessage.decode(message.encode()) == message


@given(st.binary(max_size=400))
def test_noise_is_malformed_and_never_crashes(noise: bytes) -> None:
    for decode in (CarrierMessage.decode, TrainingDecoder().decode):
        with pytest.raises(MalformedFrame):
            decode(noise)


@given(training_messages(), st.data())
def test_a_damaged_message_is_malformed_or_another_message(
    message: TrainingMessage, data: st.DataObject
) -> None:
    payload = bytearray(message.encode(0))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(MalformedFrame):
        TrainingDecoder().decode(payload)


@given(training_messages(), CARRIER, st.integers(1, 40))
def test_a_message_cut_short_is_malformed(
    training: TrainingMessage, carrier: CarrierMessage, cut: int
) -> None:
    with pytest.raises(MalformedFrame):
        TrainingDecoder().decode(training.encode(0)[:-cut])
    with pytest.raises(MalformedFrame):
        CarrierMessage.decode(carrier.encode()[:-cut])


@given(st.integers(0, 63))
def test_a_marker_names_its_lane_and_polarity(lane: int) -> None:
    light = LaneLight(True, lane, 0, 0, 0, 0)
    swapped = light.through_swapped_polarity()
    assert (light.tx_lane, light.inverted) == (lane, False)
    assert (swapped.tx_lane, swapped.inverted) == (lane, True)


@pytest.mark.parametrize(
    "peer",
    [
        PeerId("0" * 15, "card0", 0),
        PeerId("G" * 16, "card0", 0),
        PeerId("0" * 16, "Card0", 0),
        PeerId("0" * 16, "c" * 32, 0),
        PeerId("0" * 16, "card0", -1),
        PeerId("0" * 16, "card0", 1 << 16),
    ],
)
def test_an_identity_that_cannot_be_sent_cannot_be_built(peer: PeerId) -> None:
    with pytest.raises(ValueError, match=r"chassis|peer\."):
        CarrierMessage(peer, 0, 0, LinkState.UP, DownReason.NONE, None, ())


def test_a_light_out_of_range_cannot_be_built() -> None:
    for values in ((256, 0, 0), (0, 40_000, 0), (0, 0, -1)):
        marker, power, penalty = values
        with pytest.raises(ValueError, match="LaneLight"):
            LaneLight(True, marker, power, 0, penalty, 0)
