"""Counters and latches go on over the lives of the hardware, whoever ends in between."""

from __future__ import annotations

import numpy as np
import pytest

from accel.v1 import card_pb2, link_pb2, optics_pb2
from acceld.fields.field import Column
from acceld.fields.table import FIELDS
from acceld.host import ledger
from acceld.records import Total
from accelhw.interface.messages import ClearFlags, Completion
from accelhw.interface.tables import Tables
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS

from ..conftest import Daemon, refusal, until
from ..fake_hardware import EPOCH_NS, FakeHardware
from ..fields.busy import fill

LINK = "cards/card0/links/oe0"
ENGINE = "cards/card0/engines/oe0"
LOS = LANE_FLAGS.index("los")


def counters(daemon: Daemon) -> dict[str, np.ndarray]:
    """All that is counted, as a scrape would have it."""
    host = daemon.host
    attachment = host.hardware.now
    found = {}
    for card in attachment.cards.values():
        for part, rows in host._rows(attachment, card).parts():
            for column in ledger.COUNTERS[part]:
                found[f"{card.name} {part} {column}"] = rows[column].copy()
    rows = host._worker_rows(attachment)
    return found | {f"worker {c}": rows[c].copy() for c in ledger.COUNTERS["worker"]}


def blank(tables: Tables) -> None:
    for rows in (tables.worker, tables.card, tables.port, tables.lane):
        rows[...] = np.zeros(1, rows.dtype)
    for flags in (tables.lane_flag, tables.card_flag):
        flags[...] = np.zeros(1, flags.dtype)


async def power_cycle(hardware: FakeHardware, daemon: Daemon) -> None:
    """Another life, with tables that count from nothing."""
    host, boot = daemon.host, hardware.boot_id
    await hardware.stop()
    await until(lambda: host.hardware.attachment is None)
    blank(hardware.tables)
    hardware.power_cycle()
    await hardware.start()
    await until(lambda: host.hardware.attachment is not None)
    assert host.hardware.now.welcome.boot_id != boot


def test_every_counter_of_the_hardware_is_kept() -> None:
    kept = {column for part, columns in ledger.COUNTERS.items() if "flag" not in part
            for column in columns}  # fmt: skip
    shown = {
        field.source.name
        for field in FIELDS
        if isinstance(field.source, Column) and field.kind == "counter"
    }
    assert kept == shown | {"fec_bins", "restarts", "tick_overruns"}


async def test_counters_go_on_over_a_power_cycle(hardware: FakeHardware, daemon: Daemon) -> None:
    fill(hardware)
    hardware.tables.worker["restarts"] = 3
    before = counters(daemon)
    await power_cycle(hardware, daemon)
    after = counters(daemon)
    assert before.keys() == after.keys()
    assert all((after[key] >= before[key]).all() for key in before)
    assert after["card0 port tx_frames"].tolist() == before["card0 port tx_frames"].tolist()
    hardware.tables.port["tx_frames"][0] = 7
    assert counters(daemon)["card0 port tx_frames"][0] == before["card0 port tx_frames"][0] + 7
    link = await daemon.links.GetLink(link_pb2.GetLinkRequest(name=LINK))
    assert link.counters.tx_frames_total == before["card0 port tx_frames"][0] + 7


