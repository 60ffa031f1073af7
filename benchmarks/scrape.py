"""How much CPU does a scrape take, per sample: of a host with 8 cards of 4 engines of 8 lanes?

A real host over real tables in shared memory, links up, health judged; the snapshot is part of the
price. Beside it: the same samples written by prometheus_client.

    python benchmarks/scrape.py [--cards 8] [--engines 4] [--lanes 8] [--repeats 9] [--json]
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from support.answer import Answer, Figures, Line, in_turn, run

from acceld.fields.table import DEFAULT, FIELDS
from acceld.host.hardware import Attachment
from acceld.host.hbm import Hbm
from acceld.host.host import Host
from acceld.host.snapshot import CardFacts, HostSnapshot
from acceld.store.store import Store
from acceld.telemetry.exposition import Format
from acceld.telemetry.scrape import scrape
from acceld.telemetry.subjects import World
from accelhw.interface import tables
from accelhw.interface.messages import CardInfo, ChannelMapEntry, FibreInfo, PortInfo, Welcome
from accelhw.interface.tables import Tables
from accelhw.model.link import LinkMode, LinkState
from accelhw.model.profile import load_profile

UNIT = "us/sample"
GOAL_US = 2.0
WORDS = {"seq", "state", "mode", "fec_t", "width", "peer_oe", "peer_card", "reason", "peer_reason"}


def rack(cards: int, engines: int, lanes: int, profile: str = "dr8") -> Host:
    """A host that is attached to so much hardware, all of it up; every figure has many digits."""
    rows = (2, cards, cards * engines, cards * engines * lanes)
    fd = os.memfd_create("tables")
    os.ftruncate(fd, tables.table_bytes(rows))
    table = Tables.attach(fd, rows, writable=True)
    _fill(table)
    infos = tuple(_card(n, engines, lanes, profile) for n in range(cards))
    welcome = Welcome(
        1, "0" * 16, 1, 1, 1 << 40, infos, (), (), {i.name: _straight(i) for i in infos}, 0, 1, rows
    )  # fmt: skip
    host = Host(Store(None), Path(tempfile.gettempdir()) / "none.sock", "0", says_events=False)
    client: Any = SimpleNamespace(welcome=welcome, why_lost="")
    hbm = {}
    for info in infos:
        memory = os.memfd_create(info.name)
        os.ftruncate(memory, info.hbm_bytes)
        hbm[info.name] = Hbm(memory)
    attachment = Attachment(
        client, table, {i.name: CardFacts(i, load_profile(profile)) for i in infos}, hbm
    )
    host.links.take(attachment)
    host.hardware.attachment = attachment
    host.health.look()
    return host


def _card(number: int, engines: int, lanes: int, profile: str) -> CardInfo:
    ports = tuple(
        PortInfo(
            oe, number * engines + oe, (number * engines + oe) * lanes, lanes,
            FibreInfo(f"fibre{number}-{oe}", "veth", 10.0, 0.5, 65535, f"card{number}-oe{oe}"),
        )
        for oe in range(engines)
    )  # fmt: skip
    return CardInfo(f"card{number}", profile, f"{number:016x}", 1 << 30, number, number % 2, ports)


def _straight(info: CardInfo) -> tuple[ChannelMapEntry, ...]:
    lanes = info.ports[0].lanes
    count = lanes * len(info.ports)
    return tuple(ChannelMapEntry(n, n, n // lanes, n % lanes) for n in range(count))


def _fill(table: Tables) -> None:
    chance = np.random.default_rng(1)
    for rows in (table.card, table.port, table.lane):
        for name in rows.dtype.names or ():
            column = rows[name]
            if column.dtype.kind == "f":
                column[...] = chance.uniform(-5.0, 5.0, column.shape)
            elif column.dtype.itemsize == 8 and name not in WORDS:
                column[...] = chance.integers(10**6, 10**12, column.shape)
    table.worker["alive"] = 1
    table.worker["beat_ns"] = time.monotonic_ns()
    table.card["state"] = tables.CARD_READY
    table.card["hbm_refresh_ratio"] = 1
    port, lane = table.port, table.lane
    port["state"], port["admin_up"], port["fec_t"] = LinkState.UP, 1, 15
    port["mode"] = LinkMode("kp4").number + 1
    port["width"] = len(lane) // len(port)
    port["peer_card"] = b"card0"
    lane["pre_fec_ber"] = 10 ** chance.uniform(-9.0, -5.0, lane.shape)
    lane["laser_wear_ratio"] = chance.uniform(0.0, 0.3, lane.shape)
    lane["tec_current_ratio"] = chance.uniform(0.0, 0.3, lane.shape)
    lane["heater_mw"] = np.nan
    for column in ("fitted_margin", "used", "tx_on"):
        lane[column] = 1


class Theirs:
    """The samples of a snapshot, as a collector of prometheus_client gives them."""

    def __init__(self, snapshot: HostSnapshot) -> None:
        world, kinds = World(snapshot), {
            "gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "info": InfoMetricFamily,
        }  # fmt: skip
        self._families = []
        for field in FIELDS:
            if field.group in DEFAULT:
                family = kinds[field.kind](field.metric.removesuffix("_info"), field.text)
                for labels, value in world.samples(field):
                    named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                    family.add_sample(field.metric, named, value)
                self._families.append(family)

    def collect(self) -> Iterator[Any]:
        return iter(self._families)


def cpu_us_per_sample(act: Callable[[], object], samples: int) -> float:
    began_s = time.process_time()
    act()
    return (time.process_time() - began_s) * 1e6 / samples


def measure(options: argparse.Namespace, answer: Answer) -> None:
    host = rack(options.cards, options.engines, options.lanes)
    snapshot = host.snapshot()
    page = scrape(snapshot)
    registry = CollectorRegistry()
    registry.register(Theirs(snapshot))
    acts: dict[str, Callable[[], object]] = {
        "text": lambda: scrape(host.snapshot()),
        "OpenMetrics": lambda: scrape(host.snapshot(), form=Format.OPENMETRICS),
        "the snapshot in it": host.snapshot,
        "theirs": lambda: generate_latest(registry),
    }

    def of(act: Callable[[], object]) -> Callable[[], float]:
        return lambda: cpu_us_per_sample(act, page.samples)

    *ours, theirs = in_turn(options.repeats, *map(of, acts.values()))
    peer = Figures(theirs, UNIT)
    for name, values in zip(acts, ours, strict=False):
        goal = GOAL_US if name == "text" else None
        answer.add(Line(f"a scrape, {name}", Figures(values, UNIT), goal=goal, better="less"))
    text = Figures(ours[0], UNIT)
    answer.add(
        Line("a scrape beside theirs", text, peer, "prometheus-client", 1.0, "less",
             note="which gets its samples ready made")
    )  # fmt: skip
    answer.add(
        Line("a whole scrape", Figures([v * page.samples / 1e3 for v in ours[0]], "ms"),
             note=f"{page.samples} samples, {len(page.text)} bytes")
    )  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--lanes", type=int, default=8)


if __name__ == "__main__":
    run(__doc__, measure, arguments, repeats=9)
