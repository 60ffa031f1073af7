"""What Prometheus reads: names, values, and that they are the API's."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Collection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from accel.v1 import card_pb2, link_pb2, optics_pb2
from acceld.config import Settings
from acceld.errors import StartFailure
from acceld.fields.field import label
from acceld.records import Slice, Transfer
from acceld.telemetry.exposition import Format
from acceld.telemetry.http import MetricsServer
from acceld.telemetry.scrape import Page, scrape
from accelhw.interface.messages import InjectFault, SetPortAdmin
from accelhw.model.link import DownReason, LinkState
from accelhw.model.transfer import TransferKind, TransferState, TransferStatus

from ..conftest import Daemon, until
from ..fake_hardware import EPOCH_NS, FakeHardware


def text_of(daemon: Daemon) -> str:
    snapshot = dataclasses.replace(
        daemon.host.snapshot(), daemon_started_ns=EPOCH_NS, version="0.0.0", store_bytes=32768
    )
    return scrape(snapshot).text


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def at(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


async def busy(hardware: FakeHardware, daemon: Daemon) -> None:
    """Something in every family."""
    await daemon.region("card0", "weights", 1 << 20)
    await daemon.write("cards/card0/regions/weights", bytes(range(256)) * 16)
    for number, state in enumerate(3 * [TransferState.DONE] + [TransferState.CANCELLED]):
        ended = TransferStatus(str(number), TransferKind.WRITE, state, "card0", "card1", 4096)
        daemon.host.store.put_transfer(Transfer(Slice("card0"), Slice("card1"), ended, number))
    with hardware.tables.writing(0):
        for number, name in enumerate(hardware.tables.port.dtype.names or ()):
            if name.endswith(("frames", "bytes", "sent", "received", "errors", "stalls")):
                hardware.tables.port[name][0] = 1000 + number
        hardware.tables.lane["rx_bits"][:8] = 8e15
        hardware.tables.lane["pre_fec_errors"][:8] = range(8)
        hardware.tables.card["bus_read_bytes"][0] = 2**53 + 1
    await daemon.host.events.settled()


async def test_a_whole_scrape(
    hardware: FakeHardware, daemon: Daemon, golden: Callable[[str, str], None]
) -> None:
    await busy(hardware, daemon)
    await daemon.host.faults.inject(InjectFault(0, "", "bent_fibre", "card0/oe0", (2,)))
    golden("metrics/scrape.txt", text_of(daemon))


async def test_promtool_finds_nothing_to_say(hardware: FakeHardware, daemon: Daemon) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    await busy(hardware, daemon)
    hardware.set_link("card1", 0, LinkState.FAILED, DownReason.CDR_NO_LOCK)
    done = await asyncio.to_thread(
        subprocess.run,
        [promtool, "check", "metrics"],
        input=text_of(daemon),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


async def test_the_scrape_says_what_the_api_says(hardware: FakeHardware, daemon: Daemon) -> None:
    await busy(hardware, daemon)
    found = values(text_of(daemon))
    card = await daemon.cards.GetCard(card_pb2.GetCardRequest(name="cards/card0"))
    link = await daemon.links.GetLink(link_pb2.GetLinkRequest(name="cards/card0/links/oe0"))
    lanes = await daemon.optics.ListLanes(
        optics_pb2.ListLanesRequest(parent="cards/card0/engines/oe0")
    )
    here = at(card="card0")
    assert found["accel_hbm_allocated_bytes", here] == card.hbm_allocated_bytes
    assert found["accel_hbm_resident_bytes", here] == card.hbm_resident_bytes > 0
    assert found["accel_card_bus_read_bytes_total", here] == card.bus_read_bytes_total
    assert found["accel_transfer_done_total", here] == card.transfers_done_total == 3
    cancelled = card.transfers_cancelled_total
    assert found["accel_transfer_cancelled_total", here] == cancelled == 1
    assert found["accel_transfer_failed_total", here] == card.transfers_failed_total == 0
    port = at(card="card0", oe="oe0")
    assert found["accel_link_margin_min_db", port] == link.margin_min_db
    capacity = found["accel_link_capacity_bytes_per_second", port]
    assert capacity * 8 / 1e9 == link.capacity_gbit_per_s
    for field, value in link.counters.ListFields():
        assert found[f"accel_port_{field.name}", port] == value
    for index, lane in enumerate(lanes.lanes):
        where = at(card="card0", oe="oe0", lane=f"lane{index}")
        assert found["accel_lane_rx_power_dbm", where] == lane.rx_power_dbm
        assert found["accel_lane_margin_db", where] == lane.margin_db
        assert found["accel_lane_pre_fec_errors_total", where] == lane.pre_fec_errors_total
        assert ("accel_lane_fec_corrected_symbols_total", where) not in found  # not asked for


async def test_exactly_one_state_is_one(hardware: FakeHardware, daemon: Daemon) -> None:
    hardware.set_link("card0", 0, LinkState.DEGRADED, DownReason.NONE)
    found = values(text_of(daemon))
    states = {
        dict(labels)["state"]: value
        for (name, labels), value in found.items()
        if name == "accel_link_state" and ("card", "card0") in labels
    }
    assert states == {s.name: float(s is LinkState.DEGRADED) for s in LinkState}


async def test_a_dark_lane_has_no_margin(hardware: FakeHardware, daemon: Daemon) -> None:
    hardware.set_link("card0", 0, LinkState.SEEKING, DownReason.NO_SIGNAL)
    found = values(text_of(daemon))
    where = at(card="card0", oe="oe0", lane="lane0")
    assert found["accel_lane_los", where] == 1
    assert ("accel_lane_margin_db", where) not in found
    reason = at(card="card0", oe="oe0", reason="NO_SIGNAL")
    assert found["accel_link_down_reason", reason] == 1


async def test_without_a_chassis_only_the_daemon_speaks(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await hardware.stop()
    await until(lambda: daemon.host.hardware.attachment is None)
    found = values(text_of(daemon))
    assert found["accel_daemon_chassis_attached", frozenset()] == 0
    assert not any(name.startswith(("accel_card", "accel_link", "accel_lane")) for name, _ in found)


async def test_counters_go_on_over_a_restart_of_the_daemon(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    await busy(hardware, daemon)
    before = values(text_of(daemon))
    await daemon.stop()
    await daemon.start()
    await daemon.host.events.settled()
    after = values(text_of(daemon))
    counters = [key for key in before if key[0].endswith("_total")]
    assert len(counters) > 100
    assert all(after[key] >= before[key] for key in counters)
    assert not any(isinstance(c, SetPortAdmin) for c in hardware.commands)


async def test_it_is_served_over_http_and_a_taken_port_is_told(
    hardware: FakeHardware, settings: Settings
) -> None:
    daemon = Daemon(dataclasses.replace(settings, metrics=("127.0.0.1", 0)))
    await daemon.start()
    address = daemon.host.metrics_address
    assert re.fullmatch(r"127\.0\.0\.1:[1-9][0-9]*", address)

    def get(path: str, **headers: str) -> tuple[int, bytes, str]:
        request = urllib.request.Request(f"http://{address}{path}", headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read(), answer.headers["Content-Type"]

    status, body, kind = await asyncio.to_thread(get, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert values(body.decode())["accel_emulated", frozenset()] == 1
    with pytest.raises(urllib.error.HTTPError, match="404"):
        await asyncio.to_thread(get, "/other")
    port = int(address.rpartition(":")[2])
    second = dataclasses.replace(
        settings,
        metrics=("127.0.0.1", port),
        socket=settings.socket.with_name("2.sock"),
        memory_socket=settings.memory_socket.with_name("m2.sock"),
        state_dir=settings.state_dir.with_name("state2"),
    )
    with pytest.raises(StartFailure, match=f"127.0.0.1:{port}.*--metrics") as caught:
        await Daemon(second).start()
    assert caught.value.exit_code == 6
    await daemon.stop()


def test_a_failing_scrape_is_an_error_of_the_server() -> None:
    def broken(groups: Collection[str], form: Format) -> Page:
        raise RuntimeError

    server = MetricsServer("127.0.0.1", 0, broken)
    server.start()
    with pytest.raises(urllib.error.HTTPError, match="500"):
        urllib.request.urlopen(f"http://{server.address}/metrics")
    server.close()


def test_free_text_in_a_label_is_escaped() -> None:
    assert label("a", 'x"\\\n') == r'a="x\"\\\n"'