async def test_they_go_on_over_many_lives_and_restarts_of_the_daemon(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    for lives in range(1, 4):
        hardware.tables.card["resets"] = 5
        await daemon.stop()
        await daemon.start()
        assert counters(daemon)["card1 card resets"][0] == 5 * lives
        await power_cycle(hardware, daemon)


async def test_a_checkpoint_serves_where_daemon_and_hardware_end_at_once(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.tables.card["resets"] = 5
    daemon.host.checkpoint()
    daemon.host.checkpoint = lambda: None  # type: ignore[method-assign]  # killed: no last one
    hardware.tables.card["resets"] = 6
    await daemon.stop()
    await hardware.stop()
    blank(hardware.tables)
    hardware.power_cycle()
    await hardware.start()
    await daemon.start()
    assert counters(daemon)["card0 card resets"][0] == 5


async def test_latches_and_times_of_flags_stay_until_they_are_cleared(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    flag = hardware.tables.lane_flag[3, LOS]
    flag["active"] = flag["latched"] = 1
    flag["count"], flag["first_set_ns"] = 3, EPOCH_NS
    flag["last_set_ns"], flag["last_clear_ns"] = EPOCH_NS + 2 * 10**9, EPOCH_NS + 10**9
    await power_cycle(hardware, daemon)
    request = optics_pb2.GetLaneRequest(name=f"{ENGINE}/lanes/lane3")
    (told,) = (await daemon.optics.GetLane(request)).flags
    assert (told.name, told.active, told.latched, told.changes_total) == ("los", False, True, 3)
    times = [
        getattr(told, f"{when}_time").seconds for when in ("first_set", "last_set", "last_clear")
    ]
    assert [seconds - EPOCH_NS // 10**9 for seconds in times] == [0, 2, 1]
    engine = await daemon.optics.ClearFlags(optics_pb2.ClearFlagsRequest(name=ENGINE))
    assert (engine.flags_latched_count, engine.flag_changes_total) == (0, 3)
    assert hardware.commands[-1] == ClearFlags(hardware.commands[-1].id, "card0", 0)  # type: ignore[union-attr]
    await power_cycle(hardware, daemon)
    (told,) = (await daemon.optics.GetLane(request)).flags
    assert (told.latched, told.changes_total) == (False, 3)


async def test_flags_of_another_engine_stay_latched(hardware: FakeHardware, daemon: Daemon) -> None:
    hardware.tables.lane_flag["latched"] = 1
    await daemon.optics.ClearFlags(optics_pb2.ClearFlagsRequest(name=ENGINE))
    latched = [port.flags_latched for card in daemon.host.cards() for port in card.ports]
    assert latched == [0, *[8 * len(LANE_FLAGS)] * 3]


async def test_a_cards_own_flags_are_cleared_by_themselves(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    hardware.tables.card_flag["latched"] = 1
    hardware.tables.card_flag["active"][0, 2] = 1
    await power_cycle(hardware, daemon)
    card = await daemon.cards.GetCard(card_pb2.GetCardRequest(name="cards/card0"))
    assert sum(flag.latched for flag in card.flags) == len(CARD_FLAGS)
    hardware.tables.card_flag["active"][0, 2] = 1
    hardware.tables.card_flag["latched"][0, 2] = 1
    card = await daemon.cards.ClearCardFlags(card_pb2.ClearCardFlagsRequest(name="cards/card0"))
    assert [flag.name for flag in card.flags if flag.latched] == [CARD_FLAGS[2]]


async def test_flags_of_what_is_not_there_cannot_be_cleared(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    call = daemon.optics.ClearFlags(optics_pb2.ClearFlagsRequest(name="cards/card0/engines/oe9"))
    assert (await refusal(call)).reason == "PORT_NOT_FOUND"
    hardware.refuse[ClearFlags] = Completion(0, "CARD_LOST", "its worker is gone")
    call = daemon.cards.ClearCardFlags(card_pb2.ClearCardFlagsRequest(name="cards/card0"))
    assert (await refusal(call)).reason == "CARD_LOST"


@pytest.mark.parametrize(
    "total",
    [
        Total("card0 dr8", "port", "tx_frames", b"odd"),
        Total("card0 dr8", "port", "gone_since", bytes(16)),
        Total("card0 dr8", "retimer", "tx_frames", bytes(16)),
        Total("card0 dr8", "port", "tx_frames", b"\x01" * 8),  # with fewer engines
        Total("card0 oio", "port", "tx_frames", b"\x01" * 16),
        Total("card0 dr8", "lane_flag", "count", bytes(8 * 5)),  # with other flags
    ],
)
async def test_what_another_version_or_another_card_has_stored_does_no_harm(
    total: Total, hardware: FakeHardware, daemon: Daemon
) -> None:
    daemon.host.store.put_totals([total], base=True)
    await daemon.stop()
    await daemon.start()
    assert counters(daemon)["card0 port tx_frames"].tolist() == [0, 0]
