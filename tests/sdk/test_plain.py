"""Messages as plain data: numbers are numbers, what is absent has no key."""

from __future__ import annotations

import json

from google.protobuf.timestamp_pb2 import Timestamp

from accel.plain import columns, rfc3339, to_plain, word
from accel.v1 import card_pb2, event_pb2, link_pb2, memory_pb2, transfer_pb2


def test_wide_integers_are_numbers() -> None:
    plain = to_plain(card_pb2.Card(hbm_total_bytes=2**63))
    assert plain["hbm_total_bytes"] == 2**63
    assert json.loads(json.dumps(plain)) == plain


def test_a_zero_that_was_measured_stays_and_a_zero_that_was_not_goes() -> None:
    plain = to_plain(link_pb2.Link(margin_min_db=0.0, width_lanes=0))
    assert plain["margin_min_db"] == 0.0
    assert plain["width_lanes"] == 0
    assert {"rtt_us", "up_time", "peer", "state", "fibre"}.isdisjoint(plain)


def test_enums_are_their_short_word() -> None:
    link = link_pb2.Link(state=link_pb2.LINK_STATE_UP)
    assert word(link, "state") == to_plain(link)["state"] == "UP"
    card = card_pb2.Card(state=card_pb2.CARD_STATE_FELL_OFF_BUS)
    assert word(card, "state") == "FELL_OFF_BUS"
    assert word(card_pb2.Card(), "state") == ""


def test_an_enum_of_a_newer_daemon_is_its_number() -> None:
    assert word(link_pb2.Link(state=77), "state") == "77"  # type: ignore[arg-type]


def test_times_carry_as_many_digits_as_they_need() -> None:
    assert rfc3339(Timestamp(seconds=1_790_000_000)) == "2026-09-21T14:13:20Z"
    assert rfc3339(Timestamp(seconds=0, nanos=120_000_000)) == "1970-01-01T00:00:00.120Z"
    assert rfc3339(Timestamp(seconds=0, nanos=1_000)) == "1970-01-01T00:00:00.000001Z"


def test_free_form_details_keep_integers_whole() -> None:
    event = event_pb2.Event(revision=1)
    event.detail.update({"lane": 3, "ber": 2.4e-9, "inner": {"on": True}, "list": [1, "a"]})
    assert to_plain(event)["detail"] == {
        "ber": 2.4e-9,
        "inner": {"on": True},
        "lane": 3,
        "list": [1, "a"],
    }


def test_a_named_region_has_no_zero_key() -> None:
    named = transfer_pb2.RegionSlice(region="cards/card0/regions/weights", offset=0)
    assert to_plain(named) == {"region": "cards/card0/regions/weights", "offset": 0}
    far = transfer_pb2.RegionSlice(card="cards/card9", region_id=7, key=0)
    assert to_plain(far)["key"] == 0


def test_a_choice_shows_the_chosen_alone() -> None:
    assert to_plain(memory_pb2.FillRegionRequest(byte=0)) == {"offset": 0, "length": 0, "byte": 0}


def test_columns_cover_every_key_a_message_can_have() -> None:
    names = columns(link_pb2.Link.DESCRIPTOR)
    assert {"name", "reason.lane", "counters.tx_bytes_total", "up_time"} <= set(names)
