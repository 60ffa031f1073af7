"""A cable crosses what belongs to a lane, and touches nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.model.link import DownReason, LinkState, PeerId
from accelhw.sim.linkpair import Inbox, straight_fibre
from accelhw.transport.cable import Cable, CableMap
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.frame import FrameType, decode_frame, encode_frame
from accelhw.wire.training import complement

ME = PeerId("0123456789abcdef", "card0", 0)


def through(cable_map: CableMap, frame: bytes) -> bytes:
    inbox = Inbox()
    cable = Cable(inbox, cable_map)
    inbox.frames.append(frame)
    first = cable.peek()
    assert first is not None
    head = bytes(first)
    again = cable.peek()
    assert again is not None
    assert bytes(again) == head  # looking twice changes nothing
    received = bytearray(cable.peeked_bytes)
    # in two parts, as a port does that reads header and payload to different places
    view = memoryview(received)
    assert cable.receive_into([view[:56], view[56:]]) == len(received)
    assert cable.peek() is None
    assert bytes(received).startswith(head)
    return bytes(received)


def carrier(lanes: int) -> CarrierMessage:
    lights = tuple(LaneLight(True, i, i * 10, 500, 100, 1_300_000 + i) for i in range(lanes))
    return CarrierMessage(ME, 1, 2, LinkState.SEEKING, DownReason.NONE, None, lights)


crossings = st.integers(1, 16).flatmap(
    lambda lanes: st.tuples(
        st.permutations(range(lanes)).map(tuple), st.frozensets(st.integers(0, lanes - 1))
    )
)


@given(crossings, st.binary(max_size=100))
def test_a_training_frame_arrives_on_the_crossed_lane(
    crossing: tuple[tuple[int, ...], frozenset[int]], payload: bytes
) -> None:
    order, swapped = crossing
    fibre = straight_fibre(lane_map=order, inverted_lanes=swapped)
    for end, arrivals in (("b", order), ("a", [order.index(i) for i in range(len(order))])):
        cable_map = CableMap.of(fibre, end, len(order))
        for tx_lane, arrival in enumerate(arrivals):
            frame = encode_frame(FrameType.TRAINING, payload, lane=tx_lane)
            header, got = decode_frame(through(cable_map, frame))
            assert header.lane == arrival
            lane_of_a = tx_lane if end == "b" else arrival
            assert got == (complement(payload) if lane_of_a in swapped else payload)


@given(crossings)
def test_light_arrives_in_the_crossed_order_with_its_marker(
    crossing: tuple[tuple[int, ...], frozenset[int]],
) -> None:
    order, swapped = crossing
    cable_map = CableMap.of(straight_fibre(lane_map=order, inverted_lanes=swapped), "b", len(order))
    sent = carrier(len(order))
    _, payload = decode_frame(through(cable_map, encode_frame(FrameType.CARRIER, sent.encode())))
    lights = CarrierMessage.decode(payload).lanes
    for tx_lane, arrival in enumerate(order):
        assert lights[arrival].power_cdbm == sent.lanes[tx_lane].power_cdbm
        assert lights[arrival].tx_lane == tx_lane
        assert lights[arrival].inverted == (tx_lane in swapped)


CROSSED = CableMap((1, 0), frozenset({0}))


@pytest.mark.parametrize("kind", [FrameType.ACK, FrameType.DATA, FrameType.MESSAGE])
def test_data_passes_untouched(kind: FrameType) -> None:
    frame = encode_frame(kind, b"payload", epoch=7)
    assert through(CROSSED, frame) == frame


@pytest.mark.parametrize("kind", [FrameType.TRAINING, FrameType.CARRIER])
def test_a_damaged_frame_stays_damaged(kind: FrameType) -> None:
    payload = carrier(2).encode() if kind is FrameType.CARRIER else b"x" * 90
    frame = encode_frame(kind, payload, lane=0)
    for at in range(14, len(frame)):
        spoilt = bytearray(frame)
        spoilt[at] ^= 0x10
        assert through(CROSSED, bytes(spoilt)) == bytes(spoilt)


@given(st.binary(max_size=120))
def test_foreign_and_short_frames_pass(noise: bytes) -> None:
    assert through(CROSSED, noise) == noise if noise else True


def test_a_changed_frame_can_be_discarded() -> None:
    inbox = Inbox()
    cable = Cable(inbox, CROSSED)
    inbox.frames.extend(encode_frame(FrameType.TRAINING, bytes([i]), lane=0) for i in range(2))
    assert cable.peek() is not None
    cable.discard()
    view = cable.peek()
    assert view is not None
    received = bytearray(cable.peeked_bytes)
    cable.receive_into([memoryview(received)])
    assert decode_frame(received)[1] == b"\1"
    assert cable.peek() is None


def test_a_straight_cable_costs_nothing() -> None:
    assert CableMap.of(straight_fibre(), "a", 4).straight
    assert not CROSSED.straight
