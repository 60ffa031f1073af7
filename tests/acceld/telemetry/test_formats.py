"""Text and OpenMetrics: the same in meaning as what prometheus_client itself would write."""

from __future__ import annotations

import dataclasses
import gzip
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import generate_latest as write_text
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as write_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from acceld.fields.table import DEFAULT, FIELDS, GROUPS
from acceld.host.snapshot import HealthSample, HostSnapshot
from acceld.telemetry.exposition import Format
from acceld.telemetry.http import MetricsServer
from acceld.telemetry.scrape import Page, scrape
from acceld.telemetry.selection import UnknownGroup, chosen, preferred, takes_gzip
from acceld.telemetry.subjects import World
from accelhw.interface.messages import InjectFault

from ..conftest import Daemon
from ..fake_hardware import FakeHardware
from ..fields.busy import fill

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@pytest.fixture
async def snapshot(hardware: FakeHardware, daemon: Daemon) -> HostSnapshot:
    fill(hardware)
    await daemon.host.faults.inject(InjectFault(0, "", "bent_fibre", "card0/oe0", (2,)))
    health = (
        HealthSample("host", "", 3, ("LINKS_DOWN",)),
        HealthSample("lane", "card0/oe0/lane2", 2, ('odd "words" \\ and\nlines',)),
    )
    return dataclasses.replace(daemon.host.snapshot(), health=health)


class Theirs:
    """The same samples, collected as prometheus_client wants them."""

    def __init__(self, snapshot: HostSnapshot) -> None:
        self._world = World(snapshot)

    def collect(self) -> Iterator[Metric]:
        kinds = {
            "gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "info": InfoMetricFamily,
        }  # fmt: skip
        for field in FIELDS:
            name = field.metric.removesuffix("_info")
            family = kinds[field.kind](name, field.text)
            for labels, value in self._world.samples(field):
                unescaped = {
                    key: re.sub(r'\\[\\"n]', lambda found: ESCAPED[found[0]], text)
                    for key, text in LABEL.findall(labels)
                }
                family.add_sample(field.metric, unescaped, value)
            if family.samples:
                yield family


def meaning(families: Iterator[Metric]) -> dict[str, tuple[object, ...]]:
    return {
        family.name: (
            family.type,
            family.documentation,
            sorted((s.name, sorted(s.labels.items()), s.value) for s in family.samples),
        )
        for family in families
    }


async def test_the_text_means_what_theirs_means(snapshot: HostSnapshot) -> None:
    registry = CollectorRegistry()
    registry.register(Theirs(snapshot))
    ours = scrape(snapshot, GROUPS, Format.TEXT).text
    theirs = write_text(registry).decode()
    assert meaning(read_text(ours)) == meaning(read_text(theirs))
    assert len(meaning(read_text(ours))) > 120


async def test_openmetrics_means_what_theirs_means(snapshot: HostSnapshot) -> None:
    registry = CollectorRegistry()
    registry.register(Theirs(snapshot))
    ours = scrape(snapshot, GROUPS, Format.OPENMETRICS).text
    theirs = write_openmetrics(registry).decode()
    assert meaning(read_openmetrics(ours)) == meaning(read_openmetrics(theirs))
    assert ours.endswith("# EOF\n")
    assert "# TYPE accel_card_resets counter\n" in ours
    assert 'accel_card_resets_total{card="card0"} ' in ours
    assert "# TYPE accel_card info\n" in ours
    assert "# {" not in ours  # no exemplars


async def test_a_page_knows_how_many_samples_it_has(snapshot: HostSnapshot) -> None:
    page = scrape(snapshot)
    assert page.samples == sum(len(f.samples) for f in read_text(page.text))


@pytest.mark.parametrize(
    ("accept", "format_"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/html, */*;q=0.1", Format.TEXT),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", Format.OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", Format.OPENMETRICS),
        ("application/openmetrics-text;version=9.0.0,text/plain;q=0.5", Format.TEXT),
        ("application/openmetrics-text;q=0.3,text/plain;q=0.5", Format.TEXT),
        ("application/openmetrics-text;q=no", Format.TEXT),
        (  # Prometheus 2.4x
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1"
            ";q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format.OPENMETRICS,
        ),
        (  # Prometheus 3 with protobuf first, which we do not write
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
            "delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
            "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,"
            "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            Format.OPENMETRICS,
        ),
    ],
)
def test_the_scraper_chooses_the_format(accept: str, format_: Format) -> None:
    assert preferred(accept) is format_


@pytest.mark.parametrize(
    ("header", "takes"),
    [("", False), ("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("x", False)],
)
def test_only_who_takes_gzip_gets_it(header: str, takes: bool) -> None:
    assert takes_gzip(header) is takes


def test_a_query_names_its_groups() -> None:
    assert chosen("") == DEFAULT
    assert chosen("collect[]=link&collect[]=lane_flags") == {"link", "lane_flags"}
    assert chosen("collect=link") == {"link"}
    assert chosen("exclude[]=port&exclude[]=fec") == DEFAULT - {"port", "fec"}
    with pytest.raises(UnknownGroup, match="did you mean lane_flags"):
        chosen("collect[]=lane_flag")
    with pytest.raises(UnknownGroup, match=r"there is daemon, worker, .*, lane_flags"):
        chosen("collect[]=zzz")
    with pytest.raises(UnknownGroup, match="one of them"):
        chosen("collect[]=link&exclude[]=port")


def test_it_is_served_as_it_was_asked_for() -> None:
    asked: list[tuple[Collection[str], Format]] = []

    def answer(groups: Collection[str], form: Format) -> Page:
        asked.append((groups, form))
        return Page("accel_x 1\n" * 1000, 1000)

    server = MetricsServer("127.0.0.1", 0, answer)
    server.start()

    def get(query: str = "", **headers: str) -> tuple[str, str, bytes]:
        request = urllib.request.Request(
            f"http://{server.address}/metrics{query}",
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        with urllib.request.urlopen(request) as reply:
            kind, coding = reply.headers["Content-Type"], reply.headers["Content-Encoding"]
            return kind, coding, reply.read()

    try:
        assert get()[0] == "text/plain; version=0.0.4; charset=utf-8"
        kind, coding, body = get(Accept="application/openmetrics-text", Accept_Encoding="gzip")
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert (coding, gzip.decompress(body)) == ("gzip", b"accel_x 1\n" * 1000)
        get("?collect[]=link")
        with pytest.raises(urllib.error.HTTPError, match="400") as caught:
            get("?collect[]=lunk")
        assert caught.value.read() == b"no group of metrics 'lunk'; did you mean link?\n"
    finally:
        server.close()
    assert asked == [
        (DEFAULT, Format.TEXT), (DEFAULT, Format.OPENMETRICS), ({"link"}, Format.TEXT),
    ]  # fmt: skip
