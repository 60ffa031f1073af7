"""Rows and workers: no gaps, no overlaps, fair shares, and pairs on different workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelhw.chassis.plan import distribute, make_plan, map_entry, map_mistake, straight_map
from accelhw.interface.messages import ChannelMapEntry
from accelhw.model.config import Card, Config, Fibre, FibreEnd, Hardware, TransportKind
from accelhw.model.ids import PortId
from accelhw.model.profile import load_profile, profile_names

OIO = load_profile("oio")


def cards(*profiles):
    loaded = [load_profile(name) for name in profiles]
    return tuple(Card(f"card{n}", p, p.hbm_bytes) for n, p in enumerate(loaded))


def fibre(a, b):
    ends = FibreEnd(PortId(f"card{a}", 0)), FibreEnd(PortId(f"card{b}", 0))
    return Fibre("f", *ends, TransportKind.VETH, 9000)


@given(
    st.lists(st.sampled_from(profile_names()), min_size=1, max_size=12),
    st.integers(1, 16),
    st.none() | st.integers(1, 16),
)
def test_every_row_belongs_to_one_port_or_lane(profiles, cpus, asked):
    plan = make_plan(Config(cards(*profiles), (), Hardware(workers=asked)), cpus)
    workers, card_rows, port_rows, lane_rows = plan.table_rows
    assert [p.card_row for p in plan.cards] == list(range(card_rows))
    ports = [p.port_row(port.oe) for p in plan.cards for port in p.ports]
    assert ports == list(range(port_rows))
    lanes = [
        p.lane_row(port.oe) + lane
        for p in plan.cards
        for port in p.ports
        for lane in range(p.card.profile.lanes_per_oe)
    ]
    assert lanes == list(range(lane_rows))
    assert workers == min(asked or cpus, len(profiles))
    loads = [len(plan.of_worker(n)) for n in range(workers)]
    assert sum(loads) == len(profiles)
    assert max(loads) <= -(-len(profiles) // workers)
    assert len({p.uid for p in plan.cards}) == len(profiles)


@pytest.mark.parametrize("workers", [2, 4])
def test_neighbours_in_a_ring_sit_on_different_workers(workers):
    names = [f"card{n}" for n in range(8)]
    ring = [fibre(n, (n + 1) % 8) for n in range(8)]
    placed = distribute(names, ring, workers)
    assert all(placed[f"card{n}"] != placed[f"card{(n + 1) % 8}"] for n in range(8))


def test_a_fibre_from_a_card_to_itself_does_not_matter():
    assert set(distribute(["card0"], [fibre(0, 0)], 1).values()) == {0}


@given(st.permutations(range(OIO.signal_lines)))
def test_any_permutation_is_a_channel_map(lines):
    entries = [map_entry(OIO, channel, line) for channel, line in enumerate(lines)]
    assert map_mistake(OIO, entries) == ""


def test_the_map_of_a_new_card_is_straight():
    entries = straight_map(OIO)
    assert map_mistake(OIO, entries) == ""
    assert entries[17] == ChannelMapEntry(channel=17, signal_line=17, oe=1, lane=1)


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (lambda m: m[:-1], "63 entries for 64 channels; name each channel once"),
        (lambda m: [m[1], *m[1:]], "channel 1 is used twice; use each once"),
        (
            lambda m: [map_entry(OIO, 0, 1), *m[1:]],
            "signal line 1 is used twice; use each once",
        ),
        (lambda m: [map_entry(OIO, 64, 0), *m[1:]], "there is no channel 64; use 0 to 63"),
        (
            lambda m: [ChannelMapEntry(0, 0, 1, 0), *m[1:]],
            "signal line 0 is wired to oe0/lane0, not to oe1/lane0",
        ),
    ],
)
def test_what_is_no_permutation_is_explained(change, mistake):
    assert map_mistake(OIO, change(list(straight_map(OIO)))) == mistake
