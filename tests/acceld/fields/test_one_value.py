"""Scrape, API and command line show one value, for every field of the table."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from accel.plain import to_plain
from acceld.config import Settings
from acceld.fields.field import Field, Labelled, Noun
from acceld.fields.table import FIELDS, GROUPS
from acceld.host.snapshot import HostSnapshot
from acceld.service import convert
from acceld.telemetry.scrape import scrape

from ..conftest import Daemon
from ..fake_hardware import FakeHardware
from .busy import fill

Place = tuple[str, ...]  # the labels of a noun
Found = dict[tuple[str, Place], dict[tuple[str, ...], float]]  # family, place; further labels


@pytest.fixture
async def snapshot(hardware: FakeHardware, daemon: Daemon) -> HostSnapshot:
    fill(hardware)
    hardware.tables.worker["beat_ns"] = 1
    return daemon.host.snapshot()


def scraped(snapshot: HostSnapshot) -> Found:
    fields = {field.metric: field for field in FIELDS}
    found: Found = {}
    for family in text_string_to_metric_families(scrape(snapshot, GROUPS).text):
        for sample in family.samples:
            field = fields[sample.name]
            place = tuple(sample.labels[name] for name in field.noun.labels)
            more = tuple(sample.labels.get(n, "") for n in field.labels[len(field.noun.labels) :])
            found.setdefault((sample.name, place), {})[more] = sample.value
    return found


def messages(snapshot: HostSnapshot) -> Iterator[tuple[str, Place, dict[str, Any]]]:
    """Every message of the API with figures in it, as the JSON of it."""
    yield "Host", (), to_plain(convert.host(snapshot))
    for worker in snapshot.workers:
        yield "Worker", (str(worker.index),), to_plain(convert.worker(worker))
    for card in snapshot.cards:
        yield "Card", (card.name,), to_plain(convert.card(card))
        for port in card.ports:
            place = (card.name, f"oe{port.id.oe}")
            yield "Engine", place, to_plain(convert.engine(port))
            if port.info.fibre is not None:
                yield "Link", place, to_plain(convert.link(port))
            for lane in range(len(port.lanes)):
                yield "Lane", (*place, f"lane{lane}"), to_plain(convert.lane(port, lane))


def at(message: dict[str, Any], key: str) -> Any:
    for step in key.split("."):
        if step not in message:
            return None
        message = message[step]
    return message


def number(value: Any) -> float | None:
    if isinstance(value, str):  # a time
        return datetime.fromisoformat(value).timestamp() * 1e9
    return None if value is None else float(value)


PLAIN = [f for f in FIELDS if f.message and not isinstance(f.source, Labelled)]
SEVERAL = [f for f in FIELDS if f.message and isinstance(f.source, Labelled)]


async def test_every_plain_figure_is_the_same_in_the_scrape_and_in_the_api(
    snapshot: HostSnapshot,
) -> None:
    found = scraped(snapshot)
    for field in PLAIN:
        places = [(p, m) for name, p, m in messages(snapshot) if name == field.message]
        assert places or field.noun is Noun.LASER, field.metric
        for place, message in places:
            told = number(at(message, field.key))
            metric = found.get((field.metric, place), {}).get(())
            if told is None or metric is None:
                assert told == metric, (field.metric, place)
            elif isinstance(at(message, field.key), str):
                assert abs(metric * field.divisor - told) < 2000, (field.metric, place)  # ns
            else:
                shown = metric * field.divisor / field.key_divisor
                assert shown == pytest.approx(told, rel=1e-9), (field.metric, place)


async def test_every_figure_differs_from_every_other(snapshot: HostSnapshot) -> None:
    """Or the test above would not see two of them exchanged."""
    link = next(m for name, _, m in messages(snapshot) if name == "Link")
    counters = [*link["counters"].values(), *link["fec_counters"]["bins"]]
    assert len(set(counters)) == len(counters)


def samples_of(field: Field, message: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """What the API says, in the labels and units of the scrape."""
    value = at(message, field.key)
    match field.key:
        case "state":
            return {(value,): 1.0}
        case "mode":
            return {(value,): 1.0} if value else {}
        case "reason" | "peer_reason":
            up = message["state"] in ("UP", "DEGRADED") or value["code"] == "NONE"
            return {} if up else {(value["code"],): 1.0}
        case "fec_counters.bins":
            return {(str(n),): float(count) for n, count in enumerate(value)}
        case "thresholds":
            quantity = next(q for q in value if _is_of(q["quantity"], field.metric))
            return {
                (level,): number / field.divisor
                for level, number in quantity.items()
                if level != "quantity"
            }
        case "flags":
            column = {"active": "active", "latched": "latched"}.get(
                field.metric.rpartition("_")[2], "changes_total"
            )
            return {(flag["name"],): float(flag[column]) for flag in value}
    raise AssertionError(field.key)


def _is_of(quantity: str, metric: str) -> bool:
    stem = quantity.rpartition("_")[0].replace("temp", "temperature").replace("hbm_", "")
    stem = "pre_fec_error" if stem == "pre_fec" else stem
    return f"_{stem}_threshold" in metric


async def test_every_set_of_figures_is_the_same_in_the_scrape_and_in_the_api(
    snapshot: HostSnapshot,
) -> None:
    found = scraped(snapshot)
    checked = 0
    for field in SEVERAL:
        if field.fitted:
            continue
        per_lane = field.message == "Lane"
        for name, place, message in messages(snapshot):
            if name != field.message:
                continue
            shown = found.get((field.metric, place[:2] if per_lane else place), {})
            if per_lane:
                shown = {more[1:]: v for more, v in shown.items() if more[0] == place[2]}
            told = {more: v for more, v in samples_of(field, message).items() if v}
            shown = {more: v for more, v in shown.items() if v}
            assert shown == pytest.approx(told), (field.metric, place)
            checked += len(told)
    assert checked > 1000


async def test_the_command_line_prints_what_the_api_says(
    hardware: FakeHardware, daemon: Daemon
) -> None:
    fill(hardware)
    snapshot = daemon.host.snapshot()
    environment = {**os.environ, "ACCEL_SOCKET": str(daemon.settings.socket)}
    for noun, message in (("card", "Card"), ("oe", "Engine"), ("link", "Link"), ("lane", "Lane")):
        line = [sys.executable, "-m", "accelctl.main", noun, "list", "-o", "json"]
        done = await asyncio.to_thread(
            subprocess.run, line, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed = {row["name"]: row for row in json.loads(done.stdout)}
        told = [m for name, _, m in messages(snapshot) if name == message]
        assert printed == {row["name"]: row for row in told}


def external_lasers(snapshot: HostSnapshot) -> Iterator[tuple[Place, dict[str, Any]]]:
    for card in snapshot.cards:
        for port in card.ports:
            for laser in to_plain(convert.engine(port))["external_lasers"]:
                yield (card.name, f"oe{port.id.oe}", f"laser{laser['index']}"), laser


async def test_external_lasers_are_the_same_in_the_scrape_and_in_the_api(
    hardware: FakeHardware, settings: Settings
) -> None:
    hardware.infos = tuple(msgspec.structs.replace(i, profile="oio") for i in hardware.infos)
    daemon = Daemon(settings)
    await daemon.start()
    try:
        fill(hardware)
        hardware.tables.lane["tec_current_ratio"][:4] = np.nan
        snapshot = daemon.host.snapshot()
        found = scraped(snapshot)
        fields = [f for f in PLAIN if f.noun is Noun.LASER]
        lasers = list(external_lasers(snapshot))
        assert len(lasers) == 2 * 2 * 2  # of four lanes each
        for field in fields:
            for place, laser in lasers:
                shown = found.get((field.metric, place), {}).get(())
                told = laser.get(field.key)
                if told is None or shown is None:
                    assert told == shown, (field.metric, place)
                else:
                    assert shown * field.divisor == pytest.approx(told), (field.metric, place)
        assert "tec_current_ratio" not in lasers[0][1]
        assert found["accel_els_info", lasers[1][0]] == {("4-7",): 1}
    finally:
        await daemon.stop()
